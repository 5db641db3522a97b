"""LeNet-5 and Deep Layer Aggregation: sizes, both kinds of convolution, gradients, norms, and that they learn."""

import functools

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest

import confrere as cf
from confrere.core import Batch
from confrere.models.convolution import conv, conv_max, largest, max_pool
from confrere.models.dla import How, init_tree, tree
from confrere.models.images import in_pieces
from confrere.models.norms import init_norm, normalised


def count(model, inputs, outputs=10):
    shapes = jax.eval_shape(lambda key: model.init(key, inputs, outputs), jax.random.key(0))
    return sum(leaf.size for leaf in jax.tree.leaves(shapes))


def batch_of(rows, inputs, classes=10, live=None, seed=0):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(rows, inputs)).astype(np.float32), rng.integers(0, classes, rows)
    return Batch(jnp.asarray(X), jnp.asarray(y), jnp.arange(rows) < (rows if live is None else live))


def far(a, b):
    """The largest difference of two trees, relative to the largest number of each leaf."""
    differences = jax.tree.map(lambda x, y: float(jnp.abs(x - y).max() / (jnp.abs(y).max() + 1e-12)), a, b)
    return max(jax.tree.leaves(differences))


@functools.cache
def lenet_program(kernel):
    """Scores, and the gradient of the loss, for images of 16 x 16 pixels."""
    model = cf.models.lenet5((16, 16, 1), kernel)
    return model, jax.jit(lambda p, batch: (model.apply(p, batch.X), jax.grad(model.loss)(p, batch)))


def lenet_values(kernel, padding=0.0):
    """Its values on five rows, the last of which is padding that holds a given number."""
    model, program = lenet_program(kernel)
    batch = batch_of(5, 256, 3, live=4)
    scores, gradient = program(model.init(jax.random.key(1), 256, 3), batch._replace(X=batch.X.at[4].set(padding)))
    return scores[:4], gradient


def apart(a, b):
    """The largest difference of two trees, relative to the largest number of all: some gradients of a net are 0."""
    flat = [np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)]) for tree in (a, b)]
    return np.abs(flat[0] - flat[1]).max() / np.abs(flat[1]).max()


@functools.cache
def dla_values(kernel, norm="batch", live=4, rows=5):
    """Loss, gradient and scores of the narrowest network on a few rows of 8 x 8 pixels."""
    model = cf.models.dla((8, 8, 1), 1, norm, kernel)
    params, batch = model.init(jax.random.key(1), 64, 3), batch_of(5, 64, 3, live=live)
    batch = Batch(*(a[:rows] for a in batch[:3]))
    value = jax.jit(lambda p: (*jax.value_and_grad(model.loss)(p, batch), model.apply(p, batch.X)))
    return params, value(params)


def test_lenet5_has_the_published_number_of_parameters():
    assert count(cf.models.lenet5(), 784) == 44_426
    assert count(cf.models.lenet5((32, 32, 3)), 3072) == 62_006


def test_dla_has_the_number_of_parameters_of_the_usual_program():
    assert count(cf.models.dla(), 3072) == 15_142_970
    # batch norm: two more numbers for each of the 508 channels per unit of width that are normalised
    assert count(cf.models.dla(width=2, norm="batch"), 3072) == count(cf.models.dla(width=2), 3072) + 2 * 508 * 2


def test_models_of_images_ask_for_one_silo_at_a_time():
    assert cf.models.lenet5().serial
    assert cf.models.dla().serial
    assert not cf.models.mlp().serial


def test_the_same_words_give_the_same_model():
    assert cf.models.lenet5([28, 28, 1]) is cf.models.lenet5()
    assert cf.models.dla(width=2) is cf.models.dla((32, 32, 3), 2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cf.models.lenet5((28, 28)), "height, width"),
        (lambda: cf.models.lenet5((8, 8, 1)), "at least 16"),
        (lambda: cf.models.lenet5(kernel="fast"), "auto, gemm, lax"),  # type: ignore[arg-type]
        (lambda: cf.models.dla(width=0), "width"),
        (lambda: cf.models.dla(norm="layer"), "group, batch"),  # type: ignore[arg-type]
        (lambda: cf.models.lenet5().init(jax.random.key(0), 100, 10), r"784 numbers a row, but rows have 100"),
    ],
)
def test_what_cannot_be_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(("size", "k", "stride", "padding"), [(6, 3, 1, 1), (7, 3, 2, 1), (6, 3, 2, 0), (5, 1, 2, 0)])
def test_a_convolution_is_the_same_as_a_matrix_product(size, k, stride, padding):
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(2, size, size + 1, 3)), jnp.float32)
    w = jnp.asarray(rng.normal(size=(k, k, 2, 4)), jnp.float32)

    @functools.partial(jax.jit, static_argnums=2)
    def values(x, w, kernel):
        def summed(x, w):
            out = conv(x, w, stride, padding, kernel)
            return jnp.sum(out * jnp.cos(jnp.arange(out.size)).reshape(out.shape)), out

        return jax.value_and_grad(summed, (0, 1), has_aux=True)(x, w)

    assert far(values(x, w, "gemm"), values(x, w, "lax")) < 1e-5


def test_a_convolution_is_the_sum_over_its_kernel():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 5, 6, 3)), rng.normal(size=(3, 3, 2, 4))
    expected = np.zeros((4, 3, 4, 3))
    for i, j in np.ndindex(3, 4):
        expected[:, i, j] = np.einsum("cijb,ijcd->db", x[:, i : i + 3, j : j + 3], w)
    found = conv(jnp.asarray(x), jnp.asarray(w), kernel="gemm")
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_pooling_takes_the_largest_of_four_pixels():
    x = jnp.arange(12.0).reshape(1, 3, 4, 1)  # the last row of an odd height is left out
    np.testing.assert_array_equal(max_pool(x)[0, :, :, 0], [[5, 7]])


@pytest.mark.parametrize(("height", "width", "k"), [(8, 9, 3), (7, 10, 4), (6, 6, 5), (5, 4, 1)])
def test_the_largest_of_four_results_is_found_in_one_product(height, width, k, x64):
    rng = np.random.default_rng(0)
    x, w = jnp.asarray(rng.normal(size=(2, height, width, 3))), jnp.asarray(rng.normal(size=(k, k, 2, 4)))
    towards = jnp.asarray(rng.normal(size=w.shape))

    def values(largest):
        def summed(x, w):
            out = largest(x, w)
            return jnp.sum(jnp.sin(out) * jnp.cos(jnp.arange(out.size)).reshape(out.shape)), out

        slope = jax.grad(lambda w: summed(x, w)[0])  # and how it changes: exact Per-FedAvg asks for that
        return jax.value_and_grad(summed, (0, 1), has_aux=True)(x, w), jax.jvp(slope, (w,), (towards,))[1]

    expected = values(lambda x, w: max_pool(conv(x, w, kernel="lax")))
    for kernel in ("gemm", "lax"):
        assert far(values(functools.partial(conv_max, kernel=kernel)), expected) < 1e-12


def test_of_equals_the_first_has_the_gradient():
    slope = jax.grad(lambda four: jnp.sum(jnp.asarray([2.0, 3.0, 5.0]) * largest(four)))
    four = jnp.asarray([[1.0, 0.0, 0.0], [1.0, 4.0, 0.0], [1.0, 4.0, 0.0], [0.0, 1.0, 0.0]])
    assert jnp.array_equal(slope(four), [[2, 0, 5], [0, 3, 0], [0, 0, 0], [0, 0, 0]])


def test_what_is_not_a_number_shows_in_the_gradient():
    slope = jax.grad(lambda four: jnp.square(largest(four)).sum())
    assert jnp.isnan(slope(jnp.asarray([1.0, jnp.nan, 2.0, 3.0])[:, None])).any()


def test_an_image_as_small_as_the_kernel_leaves_nothing_to_pool():
    assert conv_max(jnp.ones((2, 3, 3, 5)), jnp.ones((3, 3, 2, 4)), "gemm").shape == (4, 0, 0, 5)


def test_lenet5_is_the_same_with_both_kinds_of_convolution():
    assert far(lenet_values("gemm"), lenet_values("lax")) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["group", "batch"])
def test_dla_is_the_same_with_both_kinds_of_convolution(x64, norm):
    assert apart(dla_values("gemm", norm)[1], dla_values("lax", norm)[1]) < 1e-9


def test_a_tree_of_layers_is_the_same_with_both_kinds_of_convolution():
    """A tree that halves the image has every kind of layer in it."""
    params = init_tree(iter(jax.random.split(jax.random.key(0), 16)), "batch", 2, 3, 1, 2)
    x = jax.random.normal(jax.random.key(1), (2, 5, 5, 4))

    def value(params, kernel):
        out, term = tree(params, x, How("batch", kernel, jnp.arange(4) < 3), 1, 2)
        return jnp.sum(jnp.square(out[..., :3])) + term

    both = [jax.jit(jax.value_and_grad(value), static_argnums=1)(params, kernel) for kernel in ("gemm", "lax")]
    assert far(*both) < 1e-5


def test_a_small_network_has_the_gradient_of_finite_differences(x64):
    x = jax.random.normal(jax.random.key(0), (1, 5, 5, 2))
    params = {"w": jax.random.normal(jax.random.key(1), (2, 2, 1, 2)), "norm": init_norm("group", 2)}

    @jax.jit
    def loss(params, x):
        out, _ = normalised("group", params["norm"], conv(x, params["w"], kernel="gemm"), None)
        return jnp.sum(jnp.square(max_pool(jax.nn.relu(out))))

    jax.test_util.check_grads(loss, (params, x), order=1, modes=["rev"], rtol=1e-5)


def test_many_rows_go_piece_by_piece_with_the_same_result():
    X, w = jax.random.normal(jax.random.key(0), (301, 2)), jax.random.normal(jax.random.key(1), (2, 3))

    def value(w, pieces):
        return jnp.sum(jnp.sin(in_pieces(lambda x: x @ w, X) if pieces else X @ w))

    assert in_pieces(lambda x: x @ w, X).shape == (301, 3)
    assert far(jax.value_and_grad(value)(w, True), jax.value_and_grad(value)(w, False)) < 1e-5


def test_padding_changes_nothing_even_if_it_holds_nonsense():
    assert far(lenet_values("gemm", padding=jnp.nan), lenet_values("gemm")) == 0


def test_groups_of_channels_have_mean_0_and_variance_1_in_every_row():
    x = 3 + 2 * jax.random.normal(jax.random.key(0), (16, 3, 3, 2))
    out, term = normalised("group", init_norm("group", 16), x, None)
    groups = np.asarray(out).reshape(8, 18, 2)
    np.testing.assert_allclose(groups.mean(axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(groups.var(axis=1), 1, atol=1e-3)
    assert term == 0


def test_batch_norm_looks_at_live_rows_only_and_its_statistics_follow_them():
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(1.0, 2.0, (3, 2, 2, 5)), jnp.float32)
    live = jnp.arange(5) < 3
    params = init_norm("batch", 3)
    alone, _ = normalised("batch", params, x[..., :3], jnp.ones(3, bool))
    padded, term = normalised("batch", params, x, live)
    np.testing.assert_allclose(padded[..., :3], alone, rtol=1e-5, atol=1e-6)
    assert float(term) == 0
    pull = jax.grad(lambda p: normalised("batch", p, x, live)[1])(params)
    seen = np.asarray(x[..., :3]).reshape(3, 4, 3)
    np.testing.assert_allclose(pull["mean"], 0 - seen.mean(axis=(1, 2)), rtol=1e-5)
    np.testing.assert_allclose(pull["var"], 1 - seen.var(axis=(1, 2)), rtol=1e-5)
    assert not pull["scale"].any()


def test_batch_norm_predicts_with_running_statistics_row_by_row():
    params = init_norm("batch", 2) | {"mean": jnp.asarray([1.0, -1.0]), "var": jnp.asarray([4.0, -1.0])}
    x = jax.random.normal(jax.random.key(0), (2, 1, 1, 4))
    out, _ = normalised("batch", params, x, None)
    np.testing.assert_allclose(out[0], (x[0] - 1) / np.sqrt(4 + 1e-5), rtol=1e-5)
    assert np.isfinite(out).all()  # a variance that momentum drove below 0 counts as 0
    np.testing.assert_array_equal(normalised("batch", params, x[..., :1], None)[0], out[..., :1])


def test_a_batch_without_a_live_row_pulls_at_no_statistics():
    x = jax.random.normal(jax.random.key(0), (2, 2, 2, 3))
    pull = jax.grad(lambda p: normalised("batch", p, x, jnp.zeros(3, bool))[1])(init_norm("batch", 2))
    assert not any(leaf.any() for leaf in jax.tree.leaves(pull))


@pytest.mark.slow
def test_dla_with_batch_norm_ignores_padding_and_sgd_moves_its_statistics(x64):
    params, (loss, gradient, _) = dla_values("lax")
    _, (alone, of_alone, _) = dla_values("lax", rows=4)
    assert apart((loss, gradient), (alone, of_alone)) < 1e-9
    moved = gradient["stem0"]["norm"]
    assert moved["mean"].any()
    assert moved["var"].any()
    assert sorted(params["tree1"]["left"]["right"]["second"]["norm"]) == ["mean", "scale", "shift", "var"]


def test_softmax_regression_may_begin_at_zero():
    params = cf.models.logistic("zero").init(jax.random.key(0), 784, 10)
    assert not params["w"].any()
    assert cf.models.logistic("random") is cf.models.logistic()
    with pytest.raises(ValueError, match="random"):
        cf.models.logistic("ones")  # type: ignore[arg-type]


def test_lenet5_learns_digits(shared_data):
    silos = cf.data.mnist("A", agents=1, rows=300)
    model = cf.models.lenet5()
    train, test = silos.block("train"), silos.block("test")
    rows = Batch(jnp.asarray(train.X[0]), jnp.asarray(train.y[0]), jnp.ones(300, bool))

    @jax.jit
    def trained(params):
        def step(params, start):
            batch = Batch(*(jax.lax.dynamic_slice_in_dim(a, start, 30) for a in rows[:3]))
            gradient = jax.grad(model.loss)(params, batch)
            return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), None

        return jax.lax.scan(step, params, jnp.tile(jnp.arange(10) * 30, 12))[0]

    params = trained(model.init(jax.random.key(0), 784, 10))
    right = jax.jit(model.apply)(params, jnp.asarray(test.X[0, ::8])).argmax(axis=1) == test.y[0, ::8]
    assert right.mean() > 0.7
