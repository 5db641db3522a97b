"""The recipes `evidence` and `ridge_local`: what is sent, what is pooled, what forged messages can do, and the ends."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import confrere as cf
from confrere.borrowing import glm, local, summary
from confrere.borrowing.candidates import CANDIDATES
from confrere.clients.summaries import listen, summaries, what_others_say
from confrere.core import Block, Inbox, federate, silo_view
from confrere.testing import check_algorithm
from tests import borrowing_oracle as oracle

LOGISTIC, LINEAR = cf.models.logistic(), cf.models.linear()
ROWS, FEATURES = 60, 3  # all cases have the same shapes, so that few programs are compiled


# --- cases ---


def block_of(tables):
    """Silos as one block; tables of fewer rows than the longest are padded with what must not count."""
    n = len(tables)
    X, y = np.full((n, ROWS, FEATURES), np.nan), np.zeros((n, ROWS))
    for i, (Xi, yi) in enumerate(tables):
        X[i, : len(yi)], y[i, : len(yi)] = Xi, yi
    labels = y.astype(np.int32) if all(np.asarray(t[1]).dtype.kind in "iub" for t in tables) else y
    size = np.array([len(t[1]) for t in tables], np.int32)
    return Block(*map(jnp.asarray, (X.astype(float), labels, size, np.arange(n, dtype=np.int32))))


def two_classes(n, rng, w, flip=False):
    X = rng.normal(size=(n, FEATURES))
    y = (rng.random(n) < 1 / (1 + np.exp(-(X @ w[:-1] + w[-1])))).astype(int)
    return X, 1 - y if flip else y


def a_block(seed=0, sizes=(40, 60, 50, 60), shift=0.2, task="classification", classes=2):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=FEATURES + 1)
    tables = []
    for n in sizes:
        v = w + shift * rng.normal(size=FEATURES + 1)
        X, y = two_classes(n, rng, v)
        if task == "regression":
            y = X @ v[:-1] + v[-1] + 0.5 * rng.normal(size=n)
        if classes > 2:
            y = np.minimum(y + (X[:, 0] > 0.8), classes - 1).astype(int)
        tables.append((X, y))
    return block_of(tables)


class Forgery(NamedTuple):
    """What one silo makes of its messages."""

    silo: int = -1
    h: float = 1.0
    H: float = 1.0
    n: float = 1.0
    loss: float = 1.0
    since: int = 0  # the first forged round
    claims: int = -1  # whose number it gives as its own; -1: the true one


def forging(client, forged):
    def update(inbox, private, data, ctx):
        message, private = client.update(inbox, private, data, ctx)
        lies = (data.id == forged.silo) & (ctx.round >= forged.since)
        factors = summary.Summary(forged.h, forged.H, forged.n, forged.loss)
        said = jax.tree.map(lambda a, f: jnp.where(lies, a * f, a), message["x"], factors)
        named = jnp.where(lies & (forged.claims >= 0), forged.claims.astype(int), message["told"]["id"])
        return {"x": said, "told": {"id": named}}, private

    return client._replace(update=update)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3, 4), compiler_options=glm.QUICK_COMPILATION)
def _run(model, outputs, share, min_cell, has_user, user, data, active, forged):
    recipe = cf.evidence(user=0 if has_user else None, share=share, min_cell=min_cell)
    algorithm = recipe.bound.on(model, **({"user": user} if has_user else {}))
    algorithm = federate(forging(algorithm.client, forged), algorithm.mixer)
    params = {"w": jnp.zeros((FEATURES, outputs), data.X.dtype), "b": jnp.zeros(outputs, data.X.dtype)}

    def one_round(state, here):
        state, _ = algorithm.update(state, data, jax.random.key(0), here)
        return state, state

    return jax.lax.scan(one_round, algorithm.init(params, data), active)[1]


def run(data, rounds=6, user: int | None = 0, model=LOGISTIC, share="full", min_cell=1, active=None, forged=None,
        outputs=None):  # fmt: skip
    """The states after every round."""
    n = data.id.shape[0]
    active = np.ones((rounds, n), bool) if active is None else np.asarray(active, bool)
    outputs = outputs or (1 if model is LINEAR else int(data.y.max()) + 1)
    forged = Forgery(*map(jnp.float32, Forgery() if forged is None else forged))
    has_user = user is not None
    states = _run(model, outputs, share, min_cell, has_user, jnp.int32(user or 0), data, active, forged)
    return [jax.tree.map(lambda a, k=k: a[k], states) for k in range(len(active))]


def mixer_of(user, share="full"):
    return cf.mixers.bulletin(user, share)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3), compiler_options=glm.QUICK_COMPILATION)
def _listen(model, share, candidates, min_cell, inbox, private, own):
    return listen(model, share, candidates, inbox, private, own, min_cell)


def verdict(state, data, i=0, user: int | None = 0, model=LOGISTIC, share="full", candidates=CANDIDATES, min_cell=1):
    inbox, private, own = silo_view(mixer_of(user, share), state, data, jnp.int32(i))
    return _listen(model, share, tuple(candidates), min_cell, inbox, private, own)


def alone(data, i=0, task="classification"):
    """The ridge optimum of a silo by itself."""
    own = jax.tree.map(lambda a: a[i], data)
    rows = glm.rows_of(LINEAR if task == "regression" else LOGISTIC, own)
    return np.asarray(local.ridge_optimum(rows, task, glm.base_precision(FEATURES + 1, 1).astype(rows.X.dtype)))


def rows_with_intercept(data, silos):
    parts = [(np.asarray(data.X[i, : data.size[i]]), np.asarray(data.y[i, : data.size[i]])) for i in silos]
    X, y = (np.concatenate(part).astype(float) for part in zip(*parts, strict=True))
    return np.column_stack([X, np.ones(len(y))]), y


def log_loss(theta, X, y):
    z = X @ np.asarray(theta, float)[:-1] + float(theta[-1])
    return float(np.mean(np.logaddexp(0, z) - y * z))


# --- nothing of the user is sent ---


def test_the_users_rows_change_nothing_that_anybody_sends_or_receives():
    data = a_block()
    rng = np.random.default_rng(9)
    other = data._replace(X=data.X.at[0, :40].set(10 * rng.normal(size=(40, 3))), y=data.y.at[0].set(1 - data.y[0]))
    one, two = run(data), run(other)
    for before, after in zip(one, two, strict=True):
        np.testing.assert_array_equal(*(np.concatenate([np.ravel(a) for a in jax.tree.leaves(s.inbox)])
                                        for s in (before, after)))  # fmt: skip
        others = [jax.tree.map(lambda a: np.asarray(a)[1:], s.private) for s in (before, after)]
        jax.tree.map(np.testing.assert_array_equal, *others)
    assert not np.any(one[-1].inbox.shared["table"]["n"][0])
    assert np.abs(np.asarray(verdict(one[-1], data).theta) - np.asarray(verdict(two[-1], other).theta)).max() > 0.1


def test_nobody_but_the_user_receives_the_table_and_the_pool():
    data = a_block()
    state = run(data)[-1]
    for i in range(4):
        shared = silo_view(mixer_of(0), state, data, jnp.int32(i))[0].shared
        received = [np.any(a) for a in jax.tree.leaves((shared["table"], shared["pool"]))]
        assert all(received) if i == 0 else not any(received)
        assert np.any(shared["x"])  # the point around which all expand


# --- what is in a message ---


@functools.partial(jax.jit, static_argnums=(0, 1, 2), compiler_options=glm.QUICK_COMPILATION)
def _message(model, share, min_cell, count, point, own):
    outputs = 1 if model is LINEAR else 2
    client = summaries(model, share, min_cell, CANDIDATES)
    params = {"w": jnp.zeros((FEATURES, outputs), own.X.dtype), "b": jnp.zeros(outputs, own.X.dtype)}
    _, (_, precision, params) = client.init(params)
    message, _ = client.update(Inbox({"x": point}, jnp.float32(0)), (count, precision, params), own, None)  # type: ignore[arg-type]
    return message["x"]


def message_of(data, share="full", min_cell=1, count=0, point=(0, 0, 0, 0)):
    """What silo 1 sends after `count` messages."""
    own = jax.tree.map(lambda a: a[1], data)
    return _message(LOGISTIC, share, min_cell, jnp.int32(count), jnp.asarray(point, data.X.dtype), own)


def test_the_first_message_is_the_likelihood_around_the_silos_own_ridge_optimum(x64):
    data = a_block()
    said = message_of(data)
    X, y = rows_with_intercept(data, [1])
    H, h = oracle.summary(X, y)
    np.testing.assert_allclose(said.h, h, atol=1e-8)
    np.testing.assert_allclose(said.H, H[np.triu_indices(4)], atol=1e-8)
    assert float(said.n) == 60


def test_a_later_message_is_around_the_common_point(x64):
    data = a_block()
    point = np.array([0.3, -0.2, 0.1, 0.5])
    said = message_of(data, count=1, point=point)
    X, y = rows_with_intercept(data, [1])
    H, h = oracle.quadratic(X, y, point)
    np.testing.assert_allclose(said.h, h, atol=1e-10)
    np.testing.assert_allclose(said.H, H[np.triu_indices(4)], atol=1e-10)
    assert float(said.loss) == pytest.approx(oracle.loss(X, y, point, "classification").sum(), rel=1e-12)


def test_weaker_sharing_sends_less(x64):
    data = a_block()
    X, y = rows_with_intercept(data, [1])
    w = oracle.newton(X, y, oracle.base(4), np.zeros(4))
    gradient, H = oracle.derivatives(X, y, w, "classification")
    diagonal, parameters = (message_of(data, share=share) for share in ("diagonal", "parameters"))
    np.testing.assert_allclose(diagonal.H, np.diag(H), atol=1e-8)
    np.testing.assert_allclose(diagonal.h, np.diag(H) * w - gradient, atol=1e-8)
    np.testing.assert_allclose(parameters.h, w, atol=1e-8)
    assert parameters.H.size == parameters.loss.size == diagonal.loss.size == 0
    assert jax.tree.map(jnp.shape, message_of(data, share="sum")) == jax.tree.map(jnp.shape, message_of(data))
    for share in ("diagonal", "parameters"):  # the first message is all there is
        assert not any(np.any(a) for a in message_of(data, share=share, count=1, point=np.ones(4)))


def test_a_feature_that_a_silo_does_not_have_is_not_in_its_message():
    data = a_block()
    said = message_of(data._replace(X=data.X.at[1, :, 2].set(0)))
    H = np.asarray(summary.unpacked(said.H, 4, "full"))
    assert not np.any(H[2])
    assert float(said.h[2]) == 0
    assert np.abs(H[0, :2]).min() > 0


def with_level(data, level, silo=1):
    """The data with the first column of a silo set."""
    return data._replace(X=data.X.at[silo, :, 0].set(level))


def test_rows_with_a_rare_level_leave_no_trace_in_the_message():
    data = a_block()
    rare = jnp.zeros(ROWS).at[-3:].set(1)  # three rows have it
    silent = message_of(with_level(data, rare), min_cell=4)
    without = with_level(data, 0.0)._replace(size=data.size.at[1].set(ROWS - 3))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4), silent, message_of(without))
    others = with_level(data, rare)  # whatever these patients have
    others = others._replace(X=others.X.at[1, -3:, 1:].add(5), y=others.y.at[1, -3:].set(0))
    jax.tree.map(np.testing.assert_array_equal, silent, message_of(others, min_cell=4))
    jax.tree.map(np.testing.assert_array_equal, silent, message_of(with_level(data, 1 - rare), min_cell=4))
    jax.tree.map(np.testing.assert_array_equal, silent, message_of(with_level(data, (rare - 0.1) / 0.3), min_cell=4))
    told = message_of(with_level(data, rare), min_cell=3)  # three are enough here
    assert float(told.n) == ROWS
    assert float(silent.n) == ROWS - 3
    numbers = message_of(data, min_cell=ROWS)  # columns that are no levels are never silent
    np.testing.assert_array_equal(numbers.h, message_of(data).h)
    assert float(message_of(data, min_cell=ROWS + 1).n) == 0  # but a silo with too few rows is


def test_a_rare_level_cannot_be_had_by_subtracting_the_others(x64):
    data = a_block()
    ward = np.arange(ROWS) % 2
    ward[7] = 2  # one patient is there alone
    levels = jnp.asarray(np.eye(3)[ward])
    data = data._replace(X=data.X.at[1].set(levels))
    H = summary.unpacked(message_of(data, min_cell=5).H, FEATURES + 1, "full")
    np.testing.assert_allclose(H[-1] - H[0] - H[1], 0, atol=1e-12)


# --- the pooled search ---


def pooled_optimum(data, silos):
    """Of the concatenated rows, with the ridge of the search."""
    X, y = rows_with_intercept(data, silos)
    return LogisticRegression(C=10, fit_intercept=False, tol=1e-12, max_iter=1000).fit(X, y).coef_[0]


def test_six_rounds_reach_the_pooled_optimum_of_the_others(x64):
    data = a_block()
    states = run(data)
    np.testing.assert_allclose(states[-1].inbox.shared["x"], pooled_optimum(data, [1, 2, 3]), atol=1e-5)
    pool = states[-1].inbox.shared["pool"]
    X, y = rows_with_intercept(data, [1, 2, 3])
    H, h = oracle.quadratic(X, y, np.asarray(pool["point"]))
    np.testing.assert_allclose(pool["H"], H, atol=1e-8)
    np.testing.assert_allclose(pool["h"], h, atol=1e-8)
    assert float(pool["n"]) == len(y)


def test_a_silo_that_is_away_now_and_then_delays_the_search_only(x64):
    data = a_block()
    active = np.ones((9, 4), bool)
    active[[2, 4, 5], [1, 3, 2]] = False
    states = run(data, active=active)
    np.testing.assert_array_equal(states[2].inbox.shared["x"], states[1].inbox.shared["x"])
    np.testing.assert_allclose(states[-1].inbox.shared["x"], pooled_optimum(data, [1, 2, 3]), atol=1e-5)


def test_with_a_late_silo_the_search_begins_anew(x64):
    data = a_block()
    active = np.ones((10, 4), bool)
    active[:4, 2] = False
    states = run(data, active=active)
    np.testing.assert_allclose(states[3].inbox.shared["pool"]["point"], pooled_optimum(data, [1, 3]), atol=1e-2)
    assert float(states[3].inbox.shared["pool"]["n"]) == 120
    assert float(states[4].inbox.shared["pool"]["n"]) == 0  # its first message cannot be pooled
    assert float(states[5].inbox.shared["pool"]["n"]) == 170
    np.testing.assert_allclose(states[-1].inbox.shared["x"], pooled_optimum(data, [1, 2, 3]), atol=1e-5)


@pytest.mark.slow
def test_a_newcomer_who_leaves_again_does_not_spoil_anybodys_pool(x64):
    data = a_block()
    active = np.ones((6, 4), bool)
    active[:4, 2] = active[5, 2] = False
    state = run(data, user=None, active=active)[-1]
    for i in range(4):
        inbox, private, own = silo_view(mixer_of(None), state, data, jnp.int32(i))
        rows = glm.rows_of(LOGISTIC, own)
        problem = what_others_say(LOGISTIC, "full", inbox, private, own.id, rows, rows)
        np.testing.assert_allclose(problem.pool.H, problem.others.H.sum(0), atol=1e-9)  # the table, added up
        assert np.asarray(problem.believed).tolist() == [j != i for j in range(4)]


@pytest.mark.slow
def test_everybody_subtracts_itself_from_the_pool(x64):
    data = a_block(task="regression")
    rare = jnp.zeros(ROWS).at[:3].set(1)
    data = data._replace(X=data.X.at[0, :, 1].set(rare))  # what is not sent is not subtracted either
    together = run(data, user=None, model=LINEAR, min_cell=4)[-1]
    listening = run(data, user=0, model=LINEAR, min_cell=4)[-1]
    pools = []
    for state, user in ((together, None), (listening, 0)):
        inbox, private, own = silo_view(mixer_of(user), state, data, jnp.int32(0))
        rows = glm.rows_of(LINEAR, own)
        sent = summary.without_rare_cells(rows, 4)
        pools.append(what_others_say(LINEAR, "full", inbox, private, own.id, rows, sent).pool)
    np.testing.assert_allclose(pools[0].H, pools[1].H, atol=1e-6)
    np.testing.assert_allclose(pools[0].h, pools[1].h, atol=1e-6)


@pytest.mark.parametrize("forged", [
    Forgery(1, h=-1000, H=1000), Forgery(1, h=-1000, H=1000, since=3), Forgery(1, H=-5, since=2),
    Forgery(1, h=1e6, since=2), Forgery(1, loss=-1e6, h=-100, since=3),
])  # fmt: skip
def test_a_forged_message_does_not_send_the_search_astray(forged):
    data = a_block()
    states = run(data, rounds=12, forged=forged)
    for state in states:
        assert all(np.isfinite(a).all() for a in jax.tree.leaves(state.inbox))
    answer = verdict(states[-1], data)
    assert all(np.isfinite(a).all() for a in jax.tree.leaves(answer))
    X, y = two_classes(2000, np.random.default_rng(5), np.random.default_rng(0).normal(size=4))
    assert log_loss(answer.theta, X, y) < log_loss(alone(data), X, y) + 0.03


# --- forged messages ---


def with_row(state, i, **changes):
    """The state with one silo's row of the table forged."""
    table = dict(state.inbox.shared["table"])
    for name, change in changes.items():
        table[name] = table[name].at[i].set(change(table[name][i]))
    return state._replace(inbox=state.inbox._replace(shared={**state.inbox.shared, "table": table}))


@pytest.mark.parametrize("changes", [
    {"h": lambda a: a.at[0].set(jnp.nan)},
    {"H": lambda a: a.at[2].set(jnp.inf)},
    {"H": lambda a: -a},
    {"H": lambda a: a.at[1].set(1e4)},
    {"H": lambda a: 1000 * a, "h": lambda a: -1000 * a},
    {"n": lambda a: 0 * a},
    {"n": lambda a: -a},
])  # fmt: skip
def test_a_message_that_cannot_be_true_is_as_if_the_silo_were_absent(changes):
    data = a_block()
    without = np.ones((1, 4), bool)
    without[0, 1] = False
    expected = verdict(run(data, active=without)[-1], data)
    found = verdict(with_row(run(data, rounds=1)[-1], 1, **changes), data)
    np.testing.assert_allclose(found.theta, expected.theta, atol=1e-5)
    np.testing.assert_allclose(found.relevance, expected.relevance, atol=1e-5)
    assert not bool(found.believed[1])
    assert float(found.shares[1]) == 0


def test_a_silo_that_gives_the_number_of_the_user_is_heard_like_any_other():
    data = a_block()
    honest, claiming = (verdict(run(data, forged=Forgery(1, claims=c))[-1], data) for c in (-1, 0))
    jax.tree.map(np.testing.assert_array_equal, honest, claiming)
    assert float(claiming.shares[1]) > 0


@pytest.mark.slow
def test_a_forged_opposite_with_a_thousand_times_the_precision_does_bounded_harm():
    harm = []
    for seed in range(8):
        data = a_block(seed)
        w = np.random.default_rng(seed).normal(size=4)
        X, y = two_classes(4000, np.random.default_rng(100 + seed), w)
        state = run(data, forged=Forgery(1, h=-1000, H=1000, n=1000))[-1]  # as many rows as it takes to be believed
        answer = verdict(state, data)
        assert bool(answer.believed[1])
        harm.append(log_loss(answer.theta, X, y) - log_loss(alone(data), X, y))
    assert np.mean(harm) < 0.03
    assert max(harm) < 0.1  # where even the user's own rows hardly say which way is up


@pytest.mark.slow
def test_forged_labels_of_least_squares_with_any_precision_stay_finite():
    data = a_block(task="regression")
    few = ("pair", "pool")
    for size in (1e6, 1e12, 1e20):
        answer = verdict(
            run(data, model=LINEAR, forged=Forgery(1, h=-size, H=size))[-1], data, model=LINEAR, candidates=few
        )
        assert all(np.isfinite(a).all() for a in jax.tree.leaves(answer))
        assert float(answer.relevance[1]) < 0.3


# --- the ends ---


def test_with_no_other_silo_it_is_ridge_local():
    data = a_block()
    only = np.zeros((6, 4), bool)
    only[:, 0] = True
    for user in (0, None):
        answer = verdict(run(data, user=user, active=only)[-1], data, user=user)
        np.testing.assert_allclose(answer.theta, alone(data), atol=1e-6)
        assert not np.any(answer.shares)
        assert not np.any(answer.relevance)


def test_with_all_silos_opposite_it_is_ridge_local_to_a_thousandth():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        w = 1.5 * np.sign(rng.normal(size=4))
        data = block_of([two_classes(60, rng, w), *(two_classes(60, rng, w, flip=True) for _ in range(3))])
        answer = verdict(run(data)[-1], data)
        X, y = two_classes(4000, rng, w)
        assert abs(log_loss(answer.theta, X, y) - log_loss(alone(data), X, y)) < 1e-3
        assert max(answer.relevance) < 0.3


@pytest.mark.slow
def test_like_silos_help():
    gains = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        w = rng.normal(size=4)
        data = block_of([two_classes(n, rng, w) for n in (20, 60, 60, 60)])
        X, y = two_classes(4000, rng, w)
        answer = verdict(run(data)[-1], data)
        gains.append(log_loss(alone(data), X, y) - log_loss(answer.theta, X, y))
        assert min(answer.relevance[1:]) > 0.3  # nobody is flagged
    assert np.mean(gains) > 0.02


def test_a_silo_without_rows_receives_the_pool():
    data = a_block()
    data = data._replace(size=data.size.at[0].set(0))
    answer = verdict(run(data, user=None)[-1], data, user=None)
    X, y = rows_with_intercept(data, [1, 2, 3])
    np.testing.assert_allclose(answer.theta, oracle.newton(X, y, oracle.base(4), np.zeros(4)), atol=5e-3)


@pytest.mark.slow
def test_a_user_with_a_single_row_believes_honest_silos():
    data = a_block()
    data = data._replace(size=data.size.at[0].set(1), X=data.X.at[0, 0].set(0))
    answer = verdict(run(data)[-1], data)
    assert np.asarray(answer.believed).tolist() == [False, True, True, True]
    np.testing.assert_array_equal(answer.weights, [1, 0, 0, 0])
    assert np.isfinite(answer.theta).all()


# --- units, classes ---


@pytest.mark.slow
@pytest.mark.parametrize("share", ["full", "parameters"])
def test_affine_changes_of_the_labels_change_predictions_alike(x64, share):
    data = a_block(task="regression")
    changed = data._replace(y=-70 * data.y + 900)
    few = ("pair", "pool") if share == "full" else ("pair",)
    one, two = (
        verdict(run(d, model=LINEAR, share=share)[-1], d, model=LINEAR, share=share, candidates=few)
        for d in (data, changed)
    )
    X = np.column_stack([np.random.default_rng(0).normal(size=(50, 3)), np.ones(50)])
    np.testing.assert_allclose(X @ np.asarray(two.theta), -70 * (X @ np.asarray(one.theta)) + 900, atol=1e-5)
    np.testing.assert_allclose(two.relevance, one.relevance, atol=1e-6)
    np.testing.assert_allclose(two.shares, one.shares, atol=1e-6)
    assert max(one.shares) > 0.05


@pytest.mark.slow
def test_three_classes_of_which_one_is_empty_are_nearly_two():
    data = a_block()
    two = np.asarray(verdict(run(data)[-1], data).each[CANDIDATES.index("pair")])
    three = np.asarray(verdict(run(data, outputs=3)[-1], data, candidates=("pair",)).theta).reshape(4, 3)
    X = np.column_stack([np.random.default_rng(0).normal(size=(200, 3)), np.ones(200)])
    p = 1 / (1 + np.exp(-X @ two))
    q = np.exp(X @ three)
    q /= q.sum(axis=1, keepdims=True)
    assert np.abs(q[:, 1] / (q[:, 0] + q[:, 1]) - p).max() < 0.05
    assert q[:, 2].max() < 0.1


@pytest.mark.slow
def test_three_classes_borrow_too():
    data = a_block(classes=3)
    answer = verdict(run(data)[-1], data, candidates=("pair",))
    assert answer.theta.shape == (12,)
    assert all(np.isfinite(a).all() for a in answer)
    assert np.asarray(answer.believed).tolist() == [False, True, True, True]
    assert max(answer.shares) > 0.05


# --- recipes ---


def silos_of(data, names="abcd"):
    tables = [(np.asarray(data.X[i, :m]), np.asarray(data.y[i, :m])) for i, m in enumerate(np.asarray(data.size))]
    return cf.Silos.from_arrays(tables, names=list(names))


def test_a_simulated_run_counts_what_is_sent_and_ends_with_the_verdict():
    data = a_block()
    recipe = cf.evidence(user="a", candidates=["pair"])
    history = cf.simulate(recipe, LOGISTIC, silos_of(data), rounds=6, metrics=(), record=())
    D = FEATURES + 1
    up = 4 * (D * (D + 3) // 2 + 2) + 4  # h, H, n and the loss that damps the search; and the silo's number
    everybody = 4 * (D + 1)  # the common point, and the mass
    alone_reserved = 4 * 4 * (D + D * (D + 1) // 2 + 1 + 1) + 4 * (D + D * D + D + 1)  # table and pooled sums
    np.testing.assert_array_equal(history.bytes_up, [[0, up, up, up]] * 6)
    np.testing.assert_array_equal(history.bytes_down, [[everybody + alone_reserved, *[everybody] * 3]] * 6)
    theta = np.asarray(verdict(run(data)[-1], data).each[CANDIDATES.index("pair")])
    model = history.personal("a")
    np.testing.assert_allclose(model["w"][:, 1] - model["w"][:, 0], theta[:-1], atol=1e-4)
    np.testing.assert_allclose(model["b"][1] - model["b"][0], theta[-1], atol=1e-4)


@pytest.mark.slow
def test_a_simulated_run_measures_the_user_from_training_alone_to_the_verdict():
    data = a_block()
    history = cf.simulate(cf.evidence(user="a"), LOGISTIC, silos_of(data), rounds=6, record=())
    X, y = np.asarray(data.X[0, :40]), np.asarray(data.y[0, :40])
    found = history.metrics["log_loss"]
    assert found.shape == (7,)
    assert found[0] == pytest.approx(log_loss(alone(data), X, y), abs=1e-5)  # nothing heard yet
    assert found[-1] == pytest.approx(log_loss(verdict(run(data)[-1], data).theta, X, y), abs=1e-4)


def test_ridge_local_is_the_optimum_after_one_round_and_sends_nothing():
    data = a_block()
    history = cf.simulate(cf.ridge_local(ridge=2.0), LOGISTIC, silos_of(data), rounds=2)
    for i, name in enumerate("abcd"):
        X, y = rows_with_intercept(data, [i])
        best = oracle.newton(X, y, 2 * oracle.base(4), np.zeros(4))
        model = history.personal(name)
        np.testing.assert_allclose(model["w"][:, 1] - model["w"][:, 0], best[:-1], atol=1e-4)
        np.testing.assert_allclose(model["b"][1] - model["b"][0], best[-1], atol=1e-4)
    np.testing.assert_array_equal(history.loss[1], history.loss[2])
    assert not history.bytes_up.any()


def test_wrong_words_are_refused():
    with pytest.raises(ValueError, match="share must be one of full, diagonal, parameters, sum, not 'half'"):
        cf.evidence(share="half")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="share='sum' needs a user"):
        cf.evidence(share="sum")
    for wrong in (["pair", "best"], [], "pair"):
        with pytest.raises(ValueError, match=r"candidates must be some of pair, pair\.3, joint"):
            cf.evidence(candidates=wrong)
    with pytest.raises(ValueError, match="min_cell"):
        cf.evidence(min_cell=0)
    for ridge in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="ridge"):
            cf.ridge_local(ridge=ridge)


@pytest.mark.parametrize("recipe", [cf.evidence(user="a"), cf.ridge_local()])
def test_a_model_that_is_not_linear_is_refused(recipe):
    with pytest.raises(TypeError, match=r"models.linear\(\) or models.logistic\(\)"):
        cf.simulate(recipe, cf.models.mlp((4,)), silos_of(a_block()), rounds=1)


@pytest.mark.slow
@pytest.mark.parametrize("share", summary.SHARES)
def test_every_way_of_sharing_keeps_to_the_contract(share):
    check_algorithm(lambda order: cf.evidence(user=order.index(0), share=share), local=cf.ridge_local())
