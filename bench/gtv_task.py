"""Task G: GTVMin with n nodes of 20 rows x 10 features, joined to their 8 nearest of uniform points; alpha 1."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg as solvers

from confrere.networks import Network, Quadratic

ROWS, FEATURES, NEAREST, ALPHA = 20, 10, 8, 1.0
CHUNK = 50_000


def problem(n: int) -> tuple[Network, Quadratic]:
    """The network and the statistics of rows whose law varies smoothly from place to place."""
    rng = np.random.default_rng(0)
    places = rng.random((n, 2))
    Q, q, c = np.empty((n, FEATURES, FEATURES)), np.empty((n, FEATURES)), np.empty(n)
    for start in range(0, n, CHUNK):
        part = slice(start, min(n, start + CHUNK))
        east, north = places[part].T
        truth = np.stack([np.sin(3 * east * (k + 1)) + np.cos(2 * north * k) for k in range(FEATURES)], axis=1)
        X = rng.standard_normal((len(east), ROWS, FEATURES), dtype=np.float32)
        noise = rng.standard_normal((len(east), ROWS), dtype=np.float32)
        y = np.einsum("nmd,nd->nm", X, truth.astype(np.float32)) + 0.5 * noise
        product = X.transpose(0, 2, 1) @ X / ROWS
        Q[part] = (product + product.transpose(0, 2, 1)) / 2
        q[part], c[part] = -2 * np.einsum("nmd,nm->nd", X, y) / ROWS, np.square(y).mean(axis=1)
    return Network.nearest(places, NEAREST), Quadratic(Q, q, c)


def matrix(net: Network, quadratic: Quadratic) -> sparse.csr_array:
    """The whole left side, sparse [nd, nd]."""
    n, d = quadratic.q.shape
    own = sparse.bsr_array((quadratic.Q, np.arange(n), np.arange(n + 1)), shape=(n * d, n * d))
    return sparse.csr_array(sparse.kron(ALPHA * sparse.csr_array(net.laplacian()), sparse.identity(d)) + own)


class Prepared(NamedTuple):
    """What scipy's conjugate gradients need."""

    H: sparse.csr_array
    inverse: solvers.LinearOperator


def scipy_setup(net: Network, quadratic: Quadratic) -> Prepared:
    """The matrix, and the inverses of all nodes' blocks as preconditioner."""
    n, d = quadratic.q.shape
    inverses = np.linalg.inv(quadratic.Q + ALPHA * net.degrees[:, None, None] * np.eye(d))
    apply = lambda v: np.matmul(inverses, v.reshape(n, d, 1)).ravel()  # noqa: E731
    return Prepared(matrix(net, quadratic), solvers.LinearOperator((n * d, n * d), apply))


def scipy_solve(prepared: Prepared, quadratic: Quadratic, iterations: int) -> np.ndarray:
    """So many of scipy's conjugate gradient iterations."""
    b = -quadratic.q.ravel() / 2
    return solvers.cg(prepared.H, b, rtol=1e-14, maxiter=iterations, M=prepared.inverse)[0].reshape(quadratic.q.shape)


def networkx_step(graph: Any, quadratic: Quadratic, W: np.ndarray, lr: float = 0.02) -> np.ndarray:
    """One iteration of FedGD as the book's notebooks write it: a loop over the nodes of a networkx graph."""
    new = W.copy()
    for i in graph.nodes():
        slope = 2 * quadratic.Q[i] @ W[i] + quadratic.q[i]
        for j in graph.neighbors(i):
            slope = slope + 2 * ALPHA * graph[i][j]["weight"] * (W[i] - W[j])
        new[i] = W[i] - lr * slope
    return new
