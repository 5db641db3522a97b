"""`why`: from a run, or an answer, to why a silo had the weight it had."""

from confrere.answers.answer import Answer
from confrere.data.silo import place_of
from confrere.history import History
from confrere.insight.explanations.borrowed import why_borrowed
from confrere.insight.explanations.erosion import why_eroded
from confrere.insight.explanations.path import Why, seen_in
from confrere.insight.explanations.plain import why_plain, why_unweighed
from confrere.insight.explanations.waffle import why_waffled

BY_EVIDENCE = "auto (evidence"
TERMS = {"weight_erosion": why_eroded, "waffle": why_waffled}


def why(run: History | Answer, silo: int | str, user: int | str | None = None) -> Why:
    """Why a silo counted as it did: its weight round by round, in terms that add up, and in words.

    Args:
        run: what `simulate` returned, with weights, distances and norms recorded (the default); or an answer. An answer
            by "auto" with a linear model weighs silos once: what its relevance rests on is told instead of rounds.
        silo: by name or place.
        user: for whose model, where the algorithm makes one for everybody.

    Weight Erosion: the change of a weight is by distance, by size, and what was cut off at 0. WAFFLE: the weight is by
    schedule, by distance, cut off, by rule, and smoothed. Other algorithms have no terms; their rule is told.

    >>> import numpy as np, confrere as cf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3, 60, 2))
    >>> rows = [(x, (x[:, 0] > 0) ^ (i == 2)) for i, x in enumerate(X)]
    >>> silos = cf.Silos.from_arrays(rows, names=["north", "south", "far"])
    >>> recipe = cf.weight_erosion(user="north", lr=0.5, p_d=0.05, batch=20)
    >>> found = cf.insight.why(cf.simulate(recipe, cf.models.logistic("zero"), silos, rounds=10), "far")
    >>> found.sentence
    'far counted less than half from round 5 on because its gradient pointed elsewhere (distance 2.63 in the mean), not because it is small.'
    >>> change = found.table.select(sum(found.table[name] for name in found.terms)).to_series()
    >>> bool(abs(1 + change.sum() - found.table["weight"][-1]) < 1e-6)
    True
    """  # noqa: E501
    if isinstance(run, Answer):
        if run.algorithm.startswith(BY_EVIDENCE):
            names = tuple(dict.fromkeys((*run.weights, *run.relevance)))
            return why_borrowed(run, names[place_of(names, silo)])
        if run.history.weights is None:
            return why_unweighed(run, run.history.names[place_of(run.history.names, silo)])
        run, user = run.history, run.user
    if not isinstance(run, History):
        raise TypeError(f"run is what simulate or personalise returned, not {type(run).__name__}")
    if run.algorithm == "evidence":
        raise ValueError("evidence weighs silos once, at the end: give what personalise(silos, user) returned instead")
    seen = seen_in(run, silo, user)
    return TERMS.get(run.algorithm, why_plain)(run, seen)
