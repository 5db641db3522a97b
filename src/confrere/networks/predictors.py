"""Models without parameters to compare, such as trees: FedRelax (5.21), and the step of one by itself (4.22).

Neighbours are coupled by their predictions on m' shared points x' without labels:

    h_i <- argmin_h (1/m_i) sum (y - h(x))^2 + alpha sum_j A_ij (1/m') sum over x' of (h(x') - h_j(x'))^2

which is a fit to the silo's rows, each of weight 1/m_i, and to the shared points, each of weight alpha d_i/m', labelled
by the weighted mean of the neighbours' predictions; to a classifier a shared point is shown once for every class,
weighted by the neighbours' mean probability of it. What a silo sends are its predictions on the shared points. The book
refers to a missing equation for the discrepancy, and says of (4.20) that it requires parameters: it does not.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from confrere.checks import check_above_zero, check_counts, check_network, real_array
from confrere.networks.extras import needed
from confrere.networks.network import Network
from confrere.networks.rows import check_each, count_of, plain_labels

FINEST = 10  # copies of the lightest row, by which no row counts more than a twentieth too much or too little
LIGHTEST = 0.01  # of the heaviest row's weight; lighter ones are not shown to estimators that take no weights


class Predictors(NamedTuple):
    """The fitted models of all silos, and what they say of the shared points [n, m'] or [n, m', classes]."""

    models: list[Any]
    predictions: np.ndarray


def shown(model: Any, public: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    """What a model says of the shared points: numbers, or a probability for every class of any silo.

    A classifier that knows no probabilities says 1 for the class that it predicts.
    """
    if classes is None:
        return np.asarray(model.predict(public), float)
    if not hasattr(model, "predict_proba"):
        return (np.asarray(model.predict(public))[:, None] == classes).astype(float)
    place = np.searchsorted(classes, model.classes_)
    out = np.zeros((len(public), len(classes)))
    out[:, place] = model.predict_proba(public)
    return out


def fit(model: Any, X: Any, y: Any, public: np.ndarray, said: np.ndarray | None, pull: float, classes) -> Any:
    """A model fitted to the own rows and, with the weight `pull` in all, to what the neighbours said."""
    rows, labels, weights = [np.asarray(X)], [np.asarray(y)], [np.full(len(y), 1 / max(len(y), 1))]
    if said is not None and pull > 0:
        share = pull / len(public)
        if classes is None:
            rows, labels, weights = [*rows, public], [*labels, said], [*weights, np.full(len(public), share)]
        else:
            for k, name in enumerate(classes):
                seen = said[:, k] > 0
                rows, weights = [*rows, public[seen]], [*weights, share * said[seen, k]]
                labels = [*labels, np.full(seen.sum(), name)]
    return fit_weighted(model, np.concatenate(rows), np.concatenate(labels), np.concatenate(weights))


def fit_weighted(model: Any, rows: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> Any:
    """Fit an estimator to weighted rows; to one that takes no weights, rows are shown several times."""
    takes = needed("sklearn.utils.validation", "relax_predictors").has_fit_parameter
    if takes(model, "sample_weight"):
        return model.fit(rows, labels, sample_weight=weights)
    name, last = getattr(model, "steps", [("", None)])[-1]  # of a pipeline
    if last is not None and takes(last, "sample_weight"):
        return model.fit(rows, labels, **{f"{name}__sample_weight": weights})
    times = copies(weights)
    return model.fit(np.repeat(rows, times, axis=0), np.repeat(labels, times))


def copies(weights: np.ndarray) -> np.ndarray:
    """How often every row is shown so that it counts by its weight, to a twentieth; the lightest are left out.

    >>> copies(np.array([1.0, 2.0, 1.5, 0.001])).tolist()
    [2, 4, 3, 0]
    """
    shares = np.where(weights >= LIGHTEST * weights.max(), weights / weights.max(), 0)
    exact = np.arange(1, FINEST + 1)[:, None] * shares / shares[shares > 0].min()
    times = np.rint(exact).astype(int)
    near = (np.abs(times - exact) <= exact / (2 * FINEST)).all(axis=1)
    return times[near.argmax() if near.any() else -1]


def strengths_of(alpha: Any, n: int) -> np.ndarray:
    """How much every silo heeds its neighbours [n]."""
    given = real_array("alpha", alpha)
    if given.shape not in ((), (n,)):
        raise ValueError(f"alpha must be one number, or one for each of {n} nodes, not of shape {given.shape}")
    if (given < 0).any():
        raise ValueError(f"alpha must be 0 or more, not {given.min():g}")
    return np.broadcast_to(given, (n,))


def estimators_of(estimator: Any, n: int) -> tuple[list[Any], bool]:
    """The estimator of every silo, and whether they classify."""
    base = needed("sklearn.base", "relax_predictors")
    each = list(estimator) if isinstance(estimator, Sequence) else [estimator] * n
    if len(each) != n:
        raise ValueError(f"{n} nodes need one estimator for all, or as many, not {len(each)}")
    for i, one in enumerate(each):
        if isinstance(one, type) or not (hasattr(one, "fit") and hasattr(one, "predict")):
            raise TypeError(f"the estimator of silo {i} must be a scikit-learn regressor or classifier, not {one!r}")
    kinds = {base.is_classifier(one) for one in each}
    if len(kinds) > 1:
        raise ValueError("some estimators classify and some do not: neighbours must predict the same kind of label")
    return each, kinds.pop()


def check_rows(X: Sequence[Any], y: Sequence[Any], d: int, *, words: bool) -> None:
    """Refuse a silo without rows of d features or without labels, naming it; what is missing in X is for estimators."""
    for i, (given, named) in enumerate(zip(X, y, strict=True)):
        if given is None or named is None or count_of(named) == 0:
            raise ValueError(f"silo {i} has no labelled rows to begin with: leave it out of the network")
        rows = real_array(f"X of silo {i}", given, None, False)
        labels = plain_labels(f"y of silo {i}", named, "labels [m_i]") if words else real_array(f"y of silo {i}", named)
        if rows.ndim != 2 or rows.shape[:1] != labels.shape[:1]:
            raise ValueError(f"silo {i} has X of shape {rows.shape} and {labels.size} labels, not [m_i, d] and [m_i]")
        if rows.shape[1] != d:
            raise ValueError(f"silo {i} has {rows.shape[1]} features, and public has {d}: both need the same")


def predictor_step(estimator: Any, X: Any, y: Any, public: Any, said: Any, eta: float) -> Any:
    """The proximal step of a regressor without parameters (4.22): a new model near what the last one `said` [m'].

        argmin_h (1/m) sum (y - h(x))^2 + (1/(2 eta m')) sum over public x' of (h(x') - said(x'))^2

    The smaller eta, the nearer it stays; of a linear model on public rows sqrt(d) times the unit vectors it is (4.19).

    >>> from confrere.networks import predictor_step
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> model = predictor_step(DecisionTreeRegressor(), [[0.0]], [4.0], public=[[0.0]], said=[0.0], eta=0.5)
    >>> model.predict([[0.0]]).tolist()  # half way
    [2.0]
    """
    check_above_zero(eta=eta)
    each, classifies = estimators_of(estimator, 1)
    if classifies:
        raise ValueError("a proximal step needs a regressor; relax_predictors takes classifiers")
    points, last = points_of(public), real_array("said", said)
    check_rows([X], [y], points.shape[1], words=False)
    if last.shape != points.shape[:1]:
        raise ValueError(f"said must have a number for each of {len(points)} public rows, not the shape {last.shape}")
    model = needed("sklearn.base", "predictor_step").clone(each[0])
    return fit(model, X, y, points, last, 1 / (2 * eta), None)


def points_of(public: Any) -> np.ndarray:
    """The shared points."""
    points = real_array("public", public, None, False)
    if points.ndim != 2 or not len(points):
        raise ValueError(f"public must be the shared points [m', d], not of shape {points.shape}")
    return points


def relax_predictors(
    network: Network, estimator: Any, X: Sequence[Any], y: Sequence[Any], public: Any, alpha: Any,
    iterations: int = 10,
) -> Predictors:  # fmt: skip
    """FedRelax with any scikit-learn regressors or classifiers, one per silo.

    `estimator`: one for all silos, or a list with each silo's own. To one that takes no sample weights (nor the last
    step of a pipeline), rows are shown several times instead, so that each counts by its weight to a twentieth.
    `public`: the shared points [m', d]. Every silo begins with a model of its own rows alone. `alpha` is a number, or
    one per silo: how much each heeds its neighbours.

    >>> from confrere.networks import Network, relax_predictors
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> net = Network.from_edges([(0, 1)])
    >>> X, y = [[[0.0], [1.0]], [[0.0], [1.0]]], [[0.0, 1.0], [0.0, 3.0]]
    >>> h = relax_predictors(net, DecisionTreeRegressor(max_depth=1), X, y, public=[[0.0], [1.0]], alpha=1.0)
    >>> h.predictions.round(2).tolist()
    [[0.0, 1.67], [0.0, 2.33]]
    """
    clone = needed("sklearn.base", "relax_predictors").clone
    check_network(network)
    check_counts(iterations=iterations)
    strength = strengths_of(alpha, network.n)
    check_each(network.n, X=X, y=y)
    points = points_of(public)
    each, classifies = estimators_of(estimator, network.n)
    check_rows(X, y, points.shape[1], words=classifies)
    classes = np.unique(np.concatenate([np.asarray(b) for b in y])) if classifies else None
    A, degrees = network.adjacency(), network.degrees
    models = [fit(clone(e), a, b, points, None, 0.0, classes) for e, a, b in zip(each, X, y, strict=True)]
    for _ in range(iterations):
        said = np.stack([shown(m, points, classes) for m in models])
        mean = (A @ said.reshape(network.n, -1)).reshape(said.shape)
        mean = mean / np.where(degrees > 0, degrees, 1).reshape(-1, *(1,) * (said.ndim - 1))
        pulls = strength * degrees
        models = [fit(clone(each[i]), X[i], y[i], points, mean[i], pulls[i], classes) for i in range(network.n)]
    return Predictors(models, np.stack([shown(m, points, classes) for m in models]))
