"""The clients of a network: models coupled to those of their neighbours (book, chapters 5 and 8).

All nodes together minimise

    sum_i f_i(w_i) + alpha sum over edges {i, j}, each once, of A_ij |w_i - w_j|^2.

From `peers` a silo receives the weighted mean u_i of its neighbours' models and the weight d_i behind it. It takes a
gradient step on its own model (5.9), on a batch (5.12), or goes to the minimum with its neighbours held (5.20):

    w_i <- w_i - lr (grad f_i(w_i) + 2 alpha d_i (w_i - u_i))
    w_i <- argmin_w f_i(w) + alpha d_i |w - u_i|^2

The book's (5.20) has alpha/2, since it leaves out that the neighbours' terms count the edge too: its iterations solve
the problem of half the coupling. Neighbours that are absent do not count in d_i.
"""

import jax
import jax.flatten_util
import jax.numpy as jnp

from confrere.clients.batches import Order, everything, plan_for
from confrere.clients.gradient import pulled, with_l2
from confrere.core import Client, Inbox, Loss, Tree


def own_model(inbox, private, data):
    """The personal model is the silo's own, as it last sent it."""
    return private[1]


def drawn(w: Tree, gradient: Tree, inbox: Inbox, lr, alpha) -> Tree:
    """A gradient step of own loss and coupling."""

    def step(a, g, u):
        return a - (lr * (g + 2 * alpha * inbox.mass * (a - u))).astype(a.dtype)

    return jax.tree.map(step, w, gradient, inbox.shared["x"])


def gtv_gradient(loss: Loss, lr, alpha, batch: int | None = None, order: Order = "shuffled", l2=None) -> Client:
    """Step by the gradient of the own loss, on all rows or on one batch, and of the coupling; send the model.

    A batch counts as its rows over `batch` (or over all rows, if there are fewer): so in a pass of consecutive slices
    every row counts the same, also those of a last slice that is smaller (5.12).
    """
    plan = plan_for(order, batch, steps=1, epochs=None)

    def counted(share):
        return with_l2(lambda params, rows: share * loss(params, rows), l2)

    def update(inbox, private, data, ctx):
        count, w = private
        only = jax.tree.map(lambda a: a[0], plan.draw(data.size, count, ctx.key, data.y.shape[0]))
        rows = plan.batch(data, only)
        share = 1
        if batch is not None and order == "cyclic":  # other batches are whole
            share = rows.live.sum() / jnp.maximum(jnp.minimum(data.size, batch), 1)
        w = drawn(w, jax.grad(counted(share))(w, rows), inbox, lr, alpha)
        return {"x": w}, (count + 1, w)

    def init(params):
        return {"x": params}, (jnp.int32(0), params)

    return Client(init, update, own_model)


def gtv_prox(loss: Loss, alpha, steps: int = 10, l2=None) -> Client:
    """Go to the minimum of own loss and coupling with the neighbours held, and send the model.

    By Newton steps: one is exact for a squared error, a few for smooth convex losses. Where neither rows nor neighbours
    determine the minimum, the step is the shortest one.
    """
    own = with_l2(loss, l2)

    def update(inbox, private, data, ctx):
        _, w = private
        objective = pulled(own, inbox.shared["x"], 2 * alpha * inbox.mass)
        w = newton(lambda params: objective(params, everything(data)), w, steps)
        return {"x": w}, (jnp.int32(0), w)

    def init(params):
        return {"x": params}, (jnp.int32(0), params)

    return Client(init, update, own_model)


def newton(objective, params: Tree, steps: int) -> Tree:
    """Newton steps with the pseudo-inverse of the Hessian: for models of few parameters."""
    flat, shaped = jax.flatten_util.ravel_pytree(params)
    value = lambda x: objective(shaped(x))  # noqa: E731

    def step(x, _):
        H = jax.hessian(value)(x)
        return x - jnp.linalg.pinv(H, hermitian=True) @ jax.grad(value)(x), None

    return shaped(jax.lax.scan(step, flat, length=steps)[0])


def prox_average(loss: Loss, eta, steps: int = 10, l2=None) -> Client:
    """Go to argmin_v f_i(v) + |v - x|^2/eta from the received model x, and send x - v: Algorithm 5.3 (5.17)."""
    own = with_l2(loss, l2)

    def update(inbox, private, data, ctx):
        x = inbox.shared["x"]
        objective = pulled(own, x, 2 / eta)
        best = newton(lambda params: objective(params, everything(data)), x, steps)
        return {"x": jax.tree.map(jnp.subtract, x, best)}, private

    return Client(lambda params: ({"x": params}, ()), update, lambda inbox, private, data: inbox.shared["x"])
