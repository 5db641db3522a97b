"""The answer in words that a clinician can read."""

from collections.abc import Mapping, Sequence

from confrere.answers.answer import RELEVANT

SMALL = 0.02  # shares below are summed up
MUCH = 0.1  # a share above is no little say


def percent(share: float) -> str:
    """A share in whole per cent."""
    return "less than 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def listing(names: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names))


COMMON = {  # algorithms that weigh silos for a common model alone, and how a silo's own follows from it
    "fine_tuned": "Of the common model, from which the silo's own starts,",
    "apfl": "Of the common model, with which the silo's own is mixed,",
    "model_interpolation": "Of the common model, with which the silo's own is mixed,",
    "fedper": "Of the layers that all share,",
    "fedrep": "Of the layers that all share,",
    "fedbn": "Of the layers that all share,",
    "per_fedavg": "Of the common model, from which the silo's own starts,",
    "ditto": "Of the common model, towards which the silo's own is pulled,",
    "pfedme": "Of the common model, towards which the silo's own is pulled,",
    "multi_task": "Of the mean of all models, towards which the silo's own is pulled,",
}


def whom_it_listened_to(user: str, weights: Mapping[str, float], prior: float) -> str:
    """Shares of the information, largest first."""
    own = f"{percent(weights.get(user, 0.0))} of what the model knows comes from {user}'s own rows"
    assumed = f"; {percent(prior)} is a cautious assumption made before any row was seen" if prior >= 0.005 else ""
    return own + shares_of_others(user, weights) + assumed + "."


def whom_its_average_heard(user: str, algorithm: str, weights: Mapping[str, float]) -> str:
    """Shares of the weight in the average of a named algorithm, largest first.

    >>> whom_its_average_heard("a", "ditto", {"a": 0.1, "b": 0.9})
    "Of the common model, towards which the silo's own is pulled, 10 % comes from a's rows, 90 % from b."
    """
    if algorithm not in COMMON:
        return whom_it_listened_to(user, weights, 0.0)
    own = f"{COMMON[algorithm]} {percent(weights.get(user, 0.0))} comes from {user}'s rows"
    return own + shares_of_others(user, weights) + "."


def shares_of_others(user: str, weights: Mapping[str, float]) -> str:
    """The shares of other silos, small ones summed up."""
    others = sorted(((share, name) for name, share in weights.items() if name != user), reverse=True)
    large = [f"{percent(share)} from {name}" for share, name in others if share >= SMALL]
    small = [(share, name) for share, name in others if 0 < share < SMALL]
    if small:
        together = " together" if len(small) > 1 else ""
        large.append(f"{percent(sum(share for share, _ in small))} from {listing([n for _, n in small])}{together}")
    return f", {listing(large)}" if large else ", nothing from other silos"


def who_was_left_out(
    relevance: Mapping[str, float], refused: Sequence[str], silent: Sequence[str], weights: Mapping[str, float]
) -> list[str]:
    """Silos that looked unrelated, whose message could not be true, or was empty."""
    said = []
    unrelated = [n for n, value in relevance.items() if value < RELEVANT and n not in refused and n not in silent]
    if unrelated:
        values = listing([f"{name} ({relevance[name]:.2f})" for name in unrelated])
        share = sum(weights.get(name, 0.0) for name in unrelated)
        little = " and had little say" if share <= MUCH else f", yet {percent(share)} of the information is theirs"
        said.append(f"By the user's own rows, {values} {verb(unrelated, 'looks', 'look')} unrelated{little}.")
    if refused:
        said.append(f"What {listing(refused)} sent could not be true, and was not used.")
    if silent:
        few = f"{listing(silent)} {verb(silent, 'has', 'have')} too few rows to be heard"
        said.append(f"{few}: {verb(silent, 'its', 'their')} messages were empty.")
    return said


def verb(subjects: Sequence[str], one: str, many: str) -> str:
    """The form of a verb for so many subjects."""
    return one if len(subjects) == 1 else many


def was_it_worth_it(score: float, alone: float, what: str) -> str:
    """The cross-validated loss beside that of training alone."""
    gain = alone - score
    if abs(gain) < 0.001:
        return f"On the user's own rows, held out in turn, that is as good as training alone ({what} {score:.3f})."
    better = "better" if gain > 0 else "worse"
    return (
        f"On the user's own rows, held out in turn, {what} is {score:.3f}, {better} than training alone ({alone:.3f})."
    )
