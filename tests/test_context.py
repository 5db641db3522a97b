"""Featurisation: a silo's context as features, without touching a row."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import confrere as cf
from confrere.clients.context import described
from tests.helpers import two_class_silos

SILOS = two_class_silos((12, 9, 6))
HOW = {"lr": 0.3, "batch": 4, "momentum": 0.5, "l2": 0.1}


def run(recipe, model, silos=SILOS, rounds=3, **how):
    return cf.simulate(recipe, model, silos, rounds, seed=3, metrics=(), record=(), **how)


def with_columns(silos):
    """The same silos with the means of each as columns of its rows."""
    return cf.Silos.from_arrays([(np.c_[s.X, np.tile(s.X.mean(axis=0), (len(s.y), 1))], s.y) for s in silos.silos])


def wider(layer, inputs):
    return {**layer, "w": jnp.concatenate([layer["w"], jnp.zeros((inputs, layer["w"].shape[1]))])}


@pytest.mark.parametrize("model", [cf.models.logistic(), cf.models.mlp((3,))], ids=["logistic", "mlp"])
def test_featurised_is_fedavg_on_rows_with_the_context_as_columns(x64, model):
    plain = model.init(jax.random.key(0), 3, 2)
    wide = wider(plain, 3) if model.name == "logistic" else {**plain, "layer0": wider(plain["layer0"], 3)}
    found = run(cf.featurised(**HOW), model, params=plain)
    asked = run(cf.fedavg(**HOW), model, with_columns(SILOS), params=wide)
    for i, (silo, other) in enumerate(zip(SILOS.silos, with_columns(SILOS).silos, strict=True)):
        scores = model.apply(asked.personal(i), other.X)
        np.testing.assert_allclose(model.apply(found.personal(i), silo.X), scores, atol=1e-12)
    assert found.bytes_up[0, 0] == asked.bytes_up[0, 0]
    first = found.models if model.name == "logistic" else found.models["layer0"]
    assert np.ptp(first["w"], axis=0).max() == 0
    assert np.ptp(first["b"], axis=0).max() > 1e-3


def test_moments_are_mean_and_deviation_of_all_numbers_and_padding_is_not_looked_at():
    X = np.random.default_rng(0).normal(2, 3, size=(5, 2, 2))
    padded = jnp.asarray(np.concatenate([X, np.full((2, 2, 2), np.nan)]))
    data = cf.Block(padded, jnp.zeros(7), jnp.int32(5), jnp.int32(0))
    np.testing.assert_allclose(described(data, "moments"), [X.mean(), X.std()], rtol=1e-5)
    np.testing.assert_allclose(described(data, "means"), X.mean(axis=0).ravel(), rtol=1e-5)
    empty = data._replace(size=jnp.int32(0))
    assert not np.asarray(described(empty, "means")).any()
    assert np.isfinite(described(empty, "moments")).all()


def test_a_silo_that_never_trained_has_the_model_for_its_own_context():
    here = np.tile([True, True, False], (3, 1))
    history = run(cf.featurised(**HOW), cf.models.logistic(), active=here)
    x = history.state.inbox.shared["x"]
    own = x["model"]["b"] + SILOS[2].X.mean(axis=0) @ np.asarray(x["context"])
    np.testing.assert_allclose(history.personal(2)["b"], own, atol=1e-6)
    assert np.abs(own - history.personal(0)["b"]).max() > 1e-4


def dense_model(init, apply):
    return cf.models.model.model_of(init, apply, "classification", "own")


def test_what_has_no_first_layer_with_a_bias_is_refused():
    bare = dense_model(lambda key, inputs, outputs: {"a": jnp.zeros((inputs, outputs))}, lambda p, X: X @ p["a"])
    with pytest.raises(ValueError, match="the model has no weights w and bias b"):
        run(cf.featurised(lr=0.1), bare)
    with pytest.raises(ValueError, match="no layer named stem; it has layer0, layer1"):
        run(cf.featurised(lr=0.1, layer="stem"), cf.models.mlp((3,)))
    with pytest.raises(ValueError, match=r"takes 4 numbers, but rows have 3: choose context='moments'"):
        run(cf.featurised(lr=0.1, layer="layer1"), cf.models.mlp((4,)))
    with pytest.raises(ValueError, match="context must be 'means' or 'moments', not 'labels'"):
        cf.featurised(lr=0.1, context="labels")  # type: ignore[arg-type]


def test_moments_can_be_told_to_any_layer():
    history = run(cf.featurised(lr=0.1, layer="layer1", context="moments"), cf.models.mlp((4,)))
    assert np.ptp(history.models["layer1"]["b"], axis=0).max() > 0
