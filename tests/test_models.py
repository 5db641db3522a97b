"""Models: losses and gradients against independent arithmetic, padding that cannot leak, and starting values."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from jax.flatten_util import ravel_pytree

import confrere as cf
from confrere.models.model import cross_entropy, dense

MODELS = {
    "linear": (cf.models.linear(), 1),
    "logistic-2": (cf.models.logistic(), 2),
    "logistic-3": (cf.models.logistic(), 3),
    "mlp-2": (cf.models.mlp([4]), 2),
    "mlp-3": (cf.models.mlp([4, 5]), 3),
    "mlp-regression": (cf.models.mlp([4], task="regression"), 1),
}
FEATURES, ROWS, LIVE = 3, 7, 5
each_model = pytest.mark.parametrize("name", MODELS)


def problem(name, seed=0):
    """A model, parameters, and a batch of which the last rows are padding."""
    model, outputs = MODELS[name]
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(lambda: model.init(jax.random.key(0), FEATURES, outputs))
    params = jax.tree.map(lambda a: rng.normal(scale=0.5, size=a.shape).astype(a.dtype), shapes)
    X, target = rng.normal(size=(ROWS, FEATURES)), rng.normal(size=ROWS)
    y = target if model.task == "regression" else rng.integers(0, outputs, ROWS).astype(np.int32)
    return model, params, cf.Batch(X, y, np.arange(ROWS) < LIVE)


def with_padding(rows, hold):
    """The same rows, the padding holding something else."""
    return np.where(np.arange(ROWS).reshape(-1, *(1,) * (rows.ndim - 1)) < LIVE, rows, hold).astype(rows.dtype)


@functools.cache
def grade(model):
    """The compiled loss and gradient of a model."""
    return jax.jit(jax.value_and_grad(model.loss))


def packed(batch):
    """The live rows alone."""
    return cf.Batch(batch.X[:LIVE], batch.y[:LIVE], batch.live[:LIVE])


# Losses and gradients


@each_model
@pytest.mark.usefixtures("x64")
def test_gradients_are_those_of_finite_differences(name):
    model, params, batch = problem(name)
    point, restore = ravel_pytree(params)
    loss = jax.jit(lambda v: model.loss(restore(v), batch))
    step = 1e-5
    shifts = step * np.eye(len(point))
    differences = [(loss(point + s) - loss(point - s)) / (2 * step) for s in shifts]
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(point), differences, rtol=1e-6, atol=1e-9)


@pytest.mark.usefixtures("x64")
def test_two_classes_in_sigmoid_form_are_two_classes_in_softmax_form():
    model, params, batch = problem("logistic-2")

    def softmax_form(params, batch):
        logits = jnp.asarray(batch.X) @ params["w"] + params["b"]
        return -jax.nn.log_softmax(logits)[jnp.arange(ROWS), batch.y][:LIVE].mean()

    ours, theirs = (jax.jit(jax.value_and_grad(f))(params, batch) for f in (model.loss, softmax_form))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14), ours, theirs)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_cross_entropy_is_that_of_scipy(classes):
    rng = np.random.default_rng(classes)
    scores, y = rng.normal(scale=4, size=(20, classes)), rng.integers(0, classes, 20)
    expected = -scipy.special.log_softmax(scores, axis=1)[np.arange(20), y]
    np.testing.assert_allclose(cross_entropy(jnp.float32(scores), jnp.asarray(y)), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("size", [1e4, 1e30])
def test_cross_entropy_of_a_large_score_is_finite(classes, size):
    scores = jnp.zeros((2, classes)).at[:, 1].set(size)
    loss, slope = jax.value_and_grad(lambda s: cross_entropy(s, jnp.array([0, 1])).sum())(scores)
    np.testing.assert_allclose(loss, size, rtol=1e-6)
    np.testing.assert_allclose(slope[:, :2], [[-1, 1], [0, 0]], atol=1e-6)


def test_the_loss_of_a_regression_is_half_the_mean_squared_error():
    model, params, batch = problem("linear")
    predicted = batch.X @ params["w"][:, 0] + params["b"][0]
    expected = 0.5 * np.mean((predicted - batch.y)[:LIVE] ** 2)
    np.testing.assert_allclose(grade(model)(params, batch)[0], expected, rtol=1e-5)


# Padding


@each_model
@pytest.mark.parametrize("hold", [np.nan, np.inf, 1e30])
def test_whatever_padding_holds_reaches_neither_loss_nor_gradient(name, hold):
    model, params, batch = problem(name)
    y = with_padding(batch.y, hold if model.task == "regression" else -7)
    spoilt = cf.Batch(with_padding(batch.X, hold), y, batch.live)
    expected, found = grade(model)(params, packed(batch)), grade(model)(params, spoilt)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), found, expected)


@each_model
def test_without_a_live_row_loss_and_gradient_are_zero(name):
    model, params, batch = problem(name)
    empty = batch._replace(X=np.full_like(batch.X, np.nan), live=np.zeros(ROWS, bool))
    loss, slope = grade(model)(params, empty)
    assert loss == 0
    assert not ravel_pytree(slope)[0].any()


# Forward passes


@pytest.mark.parametrize(("inputs", "outputs"), [(3, 2), (64, 4), (65, 4), (40, 30)])
def test_a_dense_layer_is_a_matrix_product_whatever_its_size(inputs, outputs):
    rng = np.random.default_rng(0)
    X, W, b = rng.normal(size=(5, inputs)), rng.normal(size=(inputs, outputs)), rng.normal(size=outputs)
    params = {"w": jnp.float32(W), "b": jnp.float32(b)}
    np.testing.assert_allclose(dense(params, jnp.float32(X)), X @ W + b, rtol=1e-4, atol=1e-4)


@each_model
def test_scores_have_one_column_per_output(name):
    model, params, batch = problem(name)
    assert jax.eval_shape(model.apply, params, batch.X).shape == (ROWS, MODELS[name][1])


def test_an_mlp_is_dense_layers_with_relu_between_them():
    model, params, batch = problem("mlp-3")
    X = batch.X
    for i in range(2):
        X = np.maximum(X @ params[f"layer{i}"]["w"] + params[f"layer{i}"]["b"], 0)
    expected = X @ params["layer2"]["w"] + params["layer2"]["b"]
    np.testing.assert_allclose(model.apply(params, jnp.asarray(batch.X)), expected, rtol=1e-4, atol=1e-5)
    assert [a["w"].shape for a in params.values()] == [(3, 4), (4, 5), (5, 3)]


def test_an_mlp_without_hidden_layers_is_logistic_regression():
    logistic, params, batch = problem("logistic-3")
    found = grade(cf.models.mlp([]))({"layer0": params}, batch)[0]
    np.testing.assert_allclose(found, grade(logistic)(params, batch)[0], rtol=1e-6)


@pytest.mark.parametrize(("hidden", "task", "word"), [([0], "regression", "hidden"), ([3], "ranking", "task")])
def test_an_mlp_that_makes_no_sense_is_refused(hidden, task, word):
    with pytest.raises(ValueError, match=word):
        cf.models.mlp(hidden, task)


def test_the_same_words_give_the_same_model_so_that_programs_are_found_again():
    assert cf.models.logistic() is cf.models.logistic()
    assert cf.models.linear() is cf.models.linear()
    assert cf.models.mlp([8, 4]) is cf.models.mlp((8, 4))
    assert cf.models.mlp([8]) is not cf.models.mlp([8], task="regression")


# Learning


def learn(model, X, y, lr, steps):
    """One silo that trains by itself with full batches."""
    silos = cf.Silos.from_arrays([(X, y)])
    metric = "rmse" if model.task == "regression" else "accuracy"
    history = cf.simulate(cf.local(lr=lr, steps=steps), model, silos, rounds=1, record=(), metrics=[metric])
    return history, history.personal(0)


@pytest.mark.usefixtures("x64")
def test_linear_regression_converges_to_least_squares():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(50, 3)), rng.normal(size=50)
    y = X @ [1.0, -2.0, 0.5] + 3 + noise
    expected = np.linalg.lstsq(np.column_stack([X, np.ones(50)]), y, rcond=None)[0]
    history, found = learn(cf.models.linear(), X, y, lr=0.5, steps=300)
    np.testing.assert_allclose(np.append(found["w"], found["b"]), expected, atol=1e-8)
    residual = y - np.column_stack([X, np.ones(50)]) @ expected
    np.testing.assert_allclose(history.metrics["rmse"][-1], np.sqrt(np.mean(residual**2)), rtol=1e-8)


def test_an_mlp_learns_what_no_linear_model_can():
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5) - 0.5
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    history, _ = learn(cf.models.mlp([16]), X, y, lr=1.0, steps=600)
    assert history.metrics["accuracy"][-1] == 1
    assert history.loss[-1] < 0.05


def test_an_mlp_learns_a_curve():
    X = np.linspace(-1, 1, 20)[:, None]
    history, _ = learn(cf.models.mlp([16], task="regression"), X, X[:, 0] ** 2, lr=0.2, steps=600)
    assert history.metrics["rmse"][-1] < 0.25 * history.metrics["rmse"][0]


# Starting values


@pytest.mark.parametrize("inputs", [9, 400])
def test_starting_weights_are_truncated_normal_of_width_one_over_root_inputs(inputs):
    params = cf.models.linear().init(jax.random.key(0), inputs, 9000 // inputs)
    scaled = np.asarray(params["w"]) * np.sqrt(inputs)
    assert np.abs(scaled).max() <= 2
    assert np.abs(scaled).max() > 1.9
    assert scaled.mean() == pytest.approx(0, abs=0.05)
    assert scaled.std() == pytest.approx(0.8796, abs=0.02)  # of a normal cut at two standard deviations
    assert not params["b"].any()


@each_model
def test_starting_values_depend_on_the_key_alone(name):
    model, outputs = MODELS[name]
    one, same, other = (ravel_pytree(model.init(jax.random.key(k), FEATURES, outputs))[0] for k in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_the_layers_of_an_mlp_start_differently():
    params = cf.models.mlp([6, 6]).init(jax.random.key(0), 6, 6)
    starts = [params[f"layer{i}"]["w"] for i in range(3)]
    assert not np.array_equal(starts[0], starts[1])
    assert not np.array_equal(starts[1], starts[2])


@pytest.mark.usefixtures("x64")
def test_starting_values_have_the_precision_of_the_computation():
    params = cf.models.mlp([4]).init(jax.random.key(0), 3, 2)
    assert {a.dtype.name for a in jax.tree.leaves(params)} == {"float64"}
