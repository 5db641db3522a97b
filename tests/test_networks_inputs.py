"""What networks refuse: each error names the node, the silo or the argument, and says what is wanted."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sparse

import confrere as cf
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


def of_rows(loss):
    X, y = rows_of(3, d=2)
    return GTVMin(NET, loss, alpha=1.0, X=X, y=y)


def of_one_function(loss):
    return GTVMin(NET, [None, loss, None], alpha=1.0)


def with_rows(X=None, y=None, **given):
    """Three nodes of two rows each, or those given for node 1."""
    rows, labels = [np.ones((2, 2))] * 3, [[0.0, 1.0]] * 3
    return GTVMin(
        NET, X=rows if X is None else [rows[0], X, rows[2]], y=labels if y is None else [labels[0], y, labels[2]],
        **{"alpha": 1.0, **given},
    )  # fmt: skip


def shared_out(**given):
    X, y = rows_of(3, d=2)
    return nets.solve_sharded(NET, **{"parts": [[2, 0, 1]], "alpha": 1.0, "X": X, "y": y, **given})


def predictors(X=(), y=(), estimator=None, public=((0.0,),)):
    """Predictors of three silos of two rows each, or of what is given for the first ones."""
    linear = pytest.importorskip("sklearn.linear_model").LinearRegression() if estimator is None else estimator
    rows, labels = [*X, *[np.ones((2, 1))] * 3][:3], [*y, *[[0.0, 1.0]] * 3][:3]
    return nets.relax_predictors(NET, linear, rows, labels, public, alpha=1.0)


def vertical(X=(), y=(0.0, 1.0, 2.0), network=NET, **given):
    return nets.vertical(network, [*X, *[np.ones((3, 1))] * 3][:3], y, **{"alpha": 1.0, **given})


def partly_labelled():
    return GTVMin(NET, alpha=1.0, X=[ONES] * 3, y=[[0.0, 1.0], [0.0, 1.0], None])


ONES = np.ones((2, 1))
START = {"start": np.zeros((3, 2))}

# what is no array of numbers, or has another shape
REFUSED |= {
    "ragged X": (
        lambda: with_rows(X=[[1.0, 2.0], [1.0]]),
        "X of node 1 must be real numbers, in rows of the same length",
    ),
    "X of words": (lambda: with_rows(X=[["a", "b"], ["c", "d"]]), "X of node 1 must be real numbers"),
    "X missing": (lambda: GTVMin(NET, alpha=1.0, X=[ONES, None, ONES], y=[[0.0, 1.0]] * 3), "X of node 1 .*not None"),
    "complex X": (lambda: with_rows(X=np.ones((2, 2)) * 1j), "X of node 1 must be real numbers"),
    "all complex": (
        lambda: GTVMin(NET, alpha=1.0, X=np.ones((3, 2, 1)) * 1j, y=np.ones((3, 2))),
        "X of node 0 must be",
    ),
    "ragged y": (lambda: with_rows(y=[[1.0], [1.0, 2.0]]), "y of node 1 must be real numbers"),
    "y of words": (lambda: with_rows(y=["a", "b"]), "y of node 1 must be real numbers"),
    "X a number": (lambda: GTVMin(NET, alpha=1.0, X=1.0, y=[[0.0]] * 3), "X must have an array for each of 3 nodes"),
    "X a dict": (
        lambda: GTVMin(NET, alpha=1.0, X={0: ONES, 1: ONES, 2: ONES}, y=[[0.0, 1.0]] * 3),
        "X must have an array",
    ),
    "Q of words": (lambda: GTVMin(NET, Quadratic("Q", np.ones((3, 2)), 0.0), alpha=1.0), "Q must be real numbers"),
    "alpha list": (lambda: with_rows(alpha=[1.0]), r"alpha must be one number, not \[1.0\]"),
    "alpha array": (lambda: with_rows(alpha=np.ones(2)), "alpha must be one number"),
    "alpha complex": (lambda: with_rows(alpha=1j), "alpha must be a number, not 1j"),
    "alpha none": (lambda: with_rows(alpha=None), "alpha must be a number, not None"),
    "adjacency words": (lambda: Network.from_adjacency([["a", "b"], ["c", "d"]]), "the adjacency matrix must be real"),
    "adjacency ragged": (lambda: Network.from_adjacency([[0, 1], [1]]), "the adjacency matrix must be real numbers"),
    "adjacency complex": (
        lambda: Network.from_adjacency(np.array([[0, 1j], [1j, 0]])),
        "the adjacency matrix must be real",
    ),
    "sparse complex": (
        lambda: Network.from_adjacency(sparse.csr_array([[0, 1j], [1j, 0]])),
        "matrix must be real numbers",
    ),
    "edges ragged": (lambda: Network.from_edges([(0, 1), (1,)]), "edges must be pairs of nodes"),
    "edges infinite": (lambda: Network.from_edges([(0, np.inf)]), "edges must be pairs of node numbers"),
    "edges huge": (lambda: Network.from_edges([(0, 1e300)]), "edges must be pairs of node numbers"),
    "edges complex": (lambda: Network.from_edges([(0, 1j)]), "edges must be pairs of node numbers"),
    "weights words": (lambda: Network.from_edges([(0, 1)], weights=["a"]), "weights must be real numbers"),
    "places ragged": (lambda: Network.nearest([[0.0, 1.0], [1.0]], 1), "coordinates must be real numbers, in rows of"),
    "places words": (lambda: Network.nearest([["a"], ["b"]], 1), "coordinates must be real numbers"),
    "weight": (lambda: Network.nearest([0.0, 1.0, 3.0], 1, weight=2.0), "weight must be a function, not 2.0"),
    "weight shape": (
        lambda: Network.nearest([0.0, 1.0, 3.0], 1, weight=lambda d: [1.0]),
        "one weight of each of 2 dist",
    ),
    "weight word": (
        lambda: Network.nearest([0.0, 1.0], 1, weight=lambda d: "a"),
        "what weight makes of distances must",
    ),
    "distances": (lambda: nets.nearest_by([["a", "b"], ["c", "d"]], 1), "discrepancies must be real numbers"),
}

# what is no network or problem
REFUSED |= {
    "no problem": (lambda: nets.fedgd(None, 0.1), "p must be a problem, such as GTVMin.*not NoneType"),
    "a network": (lambda: nets.fedgd(NET, 0.1), "p must be a problem, such as GTVMin.*not Network"),
    "no relaxation": (lambda: nets.fedrelax(None), "p must be a problem"),
    "no lasso": (lambda: nets.network_lasso(None), "p must be a problem"),
    "no eigenvalues": (lambda: nets.extreme_eigenvalues(NET), "p must be a problem"),
    "no bound": (lambda: bounds.mean_error_bound(NET, [], []), "p must be a problem"),
    "no vertical": (lambda: vertical(network=None), "network must be a confrere.networks.Network, not NoneType"),
    "no categories": (lambda: nets.by_category(None, ONES, [0, 1], 1.0), "network must be a confrere.networks.Network"),
    "no predictors": (
        lambda: nets.relax_predictors(None, None, [], [], [], 1.0),
        "network must be a confrere.networks",
    ),
    "no partition": (lambda: nets.partition(None, 1), "network must be a confrere.networks.Network"),
    "no spectrum": (lambda: nets.spectral_vectors(None, 1), "network must be a confrere.networks.Network"),
    "no spread": (lambda: bounds.spread_bound(None, 1.0, []), "network must be a confrere.networks.Network"),
    "no graph": (lambda: Network.from_networkx(np.eye(2)), "graph must be a networkx.Graph, not ndarray"),
}

# models, losses and how loops are asked for
REFUSED |= {
    "start list": (
        lambda: nets.fedgd(problem(), 0.1, start=[[1.0, 2.0], [0.0, 1.0]]),
        r"start must have the shape \(6, 3\)",
    ),
    "start ragged": (lambda: nets.fedgd(problem(), 0.1, start=[[1.0, 2.0], [0.0]]), "start must be real numbers"),
    "objective words": (lambda: problem().objective("a"), "models must be real numbers"),
    "loss of rows": (
        lambda: of_rows(lambda w, b: (b.y - b.X @ w) ** 2).objective(np.zeros((3, 2))),
        r"the loss must be one number, such as a mean over the live rows, not an array of shape \(11,\)",
    ),
    "loss of nothing": (
        lambda: of_rows(lambda w, b: None).solve(start=np.zeros((3, 2))),
        "the loss must be .* not None",
    ),
    "loss of a node": (lambda: of_one_function(lambda w: w).solve(**START), r"the loss of node 1 .*of shape \(2,\)"),
    "loss of a word": (lambda: nets.fedgd(of_one_function(lambda w: "a"), 0.1, **START), "the loss of node 1 .*'a'"),
    "no function": (lambda: of_one_function(3), "the loss of node 1 must be a function, not 3"),
    "losses a number": (lambda: GTVMin(NET, 3, alpha=1.0), "3 nodes need as many losses, not one"),
    "iterations": (
        lambda: nets.fedgd(problem(), 0.1, iterations=None),
        "iterations must be a whole number above 0, not None",
    ),
    "relaxations": (lambda: nets.fedrelax(problem(), iterations=None), "iterations must be .* not None"),
    "batch": (lambda: nets.fedsgd(problem(), 0.1, batch=None), "batch must be a whole number above 0, not None"),
    "delay none": (
        lambda: nets.async_fedgd(problem(), 0.1, delay=None),
        "delay must be a whole number of 0 or more, not None",
    ),
    "delay float": (
        lambda: nets.async_fedgd(problem(), 0.1, delay=0.0),
        "delay must be a whole number of 0 or more, not 0.0",
    ),
    "delay switch": (lambda: nets.async_fedgd(problem(), 0.1, delay=False), "delay must be a whole number .*not False"),
    "recipe delay": (lambda: cf.gtv_async(NET, 0.1, delay=False), "delay must be a whole number .*not False"),
    "parts none": (lambda: nets.partition(NET, None), "count must be a whole number above 0, not None"),
    "seed word": (lambda: nets.fedsgd(problem(), 0.1, seed="a"), "seed must be a whole number of 0 or more, not 'a'"),
    "seed none": (lambda: nets.fedsgd(problem(), 0.1, seed=None), "seed must be a whole number of 0 or more, not None"),
    "seed half": (lambda: nets.fedsgd(problem(), 0.1, seed=0.5), "seed must be a whole number of 0 or more, not 0.5"),
    "seed faulty": (lambda: nets.faulty_fedgd(problem(), 0.1, seed="a"), "seed must be a whole number"),
    "seed late": (lambda: nets.async_fedgd(problem(), 0.1, seed="a"), "seed must be a whole number"),
    "seed random": (lambda: Network.erdos_renyi(3, 0.5, seed="a"), "seed must be a whole number"),
    "faults": (lambda: nets.faulty_fedgd(problem(), 0.1, nodes=[0.1] * 6), "nodes must be one number"),
    "eta": (lambda: nets.fedavg(problem(), eta=np.ones(2)), "eta must be one number"),
    "most": (lambda: problem().solve(most="a"), "most must be a whole number above 0, not 'a'"),
    "tol": (lambda: problem().solve(tol=[1e-6]), "tol must be one number"),
    "project": (lambda: nets.fedgd(problem(), 0.1, project=3), "project must be a function, not 3"),
    "project shape": (
        lambda: nets.fedgd(problem(), 0.1, project=lambda W: W[0]),
        r"must make models .*\[6, 3\], not .*\[3\]",
    ),
    "project none": (lambda: nets.fedgd(problem(), 0.1, project=lambda W: None), "project must make models .*not None"),
    "activation": (lambda: nets.async_fedgd(problem(), 0.1, activation="a"), "activation must be real numbers.*'a'"),
    "schedule": (lambda: nets.inverse("a"), "first must be a number, not 'a'"),
    "rates": (lambda: nets.fedgd(problem(), "a"), "lr must be real numbers.*'a'"),
    "eigenvalue": (
        lambda: nets.accelerated_fedgd(problem(), eigenvalues=3.0),
        "eigenvalues must be .*two numbers, not 3.0",
    ),
    "one of two": (lambda: nets.accelerated_fedgd(problem(), eigenvalues=(1.0,)), "eigenvalues must be .*two numbers"),
    "eigenvalue words": (
        lambda: nets.accelerated_fedgd(problem(), eigenvalues="ab"),
        "eigenvalues must be real numbers",
    ),
    "book": (lambda: nets.fedrelax(problem(), book="no"), "book must be True or False, not 'no'"),
    "recipe book": (lambda: cf.gtv_relax(NET, book="x"), "book must be True or False, not 'x'"),
    "nonzero": (lambda: nets.extreme_eigenvalues(problem(), nonzero="no"), "nonzero must be True or False, not 'no'"),
}

# shared out over processes
REFUSED |= {
    "parts outside": (lambda: shared_out(parts=[[0, 1, 9]]), "parts must have each of the 3 nodes once, 0 to 2"),
    "parts halves": (lambda: shared_out(parts=[[0.0, 1.0, 2.0]]), "parts must have each of the 3 nodes once"),
    "parts nothing": (lambda: shared_out(parts=None), "parts must have each of the 3 nodes once"),
    "function shared": (
        lambda: shared_out(losses=lambda w, b: 0.0),
        "losses over several processes must be a Quadratic",
    ),
    "own rows": (
        lambda: shared_out(X=[np.full((1, 1), np.nan), [[1.0]], [[1.0]]], y=[[1.0]] * 3),
        "node 2 has a value that",
    ),
    "own stack": (lambda: shared_out(X=[[[np.nan]], [[1.0]], [[1.0]]], y=np.ones((3, 1))), "node 2 has a value that"),
    "own units": (lambda: shared_out(X=[[[1.0]]] * 3, y=[[1.0], [1e200], [0.0]]), "node 0 .*other units"),
    "own Q": (
        lambda: shared_out(losses=Quadratic(with_node(1, -np.eye(2)), np.ones((3, 2)), 0.0), X=None, y=None),
        "Q of node 0 has a negative eigenvalue",
    ),
}

# flavours
REFUSED |= {
    "test rows": (
        lambda: nets.explainable(quadratic(), [ONES] * 3, [[1.0, 2.0]] * 3, 1.0),
        "node 0 has 1 features, where 2 are needed",
    ),
    "stacked tests": (
        lambda: nets.explainable(quadratic(), np.ones((3, 2, 1)), np.ones((3, 2)), 1.0),
        "node 0 has 1 features, where 2 are needed",
    ),
    "guessers": (
        lambda: nets.explainable(quadratic(), [ONES] * 3, [[1.0, 2.0]] * 2, 1.0),
        "guesses must have an array for",
    ),
    "explained rows": (
        lambda: nets.explainability(np.ones((2, 1)), [ONES] * 2, [[1.0, 2.0]]),
        "guesses must have an array",
    ),
    "explained tests": (lambda: nets.explainability(np.ones((2, 1)), [ONES], [[1.0, 2.0]] * 2), "X must have an array"),
    "no guesses": (
        lambda: nets.explainability(np.ones((2, 1)), [ONES] * 2, [None, [1.0, 2.0]]),
        "node 0 has no guesses",
    ),
    "explained models": (
        lambda: nets.explainability(np.ones(2), [ONES] * 2, [[1.0, 2.0]] * 2),
        "W must have the shape",
    ),
    "column of labels": (lambda: vertical(y=[[1.0], [2.0], [3.0]]), r"y must be \[m\], not of shape \(3, 1\)"),
    "other column": (lambda: vertical(y=[[1.0], [2.0]]), r"y must be \[m\], not of shape \(2, 1\)"),
    "labels nan": (lambda: vertical(y=[1.0, np.nan, 3.0]), "y has a value that is not finite"),
    "columns nan": (lambda: vertical([np.full((3, 1), np.nan)]), "X of silo 0 has a value that is not finite"),
    "flat columns": (
        lambda: vertical([ONES, np.ones(3)][::-1]),
        r"X of silo 0 must be \[m, d_i\], not of shape \(3,\)",
    ),
    "no labels": (lambda: vertical(y=None), "y must be real numbers.*None"),
    "no columns": (lambda: vertical([None]), "X of silo 0 must be real numbers.*None"),
    "no silos": (lambda: nets.vertical(NET, None, [1.0], 1.0), "X must have an array for each of 3 silos, not none"),
    "other rows": (lambda: vertical([np.ones((2, 1))]), r"silo 0 has X of shape \(2, 1\), not columns of the 3 rows"),
    "vertical alpha": (lambda: vertical(alpha=[1.0]), "alpha must be one number"),
    "category nan": (lambda: nets.by_category(NET, [[np.nan]], [0], 1.0), "X has a value that is not finite"),
    "category none": (lambda: nets.by_category(NET, ONES, [0, None], 1.0), "y must be one label per row"),
    "many clusters": (lambda: nets.clusters(np.eye(3), 4), "3 silos cannot be in 4 clusters"),
    "clusters nan": (lambda: nets.clusters([[0.0], [np.nan]], 2), "vectors has a value that is not finite"),
    "flat clusters": (lambda: nets.clusters([0.0, 1.0], 2), r"vectors must be \[n, r\], not of shape \(2,\)"),
    "one mixture": (lambda: nets.clusters([[1.0]], 1, "gmm"), "needs the vectors of two silos or more"),
    "clusters none": (lambda: nets.clusters(np.eye(3), None), "k must be a whole number above 0, not None"),
    "many vectors": (lambda: nets.spectral_vectors(NET, 7), "a network of 3 nodes has as many eigenvectors"),
    "cluster labels": (
        lambda: nets.cluster_models([0.0, np.nan], [ONES] * 2, [[0.0, 1.0]] * 2),
        "labels must be the cluster",
    ),
}

# what silos tell of themselves
REFUSED |= {
    "point short": (
        lambda: nets.gradients_at([ONES], [[0.0, 1.0]], [0.0, 1.0]),
        "w must have a number for each of 1 features",
    ),
    "point nan": (lambda: nets.gradients_at([ONES], [[0.0, 1.0]], [np.nan]), "w has a value that is not finite"),
    "nobody": (lambda: nets.fitted_parameters([], []), "y must have an array for every silo, and there is none"),
    "nobody's labels": (lambda: nets.class_shares([]), "y must have an array for every silo, and there is none"),
    "nobody's mean": (lambda: nets.mean_labels(None), "y must have an array for every silo, and there is none"),
    "mean of words": (lambda: nets.mean_labels([[1.0], ["a"]]), "y of silo 1 must be real numbers"),
    "mean of nan": (lambda: nets.mean_labels([[1.0], [np.nan]]), "y of silo 1 has a value that is not finite"),
    "overlap nan": (
        lambda: nets.label_overlap([[1.0], [np.nan]]),
        "y of silo 1 must be one label per row .*none missing",
    ),
    "shares none": (lambda: nets.class_shares([["a"], ["b", None]]), "y of silo 1 must be one label per row"),
    "shares column": (lambda: nets.class_shares([["a"], [["b"]]]), "y of silo 1 must be one label per row"),
    "shares of two kinds": (
        lambda: nets.class_shares([["a"], ["b"], [1]]),
        "silo 2 and silo 0 have labels of two kinds",
    ),
    "flat vectors": (lambda: nets.distances_between([1.0, 2.0]), r"vectors must be \[n, k\], not of shape \(2,\)"),
    "one row": (
        lambda: nets.mixture_parameters([np.ones((4, 1)), np.ones((1, 1))]),
        "silo 1 has 1 rows, where 2 are needed",
    ),
    "few rows": (lambda: nets.mixture_parameters([ONES], parts=3), "silo 0 has 2 rows, where 3 are needed"),
    "mixture nan": (lambda: nets.mixture_parameters([ONES, ONES * np.nan]), "silo 1 has a value that is not finite"),
    "mixture features": (
        lambda: nets.mixture_parameters([ONES, np.ones((2, 2))]),
        "silo 1 has rows .*features of silo 0",
    ),
    "encoder": (lambda: nets.latent_vectors([ONES], 3), "encoder must be a function, not 3"),
    "encoded": (lambda: nets.latent_vectors([ONES], lambda a: a[:1]), "one vector of each of 2 rows of silo 0, not 1"),
    "fitted features": (
        lambda: nets.fitted_parameters([ONES, np.ones((2, 2))], [[0.0, 1.0]] * 2),
        "silo 1 has 2 features",
    ),
}

# predictors
REFUSED |= {
    "predictor nan": (lambda: predictors(y=[[0.0, np.nan]]), "y of silo 0 has a value that is not finite"),
    "predictor features": (lambda: predictors([ONES, np.ones((2, 2))]), "silo 1 has 2 features, and public has 1"),
    "public features": (lambda: predictors(public=[[0.0, 1.0]]), "silo 0 has 1 features, and public has 2"),
    "public words": (lambda: predictors(public=[["a"]]), "public must be real numbers"),
    "no estimator": (
        lambda: predictors(estimator=3),
        "the estimator of silo 0 must be a scikit-learn regressor .*not 3",
    ),
    "estimator's class": (lambda: predictors(estimator=[int] * 3), "the estimator of silo 0 must be a scikit-learn"),
    "predictor words": (lambda: predictors(y=[["a", "b"]]), "y of silo 0 must be real numbers"),
}

# single regressions
REFUSED |= {
    "ridge rows": (
        lambda: nets.ridge(ONES, [1.0], 1.0),
        r"X must be \[m, d\] and y \[m\], .*shapes \(2, 1\) and \(1,\)",
    ),
    "ridge nan": (lambda: nets.ridge(ONES * np.nan, [1.0, 2.0], 1.0), "X has a value that is not finite"),
    "ridge flat": (lambda: nets.ridge([1.0, 2.0], [1.0, 2.0], 1.0), r"X must be \[m, d\], not of shape \(2,\)"),
    "augmented": (lambda: nets.augmented(np.ones((6, 1)), [1.0, 2.0], 1.0, 2), r"X must be \[m, d\] and y \[m\]"),
    "online rows": (lambda: nets.online_gd(ONES, [1.0], 0.1), r"X must be \[m, d\] and y \[m\]"),
    "online flat": (lambda: nets.online_gd([1.0, 2.0], [1.0, 2.0], 0.1), r"X must be \[m, d\], not of shape"),
    "online none": (lambda: nets.online_gd(np.ones((0, 1)), [], 0.1), "of one row at least"),
    "online start": (
        lambda: nets.online_gd(ONES, [1.0, 2.0], 0.1, [0.0, 0.0]),
        "start must have a number for each of 1",
    ),
}

# bounds
REFUSED |= {
    "few noises": (
        lambda: bounds.spread_bound(NET, 1.0, [[1.0]] * 2),
        "noise must have an array for each of 3 nodes, not 2",
    ),
    "noise nan": (
        lambda: bounds.spread_bound(NET, 1.0, [[1.0], [np.nan], [1.0]]),
        "noise of node 1 has a value that is not",
    ),
    "sensitive to few": (
        lambda: bounds.sensitivity_bound(problem(), [[1.0]]),
        "noise must have an array for each of 6 nodes",
    ),
    "cluster of few": (
        lambda: bounds.cluster_bound(NET, [0, 1], 1.0, [[1.0]], [1.0], 1.0),
        "noise must .*each of 2 nodes",
    ),
    "variation of few": (lambda: bounds.variation_bound(NET, np.ones((2, 1))), r"W must have the shape \(3, d\)"),
    "errors of few": (
        lambda: bounds.mean_error_bound(with_rows(X=np.eye(2)), [[1.0, 2.0]] * 2, np.ones((3, 2))),
        "noise must have",
    ),
    "errors of other models": (
        lambda: bounds.mean_error_bound(with_rows(X=np.eye(2)), [[1.0, 2.0]] * 3, np.ones((2, 2))),
        r"W must have the shape \(3, 2\)",
    ),
    "noise unlabelled": (
        lambda: bounds.mean_error_bound(partly_labelled(), [[1.0, 2.0]] * 3, np.ones((3, 1))),
        "node 2 has 0 labels, but 2 values of noise",
    ),
    "noise short": (
        lambda: bounds.tight_sensitivity_bound(with_rows(), [[1.0]] * 3, 1.0),
        "node 0 has 2 labels, but 1 values",
    ),
    "regression": (lambda: bounds.regression_error([[1.0]], [1.0, 2.0]), r"X must be \[m, d\] and noise \[m\]"),
    "singular": (
        lambda: bounds.regression_error(np.ones((3, 2)), np.ones(3)),
        "the rows of X do not determine a model",
    ),
    "prox": (lambda: bounds.prox_as_rows([[1.0]], [1.0], [1.0], 0.0), "eta must be above 0, not 0.0"),
    "prox centre": (
        lambda: bounds.prox_as_rows([[1.0]], [1.0], [1.0, 2.0], 1.0),
        "centre must have a number for each of 1",
    ),
    "infinitely far": (lambda: bounds.iterations_needed(np.inf, 0.1, 0.5), "distance must be a finite number"),
    "nowhere": (lambda: bounds.iterations_needed(np.nan, 0.1, 0.5), "distance must be a finite number"),
    "cluster a number": (
        lambda: bounds.cluster_bound(NET, 3, 1.0, [[1.0]], [1.0], 1.0),
        "a cluster needs different nodes",
    ),
    "contraction": (lambda: bounds.contraction("a", 1.0, 2.0), "lr must be a number, not 'a'"),
    "eigenvalue word": (lambda: bounds.best_rate("a", 2.0), "smallest must be a number, not 'a'"),
    "perturbations": (lambda: bounds.perturbed_bound(0.5, 1.0, "a"), "perturbations must be real numbers, not 'a'"),
    "mean of nothing": (lambda: bounds.mean_bound([]), "noise must have a value"),
}


def apart():
    X, y = rows_of(6)
    return GTVMin(APART, alpha=1.0, X=X, y=y)


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_by_name(case):
    make, said = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=said):
        make()


@pytest.mark.parametrize("stop", ["decrease", 1e-6, ("decrease", 1e-6)], ids=["word", "number", "pair"])
def test_a_rule_to_stop_is_made_by_its_function(stop):
    with pytest.raises(TypeError, match=r"stop must be a rule such as decrease\(1e-6\)"):
        nets.fedgd(problem(), 0.1, stop=stop)


def test_lists_are_taken_as_arrays_are():
    p, W = problem(), problem().solve()
    for of in (p.objective, p.total_variation, lambda W: nets.fedgd(p, 0.1, 1, start=W).objective[0]):
        assert of(W.tolist()) == of(W)
    X, y = [[1.0], [2.0]], [0.5, 1.0]
    assert bounds.regression_error(X, y) == bounds.regression_error(np.array(X), np.array(y))
    assert bounds.regression_bound(X, y) == bounds.regression_bound(np.array(X), np.array(y))
    for found, same in zip(
        bounds.prox_as_rows(X, y, [0.0], 1.0), bounds.prox_as_rows(np.array(X), y, [0.0], 1.0), strict=True
    ):
        np.testing.assert_array_equal(found, same)


def test_the_objective_of_models_that_went_off_is_told_rather_than_refused():
    assert np.isnan(problem().objective(np.full((6, 3), np.nan)))


def test_a_node_without_labels_may_have_no_noise():
    X, y = rows_of(3, d=2)
    p = GTVMin(NET, alpha=1.0, X=X, y=[y[0], y[1], None])
    none, empty = (bounds.mean_error_bound(p, [y[0], y[1], noise], p.solve()) for noise in (None, []))
    assert none == empty > 0


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
