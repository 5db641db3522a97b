"""Weight Erosion against the equations of its paper, transcribed line by line."""

import math
import statistics

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import confrere as cf
from confrere.weights.erosion import relative_distance

# The paper, line by line


class Transcript:
    """Algorithm 1 for agents that come and go: one dictionary of weights, one agent at a time."""

    def __init__(self, user, p_d, p_s, batch=None, passes="paper", newcomer="mean"):
        self.user, self.p_d, self.p_s, self.batch = user, p_d, p_s, batch
        self.passes, self.newcomer = passes, newcomer
        self.alpha, self.rounds = {}, {}

    def round(self, g, active, size):
        present = [i for i in range(len(g)) if active[i]]
        start = self.start()
        for i in present:
            self.alpha.setdefault(i, start)
            self.rounds.setdefault(i, 0)
        if self.user in present:
            for i in present:
                penalty = (1 + self.p_s * self.times_used(i, size[i])) * self.p_d
                d = self.distance(g[i], g[self.user])
                self.alpha[i] = max(0.0, self.alpha[i] - (penalty * d if penalty else 0.0))  # Equation (5)
        for i in present:
            self.rounds[i] += 1
        return dict(self.alpha)

    def start(self):
        if not self.alpha:
            return 1.0
        typical = statistics.fmean if self.newcomer == "mean" else statistics.median
        return typical(self.alpha.values())

    def distance(self, g_i, g_0):
        """Equation (4)."""
        if np.array_equal(g_i, g_0):
            return 0.0
        norm = np.linalg.norm(g_0)
        return np.linalg.norm(g_i - g_0) / norm if norm > 0 else math.inf

    def times_used(self, i, size):
        earlier = self.rounds[i]
        if self.batch is None:
            return earlier if self.passes == "paper" else earlier + 1
        if self.passes == "paper":
            return math.floor(earlier * self.batch / size)
        return math.floor((earlier + 1) / math.ceil(size / self.batch))


def mean_gradient(alpha, g, active, user):
    """Equation (6) over those who are there; nothing without the user."""
    present = [i for i in range(len(g)) if active[i]]
    total = sum(alpha[i] for i in present)
    return sum(alpha[i] * g[i] for i in present) / total if user in present else None


def rounds_of(rng, n, D, rounds, user, absence=0.3):
    """Random gradients near a common one, and who is there when: all pairs of presence and absence occur."""
    common = rng.normal(size=(rounds, 1, D))
    g = common + rng.uniform(0.1, 1.5, size=(1, n, 1)) * rng.normal(size=(rounds, n, D))
    active = rng.uniform(size=(rounds, n)) > absence
    active[: rounds // 3, n - 1] = False  # one joins late
    active[: rounds // 2, n - 2] = False  # another later still
    active[0, :2] = True
    active[rounds // 4, user] = False
    return g, active


def run(w, g, active, size):
    """The raw weights [rounds, n] that the library gives, and the last state."""
    state, rows = w.init(g.shape[1]), []
    update = jax.jit(lambda M, state, ctx: w.update(cf.Geometry.from_messages(M), state, ctx))
    for r, (M, here) in enumerate(zip(g, active, strict=True), start=1):
        W, state = update(M, state, cf.Ctx(round=r, active=here, size=size))
        rows.append(np.asarray(W[0]))
    return np.stack(rows), state


def together(n):
    """Everybody is there, with ten rows each."""
    return cf.Ctx(round=1, active=np.ones(n, bool), size=np.full(n, 10))


def one_round(M, state=None, ctx=None, **how):
    w = cf.weights.erosion(**{"user": 0, "p_d": 0.1, "p_s": 0.2, **how})
    n = len(M)
    return w.update(cf.Geometry.from_messages(np.asarray(M)), w.init(n) if state is None else state, ctx or together(n))


@pytest.mark.parametrize("newcomer", ["mean", "median"])
@pytest.mark.parametrize("passes", ["paper", "code"])
@pytest.mark.parametrize("batch", [None, 7, 40])
def test_equations_4_and_5_hold_with_absences_and_late_joiners(x64, passes, batch, newcomer):
    n, D, rounds, size = 7, 5, 24, np.array([20, 7, 33, 3, 40, 14, 21])
    for seed, user in ((0, 0), (1, 3)):
        g, active = rounds_of(np.random.default_rng(seed), n, D, rounds, user)
        how = {"user": user, "p_d": 0.02, "p_s": 0.2, "batch": batch, "passes": passes, "newcomer": newcomer}
        W, _ = run(cf.weights.erosion(**how), g, active, size)
        paper = Transcript(**how)
        for r in range(rounds):
            for i, alpha in paper.round(g[r], active[r], size).items():
                assert W[r, i] == pytest.approx(alpha, rel=1e-12, abs=1e-14), f"round {r + 1}, silo {i}"
        assert 0 < W[-1].min() < 0.9 or W[-1].min() == 0  # something did erode


@pytest.mark.parametrize("passes", ["paper", "code"])
def test_passes_are_counted_by_whole_numbers_at_the_edges(x64, passes):
    """Batches that divide the rows, that just do not, and that are larger than the silo."""
    size = np.array([6, 6, 5, 7, 1, 12])
    g = np.tile(np.r_[1.0, np.full(5, 1.001)][:, None], (14, 1, 1))
    how = {"user": 0, "p_d": 1.0, "p_s": 0.5, "batch": 6, "passes": passes}
    active = np.ones((14, 6), bool)
    active[3:5, 1] = False
    W, _ = run(cf.weights.erosion(**how), g, active, size)
    paper = Transcript(**how)
    for r in range(14):
        expected = paper.round(g[r], active[r], size)
        np.testing.assert_allclose(W[r], [expected[i] for i in range(6)], rtol=1e-12)


def test_the_default_counts_passes_as_the_paper_does():
    M, state = np.array([[1.0], [1.1]], np.float32), cf.weights.erosion(0, 0.1, 1.0).init(2)
    ctx = together(2)
    early = state
    for _ in range(3):  # three rounds in which all messages are alike, so that nothing erodes
        _, early = one_round(np.ones((2, 1), np.float32), early, ctx, batch=4)
    W, _ = one_round(M, early, ctx, p_s=1.0, batch=4)  # floor(3 * 4 / 10) = 1
    assert float(W[0, 1]) == pytest.approx(1 - (1 + 1) * 0.1 * 0.1, rel=1e-5)
    W, _ = one_round(M, early, ctx, p_s=1.0, batch=4, passes="code")  # floor(4 / ceil(10 / 4)) = 1
    assert float(W[0, 1]) == pytest.approx(1 - (1 + 1) * 0.1 * 0.1, rel=1e-5)


def test_a_long_run_on_a_large_silo_does_not_lose_count():
    rows = 1_000_000
    state = cf.weights.erosion(0, 0.1, 1.0).init(2)
    late = state._replace(rounds=jnp.full(2, 3000, jnp.int32), passes=jnp.full(2, 3000, jnp.int32))
    ctx = cf.Ctx(round=3001, active=np.ones(2, bool), size=np.full(2, rows))
    W, _ = one_round(np.array([[1.0], [1.0001]]), late, ctx, p_d=0.001, p_s=1.0, batch=rows)
    assert float(W[0, 1]) == pytest.approx(1 - (1 + 3000) * 0.001 * 0.0001, rel=1e-4)


def test_equation_6_moves_the_server(x64):
    n, D, rounds, user, lr = 5, 3, 12, 1, 0.3
    g, active = rounds_of(np.random.default_rng(3), n, D, rounds, user)
    size = np.array([10, 20, 15, 8, 12])
    how = {"user": user, "p_d": 0.05, "p_s": 0.2, "batch": 5}
    server = cf.mixers.server(cf.weighted(cf.weights.erosion(**how)), x=cf.mixers.step(optax.sgd(lr)))
    inbox, state = server.init({"x": jnp.zeros(D)}, {"x": jnp.zeros((n, D))})
    paper, x = Transcript(**how), np.zeros(D)
    for r in range(rounds):
        inbox, state, mixed = server.update({"x": jnp.asarray(g[r])}, state, cf.Ctx(r + 1, active[r], size))
        alpha = paper.round(g[r], active[r], size)
        mean = mean_gradient(alpha, g[r], active[r], user)
        if mean is None:
            assert float(inbox.mass) == 0
        else:
            x = x - lr * mean
            assert float(inbox.mass) == pytest.approx(sum(alpha[i] for i in range(n) if active[r, i]), rel=1e-12)
        np.testing.assert_allclose(inbox.shared["x"], x, rtol=1e-11, atol=1e-13)
        for i, a in alpha.items():
            assert float(mixed.weights[0, i]) == pytest.approx(a, rel=1e-12)


# The public call


def test_the_public_call_takes_numpy_arrays_and_gives_one_row():
    M = np.random.default_rng(0).normal(size=(4, 6))
    mask, sizes = np.array([True, True, False, True]), np.array([100, 200, 300, 161])
    w = cf.weights.erosion(user=0, p_d=0.01, p_s=0.2, batch=161)
    state = w.init(4)
    for r in (1, 2, 3):
        W, state = w.update(cf.Geometry.from_messages(M), state, cf.Ctx(round=r, active=mask, size=sizes))
        assert W.shape == (1, 4)
    d = np.linalg.norm(M - M[0], axis=1) / np.linalg.norm(M[0])
    passes = [sum(1 + 0.2 * math.floor((r - 1) * 161 / size) for r in (1, 2, 3)) for size in sizes]
    np.testing.assert_allclose(W[0], np.where(mask, 1 - 0.01 * np.array(passes) * d, 1), rtol=1e-5)


def test_weights_are_raw_and_not_normalised():
    W, _ = one_round([[1.0], [1.5], [1.0]])
    np.testing.assert_allclose(W, [[1, 0.95, 1]], rtol=1e-6)


def test_the_user_may_be_any_silo():
    W, _ = one_round([[1.0], [2.0], [4.0]], user=2)
    np.testing.assert_allclose(W, [[1 - 0.1 * 3 / 4, 1 - 0.1 * 2 / 4, 1]], rtol=1e-6)


def test_messages_may_be_pytrees(x64):
    rng = np.random.default_rng(5)
    tree = {"w": rng.normal(size=(3, 2, 2)), "b": rng.normal(size=(3, 2))}
    flat = np.concatenate([tree["b"], tree["w"].reshape(3, 4)], axis=1)
    w = cf.weights.erosion(user=0, p_d=0.1, p_s=0.2)
    one, _ = w.update(cf.Geometry.from_messages(tree), w.init(3), together(3))
    np.testing.assert_allclose(one, one_round(flat)[0], rtol=1e-13)


def test_users_and_penalties_may_be_traced(x64):
    rng = np.random.default_rng(6)
    g, active = rounds_of(rng, 4, 3, 9, 0)
    size = np.array([10, 5, 8, 20])

    @jax.jit
    @jax.vmap
    def final(user, p_d, p_s, prior):
        w = cf.weights.erosion(user, p_d, p_s, batch=4, size_prior=prior)
        state = w.init(4)
        for r in range(9):
            W, state = w.update(cf.Geometry.from_messages(g[r]), state, cf.Ctx(r + 1, active[r], size))
        return W[0]

    grid = [(0, 0.01, 0.2, 0.0), (1, 0.03, 0.0, 1.0), (2, 0.02, 0.5, 0.0), (0, 0.0, 0.2, 1.0)]
    found = final(*map(jnp.asarray, zip(*grid, strict=True)))
    for row, (user, p_d, p_s, prior) in zip(found, grid, strict=True):
        alone, _ = run(cf.weights.erosion(user, p_d, p_s, batch=4, size_prior=prior), g, active, size)
        np.testing.assert_allclose(row, alone[-1], rtol=1e-12)


def test_the_state_keeps_its_shapes_and_types(x64):
    w = cf.weights.erosion(user=0, p_d=0.1, p_s=0.2, batch=4)
    for precision in (jnp.float32, jnp.float64):
        state = w.init(3)
        after = w.update(cf.Geometry.from_messages(jnp.ones((3, 2), precision)), state, together(3))[1]
        assert jax.tree.map(lambda a: (a.shape, a.dtype), state) == jax.tree.map(lambda a: (a.shape, a.dtype), after)


# Absence


def test_an_absent_silo_keeps_its_weight():
    M = np.array([[1.0], [2.0], [2.0]], np.float32)
    _, state = one_round(M)
    away = cf.Ctx(round=2, active=np.array([True, True, False]), size=np.full(3, 10))
    W, after = one_round(M, state, away)
    assert W[0, 2] == state.alpha[2]
    assert W[0, 1] < state.alpha[1]
    assert after.rounds.tolist() == [2, 2, 1]


def test_without_the_user_no_weight_changes_and_the_raw_weights_are_still_given():
    M = np.array([[1.0], [2.0], [-3.0]], np.float32)
    _, state = one_round(M)
    away = cf.Ctx(round=2, active=np.array([False, True, True]), size=np.full(3, 10))
    W, after = one_round(M, state, away)
    np.testing.assert_array_equal(W[0], state.alpha)
    np.testing.assert_array_equal(after.alpha, state.alpha)
    assert float(W[0, 1]) < 1


def test_without_the_user_the_model_and_its_optimizer_stand_still():
    weights = cf.weights.erosion(user=1, p_d=0.1, p_s=0.2)
    server = cf.mixers.server(cf.weighted(weights), x=cf.mixers.step(optax.adam(0.1)))
    message = {"x": jnp.array([[1.0], [2.0], [3.0]])}
    _, state = server.init({"x": jnp.zeros(1)}, message)
    before, state, _ = server.update(message, state, together(3))
    away = cf.Ctx(round=2, active=jnp.array([True, False, True]), size=jnp.full(3, 10))
    after, (_, parts, _), _ = server.update(message, state, away)
    assert float(before.shared["x"][0]) != 0
    np.testing.assert_array_equal(after.shared["x"], before.shared["x"])
    assert float(after.mass) == 0
    jax.tree.map(np.testing.assert_array_equal, parts, state[1])


def test_the_users_weight_is_one_even_if_it_comes_last():
    g = np.random.default_rng(8).normal(size=(6, 3, 2))
    active = np.array([[0, 1, 1]] * 3 + [[1, 1, 1]] * 3, bool)
    W, _ = run(cf.weights.erosion(user=0, p_d=0.1, p_s=0.2), g, active, np.full(3, 10))
    np.testing.assert_array_equal(W[:, 0], 1)
    np.testing.assert_array_equal(W[:3], 1)
    assert (W[-1, 1:] < 1).all()


@pytest.mark.parametrize(("newcomer", "start"), [("mean", (1 + 0.9 + 0.4) / 3), ("median", 0.9)])
def test_a_newcomer_starts_at_the_typical_weight_of_all_seen_the_user_included(newcomer, start):
    """Three silos were seen, one of whom has left again; a fourth comes and agrees with the user."""
    w = cf.weights.erosion(user=0, p_d=0.1, p_s=0.0, newcomer=newcomer)
    seen = cf.Ctx(round=1, active=np.array([True, True, True, False, False]), size=np.full(5, 10))
    _, state = w.update(cf.Geometry.from_messages(np.array([[1.0], [2.0], [7.0], [0.0], [0.0]])), w.init(5), seen)
    np.testing.assert_allclose(state.alpha[:3], [1, 0.9, 0.4], rtol=1e-6)
    joined = cf.Ctx(round=2, active=np.array([True, True, False, True, False]), size=np.full(5, 10))
    W, _ = w.update(cf.Geometry.from_messages(np.array([[1.0], [1.0], [0.0], [1.0], [0.0]])), state, joined)
    np.testing.assert_allclose(W[0, :4], [1, 0.9, 0.4, start], rtol=1e-6)


def test_an_old_message_that_stands_in_for_a_silent_silo_does_not_erode():
    M, size = np.array([[1.0], [2.0], [2.0]], np.float32), np.full(3, 10)
    ctx = cf.Ctx(round=2, active=np.ones(3, bool), size=size, age=np.array([0, 0, 1]))
    W, state = one_round(M, ctx=ctx)
    np.testing.assert_allclose(W[0], [1, 0.9, 1], rtol=1e-6)
    assert state.rounds.tolist() == [1, 1, 0]


# The user's gradient is zero


def test_with_a_zero_gradient_of_the_user_only_equal_messages_keep_their_weight():
    M = [[0.0, 0.0], [0.0, 0.0], [1e-3, 0.0], [-1e3, 5.0]]
    for p_d in (1e-6, 0.01, 1e6):
        W, _ = one_round(M, p_d=p_d)
        np.testing.assert_array_equal(W, [[1, 1, 0, 0]])


def test_with_no_distance_penalty_a_zero_gradient_of_the_user_erodes_nobody():
    W, _ = one_round([[0.0], [0.0], [1.0], [-1e3]], p_d=0.0)
    np.testing.assert_array_equal(W, [[1, 1, 1, 1]])


def test_relative_distances_are_finite_also_where_the_paper_leaves_them_open():
    d = relative_distance(cf.Geometry.from_messages(np.array([[0.0], [0.0], [1.0]], np.float32)), 0)
    np.testing.assert_array_equal(d, [0, 0, np.finfo(np.float32).max])


@pytest.mark.parametrize("size", [1e-30, 1e20, 3e38])
def test_messages_of_any_size_never_give_nan(size):
    """Squares of such numbers are 0 or infinite in single precision."""
    M = np.array([[1.0, 0.5], [0.5, 1.0], [-1.0, 0.0], [1e-3, 0.0]], np.float32)
    for mine, theirs in ((1, size), (size, 1), (size, size)):
        scaled = (M * np.array([[mine], [theirs], [theirs], [1]])).astype(np.float32)
        assert np.isfinite(scaled).all()
        W = np.asarray(one_round(scaled)[0])
        assert np.isfinite(W).all(), f"user times {mine}, others times {theirs}: {W}"
        assert ((W >= 0) & (W <= 1)).all()
        assert W[0, 0] == 1


# The prior by size


def test_the_size_prior_is_a_factor_apart_from_alpha():
    M, size = np.array([[1.0], [2.0], [1.0]], np.float32), np.array([10, 40, 5])
    ctx = cf.Ctx(round=1, active=np.ones(3, bool), size=size)
    for power, beta in ((0.0, [1, 1, 1]), (1.0, [1, 4, 0.5]), (0.5, [1, 2, 0.5**0.5])):
        W, state = one_round(M, ctx=ctx, size_prior=power)
        np.testing.assert_allclose(state.alpha, [1, 0.9, 1], rtol=1e-6)
        np.testing.assert_allclose(W[0], np.array([1, 0.9, 1]) * beta, rtol=1e-6)


def test_the_size_prior_is_computed_in_the_precision_of_the_weights(x64):
    ctx = cf.Ctx(round=1, active=np.ones(3, bool), size=np.array([30, 7, 100]))
    for power in (0.5, jnp.asarray(0.5)):
        W, _ = one_round(np.ones((3, 1)), ctx=ctx, size_prior=power)
        np.testing.assert_allclose(W[0], [1, (7 / 30) ** 0.5, (100 / 30) ** 0.5], rtol=1e-14)


def test_a_prior_by_size_without_penalty_weighs_silos_by_size():
    size = np.array([10, 40, 5])
    ctx = cf.Ctx(round=1, active=np.ones(3, bool), size=size)
    W, _ = one_round([[1.0], [2.0], [9.0]], ctx=ctx, p_d=0.0, size_prior=1.0)
    np.testing.assert_allclose(W[0] / W[0].sum(), size / size.sum(), rtol=1e-6)


# What holds for all inputs

numbers = st.floats(-1e6, 1e6, width=32).filter(lambda v: v == 0 or abs(v) > 1e-6)
N, D, R = 4, 3, 5


@st.composite
def runs(draw):
    """A few rounds of messages and absences, a user, penalties."""
    return {
        "g": draw(arrays(np.float32, (R, N, D), elements=numbers)),
        "active": draw(arrays(bool, (R, N))),
        "size": draw(arrays(np.int32, N, elements=st.integers(1, 50))),
        "user": draw(st.integers(0, N - 1)),
        "p_d": draw(st.one_of(st.just(0.0), st.floats(2.0**-20, 2.0**10, width=32))),
        "p_s": draw(st.one_of(st.just(0.0), st.floats(2.0**-10, 16.0, width=32))),
    }


@jax.jit
def eroded(g, active, size, user, p_d, p_s):
    """The raw weights of every round; the median for newcomers, seven rows a batch."""
    w = cf.weights.erosion(user, p_d, p_s, batch=7, newcomer="median")

    def step(state, given):
        r, M, here = given
        W, state = w.update(cf.Geometry.from_messages(M), state, cf.Ctx(r, here, size))
        return state, (W[0], state.rounds > 0)

    return jax.lax.scan(step, w.init(N), (jnp.arange(1, R + 1), g, active))[1]


@given(runs())
def test_weights_never_rise_and_stay_between_zero_and_one(case):
    W, seen = map(np.asarray, eroded(**case))
    assert np.isfinite(W).all()
    assert ((W >= 0) & (W <= 1)).all()
    assert (W[:, case["user"]] == 1).all()
    falling = np.diff(W, axis=0) <= 0
    assert falling[seen[:-1]].all()


@given(runs(), st.permutations(range(N)))
def test_permuting_the_silos_permutes_the_weights(case, order):
    moved = dict(case, g=case["g"][:, order], active=case["active"][:, order], size=case["size"][order])
    moved["user"] = order.index(case["user"])
    np.testing.assert_array_equal(eroded(**moved)[0], np.asarray(eroded(**case)[0])[:, order])


@given(runs(), st.integers(-40, 40))
def test_scaling_all_messages_alike_changes_nothing(case, power):
    """By powers of two, which lose no digit."""
    scaled = dict(case, g=case["g"] * np.float32(2.0**power))
    np.testing.assert_allclose(eroded(**scaled)[0], eroded(**case)[0], rtol=1e-4, atol=1e-4)


@given(runs())
def test_with_no_distance_penalty_every_weight_is_one(case):
    assert (np.asarray(eroded(**dict(case, p_d=0.0))[0]) == 1).all()


@settings(max_examples=50)
@given(runs(), st.floats(1.0, 100.0, width=32))
def test_a_larger_penalty_never_gives_a_larger_weight(case, factor):
    """In one round; later the newcomers' start depends on the others."""
    everybody = dict(case, active=np.ones((R, N), bool))
    less, more = (np.asarray(eroded(**dict(everybody, p_d=p))[0]) for p in (case["p_d"], case["p_d"] * factor))
    assert (more <= less + 1e-6).all()
