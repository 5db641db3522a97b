"""Compressed messages: what is sent, what is kept, and how many bytes it takes."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import confrere as cf
from confrere.program import Setup, expected_traffic, numbers
from confrere.testing import check_algorithm
from confrere.transforms import TopK, after, compression_named, quantised, top_k
from tests.helpers import ALGORITHMS, RING, two_class_silos

MODEL = cf.models.logistic()
WAYS = [top_k(0.3), top_k(1.0), quantised(8), quantised(3, "nearest")]
SHAPES = {"b": (3,), "w": (4, 5)}


def message(seed):
    rng = np.random.default_rng(seed)
    return {name: jnp.asarray(rng.normal(size=shape).astype(np.float32)) for name, shape in SHAPES.items()}


def row(part):
    return np.concatenate([np.ravel(part[name]) for name in sorted(part)])


def models(history):
    return jax.tree.leaves(history.models)


def test_top_k_with_error_feedback_is_its_transcription():
    way, kept, wanted = top_k(0.2), None, np.zeros(23, np.float32)
    kept = way.init(message(0))
    for seed in range(6):
        sent, kept = way.update(message(seed), kept)
        whole = row(message(seed)) + wanted
        largest = np.argsort(-np.abs(whole), kind="stable")[:5]
        expected = np.zeros_like(whole)
        expected[largest] = whole[largest]
        wanted = whole - expected
        np.testing.assert_array_equal(row(sent), expected)
        np.testing.assert_array_equal(row(kept), wanted)


def test_quantisation_is_its_transcription():
    way, key = quantised(4, feedback=False), jax.random.key(3)
    sent, _ = way.update(message(0), (), key=key)
    for name, k in zip(sorted(SHAPES), jax.random.split(key, 2), strict=True):
        x = np.asarray(message(0)[name])
        scale = np.abs(x).max()
        code = np.floor(x / scale * np.float32(7) + np.asarray(jax.random.uniform(k, x.shape)))
        np.testing.assert_allclose(sent[name], scale * code / 7, rtol=1e-6)
        assert np.abs(code).max() == 7


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_quantisation_is_right_on_average(bits):
    way, x, draws = quantised(bits, feedback=False), message(1), 4000
    keys = jax.random.split(jax.random.key(0), draws)
    found = jax.vmap(lambda k: way.update(x, (), key=k)[0])(keys)
    for name in SHAPES:
        step = float(jnp.abs(x[name]).max()) / way.format.levels
        error = np.abs(np.asarray(found[name]).mean(axis=0) - np.asarray(x[name]))
        assert error.max() < 4.5 * step / 2 / np.sqrt(draws)  # four and a half standard errors, at most step / 2 each
        assert np.abs(np.asarray(found[name]) - np.asarray(x[name])).max() <= step * (1 + 1e-5)


@pytest.mark.parametrize("way", [top_k(0.1), quantised(4), quantised(2, "nearest")], ids=str)
def test_what_was_sent_and_what_is_kept_sum_to_everything(way):
    kept, total = way.init(message(0)), np.zeros(23)
    for seed in range(30):
        sent, kept = way.update(message(seed), kept, key=jax.random.key(seed))
        total += row(sent)
    everything = sum(row(message(seed)).astype(float) for seed in range(30))
    np.testing.assert_allclose(total + row(kept), everything, atol=1e-4)
    assert np.abs(row(kept)).max() < 10  # it does not pile up


def test_rounding_at_random_to_two_bits_would_pile_up_and_is_refused():
    def kept_by(way):
        kept = way.init({"w": jnp.zeros(500)})
        for seed in range(30):
            part = {"w": jax.random.normal(jax.random.key(seed), (500,))}
            _, kept = way.update(part, kept, key=jax.random.key(seed))
        return float(jnp.abs(kept["w"]).mean())

    at_random, nearest = quantised(2, feedback=False)._replace(feedback=True), quantised(2, "nearest")
    assert kept_by(at_random) > 3 * kept_by(nearest)
    with pytest.raises(ValueError, match="pile up: say rounding='nearest'"):
        quantised(2)


@pytest.mark.parametrize("way", [*WAYS, top_k(0.01), quantised(2, "nearest"), quantised(11), quantised(16)], ids=str)
@pytest.mark.parametrize(
    "shapes", [SHAPES, {"w": (1,)}, {"w": (300, 3)}, {"b": (), "w": (50_001,)}], ids=["small", "one", "large", "larger"]
)
def test_the_bytes_on_the_wire_are_as_many_as_the_shapes_say_and_bring_everything_back(way, shapes):
    rng = np.random.default_rng(0)
    part = {name: jnp.asarray(rng.normal(size=shape).astype(np.float32)) for name, shape in shapes.items()}
    squeezed = way.format.squeeze(part, jax.random.key(0))
    wire = way.format.pack(squeezed)
    assert len(wire) == way.size(jax.eval_shape(lambda: part))
    read = way.format.unpack(wire, part)
    for name in shapes:
        np.testing.assert_array_equal(read[name], squeezed[name])


def test_sizes_are_those_of_the_format():
    d23, d900 = {"w": jnp.zeros(23)}, {"w": jnp.zeros(900)}
    assert top_k(0.2).size(d23) == 5 * (1 + 4)
    assert top_k(0.01).size(d900) == 9 * (2 + 4)
    assert top_k(0.9).size(d23) == 23 * 4  # with places it would take more
    assert quantised(5).size(d23) == 4 + 15
    assert quantised(8).size(message(0)) == 2 * 4 + 23


@given(st.floats(1e-6, 1.0), st.integers(1, 40), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_top_k_sends_so_many_and_no_smaller_ones(fraction, d, seed):
    part = {"w": np.random.default_rng(seed).normal(size=d).astype(np.float32)}
    sent = np.asarray(top_k(fraction).format.squeeze(part)["w"])
    k = top_k(fraction).format.count(d)
    assert 1 <= k <= d
    assert np.count_nonzero(sent) == k
    assert np.abs(part["w"][sent != 0]).min() >= np.abs(part["w"][sent == 0]).max(initial=0)


@pytest.mark.parametrize("seed", range(3))
def test_of_equal_numbers_top_k_sends_the_first_whatever_leaf_they_are_in(seed):
    rng = np.random.default_rng(seed)
    shapes = {"a": (7,), "b": (), "c": (0, 3), "d": (4, 9), "e": (2, 3, 4)}
    given = {name: rng.integers(-2, 3, size=shape).astype(np.float32) for name, shape in shapes.items()}
    row = np.concatenate([np.ravel(a) for a in given.values()])
    for fraction in (0.05, 0.3, 0.8):
        way = TopK(fraction)
        places = np.argsort(-np.abs(row), kind="stable")[: way.count(row.size)]
        wanted = np.zeros_like(row)
        wanted[places] = row[places]
        sent = jax.jit(way.squeeze)(given)
        np.testing.assert_array_equal(np.concatenate([np.ravel(a) for a in sent.values()]), wanted)


@pytest.mark.parametrize("name", ["fedavg", "multi-task"])
def test_top_k_of_everything_is_the_recipe_itself_bit_for_bit(name):
    silos, recipe = two_class_silos((20, 16, 12, 9)), ALGORITHMS[name].make([0, 1, 2, 3])
    plain, whole = (cf.simulate(r, MODEL, silos, 4) for r in (recipe, recipe.compressed(top_k(1.0))))
    for a, b in zip(models(plain), models(whole), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(plain.bytes_up, whole.bytes_up)


@pytest.mark.parametrize("name", ["multi-task"])
def test_models_that_are_sent_themselves_are_followed_by_their_changes(name):
    silos, recipe = two_class_silos((20, 16, 12, 9)), ALGORITHMS[name].make([0, 1, 2, 3])
    plain, few = (cf.simulate(r, MODEL, silos, 300) for r in (recipe, recipe.compressed(top_k(0.3))))
    gaps = [np.abs(a - b).max() for a, b in zip(models(plain), models(few), strict=True)]
    assert max(gaps) < 0.05  # added up instead, they would be several times the model
    assert few.bytes_up.sum() < plain.bytes_up.sum() / 2


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if "evidence" not in name])
def test_bytes_are_known_before_the_run_for_every_recipe(name):
    made = ALGORITHMS[name]
    model = made.problem().model if made.problem else MODEL
    silos, recipe = two_class_silos((20, 16, 12, 9)), made.make([0, 1, 2, 3])
    for way in (None, top_k(0.3), quantised(8)):
        chosen = recipe.compressed(way)
        params = model.init(jax.random.key(0), 3, 2)
        setup = Setup(chosen.bound, model)
        planned = expected_traffic(setup, numbers(chosen.hyper), params, silos.block("train"))
        assert planned.up == 0 if "local" in name else planned.up > 0
        if way is None:
            before = planned
    assert planned[1:3] == before[1:3]


def test_training_alone_sends_nothing_and_is_left_as_it_is():
    silos = two_class_silos()
    plain, wrapped = (cf.simulate(r, MODEL, silos, 3) for r in (cf.local(lr=0.1), cf.local(lr=0.1).compressed(WAYS[0])))
    np.testing.assert_array_equal(models(plain)[0], models(wrapped)[0])


def test_an_optax_transformation_clips_what_is_sent():
    client = after(cf.clients.gradient(MODEL.loss), optax.clip_by_global_norm(0.01))
    silos = two_class_silos()
    block = jax.tree.map(lambda a: jnp.asarray(a[0]), silos.block("train"))
    shared, private = client.init(MODEL.init(jax.random.key(0), 3, 2))
    ctx = cf.Ctx(jnp.int32(1), True, block.size, 0, jax.random.key(0))
    sent, _ = client.update(cf.Inbox(shared, 1.0), private, block, ctx)
    assert float(optax.tree.norm(sent["x"])) == pytest.approx(0.01, rel=1e-5)
    assert client.wire is None


def test_two_wrappers_draw_different_numbers_and_silos_do_too():
    noise = optax.GradientTransformationExtraArgs(
        lambda part: (), lambda part, state, params=None, *, key: (jax.random.normal(key, (2,)), state)
    )
    base = cf.Client(lambda p: ({"x": p}, ()), lambda i, p, d, c: ({"x": i.shared["x"]}, p), lambda i, p, d: i)

    def drawn(client, seed):
        shared, private = client.init(jnp.zeros(2))
        ctx = cf.Ctx(1, True, 1, 0, jax.random.key(seed))
        return tuple(client.update(cf.Inbox(shared, 1.0), private, None, ctx)[0]["x"].tolist())

    once, twice = after(base, noise), after(after(base, noise), noise)
    assert len({drawn(once, 0), drawn(twice, 0), drawn(once, 1), drawn(twice, 1)}) == 4


def test_a_transformation_with_a_generator_of_its_own_is_refused():
    client = after(cf.clients.gradient(MODEL.loss), optax.add_noise(0.1, 0.5, 0))
    with pytest.raises(ValueError, match="all silos would draw the same"):
        client.init(MODEL.init(jax.random.key(0), 3, 2))


def test_what_cannot_be_compressed_is_refused():
    with pytest.raises(ValueError, match="sums that are sent as they are"):
        cf.simulate(cf.evidence().compressed(top_k(0.5)), MODEL, two_class_silos(), 1)
    with pytest.raises(ValueError, match="compressed already"):
        cf.fedavg(lr=0.1).compressed(top_k(0.5)).compressed(top_k(0.5))
    with pytest.raises(TypeError, match="a compression is what"):
        cf.fedavg(lr=0.1).compressed(0.1)
    for wrong in (0.0, 1.5, -1.0, float("nan")):
        with pytest.raises(ValueError, match="fraction must be"):
            top_k(wrong)
    for wrong in (1, 17, 2.5):
        with pytest.raises(ValueError, match="bits must be"):
            quantised(wrong)
    for wrong in ("top_k", "bits=2.5", "k=0.1", "bits="):
        with pytest.raises(ValueError, match="is not understood: say top_k=FRACTION"):
            compression_named(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("name", ["fedavg", "weight-erosion", "scaffold", "gtv-gd", "multi-task", "fedfomo", "ifca"])
def test_compressed_recipes_conform(name, way):
    make = on_a_ring if name == "gtv-gd" else ALGORITHMS[name].make
    check_algorithm(lambda order: make(order).compressed(way))


def on_a_ring(order):
    """What is heard of neighbours lags behind, and and many pull more than few: equal silos need equal degrees."""
    return cf.gtv_gd(RING.induced(order), lr=0.1, alpha=0.3)


@pytest.mark.slow
def test_a_compressed_recipe_conforms():
    check_algorithm(lambda order: cf.fedsgd(lr=0.2).compressed(quantised(6)))
