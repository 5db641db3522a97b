"""What networks refuse: each error names the node, the silo or the argument, and says what is wanted."""

import jax.numpy as jnp
import numpy as np
import pytest

from confrere import networks as nets
from confrere.networks import GTVMin, Network, Quadratic, bounds
from tests.network_problems import connected, problem, rows_of

NET = connected(3)
APART = Network.from_edges([(0, 1), (2, 3), (3, 4), (4, 5)])
EYE = np.tile(np.eye(2), (3, 1, 1))


def quadratic(Q=EYE, q=None, c=0.0):
    return GTVMin(NET, Quadratic(Q, np.ones((3, 2)) if q is None else q, c), alpha=1.0)


def with_node(i, matrix):
    Q = EYE.copy()
    Q[i] = matrix
    return Q


def of_trees(penalty):
    X, y = rows_of(3, d=2)
    loss = lambda w, rows: jnp.mean((rows.y - rows.X @ w["a"] - w["b"]) ** 2)  # noqa: E731
    return GTVMin(NET, loss, alpha=1.0, X=X, y=y, penalty=penalty)


TREES = {"a": np.zeros((3, 2)), "b": np.zeros(3)}

REFUSED = {
    "no feature": (lambda: GTVMin(NET, alpha=1.0, X=[np.zeros((2, 0))] * 3, y=[[0.0, 1]] * 3), "at least one feature"),
    "no stacked": (lambda: GTVMin(NET, alpha=1.0, X=np.zeros((3, 2, 0)), y=np.zeros((3, 2))), "at least one feature"),
    "labels": (lambda: GTVMin(NET, alpha=1.0, X=[[[1.0]]] * 3, y=[[1.0], [1e200], [0.0]]), "node 1 .*other units"),
    "Q nan": (lambda: quadratic(with_node(1, [[1.0, np.nan], [np.nan, 1.0]])), "Q of node 1 has a value that is not"),
    "q nan": (lambda: quadratic(q=[[0.0, 0.0], [0.0, 0.0], [np.inf, 0.0]]), "q of node 2 has a value that is not"),
    "c nan": (lambda: quadratic(c=[0.0, np.nan, 0.0]), "c of node 1 has a value that is not"),
    "c shape": (lambda: quadratic(c=[0.0, 1.0]), r"c must be one number, or one per node \[3\], not of shape \(2,\)"),
    "indefinite": (lambda: quadratic(with_node(2, [[1.0, 2.0], [2.0, 1.0]])), r"Q of node 2 has a negative .*\(-1\)"),
    "negative": (lambda: quadratic(with_node(0, -np.eye(2))), "Q of node 0 has a negative eigenvalue"),
    "askew": (lambda: quadratic(with_node(1, [[1.0, 1e-6], [0.0, 1.0]])), "Q of node 1 is not symmetric"),
    "start shape": (lambda: nets.fedgd(problem(), 0.1, start=np.zeros((6, 2))), r"start must have the shape \(6, 3\)"),
    "start nan": (lambda: nets.fedgd(problem(), 0.1, start=np.full((6, 3), np.nan)), "not finite at node 0"),
    "start tree": (lambda: of_trees(1.0).solve(start={"a": np.zeros((2, 2))}), "start must be stacked over 3 nodes"),
    "start parts": (lambda: of_trees({"a": 1.0, "b": 0.0}).solve(start={"a": np.zeros((3, 2))}), "start have other"),
    "start strengths": (lambda: of_trees([1.0, 2.0]).solve(start=TREES), r"a part of shape \(\), but its strengths"),
    "penalty none": (lambda: problem(penalty=None), "penalty must be 'squared', 'norm' or strengths"),
    "penalty function": (lambda: problem(penalty=abs), "penalty must be 'squared', 'norm' or strengths"),
    "penalty words": (lambda: problem(penalty=["a", "b", "c"]), "penalty must be 'squared', 'norm' or strengths"),
    "penalty tree": (lambda: problem(penalty={"a": 1.0}), r"penalty must be one number or \[3\]"),
    "variation shape": (lambda: problem().total_variation(np.zeros((6, 2))), r"models must have the shape \(6, 3\)"),
    "variation nodes": (lambda: of_trees(1.0).total_variation({"a": np.zeros((2, 2))}), "stacked over 3 nodes"),
    "objective vector": (lambda: problem().objective(np.zeros(18)), r"shape \(6, 3\), .*, not \(18,\)"),
    "objective tree": (lambda: of_trees(1.0).objective({"a": np.zeros((2, 2)), "b": np.zeros(3)}), "stacked over 3"),
    "stop word": (lambda: nets.Stop("decrese", 0.1), "what must be 'count', 'decrease' or 'gradient', not 'decrese'"),
    "stop number": (lambda: nets.Stop("decrease", np.nan), "tol must be a finite number"),
    "stop count": (lambda: nets.fixed_count(0), "count must be a whole number above 0"),
    "no contraction": (lambda: nets.near_enough(1.0, 1e-3, 1.0), "does not lead to the minimum"),
    "boundary": (lambda: NET.boundary([0.7]), r"different nodes, each of 0 to 2, not \[0.7\]"),
    "induced": (lambda: NET.induced([True, False]), "different nodes, each of 0 to 2"),
    "categories": (lambda: nets.by_category(NET, np.ones((2, 1)), [0, 3], 1.0), "row 1 has the label .*from 0 to 2"),
    "words": (lambda: nets.by_category(NET, np.ones((2, 1)), ["a", "b"], 1.0), "row 0 has the label"),
    "category rows": (lambda: nets.by_category(NET, np.ones((2, 1)), [0], 1.0), r"shapes \(2, 1\) and \(1,\)"),
    "most alike": (lambda: nets.nearest_by(np.ones((3, 3)), 3), "a silo of 3 has 2 others, so that 3 cannot"),
    "fitted": (lambda: nets.fitted_parameters([np.ones((1, 1))] * 2, [[1.0], None]), "silo 1 has no labels"),
    "gradients": (lambda: nets.gradients_at([np.ones((1, 1)), np.ones((0, 1))], [[1.0], []], [0.0]), "silo 1 has no"),
    "gradient rows": (lambda: nets.gradients_at([np.ones((2, 1))], [[1.0]], [0.0]), r"X of shape \(2, 1\)"),
    "silos": (lambda: nets.fitted_parameters([np.ones((1, 1))], [[1.0], [2.0]]), "not of 1 and 2"),
    "means": (lambda: nets.mean_labels([[1.0], []]), "silo 1 has no labels"),
    "shares": (lambda: nets.class_shares([None, ["a"]]), "silo 0 has no labels"),
    "overlap": (lambda: nets.label_overlap([["a"], []]), "silo 1 has no labels"),
    "mixtures": (lambda: nets.mixture_parameters([np.ones((4, 1)), np.ones((0, 1))][::-1]), "silo 0 has no rows"),
    "latent": (lambda: nets.latent_vectors([np.ones((2, 1)), None], lambda a: a), "silo 1 has no rows"),
    "rate": (lambda: bounds.best_rate(0.0, 2.0), "no rate contracts with the eigenvalues 0 and 2"),
    "spread": (lambda: bounds.spread_bound(APART, 1.0, [np.ones(2)] * 6), "the network has 2 components"),
    "spread alpha": (lambda: bounds.spread_bound(NET, 0.0, [np.ones(2)] * 3), "alpha is 0"),
    "cluster": (
        lambda: bounds.cluster_bound(APART, [0, 2, 3], 1.0, [np.ones(2)] * 3, np.ones(1), 1.0),
        "has 2 components",
    ),
    "one node": (lambda: bounds.connectivity_bound(Network.from_edges([], 1)), "one node"),
    "estimation": (lambda: bounds.estimation_bound(apart(), apart().rows[1]), "the network has 2 components"),
    "sensitivity": (lambda: bounds.sensitivity_bound(apart(), apart().rows[1]), "smallest eigenvalue is 0"),
    "tight": (lambda: bounds.tight_sensitivity_bound(apart(), apart().rows[1], 0.0), "smallest eigenvalue is 0"),
    "no rows": (lambda: bounds.lower_eigenvalue(quadratic(np.zeros((3, 2, 2)))), "largest eigenvalue of any Q_i is 0"),
    "chebyshev": (lambda: nets.accelerated_fedgd(of_trees(1.0), start=TREES), "need method='nesterov' and eigenvalues"),
    "lasso": (lambda: nets.network_lasso(problem()), "needs quadratic losses and penalty='norm'"),
}  # fmt: skip


def apart():
    X, y = rows_of(6)
    return GTVMin(APART, alpha=1.0, X=X, y=y)


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_by_name(case):
    make, said = REFUSED[case]
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize("stop", ["decrease", 1e-6, ("decrease", 1e-6)], ids=["word", "number", "pair"])
def test_a_rule_to_stop_is_made_by_its_function(stop):
    with pytest.raises(TypeError, match=r"stop must be a rule such as decrease\(1e-6\)"):
        nets.fedgd(problem(), 0.1, stop=stop)


def test_matrices_that_are_askew_by_rounding_are_taken_and_made_symmetric():
    p = quadratic(with_node(1, [[1e6, 1e-12], [-1e-12, 1e-6]]))
    np.testing.assert_array_equal(p.quadratic.Q, p.quadratic.Q.transpose(0, 2, 1))


def test_matrices_of_too_few_rows_and_of_any_units_are_no_indefinite_ones():
    row = np.array([[1e7, 1e-3]])
    p = quadratic(with_node(0, row.T @ row))
    assert np.isfinite(p.closed_form()).all()


def test_predictors_name_the_silo_or_what_estimators_lack():
    linear = pytest.importorskip("sklearn.linear_model")
    X, y, points = [np.ones((2, 1))] * 3, [[0.0, 1.0]] * 3, [[0.0]]
    plain = linear.LinearRegression()
    for estimator, rows, labels, shared, said in (
        ([plain, plain], X, y, points, "3 nodes need one estimator for all, or as many, not 2"),
        ([plain, plain, linear.RidgeClassifier()], X, y, points, "some estimators classify and some do not"),
        (plain, X, [*y[:2], None], points, "silo 2 has no labelled rows"),
        (plain, [*X[:2], np.ones((0, 1))], [*y[:2], []], points, "silo 2 has no labelled rows"),
        (plain, [np.ones((3, 1)), *X[1:]], y, points, r"silo 0 has X of shape \(3, 1\) and 2 labels"),
        (plain, X, y, [], r"public must be the shared points"),
    ):
        with pytest.raises(ValueError, match=said):
            nets.relax_predictors(NET, estimator, rows, labels, shared, alpha=1.0)


def test_the_step_of_a_predictor_says_what_it_lacks():
    linear = pytest.importorskip("sklearn.linear_model")
    given = {"estimator": linear.LinearRegression(), "X": [[1.0]], "y": [1.0], "public": [[0.0]], "said": [0.0]}
    for other, said in (
        ({"eta": 0.0}, "eta must be above 0"),
        ({"estimator": linear.RidgeClassifier()}, "needs a regressor"),
        ({"said": [0.0, 1.0]}, "a number for each of 1 public rows"),
        ({"public": []}, "public must be the shared points"),
        ({"y": []}, "silo 0 has no labelled rows"),
    ):
        with pytest.raises(ValueError, match=said):
            nets.predictor_step(**{**given, "eta": 1.0, **other})


def test_predictions_of_vertical_learning_are_those_of_its_models_after_any_number_of_iterations():
    rng = np.random.default_rng(0)
    whole, y = rng.normal(size=(20, 6)), rng.normal(size=20)
    X = [whole[:, :2], whole[:, 2:4], whole[:, 4:]]
    found = nets.vertical(NET, X, y, 0.7, iterations=2)
    for rows, model, said in zip(X, *found, strict=True):
        np.testing.assert_allclose(rows @ model, said, atol=1e-12)
    A, first = NET.adjacency().toarray(), [a @ np.linalg.lstsq(a, y / (1 + 0.7 * d), rcond=None)[0]
                                           for a, d in zip(X, NET.degrees, strict=True)]  # fmt: skip
    for i, rows in enumerate(X):
        aim = (y + 0.7 * sum(A[i, j] * first[j] for j in range(3))) / (1 + 0.7 * A[i].sum())
        np.testing.assert_allclose(found.models[i], np.linalg.lstsq(rows, aim, rcond=None)[0], atol=1e-12)
