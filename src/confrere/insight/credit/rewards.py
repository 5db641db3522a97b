"""`rewards`: from silos, a user and a run to the ledger."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from confrere.algorithms.borrowing import EVIDENCE_ROUNDS
from confrere.answers import Answer, AnswerWarning, personalise
from confrere.checks import check_numbers
from confrere.data.silos import Silos
from confrere.history import History, row_for
from confrere.insight.credit.game import Progress, check_user_of, user_of
from confrere.insight.credit.ledger import Joined, Ledger, made_ledger
from confrere.insight.credit.shapley import ORDERS, shapley
from confrere.models import Model
from confrere.recipe import Recipe
from confrere.selection import ndoye
from confrere.selection.asking import Others, start_with
from confrere.selection.ndoye import Heard
from confrere.selection.resampling import RESAMPLES
from confrere.simulate import simulate

Run = Answer | History | Recipe | None
EXCHANGE = "auto (evidence"
SAME = 1e-3  # of the length of the user's message: two honest silos are never so near


def rewards(
    silos: Silos,
    user: int | str,
    run: Run = None,
    model: Model | None = None,
    *,
    budget: float = 1.0,
    rounds: int = 30,
    game: Literal["optimum", "run"] | None = None,
    orders: int = ORDERS,
    every: int = 3,
    l2: float = 0.01,
    others: Others = "train",
    heard: Heard | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    progress: Progress | None = None,
) -> Ledger:
    """Who deserves credit for the model of one user, and what each scheme would pay out of a budget.

    Args:
        run: what is accounted for: an answer of `personalise`, a history of `simulate` for this user, or a recipe,
            which is run for `rounds` rounds; by default `personalise(silos, user)`.
        model: by default logistic regression for classes, linear regression for amounts.
        budget: what the user has to give, in any unit.
        game: what coalitions are judged by, for influence and Shapley: "optimum", the optimum of their pooled rows (by
            default, for linear models), or "run", the recipe itself run with each coalition alone.
        orders, every, l2, others, resamples, progress: see `shapley`; `heard`: see `selection.ndoye`.

    >>> import numpy as np, confrere as cf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4, 60, 2))
    >>> silos = cf.Silos.from_arrays([(x, (x[:, 0] > 0) ^ (i == 3)) for i, x in enumerate(X)], names=list("abcd"))
    >>> found = cf.insight.rewards(silos, "a", cf.fedsgd(lr=1.0), budget=1000)
    >>> found.paid("d", "equal") > 333, found.paid("d", "shapley")
    (True, 0.0)
    """
    check_numbers(budget=budget)
    seen, place, model = start_with(silos, user, model, others)
    name = seen.names[place]
    recipe = check_game(game, run, model)
    joined = joined_in(run, seen, place, model, rounds, others, seed)
    silent = [n for i, n in enumerate(seen.names) if i != place and not joined.joined[i]]
    found = shapley(
        silos, name, model, recipe, rounds=rounds, orders=orders, every=every, l2=l2, others=others, silent=silent,
        resamples=resamples, seed=seed, progress=progress,
    )  # fmt: skip
    ranked = ndoye(silos, name, model=model, others=others, silent=silent, heard=heard, resamples=resamples, seed=seed)
    rows = np.array(seen.sizes("train"))
    return made_ledger(seen.names, place, float(budget), rows, joined, ranked, found)


def check_game(game: str | None, run: Run, model: Model) -> Recipe | None:
    """The recipe by which coalitions are judged; None for the optimum of their rows."""
    if game not in (None, "optimum", "run"):
        raise ValueError(f"game must be 'optimum' or 'run', not {game!r}")
    linear = model.name in ("linear", "logistic")
    if game == "optimum" or (game is None and linear):
        return None
    if not isinstance(run, Recipe):
        why = "game='run'" if linear else f"a model such as {model.name}, which has no optimum to go to,"
        raise ValueError(f"{why} needs a recipe to run with every coalition: say e.g. run=confrere.fedavg(lr=0.1)")
    return run


def joined_in(
    run: Run, silos: Silos, user: int, model: Model, rounds: int, others: Others, seed: int | np.integer
) -> Joined:
    """What is counted of a run."""
    check_whose(run, silos, user)
    if run is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AnswerWarning)  # they are about the model, and this is about credit
            run = personalise(silos, user, model=model, others=others, seed=int(seed))
    if isinstance(run, Recipe):
        run = simulate(
            run, model, silos, rounds, int(seed), user=user, metrics=(), record=("weights", "distance", "norm")
        )
    if not isinstance(run, Answer | History):
        raise TypeError(f"run must be an answer, a history or a recipe, not {type(run).__name__}")
    if isinstance(run, Answer) and run.algorithm.startswith(EXCHANGE):
        return by_exchange(run, silos)
    history = run.history if isinstance(run, Answer) else run
    if history.names != silos.names:
        raise ValueError(f"the run was on other silos ({', '.join(history.names)}), not on {', '.join(silos.names)}")
    weight, once = weight_of(run, history, silos.names, user)
    return Joined(
        history.algorithm, history.rounds, history.arrived.sum(axis=0), weight, history.bytes_up.sum(axis=0), once,
        copies_of(history, user),
    )  # fmt: skip


def check_whose(run: Any, silos: Silos, user: int) -> None:
    """Refuse a run that made, or measured, the model of another user: its weights are not those of this one."""
    if isinstance(run, Answer):
        whose = run.user
    elif isinstance(run, History):
        whose = None if run.user is None else run.names[run.user]
    else:
        whose = user_of(run, silos) if isinstance(run, Recipe) else None
    check_user_of("run", whose, silos.names[user])


def copies_of(history: History, user: int) -> tuple[int, ...]:
    """Who said what the user said in every round that both joined; nobody where distances from it are not kept."""
    if history.distance is None or history.norm is None or history.user != user:
        return ()
    both = history.arrived & (history.arrived & (history.norm > 0))[:, [user]]
    same = both.any(axis=0) & ((history.distance[:, 0] <= SAME) | ~both).all(axis=0)
    return tuple(int(i) for i in np.flatnonzero(same) if i != user)


def by_exchange(answer: Answer, silos: Silos) -> Joined:
    """What is counted of evidence-weighted borrowing, from what the answer says was sent: no run has to be repeated."""
    sent = [entry for entry in answer.shared if "borrow" in entry.why and entry.silo in silos.names]
    numbers = np.array([sum(e.count for e in sent if e.silo == name) for name in silos.names])
    joined = np.where(numbers > 0, EVIDENCE_ROUNDS, 0)
    weight = np.array([answer.weights.get(name, np.nan) for name in silos.names])
    size = np.dtype(jnp.result_type(float)).itemsize
    return Joined(answer.algorithm, EVIDENCE_ROUNDS, joined, weight, numbers * size, once=True)


def weight_of(run: Answer | History, history: History, names: Sequence[str], user: int) -> tuple[np.ndarray, bool]:
    """Every silo's weight in the user's model [n], summed over the rounds; and whether silos were weighed only once."""
    if isinstance(run, Answer) and run.algorithm.startswith("auto"):
        return np.array([run.weights.get(name, np.nan) for name in names]), True
    shares = history.shares
    if shares is None:
        return np.full(len(names), np.nan), True
    return row_for(shares, user, history.per_silo).sum(axis=0), False
