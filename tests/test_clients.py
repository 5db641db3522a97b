"""What happens inside a silo: which rows are used when, and what is sent; against loops in numpy."""

from itertools import chain

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import confrere as cf
from confrere.clients.shuffle import shuffle
from confrere.core import silo_keys

# Losses that tell which rows they saw, and when


def roll_call(params, batch):
    """Its gradient is the mean of the rows; where rows are unit vectors, it names them."""
    return (jnp.where(batch.live[:, None], batch.X, 0) @ params).sum() / jnp.maximum(batch.live.sum(), 1)


def roll_call_in_time(params, batch):
    """With learning rate 1, step s adds 2^s to the coordinate of each row it saw, and the clock ticks."""
    seen = (jnp.where(batch.live[:, None], batch.X, 0) @ params["rows"]).sum()
    return 2.0 ** jax.lax.stop_gradient(params["clock"]) * seen - params["clock"]


def unit_rows(size, m):
    """A silo whose row k is the k-th unit vector; padding is NaN, so that it cannot be used unseen."""
    X = np.where(np.arange(m)[:, None] < size, np.eye(m), np.nan).astype(np.float32)
    return cf.Block(jnp.asarray(X), jnp.zeros(m), jnp.int32(size), jnp.int32(0))


def numbered_rows(size, m):
    """A silo whose row k is the number k."""
    return cf.Block(jnp.arange(m, dtype=jnp.float32)[:, None], jnp.zeros(m), jnp.int32(size), jnp.int32(0))


def start(client, params):
    shared, private = client.init(params)
    return cf.Inbox(shared, jnp.float32(0)), private


def context(data, key=None, round=1):
    return cf.Ctx(jnp.int32(round), True, data.size, jnp.int32(0), jax.random.key(0) if key is None else key)


def gradients(client, data, rounds):
    """The rows behind each of some gradients in a row."""
    inbox, private = start(client, jnp.zeros(data.X.shape[1]))
    update, said = jax.jit(client.update), []
    for r in range(rounds):
        message, private = update(inbox, private, data, context(data, jax.random.key(r), r + 1))
        rows = np.flatnonzero(message["x"])
        np.testing.assert_allclose(message["x"][rows], 1 / len(rows), rtol=1e-6)
        said.append(rows.tolist())
    assert int(private) == rounds
    return said


def steps_of(data, count=0, key=None, **how):
    """The rows that local training uses, step by step; steps without a live row do not show."""
    client = cf.clients.sgd(roll_call_in_time, 1.0, **how)
    inbox, _ = start(client, {"rows": jnp.zeros(data.X.shape[1]), "clock": jnp.zeros(())})
    message, after = jax.jit(client.update)(inbox, jnp.int32(count), data, context(data, key))
    assert int(after) == count + 1
    return decoded(message["x"])


def decoded(message):
    """The rows of every step, out of the message of a roll call in time."""
    bits = np.asarray(message["rows"]).astype(np.int64)
    return [np.flatnonzero(bits >> s & 1).tolist() for s in range(round(-float(message["clock"])))]


# Which rows


@pytest.mark.parametrize("m", [7, 8, 30])
def test_cyclic_gradients_take_consecutive_slices_and_go_on_over_rounds(m):
    said = gradients(cf.clients.gradient(roll_call, batch=3, order="cyclic"), unit_rows(7, m), 5)
    assert said == [[0, 1, 2], [3, 4, 5], [6], [0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("m", [2, 5, 12])
def test_a_cyclic_silo_smaller_than_a_batch_is_one_batch(m):
    said = gradients(cf.clients.gradient(roll_call, batch=8, order="cyclic"), unit_rows(2, m), 2)
    assert said == [[0, 1]] * 2


def test_a_cyclic_batch_that_divides_the_rows_has_no_empty_slice():
    said = gradients(cf.clients.gradient(roll_call, batch=3, order="cyclic"), unit_rows(6, 9), 3)
    assert said == [[0, 1, 2], [3, 4, 5], [0, 1, 2]]


@pytest.mark.parametrize("how", [{}, {"order": "full"}, {"order": "cyclic"}, {"order": "full", "batch": 2}])
def test_a_gradient_without_batches_is_over_all_rows(how):
    assert gradients(cf.clients.gradient(roll_call, **how), unit_rows(4, 6), 2) == [[0, 1, 2, 3]] * 2


@pytest.mark.parametrize("m", [7, 9, 40])
def test_a_shuffled_gradient_is_over_a_batch_of_different_rows(m):
    said = gradients(cf.clients.gradient(roll_call, batch=3), unit_rows(7, m), 12)
    assert all(len(rows) == 3 and max(rows) < 7 for rows in said)
    assert set(chain(*said)) == set(range(7))
    assert len({tuple(rows) for rows in said}) > 6


@pytest.mark.parametrize("m", [5, 80])
def test_a_shuffled_silo_smaller_than_a_batch_gives_all_its_rows(m):
    assert gradients(cf.clients.gradient(roll_call, batch=8), unit_rows(3, m), 2) == [[0, 1, 2]] * 2


def test_cyclic_steps_go_on_over_rounds():
    slices = [[0, 1, 2], [3, 4, 5], [6]]
    for count in range(4):
        said = steps_of(unit_rows(7, 8), count, batch=3, steps=4, order="cyclic")
        assert said == [slices[(4 * count + k) % 3] for k in range(4)]


def test_cyclic_epochs_are_whole_passes_in_every_round():
    for count in (0, 5):
        said = steps_of(unit_rows(7, 16), count, batch=3, epochs=2, order="cyclic")
        assert said == [[0, 1, 2], [3, 4, 5], [6]] * 2


def test_full_steps_use_all_rows():
    assert steps_of(unit_rows(3, 5), batch=None, steps=3) == [[0, 1, 2]] * 3
    assert steps_of(unit_rows(3, 5), batch=2, epochs=2, order="full") == [[0, 1, 2]] * 2


@pytest.mark.parametrize(("size", "m", "batch"), [(6, 6, 3), (7, 11, 3), (2, 9, 4), (1, 5, 1), (5, 5, 16)])
def test_a_shuffled_epoch_uses_every_live_row_exactly_once(size, m, batch):
    said = steps_of(unit_rows(size, m), key=jax.random.key(1), batch=batch, epochs=2)
    sizes = [batch] * (size // batch) + [size % batch] * (size % batch > 0)
    assert [len(rows) for rows in said] == 2 * sizes
    for epoch in (said[: len(sizes)], said[len(sizes) :]):
        assert sorted(chain(*epoch)) == list(range(size))


def test_one_epoch_is_the_default():
    assert sorted(steps_of(unit_rows(4, 4), batch=1)) == [[0], [1], [2], [3]]


def test_shuffled_epochs_have_shuffles_of_their_own():
    said = steps_of(unit_rows(7, 7), batch=1, epochs=3)
    assert len({str(said[k : k + 7]) for k in (0, 7, 14)}) == 3


@pytest.mark.parametrize("m", [7, 30])
def test_shuffled_steps_walk_through_one_shuffle_and_begin_it_again(m):
    seven = steps_of(unit_rows(7, m), batch=3, steps=7)
    assert [len(rows) for rows in seven] == [3, 3, 1, 3, 3, 1, 3]
    assert sorted(chain(*seven[:3])) == list(range(7))
    assert seven[3:6] == seven[:3]
    assert seven[6] == seven[0]
    for fewer in (1, 2):
        assert steps_of(unit_rows(7, m), batch=3, steps=fewer) == seven[:fewer]


def test_shuffled_steps_of_a_silo_smaller_than_a_batch_are_all_its_rows():
    for steps in (1, 4):
        assert steps_of(unit_rows(3, 5), batch=8, steps=steps) == [[0, 1, 2]] * steps


def test_another_key_is_another_shuffle_and_the_same_key_the_same():
    one, same, other = (steps_of(unit_rows(9, 9), key=jax.random.key(k), batch=1) for k in (4, 4, 5))
    assert one == same
    assert one != other


def test_more_padding_does_not_change_a_shuffle():
    tight, *wider = (steps_of(unit_rows(7, m), batch=2, epochs=2) for m in (7, 8, 9, 33))
    assert wider == [tight] * 3


WRONG_PLANS = {
    "order must be 'shuffled', 'cyclic' or 'full', not 'sorted'": {"order": "sorted"},
    "give epochs or steps, not both": {"epochs": 1, "steps": 1},
    "batch must be a whole number above 0, not 0": {"batch": 0},
    "steps must be a whole number above 0, not -1": {"steps": -1},
    r"epochs must be a whole number above 0, not 1\.5": {"epochs": 1.5},
}


@pytest.mark.parametrize("words", WRONG_PLANS)
def test_plans_that_make_no_sense_are_refused(words):
    with pytest.raises(ValueError, match=words):
        cf.clients.sgd(roll_call, 0.1, **WRONG_PLANS[words])


# Uniform draws

DRAWS = 20_000
BLOCKS = [8, 40]  # a batch of one is drawn in another way from a large block than from a small one


def many(keys, data, client):
    """What a client says under each of many keys."""
    inbox, private = start(client, jnp.zeros(data.X.shape[1]))
    return np.asarray(jax.jit(jax.vmap(lambda k: client.update(inbox, private, data, context(data, k))[0]["x"]))(keys))


def split(seed, count=DRAWS):
    return jax.random.split(jax.random.key(seed), count)


def drawn_rows(keys, size, m):
    """The one row of a batch of one, under each key."""
    return many(keys, numbered_rows(size, m), cf.clients.gradient(roll_call, batch=1))[:, 0].astype(int)


def p_value(counts):
    """Of a chi-square test that all cells are equally likely."""
    return stats.chisquare(np.ravel(counts)).pvalue


@pytest.mark.parametrize("m", BLOCKS)
def test_every_row_is_equally_likely_to_be_drawn(m):
    assert p_value(np.bincount(drawn_rows(split(0), 6, m), minlength=6)) > 1e-3


@pytest.mark.parametrize("m", BLOCKS)
def test_every_pair_of_rows_is_equally_likely_to_be_drawn(m):
    chosen = many(split(1), unit_rows(6, m), cf.clients.gradient(roll_call, batch=2)) > 0
    assert (chosen.sum(1) == 2).all()
    counts = np.unique(chosen[:, :6] @ 2 ** np.arange(6), return_counts=True)[1]
    assert len(counts) == 15
    assert p_value(counts) > 1e-3


def test_every_order_of_four_rows_is_equally_likely():
    """So every row is equally likely in every place, and every pair in every two places."""
    data = unit_rows(4, 5)
    client = cf.clients.sgd(roll_call_in_time, 1.0, batch=1)
    inbox, private = start(client, {"rows": jnp.zeros(5), "clock": jnp.zeros(())})
    said = jax.jit(jax.vmap(lambda k: client.update(inbox, private, data, context(data, k))[0]["x"]))(split(2))
    counts = np.unique(np.asarray(said["rows"]), axis=0, return_counts=True)[1]
    assert len(counts) == 24
    assert p_value(counts) > 1e-3


def test_among_many_rows_every_row_is_equally_likely_to_be_drawn():
    rows = drawn_rows(split(3), 900, 1000)
    assert rows.max() < 900
    assert p_value(np.histogram(rows, bins=50, range=(0, 900))[0]) > 1e-3


@pytest.mark.parametrize("m", BLOCKS)
def test_draws_of_consecutive_rounds_and_of_neighbouring_silos_are_independent(m):
    """With the keys of a run: all pairs of rows are equally likely."""
    rounds, silos = 4000, 3
    keys = jax.vmap(lambda r: silo_keys(jax.random.key(7), r, jnp.arange(silos))[1])(jnp.arange(1, rounds + 1))
    rows = drawn_rows(keys.reshape(-1), 6, m).reshape(rounds, silos)
    for one, two in ((rows[:-1], rows[1:]), (rows[:, :-1], rows[:, 1:])):
        assert p_value(np.bincount((6 * one + two).ravel(), minlength=36)) > 1e-3


# Numbers, against loops


def regression(rng, n, m, d, size):
    """Silos of a linear regression, padded with NaN."""
    X, y = rng.normal(size=(n, m, d)), rng.normal(size=(n, m))
    dead = np.arange(m) >= np.asarray(size)[:, None]
    X[dead], y = np.nan, np.where(dead, 0, y)
    return cf.Block(jnp.asarray(X), jnp.asarray(y), jnp.asarray(size, jnp.int32), jnp.arange(n, dtype=jnp.int32))


def squared_loss(params, batch):
    """Half the mean squared error of X w + b over live rows, as models.linear() has it."""
    return cf.models.linear().loss(params, batch)


def half_mse_gradient(w, b, X, y):
    error = X @ w + b - y
    return X.T @ error / len(y), error.mean()


def numpy_sgd(w, b, batches, lr, momentum=0.0, weight_decay=0.0, l2=0.0):
    """SGD with heavy-ball momentum and decoupled weight decay, one batch of (X, y) after another."""
    vw, vb = np.zeros_like(w), 0.0
    for X, y in batches:
        gw, gb = half_mse_gradient(w, b, X, y)
        vw, vb = momentum * vw + gw + l2 * w, momentum * vb + gb + l2 * b
        w, b = w - lr * (vw + weight_decay * w), b - lr * (vb + weight_decay * b)
    return w, b


def at(data, i):
    return jax.tree.map(lambda a: a[i], data)


def rows_of(data, i, steps):
    """The rows (X, y) of silo i that each step names."""
    return [(np.asarray(data.X[i])[rows], np.asarray(data.y[i])[rows]) for rows in steps]


PLANS = {
    "cyclic steps": {"batch": 3, "steps": 4, "order": "cyclic"},
    "cyclic epochs": {"batch": 4, "epochs": 2, "order": "cyclic"},
    "shuffled epochs": {"batch": 3, "epochs": 2, "order": "shuffled"},
    "shuffled steps": {"batch": 3, "steps": 5, "order": "shuffled"},
    "full": {"batch": None, "steps": 3},
    "large batch": {"batch": 50, "epochs": 2},
}
EVERYTHING = {"momentum": 0.7, "weight_decay": 0.05, "l2": 0.1}
TRAINING = [(plan, EVERYTHING) for plan in PLANS] + [("shuffled epochs", {}), ("cyclic epochs", {"momentum": 0.9})]


def side_by_side(client, params, data, counts, keys):
    """The messages of several silos, each at a round of its own, as the simulator asks for them."""
    n = len(counts)
    inbox, _ = start(client, params)
    ctx = cf.Ctx(jnp.int32(1), jnp.ones(n, bool), data.size, jnp.zeros(n, jnp.int32), keys)
    each = jax.jit(jax.vmap(client.update, (None, 0, 0, cf.Ctx(None, 0, 0, 0, 0))))
    message, private = each(inbox, counts, data, ctx)
    np.testing.assert_array_equal(private, counts + 1)
    return message["x"]


@pytest.mark.parametrize(("name", "numbers"), TRAINING)
def test_local_training_is_sgd_and_steps_without_a_live_row_change_nothing(x64, name, numbers):
    """Silos of one row, of fewer rows than a batch and of all rows, side by side in one padded block."""
    rng, size, m, lr, how = np.random.default_rng(0), [1, 2, 7, 10], 10, 0.1, PLANS[name]
    data, w, b = regression(rng, 4, m, 3, size), rng.normal(size=3), 0.3
    keys, counts = jax.random.split(jax.random.key(3), 4), jnp.array([0, 1, 2, 5], jnp.int32)
    params = {"w": jnp.asarray(w[:, None]), "b": jnp.asarray([b])}
    message = side_by_side(cf.clients.sgd(squared_loss, lr, **how, **numbers), params, data, counts, keys)
    units = jax.tree.map(lambda *rows: jnp.stack(rows), *(unit_rows(k, m) for k in size))
    clock = {"rows": jnp.zeros(m), "clock": jnp.zeros(())}
    named = side_by_side(cf.clients.sgd(roll_call_in_time, 1.0, **how), clock, units, counts, keys)
    for i in range(4):
        steps = decoded(at(named, i))
        assert len(set(chain(*steps))) >= min(size[i], how["batch"] or m)
        y_w, y_b = numpy_sgd(w, b, rows_of(data, i, steps), lr, **numbers)
        np.testing.assert_allclose(message["w"][i, :, 0], w - y_w, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(message["b"][i, 0], b - y_b, rtol=1e-11, atol=1e-13)


def test_the_gradient_client_sends_the_gradient_with_its_l2_part(x64):
    rng, counts = np.random.default_rng(1), jnp.array([5, 0, 2], jnp.int32)
    data, w, b = regression(rng, 3, 9, 3, [1, 4, 9]), rng.normal(size=3), -0.2
    params, keys = {"w": jnp.asarray(w[:, None]), "b": jnp.asarray([b])}, jax.random.split(jax.random.key(0), 3)
    for l2 in (None, 0.3):
        client = cf.clients.gradient(squared_loss, batch=4, order="cyclic", l2=l2)
        message = side_by_side(client, params, data, counts, keys)
        for i, rows in enumerate(([0], [0, 1, 2, 3], [8])):
            gw, gb = half_mse_gradient(w, b, *rows_of(data, i, [rows])[0])
            np.testing.assert_allclose(message["w"][i, :, 0], gw + (l2 or 0) * w, rtol=1e-12)
            np.testing.assert_allclose(message["b"][i, 0], gb + (l2 or 0) * b, rtol=1e-12)


def test_one_full_step_of_local_training_is_the_gradient_times_the_learning_rate(x64):
    data = regression(np.random.default_rng(2), 1, 6, 3, [5])
    inbox = cf.Inbox({"x": {"w": jnp.ones((3, 1)), "b": jnp.ones(1)}}, 0.0)
    clients = cf.clients.gradient(squared_loss), cf.clients.sgd(squared_loss, 0.1, batch=None)
    gradient, update = (c.update(inbox, jnp.int32(0), at(data, 0), context(at(data, 0)))[0]["x"] for c in clients)
    jax.tree.map(lambda g, u: np.testing.assert_allclose(0.1 * g, u, rtol=1e-12), gradient, update)


def test_a_fine_tuned_model_is_the_received_one_after_full_steps_on_own_rows(x64):
    rng = np.random.default_rng(3)
    data = regression(rng, 2, 6, 3, [4, 0])
    w, b = rng.normal(size=3), 0.5
    base = cf.clients.sgd(squared_loss, 0.1, batch=None)
    client = cf.clients.fine_tuned(base, squared_loss, lr=0.2, steps=5, l2=0.1)
    inbox, private = start(client, {"w": jnp.asarray(w[:, None]), "b": jnp.asarray([b])})
    own, empty = (client.personal(inbox, private, at(data, i)) for i in (0, 1))
    all_rows = [(np.asarray(data.X[0, :4]), np.asarray(data.y[0, :4]))] * 5
    y_w, y_b = numpy_sgd(w, b, all_rows, 0.2, l2=0.1)
    np.testing.assert_allclose(own["w"][:, 0], y_w, rtol=1e-12)
    np.testing.assert_allclose(own["b"][0], y_b, rtol=1e-12)
    np.testing.assert_array_equal(empty["w"][:, 0], w)
    assert base.update is client.update


def test_the_personal_model_is_the_one_received():
    for client in (cf.clients.gradient(roll_call), cf.clients.sgd(roll_call, 0.1)):
        inbox, private = start(client, jnp.arange(3.0))
        np.testing.assert_array_equal(client.personal(inbox, private, unit_rows(2, 3)), [0, 1, 2])


# Padding


def padded(data, more, X=np.nan, y=0):
    """The same silo with more padding, filled with what may not matter."""
    m = data.y.shape[0]
    dead = np.arange(m + more) >= int(data.size)
    wide = np.pad(np.asarray(data.X), ((0, more), (0, 0)))
    return data._replace(
        X=jnp.asarray(np.where(dead[:, None], X, wide).astype(wide.dtype)),
        y=jnp.asarray(np.where(dead, y, np.pad(np.asarray(data.y), (0, more)))).astype(data.y.dtype),
    )


PADDED = {
    "gradient": lambda loss: cf.clients.gradient(loss),
    "gradient in batches": lambda loss: cf.clients.gradient(loss, batch=3),
    "cyclic gradient": lambda loss: cf.clients.gradient(loss, batch=3, order="cyclic"),
    "epochs with momentum": lambda loss: cf.clients.sgd(loss, 0.1, batch=3, epochs=1, momentum=0.9, weight_decay=0.1),
    "steps": lambda loss: cf.clients.sgd(loss, 0.1, batch=3, steps=4, l2=0.1),
    "full": lambda loss: cf.clients.sgd(loss, 0.1, batch=None, steps=2),
}


def sent_with_padding(make, model, y, filling):
    """What a client sends from the same rows without padding, and with much of it."""
    X = np.random.default_rng(4).normal(size=(5, 3))
    tight = cf.Block(jnp.asarray(X), jnp.asarray(y), jnp.int32(5), jnp.int32(0))
    client = make(model.loss)
    outputs = max(y) + 1 if model.task == "classification" else 1
    inbox, private = start(client, model.init(jax.random.key(1), 3, outputs))
    update = jax.jit(client.update)
    return [update(inbox, private, rows, context(tight))[0] for rows in (tight, padded(tight, 40, np.nan, filling))]


@pytest.mark.parametrize("name", PADDED)
def test_padding_changes_nothing(x64, name):
    expected, found = sent_with_padding(PADDED[name], cf.models.logistic(), [0, 1, 1, 0, 1], 77)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-14), expected, found)


def test_padding_changes_nothing_with_more_classes_or_in_a_regression(x64):
    for model, y, filling in (
        (cf.models.logistic(), [0, 2, 1, 1, 0], -9),
        (cf.models.linear(), [0.1, -2.0, 0.7, 0.0, 5.0], 1e9),
    ):
        expected, found = sent_with_padding(PADDED["gradient"], model, y, filling)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-14), expected, found)


def test_labels_of_padding_may_be_nan_in_a_regression():
    one = cf.Block(jnp.ones((2, 3)), jnp.ones(2), jnp.int32(2), jnp.int32(0))
    client = cf.clients.gradient(cf.models.linear().loss)
    inbox, private = start(client, {"w": jnp.ones((3, 1)), "b": jnp.ones(1)})
    message, _ = client.update(inbox, private, padded(one, 2, np.nan, np.nan), context(one))
    np.testing.assert_allclose(message["x"]["b"], [3.0])


def test_a_silo_without_rows_sends_zeros():
    client = cf.clients.sgd(cf.models.linear().loss, 0.1, batch=2, epochs=1, momentum=0.9, weight_decay=0.5, l2=0.5)
    empty = cf.Block(jnp.full((4, 3), jnp.nan), jnp.zeros(4), jnp.int32(0), jnp.int32(0))
    inbox, private = start(client, {"w": jnp.ones((3, 1)), "b": jnp.ones(1)})
    message, _ = client.update(inbox, private, empty, context(empty))
    assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(message))


def test_batches_of_a_large_silo_are_spread_over_all_its_rows():
    m, batch = 300_000, 32
    first = jax.jit(jax.vmap(lambda k: shuffle(k, jnp.int32(m), m)[:batch]))(jax.random.split(jax.random.key(0), 60))
    place = np.asarray(first) / m
    assert place.mean(axis=1).std() == pytest.approx(np.sqrt(1 / 12 / batch), rel=0.3)
    assert (np.diff(np.asarray(first), axis=1) > 0).mean() == pytest.approx(0.5, abs=0.05)


def test_a_shuffle_of_a_large_silo_keeps_padding_behind():
    order = np.asarray(shuffle(jax.random.key(1), jnp.int32(20_000), 20_010))
    assert sorted(order[:20_000]) == list(range(20_000))
    assert order[20_000:].tolist() == list(range(20_000, 20_010))
