"""Mixing models and mixing losses: APFL, model interpolation and data interpolation, against numpy and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import confrere as cf
from confrere.clients.held_out import hold_out

LINEAR = cf.models.linear()
SIZES = (9, 7, 4)
HOW = {"lr": 0.1, "batch": 3}  # the same everywhere, so that programs are found again
HEAVY = {**HOW, "momentum": 0.7, "weight_decay": 0.05}


def regressions(sizes=SIZES, d=2, seed=0):
    """Silos of linear regressions whose true weights differ."""
    rng = np.random.default_rng(seed)
    pairs = []
    for rows in sizes:
        X = rng.normal(size=(rows, d))
        pairs.append((X, X @ (1 + rng.normal(size=d)) + 0.5 * rng.normal(size=rows)))
    return cf.Silos.from_arrays(pairs)


def run(recipe, silos, rounds=4, **how):
    return cf.simulate(recipe, LINEAR, silos, rounds, seed=3, metrics=(), record=(), **how)


def close(one, two, atol):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=atol, rtol=0), one, two)


def flat(params):
    """Weights and bias of linear models as one vector each."""
    return np.concatenate([np.asarray(params["w"])[..., 0], np.asarray(params["b"])], axis=-1)


def with_ones(silo):
    return np.c_[silo.X, np.ones(len(silo.y))], silo.y


def numpy_apfl(silos, w, lr, alpha, rounds, batch, adaptive, momentum=0.0, weight_decay=0.0):
    """Deng, Kamani, Mahdavi (2020), Algorithm 1, on half squared errors and consecutive batches.

    Momentum, afresh in every round, and decoupled weight decay are those of both models.
    """
    n, sizes = len(silos), np.array(silos.sizes())
    v, share = [w.copy() for _ in range(n)], [alpha] * n

    def gradient(p, X, y):
        return X.T @ (X @ p - y) / len(y)

    for _ in range(rounds):
        local = []
        for i in range(n):
            X, y = with_ones(silos[i])
            w_i, of_w, of_v = w.copy(), 0.0, 0.0
            for first in range(0, len(y), batch):
                xi = X[first : first + batch], y[first : first + batch]
                at_mixture = gradient(share[i] * v[i] + (1 - share[i]) * w_i, *xi)
                slope = (v[i] - w_i) @ at_mixture
                of_w, of_v = momentum * of_w + gradient(w_i, *xi), momentum * of_v + share[i] * at_mixture
                w_i, v[i] = w_i - lr * (of_w + weight_decay * w_i), v[i] - lr * (of_v + weight_decay * v[i])
                if adaptive:
                    share[i] = np.clip(share[i] - lr * slope, 0, 1)
            local.append(w_i)
        w = sizes / sizes.sum() @ np.array(local)
    return np.array([a * own + (1 - a) * w for a, own in zip(share, v, strict=True)]), share


@pytest.mark.parametrize("how", [{}, {"momentum": 0.6, "weight_decay": 0.1}], ids=["plain", "momentum"])
@pytest.mark.parametrize("adaptive", [True, False])
def test_apfl_is_its_algorithm_in_numpy(x64, adaptive, how):
    silos, params = regressions(), {"w": jnp.array([[0.5], [-1.0]]), "b": jnp.array([0.2])}
    recipe = cf.apfl(lr=0.2, alpha=0.4, adaptive=adaptive, batch=3, order="cyclic", **how)
    history = run(recipe, silos, rounds=6, params=params)
    models, share = numpy_apfl(silos, flat(params), 0.2, 0.4, 6, 3, adaptive, **how)
    np.testing.assert_allclose(flat(history.models), models, atol=1e-12)
    np.testing.assert_allclose(history.state.private[2], share, atol=1e-12)
    assert (np.ptp(share) > 0.1) == adaptive


@pytest.mark.parametrize("how", [HOW, HEAVY], ids=["plain", "momentum"])
def test_apfl_with_share_one_is_local_and_with_share_zero_is_fedavg(how):
    silos = regressions()
    close(run(cf.apfl(alpha=1.0, adaptive=False, **how), silos).models, run(cf.local(**how), silos).models, 1e-6)
    close(run(cf.apfl(alpha=0.0, adaptive=False, **how), silos).models, run(cf.fedavg(**how), silos).models, 1e-6)


def test_the_share_of_apfl_stays_between_0_and_1_under_steps_that_are_far_too_long():
    history = run(cf.apfl(lr=0.9, alpha=0.5, batch=3), regressions(), rounds=12)
    share = np.asarray(history.state.private[2])
    assert ((share >= 0) & (share <= 1)).all()
    assert set(np.unique(share)) & {0.0, 1.0}


def test_the_common_model_of_apfl_is_fedavg_whatever_the_shares():
    silos = regressions()
    x = run(cf.apfl(alpha=0.7, **HEAVY), silos).state.inbox.shared["x"]
    close(x, run(cf.fedavg(**HEAVY), silos).state.inbox.shared["x"], 1e-6)


@pytest.mark.parametrize("how", [HOW, HEAVY], ids=["plain", "momentum"])
def test_model_interpolation_lies_between_fedavg_and_local(how):
    silos = regressions()
    common, own = run(cf.fedavg(**how), silos).models, run(cf.local(**how), silos).models
    for share in (0.0, 0.3, 1.0):
        between = jax.tree.map(lambda v, w, a=share: a * v + (1 - a) * w, own, common)
        close(run(cf.model_interpolation(own_share=share, **how), silos).models, between, 1e-6)


def test_held_out_rows_are_every_fifth_live_row():
    for size, m in ((13, 16), (13, 13), (4, 7), (5, 5), (1, 1), (0, 3)):
        data = cf.Block(jnp.arange(m)[:, None] * 1.0, jnp.arange(m), jnp.int32(size), jnp.int32(0))
        parts = [np.asarray(part.y)[: int(part.size)].tolist() for part in hold_out(data)]
        assert parts[1] == list(range(4, size, 5))
        assert sorted(parts[0] + parts[1]) == list(range(size))


def test_the_chosen_share_is_the_best_on_the_held_out_rows_which_train_nothing(x64):
    silos, how = regressions((30, 25, 4)), {"lr": 0.1, "batch": None, "steps": 2, "order": "full", "weights": "uniform"}
    params = {"w": jnp.zeros((2, 1)), "b": jnp.zeros(1)}
    kept = [np.arange(len(s.y)) % 5 != 4 for s in silos.silos]
    trained = cf.Silos.from_arrays([(s.X[k], s.y[k]) for s, k in zip(silos.silos, kept, strict=True)])
    common, own = (flat(run(f(**how), trained, params=params).models) for f in (cf.fedavg, only_local))
    found = flat(run(cf.model_interpolation(**how), silos, params=params).models)
    for i, silo in enumerate(silos.silos):
        X, y = with_ones(silo)
        mixtures = [a * own[i] + (1 - a) * common[i] for a in np.linspace(0, 1, 11)]
        losses = [np.square(X[~kept[i]] @ p - y[~kept[i]]).sum() for p in mixtures]
        np.testing.assert_allclose(found[i], mixtures[int(np.argmin(losses))], atol=1e-12)
    np.testing.assert_allclose(found[2], common[2], atol=1e-12)  # four rows: none to choose on


def only_local(weights, **how):
    """Training alone, which has no use for weights."""
    return cf.local(**how)


@pytest.mark.parametrize("weights", ["size", "uniform"])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_data_interpolation_ends_at_the_minimiser_of_the_mixed_losses(x64, share, weights):
    silos, user = regressions(), 1
    history = run(cf.data_interpolation(user=user, lr=0.3, own_share=share, weights=weights), silos, rounds=600)
    p = np.array(silos.sizes()) / sum(silos.sizes()) if weights == "size" else np.ones(3) / 3
    factor = (1 - share) * p + share * (np.arange(3) == user)
    A = sum(f * X.T @ X / len(y) for f, (X, y) in zip(factor, map(with_ones, silos.silos), strict=True))
    b = sum(f * X.T @ y / len(y) for f, (X, y) in zip(factor, map(with_ones, silos.silos), strict=True))
    np.testing.assert_allclose(flat(history.personal(user)), np.linalg.solve(A, b), atol=1e-10)


def test_data_interpolation_is_fedavg_without_a_share_and_local_with_all_of_it():
    silos = regressions()
    for share, other in ((0.0, cf.fedavg(**HOW)), (1.0, cf.local(**HOW))):
        found = run(cf.data_interpolation(user=0, own_share=share, **HOW), silos)
        close(found.personal(0), run(other, silos).personal(0), 1e-6)


def test_the_absent_leave_the_share_of_the_user_as_it_is_and_without_the_user_nothing_moves():
    silos, here = regressions(), np.array([[True, True, False], [False, True, True]])
    recipe = cf.data_interpolation(user=0, lr=0.1, own_share=0.5)
    two = cf.simulate(recipe, LINEAR, silos, 2, active=here, metrics=())
    np.testing.assert_allclose(two.shares[0, 0], [0.5 + 0.5 * 9 / 16, 0.5 * 7 / 16, 0], atol=1e-6)
    close(two.personal(0), cf.simulate(recipe, LINEAR, silos, 1, active=here[:1], metrics=()).personal(0), 0)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan"), "half"])
def test_shares_outside_0_to_1_are_refused(wrong):
    with pytest.raises(ValueError, match="alpha must be"):
        cf.apfl(lr=0.1, alpha=wrong)
    with pytest.raises(ValueError, match="own_share must be"):
        cf.model_interpolation(lr=0.1, own_share=wrong)
    with pytest.raises(ValueError, match="own_share must be"):
        cf.data_interpolation(user=0, lr=0.1, own_share=wrong)


def test_adaptive_is_yes_or_no():
    with pytest.raises(ValueError, match="adaptive must be True or False, not 'no'"):
        cf.apfl(lr=0.1, adaptive="no")  # type: ignore[arg-type]
