"""An answer from an algorithm whose numbers are settled: one run, nothing is tuned."""

import math
from typing import Any, Literal

import jax

from confrere.answers import words
from confrere.answers.answer import Answer
from confrere.answers.comparison import compared
from confrere.answers.named import kept_weight, listened_to, numbers_in_words
from confrere.answers.predictor import Predictor
from confrere.answers.sent import in_one_run
from confrere.core import Tree
from confrere.data.silos import Silos
from confrere.history import History
from confrere.models import Model
from confrere.recipe import Recipe
from confrere.simulate import simulate
from confrere.study.units import in_units, told_of_labels, units_of


def ready_answer(
    silos: Silos,
    user: int | str,
    recipe: Recipe,
    model: Model,
    rounds: int,
    *,
    others: Literal["all", "train"] = "all",
    seed: int | jax.Array = 0,
    params: Tree = None,
) -> Answer:
    """The answer of a ready recipe; `seed` and `params` are those of `simulate`.

    >>> import numpy as np, confrere as cf
    >>> rows = [(x, x[:, 0] > 0) for x in np.random.default_rng(0).normal(size=(2, 40, 2))]
    >>> silos = cf.Silos.from_arrays(rows, names=["a", "b"])
    >>> answer = ready_answer(silos, "a", cf.fedsgd(lr=1.0), cf.models.logistic(), 5)
    >>> answer.algorithm, answer.weights
    ('fedsgd', {'a': 0.5, 'b': 0.5})
    """
    place = silos.index(user)
    seen = silos.for_user(place, others)
    units = units_of(seen, model)
    history = simulate(recipe, model, in_units(seen, units), rounds, seed, user=place, params=params, metrics=())
    predictor = Predictor.of(model, [(1.0, history.personal(place))], silos, place, units)
    said = told_of(history, silos, place, math.nan)
    shared = (*silos.shared, *told_of_labels(seen, model), *in_one_run(silos, history))

    def compare():
        return compared(silos, place, model, others, 0, rounds, {}, predictor, None)

    rows = seen.sizes("train")[place]
    key = tuple(map(int, jax.random.key_data(seed))) if isinstance(seed, jax.Array) else int(seed)
    return Answer(user=silos.names[place], model=predictor, rows=rows, shared=shared, compare=compare, key=key, **said)


def told_of(history: History, silos: Silos, user: int, score: float) -> dict[str, Any]:
    """What an answer says of one run of a named algorithm."""
    name = history.algorithm
    weights = listened_to(history, silos, user)
    relevance = kept_weight(history, silos, user) if name == "weight_erosion" else {}
    numbers = numbers_in_words({k: v for k, v in history.hyper.items() if k != "user"})
    tuned = f"{name} with {numbers}" if numbers else name
    findings = " ".join([
        f"As asked, {tuned}.", words.whom_its_average_heard(silos.names[user], name, weights),
        *words.who_was_left_out(relevance, (), (), weights),
    ])  # fmt: skip
    return {
        "algorithm": name, "weights": weights, "prior": 0.0, "relevance": relevance, "candidates": {tuned: 1.0},
        "scores": {tuned: score}, "refused": (), "silent": (), "findings": findings, "notes": (),
        "make_history": lambda: history,
    }  # fmt: skip
