"""Free riders: what a silo that gives nothing would earn by every scheme, on the user's own silos.

    noise      random messages in every round; to `ndoye` a random model
    echo       the common model sent back untrained; to `ndoye` the user's own model
    copy       the user's message, overheard and sent again; to `ndoye` the user's own model
    replay     another silo's message, overheard and sent again in the same round; to `ndoye` that silo's model
    stolen     another silo's rows, trained on like one's own

The rider claims as many rows as the silos have in the median, and, asked how its model does at home, answers `CLAIMED`:
nobody can check either. Influence and Shapley are judged by running the recipe with every coalition; a rider that
overhears a silo has nothing to say in a coalition where that silo is absent.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, get_args

import jax
import numpy as np

from confrere.data.silo import Silo
from confrere.data.silos import Silos
from confrere.insight.credit.game import Progress
from confrere.insight.credit.ledger import Ledger
from confrere.insight.credit.rewards import rewards
from confrere.models import Model
from confrere.recipe import Recipe
from confrere.selection.asking import Others, start_with
from confrere.selection.descent import Descent
from confrere.selection.ndoye import Heard, Offer, offers_of
from confrere.transforms.attack import attacked

Riding = Literal["noise", "echo", "copy", "replay", "stolen"]
RIDES: tuple[Riding, ...] = get_args(Riding)
RIDER = "free rider"
CLAIMED = np.float32(np.log(2))  # the loss of a coin on two classes


def free_rider(
    silos: Silos,
    user: int | str,
    recipe: Recipe,
    riding: Riding,
    model: Model | None = None,
    *,
    victim: int | str | None = None,
    rounds: int = 30,
    budget: float = 1.0,
    scale: float = 0.1,
    others: Others = "train",
    resamples: int = 200,
    seed: int = 0,
) -> Ledger:
    """The ledger of a run that a free rider joined, as the last silo; for linear models.

    Args:
        riding: what it does: "noise", "echo", "copy", "replay" or "stolen".
        victim: whose messages it replays, or whose rows it stole; by default the first silo that is not the user.
        scale: the standard deviation of random numbers.

    >>> import numpy as np, confrere as cf
    >>> rng = np.random.default_rng(0)
    >>> silos = cf.Silos.from_arrays([(x, x[:, 0] > 0) for x in rng.normal(size=(3, 60, 2))], names=["a", "b", "c"])
    >>> ledger = cf.insight.free_rider(silos, "a", cf.fedsgd(lr=1.0), "echo", rounds=5)
    >>> round(ledger.paid("free rider", "equal"), 3), ledger.paid("free rider", "shapley")
    (0.333, 0.0)
    """
    if riding not in RIDES:
        raise ValueError(f"riding must be one of {', '.join(RIDES)}, not {riding!r}")
    seen, place, model = start_with(silos, user, model, others)
    chosen = next(i for i in range(len(seen)) if i != place) if victim is None else seen.index(victim)
    joined, rider = with_rider(seen, chosen if riding == "stolen" else None, seed), len(seen)
    run = recipe
    if riding in ("noise", "echo"):
        run = attacked(recipe, (rider,), riding, scale=scale)
    elif riding != "stolen":
        run = attacked(recipe, (rider,), "overheard", victim=place if riding == "copy" else chosen)
    heard = None if riding == "stolen" else offers(joined, place, chosen, riding, model, scale, seed)
    return rewards(
        joined, place, run, model, budget=budget, rounds=rounds, game="run", heard=heard, resamples=resamples,
        others="train", seed=seed,
    )  # fmt: skip


def with_rider(silos: Silos, stolen: int | None, seed: int) -> Silos:
    """The silos and one more, whose rows are random, or those of another."""
    if stolen is not None:
        X, y = silos[stolen].rows("train")
    else:
        rng, rows = np.random.default_rng(seed), int(np.median(silos.sizes("train")))
        everything = np.concatenate([s.rows("train")[1] for s in silos.silos])
        X, y = rng.normal(size=(rows, *silos[0].X.shape[1:])), rng.choice(everything, size=rows)
    rider = Silo(RIDER, X, y, np.zeros(len(y), np.int8))
    return replace(silos, silos=(*silos.silos, rider), source=None)


def offers(silos: Silos, user: int, victim: int, riding: Riding, model: Model, scale: float, seed: int) -> Heard:
    """What the rider offers to `ndoye` in place of a model of its own."""
    whose = silos.names[victim if riding == "replay" else user]
    [taken] = offers_of(silos, [whose], 2, model, 0.01, Descent(), seed).values()
    rng = np.random.default_rng(seed)
    random = jax.tree.map(lambda a: np.asarray(scale * rng.normal(size=a.shape), a.dtype), taken.model)
    said = Offer(random if riding == "noise" else taken.model, taken.loss if riding == "replay" else CLAIMED)
    return lambda name, offer: said if name == RIDER else offer


def earnings(
    draw: Callable[[int], Silos], user: int | str, make: Callable[[], Recipe], seeds: Sequence[int],
    rides: Sequence[Riding] = RIDES, *, rounds: int = 30, progress: Progress | None = None,
) -> dict[str, dict[str, np.ndarray]]:  # fmt: skip
    """The rider's share of the budget by what it does and by scheme, one number per seed; draw: seed -> silos."""
    found: dict[str, dict[str, list[float]]] = {}
    for done, (riding, seed) in enumerate((r, s) for r in rides for s in seeds):
        ledger = free_rider(draw(seed), user, make(), riding, rounds=rounds, seed=seed)
        for scheme in ledger.payouts:
            found.setdefault(riding, {}).setdefault(scheme, []).append(ledger.paid(RIDER, scheme))
        if progress is not None:
            progress(done + 1, len(rides) * len(seeds))
    return {r: {s: np.array(v) for s, v in by.items()} for r, by in found.items()}
