"""Personalised MAML, against finite differences, its first-order formula and loops in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import confrere as cf
from confrere.clients.batches import everything, plan_for
from confrere.clients.meta import after_steps, both, in_pairs
from tests.helpers import two_class_silos
from tests.quadratics import absences, played, present_shares, regressions

INNER = 0.4
HEAVY = {"momentum": 0.6, "weight_decay": 0.1}


def network_on_rows():
    """A small network, whose loss is no quadratic, and one silo's rows; in double precision."""
    silos, model = two_class_silos((8,)), cf.models.mlp((3,))
    data = jax.tree.map(lambda a: jnp.asarray(a[0], float) if a.dtype == np.float32 else a[0], silos.block())
    params = jax.tree.map(lambda a: a.astype(float) + 0.1, model.init(jax.random.key(0), 3, 2))
    return model.loss, params, everything(data)


def flat(tree):
    return np.concatenate([np.ravel(a) for a in jax.tree.leaves(tree)])


def differences(f, params, by=1e-5):
    """The gradient of f by central differences, coordinate by coordinate."""
    vector, back = ravel_pytree(params)
    along = jax.jit(jax.vmap(lambda e: (f(back(vector + by * e)) - f(back(vector - by * e))) / (2 * by)))
    return along(jnp.eye(len(vector)))


@pytest.mark.parametrize("steps", [1, 2])
def test_the_exact_form_is_the_gradient_of_the_loss_after_inner_steps(x64, steps):
    loss, params, batch = network_on_rows()

    def moved(p):
        for _ in range(steps):
            p = jax.tree.map(lambda a, g: a - INNER * g, p, jax.grad(loss)(p, batch))
        return p

    gradient = lambda f: flat(jax.jit(jax.grad(f))(params, batch))  # noqa: E731
    exact = gradient(after_steps(loss, INNER, steps))
    np.testing.assert_allclose(exact, differences(lambda p: loss(moved(p), batch), params), rtol=1e-6, atol=1e-9)
    first_order = gradient(after_steps(loss, INNER, steps, first_order=True))
    formula = flat(jax.jit(lambda p: jax.grad(loss)(moved(p), batch))(params))
    np.testing.assert_allclose(first_order, formula, rtol=1e-12)
    assert np.abs(exact - first_order).max() > 1e-3


def per_fedavg_in_numpy(losses, active, lr, inner_lr, steps, first_order, momentum=0.0, weight_decay=0.0):
    """Fallah et al. (2020), Algorithm 1, on all rows: (1 - a H) times the gradient at w - a g(w)."""
    x, eye = np.zeros(losses.h.shape[1]), np.eye(losses.h.shape[1])
    for here in active:
        share, w = present_shares(losses.share, here), np.tile(x, (len(here), 1))
        for i in range(len(here)):
            turn, trace = eye if first_order else eye - inner_lr * losses.H[i], 0.0
            for _ in range(steps):
                trace = momentum * trace + turn @ losses.gradient(i, w[i] - inner_lr * losses.gradient(i, w[i]))
                w[i] = w[i] - lr * (trace + weight_decay * w[i])
        x = x if share is None else share @ w
    return x, np.stack([x - inner_lr * losses.gradient(i, x) for i in range(len(losses.h))])


@pytest.mark.parametrize(("first_order", "how"), [(False, {}), (True, {}), (False, HEAVY)])
def test_per_fedavg_is_its_algorithm(x64, first_order, how):
    silos, losses = regressions()
    active, numbers = absences(6, 3), {"lr": 0.1, "inner_lr": 0.3, **how}
    recipe = cf.per_fedavg(**numbers, first_order=first_order, batch=None, steps=2)
    expected = per_fedavg_in_numpy(losses, active, **numbers, steps=2, first_order=first_order)
    for found, wanted in zip(played(recipe, silos, 6, active=active), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_per_fedavg_without_inner_steps_is_fedavg(x64):
    silos, _ = regressions()
    how = {"lr": 0.1, "batch": None, "steps": 2, **HEAVY}
    x, own = played(cf.per_fedavg(inner_lr=0.0, **how), silos, 4)
    np.testing.assert_allclose(x, played(cf.fedavg(**how), silos, 4)[0], rtol=1e-10)
    np.testing.assert_array_equal(own, np.tile(x, (3, 1)))


@pytest.mark.parametrize("steps", [None, 1])
def test_the_two_batches_of_a_step_are_drawn_apart_and_have_the_same_size(steps):
    data = cf.Block(jnp.arange(40.0)[:, None], jnp.zeros(40), jnp.int32(34), jnp.int32(0))
    plan = in_pairs(plan_for("shuffled", 8, steps, None))

    @jax.jit
    def batches():
        drawn = plan.draw(data.size, jnp.int32(0), jax.random.key(0), 40)
        return jax.vmap(lambda one: both(plan.batch(data, one)))(drawn)

    pairs = jax.tree.map(np.asarray, batches())
    rows = [[set(b.X[s, b.live[s], 0].tolist()) for b in pairs] for s in range(len(pairs[0].live))]
    assert all(len(inner) == len(outer) for inner, outer in rows)
    assert all(max(inner | outer) < 34 for inner, outer in rows)
    assert any(inner != outer for inner, outer in rows)
    if steps is None:  # each kind of batch passes through all rows
        assert [sum(len(pair[k]) for pair in rows) for k in (0, 1)] == [34, 34]
        assert [set().union(*(pair[k] for pair in rows)) for k in (0, 1)] == [set(range(34))] * 2


def test_first_order_must_be_true_or_false():
    with pytest.raises(ValueError, match="first_order must be True or False, not 1"):
        cf.per_fedavg(lr=0.1, first_order=1)


def test_a_silo_without_rows_sends_zeros_and_has_the_common_model():
    empty = cf.Block(jnp.full((4, 3), jnp.nan), jnp.zeros(4), jnp.int32(0), jnp.int32(0))
    params = {"w": jnp.ones((3, 1)), "b": jnp.ones(1)}
    client = cf.clients.meta(cf.models.linear().loss, 0.1, 0.1, in_pairs(plan_for("shuffled", 2, None, None)))
    shared, private = client.init(params)
    inbox = cf.Inbox(shared, jnp.float32(0))
    message, _ = client.update(inbox, private, empty, cf.Ctx(1, True, 0, 0, jax.random.key(0)))
    jax.tree.map(lambda a: np.testing.assert_array_equal(a, 0), message)
    jax.tree.map(np.testing.assert_array_equal, client.personal(inbox, private, empty), params)
