"""WAFFLE and SCAFFOLD against transcriptions of their papers, closed forms, and one another."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import confrere as cf
from confrere.clients.batches import full
from confrere.clients.controlled import shortened
from confrere.clients.sgd import local_optimizer
from confrere.weights.omega import sigmoid as sigmoid_of
from tests.helpers import two_class_silos

LOGISTIC = cf.models.logistic()


def calc_weights(d, r, R, user, history, Omega, Psi):
    """Algorithm 1 of the paper, line by line, for distances d; returns the smoothed and the raw weights."""
    N = len(d)
    others = [i for i in range(N) if i != user]
    dM, dm = max(d[i] for i in others), min(d[i] for i in others)
    d = list(d)
    d[user] = dm * (1 - (dM - dm) / dM * (1 - Omega(r / R)))
    alpha = [0.0] * N
    for i in range(N):
        alpha[i] = max(Psi(r / R) - (d[i] - d[user]) / (dM - min(d)), 0)
        if r >= 0.95 * R - 1e-9:
            alpha[i] = 1.0 if i == user else 0.0
    alpha = np.array(alpha) / sum(alpha)
    return (history[0] + history[1] + alpha) / 3, alpha


def sigmoid_by_hand(slope):
    """Equation (4)."""
    return lambda t: 1 / (1 + np.exp(slope * (2 * t - 1)))


def weights_of(w, distances, r, n=None, state=None, active=None):
    """One call of the weights, with messages on a line at the given distances from the user's."""
    n = len(distances)
    ctx = cf.Ctx(round=r, active=np.ones(n, bool) if active is None else np.asarray(active), size=np.full(n, 10))
    state = w.init(n) if state is None else state
    W, state = w.update(cf.Geometry.from_messages(np.asarray(distances)[:, None]), state, ctx)
    return np.asarray(W)[0], state


def test_weights_are_those_of_algorithm_1_on_a_thousand_inputs():
    rng = np.random.default_rng(0)
    worst = 0.0
    with jax.enable_x64(True):
        for _ in range(125):
            n, R, slope = int(rng.integers(3, 12)), int(rng.integers(5, 200)), rng.uniform(0.5, 8)
            user = int(rng.integers(n))
            w = cf.weights.omega(user, R, slope)
            state, history = w.init(n), [np.full(n, 1 / n)] * 2
            sigmoid = sigmoid_by_hand(slope)
            for r in sorted(rng.integers(1, R + 1, 8)):
                d = rng.exponential(size=n) * 10 ** rng.uniform(-4, 4)
                d[user] = 0
                want, raw = calc_weights(d, r, R, user, history, sigmoid, sigmoid)
                history = [history[1], raw]
                got, state = weights_of(w, d, int(r), state=state)
                worst = max(worst, np.abs(got - want).max())
    assert worst < 1e-12


def test_omega_and_psi_may_be_any_functions_of_the_progress():
    Omega, Psi = (lambda t: 1 - t), (lambda t: 0.5 + t)
    d = np.array([2.0, 0.0, 1.0, 5.0])
    want, _ = calc_weights(d, 30, 100, 1, [np.full(4, 0.25)] * 2, Omega, Psi)
    got, _ = weights_of(cf.weights.omega(1, 100, schedule=Omega, threshold=Psi), d, 30)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_the_sigmoid_has_the_values_of_the_paper():
    sigmoid = sigmoid_of(3.2)
    values = [round(float(sigmoid(r / 100)), 4) for r in (1, 50, 95, 100)]
    assert values == [0.9584, 0.5, 0.0532, 0.0392]


def test_the_slope_is_the_papers_unless_another_is_said():
    d, sigmoid = np.array([0.0, 1.0, 2.0, 5.0]), sigmoid_by_hand(3.2)
    want, _ = calc_weights(d, 20, 100, 0, [np.full(4, 0.25)] * 2, sigmoid, sigmoid)
    np.testing.assert_allclose(weights_of(cf.weights.omega(0, 100), d, 20)[0], want, rtol=1e-5)


def test_the_user_is_alone_two_rounds_after_95_per_cent():
    w, state, first = cf.weights.omega(0, 100), None, None
    for r in range(1, 101):
        W, state = weights_of(w, [0.0, 2.0, 2.0, 2.0], r, state=state)
        if first is None and W[0] == 1:
            first = r
        assert W.sum() == pytest.approx(1, abs=1e-6)
    assert first == 97


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e9])
def test_weights_do_not_depend_on_the_scale_of_distances_but_on_their_origin(scale):
    d = np.array([0.0, 1.0, 2.0, 5.0], np.float32)
    w = cf.weights.omega(0, 100)
    plain, _ = weights_of(w, d, 40)
    np.testing.assert_allclose(weights_of(w, d * np.float32(scale), 40)[0], plain, atol=1e-5)
    assert np.abs(weights_of(w, d + np.float32([0, 1, 1, 1]), 40)[0] - plain).max() > 0.003


@pytest.mark.parametrize("d", [[0.0, 0.0, 0.0], [0.0, 2.0, 2.0]], ids=["all at one place", "equally far"])
def test_where_nobody_is_nearer_everybody_counts_the_same(d):
    w, state = cf.weights.omega(0, 20), None
    for r in range(1, 19):
        W, state = weights_of(w, d, r, state=state)
        np.testing.assert_allclose(W, 1 / 3, rtol=1e-6)
    for r in (19, 20, 21):
        W, state = weights_of(w, d, r, state=state)
    np.testing.assert_allclose(W, [1, 0, 0], atol=1e-7)


def test_two_silos_cannot_personalise_gradually_and_are_told_so():
    with pytest.warns(UserWarning, match="with one other silo it cannot personalise gradually"):
        W, _ = weights_of(cf.weights.omega(0, 10), [0.0, 1.0], 9)
    np.testing.assert_allclose(W, [0.5, 0.5])


def test_one_silo_listens_to_itself():
    W, _ = weights_of(cf.weights.omega(0, 10), [0.0], 3)
    np.testing.assert_allclose(W, [1])


def test_where_no_weight_remains_the_user_is_alone():
    zero = cf.weights.omega(0, 10, schedule=lambda t: 0 * t)
    W, _ = weights_of(zero, [0.0, 1.0, 2.0], 3)
    np.testing.assert_allclose(W, (np.array([1, 0, 0]) + 2 / 3) / 3, rtol=1e-6)


def test_the_farthest_silo_has_no_weight_even_where_the_paper_speaks_of_global_training():
    one = cf.weights.omega(0, 10, schedule=lambda t: 0 * t + 1)
    _, state = weights_of(one, [0.0, 1.0, 2.0, 3.0], 1)
    np.testing.assert_allclose(np.asarray(state.alpha[1]), np.array([1, 1, 0.5, 0]) / 2.5, rtol=1e-6)


def test_an_absent_silo_is_judged_by_its_last_known_distance_and_an_absent_user_changes_nothing():
    w, d = cf.weights.omega(0, 100), [0.0, 1.0, 2.0, 4.0]
    _, state = weights_of(w, d, 1)
    away, _ = weights_of(w, [0.0, 1.0, 99.0, 4.0], 2, state=state, active=[True, True, False, True])
    np.testing.assert_allclose(away, weights_of(w, d, 2, state=state)[0], rtol=1e-6)
    _, kept = weights_of(w, [9.0, 8.0, 7.0, 6.0], 2, state=state, active=[False, True, True, True])
    jax.tree.map(np.testing.assert_array_equal, kept, state)


def test_a_silo_never_heard_has_no_weight_of_its_own():
    w = cf.weights.omega(0, 100)
    _, state = weights_of(w, [0.0, 1.0, 0.1, 4.0], 1, active=[True, True, False, True])
    assert float(state.alpha[1][2]) == 0
    assert float(state.alpha[1].sum()) == pytest.approx(1)


def parabolas(curvatures, optima):
    """Silos with losses h_i/2 |w - o_i|^2, as least squares on one row each: sqrt(h) w = sqrt(h) o."""
    pairs = [(np.array([[np.sqrt(h)]]), np.array([np.sqrt(h) * o])) for h, o in zip(curvatures, optima, strict=True)]
    return cf.Silos.from_arrays(pairs)


def slope_only() -> cf.models.Model:
    """Linear regression through the origin, so that every loss is a parabola in one number."""
    base = cf.models.linear()

    def loss(w, batch):
        return base.loss({"w": w["w"], "b": jnp.zeros(1)}, batch)

    def init(key, inputs, outputs):
        return {"w": jnp.zeros((inputs, outputs))}

    return cf.models.Model(init, lambda w, X: X @ w["w"], loss, "regression", "slope")


CURVED = (1.0, 4.0, 0.5)
OPTIMA = (1.0, -2.0, 6.0)


@pytest.fixture(scope="module")
def curved():
    return parabolas(CURVED, OPTIMA), slope_only()


def final_slope(recipe, curved, rounds=400):
    silos, model = curved
    with jax.enable_x64(True):
        history = cf.simulate(recipe, model, silos, rounds=rounds, metrics=[], record=[])
        return float(history.models["w"][0, 0, 0])


@pytest.mark.parametrize("option", ["I", "II"])
def test_scaffold_reaches_the_pooled_optimum_where_fedavg_does_not(curved, option):
    pooled = np.dot(CURVED, OPTIMA) / np.sum(CURVED)
    how = {"lr": 0.1, "batch": None, "steps": 5}
    assert abs(final_slope(cf.scaffold(option=option, **how), curved) - pooled) < 1e-8
    assert abs(final_slope(cf.fedavg(**how), curved) - pooled) > 0.05


def scaffold_by_hand(h, o, lr, K, rounds, server_lr, option, here):
    """Algorithm 1 of SCAFFOLD on parabolas, line by line, with the server's step and partial participation.

    N counts the silos heard so far, and a silo's first round is uncorrected; with everybody there that is the paper's.
    """
    x, c, ci, heard = 0.0, 0.0, np.zeros(len(h)), np.zeros(len(h), bool)  # c is the mean of the known variates
    for r in range(rounds):
        dy = []
        for i in range(len(h)):
            if not here[r][i]:
                continue
            y, correction = x, (c - ci[i]) * heard[i]
            for _ in range(K):
                y = y - lr * (h[i] * (y - o[i]) + correction)
            new = h[i] * (x - o[i]) if option == "I" else (x - y) / (K * lr) - correction
            dy.append(y - x)
            ci[i] = new
        if dy:
            heard |= here[r]
            x, c = x + server_lr * np.mean(dy), ci[heard].mean()
    return x


@pytest.mark.parametrize("option", ["I", "II"])
def test_scaffold_is_algorithm_1_with_a_server_step_and_absent_silos(curved, option):
    silos, model = curved
    here = np.random.default_rng(3).random((12, 3)) < 0.6
    recipe = cf.scaffold(lr=0.1, server_lr=0.7, batch=None, steps=3, option=option)
    with jax.enable_x64(True):
        history = cf.simulate(recipe, model, silos, rounds=12, metrics=[], record=[], active=here)
        got = float(history.models["w"][0, 0, 0])
    assert got == pytest.approx(scaffold_by_hand(CURVED, OPTIMA, 0.1, 3, 12, 0.7, option, here), abs=1e-12)


@pytest.mark.parametrize("option", ["I", "II"])
def test_scaffold_reaches_the_pooled_optimum_although_silos_come_late_and_are_away(curved, option):
    silos, model = curved
    here = np.random.default_rng(5).random((600, 3)) < 0.5
    here[:10, 2] = False
    recipe = cf.scaffold(lr=0.1, batch=None, steps=5, option=option)
    with jax.enable_x64(True):
        history = cf.simulate(recipe, model, silos, rounds=600, metrics=[], record=[], active=here)
        found = float(history.models["w"][0, 0, 0])
    assert found == pytest.approx(np.dot(CURVED, OPTIMA) / np.sum(CURVED), abs=1e-6)


def bounded_by_hand(correction, gradient, bounded):
    """A correction that is at most as long as its gradient; in one dimension the length is the absolute value."""
    return np.clip(correction, -np.abs(gradient), np.abs(gradient)) if bounded else correction


def walk_by_hand(h, o, x, correction, lr, K, bounded=False):
    """K corrected steps on every parabola: where they end, and the mean of the raw gradients along the way."""
    y, total = np.full(len(h), x), 0.0
    for _ in range(K):
        raw = h * (y - o)
        y, total = y - lr * (raw + bounded_by_hand(correction, raw, bounded)), total + raw
    return y, total / K


def strengths(alpha):
    """How far each silo is corrected."""
    return np.minimum(1, len(alpha) * alpha)


def waffle_by_hand(h, o, lr, K, R, variate="reformed", distance="update", bounded=False):
    """WAFFLE on parabolas: SCAFFOLD's silos, CalcWeights, and every reading of the server's variate."""
    n, x, c, ci, history = len(h), 0.0, 0.0, np.zeros(len(h)), [np.full(len(h), 1 / len(h))] * 2
    sigmoid, s = sigmoid_by_hand(3.2), np.ones(n)
    for r in range(1, R + 1):
        y, new = walk_by_hand(h, o, x, s * (c - ci), lr, K, bounded)
        seen = new if distance == "raw" else y
        W, raw = calc_weights(np.abs(seen - seen[0]), r, R, 0, history, sigmoid, sigmoid)
        history = [history[1], raw]
        x = x + W @ (y - x)
        if variate == "literal":
            c = c + W @ (new - ci)
        elif variate == "untempered":
            c = W @ new
        else:
            s = strengths(W)
            c = (W * s) @ new / (W * s).sum()
        ci = new
    return x


@pytest.mark.parametrize("variate", ["reformed", "untempered", "literal"])
@pytest.mark.parametrize("distance", ["update", "raw"])
def test_waffle_is_its_transcription(curved, variate, distance):
    recipe = cf.waffle(user=0, rounds=30, lr=0.1, batch=None, steps=4, variate=variate, distance=distance)
    want = waffle_by_hand(np.array(CURVED), np.array(OPTIMA), 0.1, 4, 30, variate, distance)
    assert final_slope(recipe, curved, 30) == pytest.approx(want, abs=1e-10)


@pytest.mark.parametrize("variate", ["reformed", "untempered"])
def test_a_bounded_correction_is_at_most_as_long_as_its_gradient_in_every_step(curved, variate):
    recipe = cf.waffle(user=0, rounds=12, lr=0.1, batch=None, steps=4, variate=variate)
    bounded = cf.waffle(user=0, rounds=12, lr=0.1, batch=None, steps=4, variate=variate, bounded=True)
    want = waffle_by_hand(np.array(CURVED), np.array(OPTIMA), 0.1, 4, 12, variate, bounded=True)
    got = final_slope(bounded, curved, 12)
    assert got == pytest.approx(want, abs=1e-10)
    assert abs(got - final_slope(recipe, curved, 12)) > 1e-3


def test_bounded_scaffold_is_its_transcription(curved):
    h, o, x, c, ci = np.array(CURVED), np.array(OPTIMA), 0.0, 0.0, np.zeros(3)
    for _ in range(12):
        y, new = walk_by_hand(h, o, x, c - ci, 0.1, 4, bounded=True)
        x, c, ci = y.mean(), new.mean(), new
    recipe = cf.scaffold(lr=0.1, batch=None, steps=4, bounded=True)
    assert final_slope(recipe, curved, 12) == pytest.approx(x, abs=1e-10)


@pytest.mark.parametrize("times", [0.0, 0.1, 1.0, 7.0])
def test_a_correction_is_shortened_to_the_length_of_the_whole_gradient(times):
    rng = np.random.default_rng(0)
    gradient = {"w": rng.normal(size=(3, 2)), "b": rng.normal(size=2)}
    other = {"w": rng.normal(size=(3, 2)), "b": rng.normal(size=2)}
    length = lambda tree: np.linalg.norm(np.concatenate([np.ravel(a) for a in tree.values()]))  # noqa: E731
    given = {name: jnp.asarray(times * length(gradient) / length(other) * a) for name, a in other.items()}
    got = shortened(given, jax.tree.map(jnp.asarray, gradient))
    assert length(got) == pytest.approx(min(times, 1) * length(gradient), rel=1e-5)
    for name in given:
        np.testing.assert_allclose(got[name], min(1, 1 / times if times else 1) * given[name], rtol=1e-5)


@pytest.mark.parametrize(("correction", "gradient"), [(1e22, 1e20), (1e20, 1e18), (1e-22, 1e-23), (1e-30, 1e-20)])
def test_corrections_are_shortened_where_squares_would_overflow_or_vanish(correction, gradient):
    got = shortened({"w": jnp.array([correction, 0.0])}, {"w": jnp.array([0.0, gradient])})
    np.testing.assert_allclose(got["w"], [min(correction, gradient), 0], rtol=1e-5)


@pytest.mark.parametrize("correction", [0.0, 3.0, 1e30])
def test_where_the_gradient_is_zero_there_is_no_correction_and_no_nan(correction):
    with jax.debug_nans(True):
        got = shortened({"w": jnp.full(3, correction)}, {"w": jnp.zeros(3)})
    np.testing.assert_array_equal(got["w"], np.zeros(3))


def test_a_bounded_run_from_the_optimum_stays_there(curved):
    silos = parabolas((1.0, 1.0, 2.0), (0.0, 0.0, 0.0))  # every gradient is zero at the start
    recipe = cf.waffle(user=0, rounds=8, lr=0.1, batch=None, steps=3, bounded=True)
    assert final_slope(recipe, (silos, curved[1]), 8) == 0


def test_both_reformed_variates_end_at_the_users_optimum_and_the_literal_one_cannot(curved):
    how = {"user": 0, "rounds": 300, "lr": 0.1, "batch": None, "steps": 5, "distance": "raw"}
    assert abs(final_slope(cf.waffle(**how), curved, 300) - OPTIMA[0]) < 0.01
    assert abs(final_slope(cf.waffle(**how, variate="untempered"), curved, 300) - OPTIMA[0]) < 0.01
    assert abs(final_slope(cf.waffle(**how, variate="literal"), curved, 300) - OPTIMA[0]) > 0.3


def scripted_waffle(rows, tempered=True, steps=3, lr=0.2):
    """WAFFLE's client and server with weights that are given round by round, [R, n]."""
    weights = cf.Weights(lambda n: (), lambda geometry, state, ctx: (jnp.asarray(rows)[ctx.round - 1][None], state))
    part, receives = (cf.mixers.tempered, "correction") if tempered else (cf.mixers.table, "variate")

    def make(loss, lr):
        tx = local_optimizer(lr)
        client = cf.clients.controlled(loss, tx, full(steps), "II", "value", receives=receives)
        return cf.federate(client, cf.mixers.server(cf.weighted(weights), x=cf.mixers.step(), c=part()))

    return cf.Recipe(make, {}, {"lr": lr})


@pytest.mark.parametrize("tempered", [True, False])
def test_waffle_with_equal_weights_is_scaffold_and_with_the_users_alone_is_local_training(tempered):
    silos = two_class_silos()
    how = {"rounds": 6, "metrics": [], "record": []}

    def one(recipe):
        return cf.simulate(recipe, LOGISTIC, silos, **how).models

    scaffold = one(cf.scaffold(lr=0.2, batch=None, steps=3))
    equal = scripted_waffle(np.ones((6, 3), np.float32), tempered)
    np.testing.assert_allclose(one(equal)["w"], scaffold["w"], atol=1e-6)
    alone = one(cf.local(lr=0.2, steps=3))["w"][1]
    only = scripted_waffle(np.tile(np.float32([0, 1, 0]), (6, 1)), tempered)
    np.testing.assert_allclose(one(only)["w"][1], alone, atol=1e-6)


def tempered_by_hand(h, o, lr, K, rows, here):
    """Tempered corrections on parabolas under given weights, with silos that come late and are away.

    A silo that was never heard trains uncorrected; the absent count in c by their last variate.
    """
    n, x = len(h), 0.0
    ci, heard, correction = np.zeros(n), np.zeros(n, bool), np.zeros(n)
    for weights, there in zip(rows, here, strict=True):
        y, new = walk_by_hand(h, o, x, correction, lr, K)
        ci, heard = np.where(there, new, ci), heard | there
        if (weights * there).sum() == 0:
            continue
        x = x + (weights * there) @ (y - x) / (weights * there).sum()
        alpha, s = weights[heard] / weights[heard].sum(), np.zeros(n)
        s[heard] = strengths(alpha)
        c = (alpha * s[heard]) @ ci[heard] / (alpha @ s[heard])
        correction = s * (c - ci)
    return x, correction


def test_a_silo_that_is_too_far_to_measure_has_no_weight_and_sets_no_scale():
    w = cf.weights.omega(user=0, rounds=100)
    ctx = cf.Ctx(round=50, active=[True] * 4, size=[1] * 4)
    far = cf.Geometry.from_messages(jnp.array([[0.0], [1.0], [2.0], [1e25]]))
    raw = w.update(far, w.init(4), ctx)[1].alpha[1]
    three = cf.Geometry.from_messages(jnp.array([[0.0], [1.0], [2.0]]))
    without = w.update(three, w.init(3), ctx._replace(active=[True] * 3, size=[1] * 3))[1].alpha[1]
    np.testing.assert_allclose(raw, [*without, 0], rtol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_corrections_are_tempered_under_changing_weights_with_late_and_absent_silos(curved, seed):
    silos, model = curved
    rng = np.random.default_rng(seed)
    rows, here = rng.exponential(size=(20, 3)) ** 3, rng.random((20, 3)) < 0.7
    rows[rng.random((20, 3)) < 0.2] = 0
    here[:4, seed % 3] = False  # comes late
    want, correction = tempered_by_hand(np.array(CURVED), np.array(OPTIMA), 0.1, 4, rows, here)
    with jax.enable_x64(True):
        recipe = scripted_waffle(rows, steps=4, lr=0.1)
        history = cf.simulate(recipe, model, silos, rounds=20, metrics=[], record=[], active=here)
    assert float(history.models["w"][0, 0, 0]) == pytest.approx(want, abs=1e-10)
    np.testing.assert_allclose(np.ravel(history.state.inbox.shared["c"]["w"]), correction, atol=1e-10)


def test_corrections_cancel_over_those_who_are_averaged_and_no_silo_of_weight_zero_is_corrected():
    recipe = cf.waffle(user=1, rounds=12, lr=0.3, batch=8)
    some_counted_for_nothing = False
    for rounds in (3, 6, 9):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the run is shorter than the schedule
            history = cf.simulate(recipe, LOGISTIC, two_class_silos((40, 30, 20, 25)), rounds=rounds)
        alpha, correction = history.weights[-1, 0], np.asarray(history.state.inbox.shared["c"]["w"])
        np.testing.assert_allclose(np.tensordot(alpha, correction, 1), 0, atol=1e-7)
        assert not np.any(correction[alpha == 0])
        some_counted_for_nothing |= (alpha == 0).any()
        assert np.abs(correction).max() > 1e-4
    assert some_counted_for_nothing


def test_a_silo_receives_its_own_correction_alone():
    """What goes down is a model and a correction, however many silos there are."""
    for sizes in ((40, 30, 20), (40, 30, 20, 25, 10)):
        silos = two_class_silos(sizes)
        history = cf.simulate(cf.waffle(user=0, rounds=2, lr=0.1), LOGISTIC, silos, rounds=2, metrics=[])
        model = sum(np.asarray(a).nbytes for a in jax.tree.leaves(history.personal(0)))
        assert (history.bytes_down == 2 * model + 4).all()  # the mass is one number
        assert (history.bytes_up == 2 * model).all()


def test_the_weights_of_a_run_sum_to_one_and_end_at_the_user():
    history = cf.simulate(cf.waffle(user="1", rounds=40, lr=0.3, batch=8), LOGISTIC, two_class_silos(), rounds=40)
    np.testing.assert_allclose(history.weights.sum(axis=2), 1, atol=1e-5)
    np.testing.assert_allclose(history.weights[-1, 0], [0, 1, 0], atol=1e-6)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"option": "III"}, "option must be 'I' or 'II'"),
        ({"variate": "new"}, "variate must be 'reformed', 'untempered' or 'literal'"),
        ({"bounded": 1}, "bounded must be True or False, not 1"),
        ({"distance": "l1"}, "distance must be 'update' or 'raw'"),
        ({"rounds": 0}, "rounds must be a whole number above 0"),
        ({"rounds": None}, "rounds must be a whole number above 0"),
        ({"slope": -1}, "slope must be a finite number"),
        ({"user": None}, "user must be the name or the place of a silo"),
    ],
)
def test_words_and_numbers_that_mean_nothing_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        cf.waffle(**{"user": 0, "rounds": 10, "lr": 0.1, **given})


def test_a_run_of_another_length_than_the_schedule_is_warned_of():
    with pytest.warns(UserWarning, match="waffle was made for 10 rounds, .* but the run has 1: say rounds=1"):
        cf.simulate(cf.waffle(user=0, rounds=10, lr=0.1), LOGISTIC, two_class_silos(), rounds=1, metrics=[])


def test_schedules_must_be_functions_and_rounds_above_zero():
    with pytest.raises(TypeError, match="schedule must be a function of r/R"):
        cf.waffle(user=0, rounds=10, lr=0.1, schedule=3)
    with pytest.raises(ValueError, match="rounds must be"):
        cf.weights.omega(0, 0)
    with pytest.raises(ValueError, match="rounds must be"):
        cf.weights.omega(0, None)


def test_weights_know_places_only():
    with pytest.raises(TypeError, match="by their places only"):
        cf.weights.omega("Alice", 10)
    with pytest.raises(IndexError, match="there is no silo 5"):
        cf.weights.omega(5, 10).init(3)


def test_no_warning_for_three_silos():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cf.weights.omega(0, 10).init(3)
