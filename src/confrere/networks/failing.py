"""FedGD over links and nodes that fail (book 8.3.3): perturbed gradient descent (4.13).

A link that fails in an iteration leaves its term out of both ends' gradients; a node that fails does not step. Either
is a perturbation e_k of the exact step, whose size is kept: by (4.14) it bounds how far from the optimum models end.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.checks import check_counts, check_share, check_single_numbers
from confrere.core import Tree
from confrere.networks.kinds import quadratic_of
from confrere.networks.loops import Stop, finished, loop, rates, rule_of, smaller_rate
from confrere.networks.problem import GTVMin
from confrere.networks.terms import QUADRATIC, Terms, smooth_both


class Faulty(NamedTuple):
    """Models W [n, d], the objective after every iteration, the norms of the perturbations, and how many there were."""

    W: np.ndarray
    objective: np.ndarray  # [iterations]
    perturbation: np.ndarray  # [iterations]
    iterations: int


@functools.partial(jax.jit, static_argnames=("iterations", "stop"))
def perturbed(terms: Terms, ends, weight, W, lr, links, nodes, key, tol, iterations: int, stop: str | None):
    """Steps of which links and nodes fail at random."""
    i, j = ends

    def step(k, state):
        W, g, sizes = state
        for_links, for_nodes = jax.random.split(jax.random.fold_in(key, k))
        failed = weight * (jax.random.uniform(for_links, weight.shape) < links)
        pull = failed[:, None] * (W[i] - W[j])
        missed = 2 * terms.coupling * jnp.zeros_like(W).at[i].add(pull).at[j].add(-pull)
        here = jax.random.uniform(for_nodes, (W.shape[0], 1)) >= nodes
        new, exact = jnp.where(here, W - lr[k] * (g - missed), W), W - lr[k] * g
        value, after = smooth_both(QUADRATIC, terms, new)
        return (new, after, sizes.at[k].set(jnp.sqrt(jnp.sum((new - exact) ** 2)))), value, after

    begin = W, smooth_both(QUADRATIC, terms, W)[1], jnp.zeros_like(lr)
    (W, _, sizes), seen, count = loop(step, begin, iterations, stop, tol)
    return W, sizes, seen, count


def faulty_fedgd(
    p: GTVMin,
    lr: Any,
    links: float = 0.0,
    nodes: float = 0.0,
    iterations: int = 1000,
    seed: int = 0,
    start: Tree = None,
    stop: Stop | None = None,
) -> Faulty:
    """FedGD in which every link and every node fails with some probability in each iteration.

    Where most links or nodes fail, an iteration may lower the objective by little long before the end, or raise it:
    `stop=decrease(tol)` ends there, `small_gradient(tol)` does not.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]], [[1.0]]], y=[[0.0], [3.0]])
    >>> cf.networks.faulty_fedgd(p, lr=0.2, nodes=0.3, iterations=200).W.round(4).tolist()  # late, but not elsewhere
    [[1.0], [2.0]]
    """
    quadratic_of(p, "faulty_fedgd")
    check_single_numbers(links=links, nodes=nodes)
    check_share(links=links, nodes=nodes)
    check_counts(0, seed=seed)
    dtype = jnp.result_type(float)
    steps = jnp.asarray(rates(lr, iterations), dtype)
    ends, weight = tuple(map(jnp.asarray, p.network.edges.T)), jnp.asarray(p.network.weights, dtype)
    key, (what, tol) = jax.random.key(seed), rule_of(stop)
    given = p.terms(), ends, weight, p.start(start), steps, links, nodes, key, tol
    W, sizes, seen, count = perturbed(*given, iterations, what)
    run = finished(W, seen, count, advice=smaller_rate(p, steps))
    return Faulty(run.W, run.objective, np.asarray(sizes)[: run.iterations], run.iterations)
