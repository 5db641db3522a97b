"""What an answer may cost: how many rounds a budget of bytes allows, tuning included, before anything is run."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from confrere.answers.trials import FOLDS
from confrere.budget import in_words, why_stopped
from confrere.models import Model
from confrere.study.cases import Case
from confrere.study.contenders import Contender, contenders
from confrere.study.runner import bytes_per_round


class Afforded(NamedTuple):
    """How many rounds may be run, and why they are fewer than asked for (empty if they are not)."""

    rounds: int
    why: str = ""


def afforded(
    case: Case, model: Model, name: str, given: Any, grid: Mapping[str, Any], rounds: int, limit: int | None
) -> Afforded:
    """The rounds of a named algorithm whose runs, those that tune it and the one that trains, keep to a budget."""
    if limit is None:
        return Afforded(rounds)
    [contender] = contenders({name: given}, grid, {}, rounds)
    runs = FOLDS * len(contender.candidates) + 1
    each = runs * bytes_per_round(model, contender, case)[1]
    allowed = contender.rounds if each == 0 else min(contender.rounds, limit // each)
    if allowed < (contender.rounds if contender.settled else 1):
        raise too_much(contender, each * (contender.rounds if contender.settled else 1), limit, runs)
    if allowed == contender.rounds:
        return Afforded(rounds)
    return Afforded(
        allowed, f"{why_stopped(limit, allowed, contender.rounds)}, {runs} runs counted: {runs - 1} tune it"
    )


def check_once(case: Case, model: Model, recipe: Any, limit: int | None) -> None:
    """Refuse a recipe that is run once, to its end, if that takes more than the budget."""
    if limit is None:
        return
    [contender] = contenders({"auto": recipe}, {}, {}, 1)
    needed = contender.rounds * bytes_per_round(model, contender, case)[1]
    if needed > limit:
        raise too_much(contender, needed, limit, 1)


def too_much(contender: Contender, needed: int, limit: int, runs: int) -> ValueError:
    """That even the least takes more than the budget."""
    what = f"all rounds of {contender.name}" if contender.settled else f"one round of {contender.name}"
    often = f", run {runs} times to tune and to train," if runs > 1 else ""
    return ValueError(
        f"budget: {what}{often} would take {in_words(needed)}, more than the {in_words(limit)} that are allowed: allow "
        "more, or name another algorithm" + (" or fewer values to try" if runs > 1 else "")
    )
