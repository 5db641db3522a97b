"""The network Lasso as a loop on a problem, with the objective after every iteration."""

import functools

import jax
import jax.numpy as jnp

from confrere.checks import check_counts
from confrere.core import Tree
from confrere.networks.kinds import problem
from confrere.networks.lasso import Edges, Nodes, moved, parts_of
from confrere.networks.loops import Run, Stop, finished, loop, rule_of
from confrere.networks.problem import GTVMin
from confrere.networks.terms import Rows, quadratic_value


@functools.partial(jax.jit, static_argnames=("iterations", "stop"))
def primal_dual_loop(data: Rows, nodes: Nodes, edges: Edges, W, s, tol, iterations: int, stop: str | None):
    """Steps of models and forces; the gaps along edges are those of the objective too."""

    def step(k, state):
        state = moved(nodes, edges, s, *state)
        W, _, gaps = state
        lengths = jnp.sqrt(jnp.sum(gaps * gaps, axis=1))
        return state, quadratic_value(data, W) + jnp.sum(edges.limit * lengths), ()

    (W, _, _), seen, count = loop(step, (W, jnp.zeros_like(edges.gaps(W)), edges.gaps(W)), iterations, stop, tol)
    return W, seen, count


def network_lasso(p: GTVMin, iterations: int = 1000, start: Tree = None, stop: Stop | None = None) -> Run:
    """The network Lasso by a primal-dual method: messages between neighbours, and no learning rate.

    For a problem with `penalty="norm"` and quadratic losses. Features of very different sizes make it slow; `p.solve()`
    is exact whatever they are. The objective may rise for an iteration or two on its way down, at which a rule of
    `decrease` stops.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)], weights=[2.0])
    >>> p = cf.networks.GTVMin(net, alpha=0.25, X=[[[1.0]], [[1.0]]], y=[[0.0], [3.0]], penalty="norm")
    >>> h = cf.networks.network_lasso(p, iterations=200)
    >>> h.W.round(4).tolist(), round(float(h.objective[-1]), 4)  # each moves by alpha A / 2
    ([[0.25], [2.75]], 1.375)
    """
    check_counts(iterations=iterations)
    if not problem(p).norm or p.quadratic is None:
        raise ValueError("network_lasso needs quadratic losses and penalty='norm'; fedgd takes the squared penalty")
    what, tol = rule_of(stop, ("count", "decrease"))
    nodes, edges, s = parts_of(p.quadratic, p.network, p.alpha, jnp.result_type(float))
    data = p.terms().data
    return finished(*primal_dual_loop(data, nodes, edges, p.start(start), s, tol, iterations, what))
