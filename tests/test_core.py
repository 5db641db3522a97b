"""The contract: geometry, weighted means, keys, and how a client and a mixer are put together."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import confrere as cf
from confrere.core import arrived, combine_rows, normalise, rows_where, silo_keys, silo_view


def differences(M):
    """Squared distances between the rows of M, in double precision, from differences."""
    M = np.asarray(M, np.float64)
    return np.array([[((a - b) ** 2).sum() for b in M] for a in M])


def context(active, size=None, round=1):
    active = np.asarray(active, bool)
    return cf.Ctx(round, active, np.full(len(active), 10) if size is None else np.asarray(size))


def constant(W, needs=None):
    """Weights that are always W."""
    return cf.Weights(lambda n: (), lambda geometry, state, ctx: (jnp.asarray(W), state), needs)


def mix(weights, message, active, **how):
    rule = cf.weighted(weights, **how)
    return rule.update(message, rule.init(message), context(active))[0]


# Geometry


@pytest.mark.parametrize(("n", "D"), [(1, 1), (2, 7), (5, 3), (9, 40)])
def test_geometry_agrees_with_numpy(x64, n, D):
    M = np.random.default_rng(n).normal(size=(n, D))
    geometry = cf.Geometry.from_messages(M)
    np.testing.assert_allclose(geometry.sq(), differences(M), rtol=1e-13)
    np.testing.assert_allclose(geometry.dot(), M @ M.T, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(geometry.norm(), np.linalg.norm(M, axis=1), rtol=1e-13)
    for i in range(n):
        np.testing.assert_allclose(geometry.sq(i), differences(M)[i], rtol=1e-13)
        np.testing.assert_allclose(geometry.dot(i), M @ M[i], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(geometry.norm(i), np.linalg.norm(M[i]), rtol=1e-13)


def test_two_tight_bunches_far_from_the_origin_keep_their_distances():
    rng = np.random.default_rng(0)
    centres = np.repeat([[1000.0], [-3000.0]], 4, axis=0) + 100 * np.arange(20)
    M = (centres + 1e-2 * rng.normal(size=(8, 20))).astype(np.float32)
    exact = differences(M)
    assert 0 < exact[0, 1] < 1 < 1e8 < exact[0, 4]
    geometry = cf.Geometry.from_messages(M)
    np.testing.assert_allclose(geometry.sq(), exact, rtol=1e-5)
    np.testing.assert_allclose(np.stack([geometry.sq(i) for i in range(8)]), exact, rtol=1e-5)


def test_equal_messages_are_at_distance_exactly_zero():
    M = np.tile(np.random.default_rng(1).normal(size=(1, 30)) * 1e4, (3, 1)).astype(np.float32)
    assert not np.asarray(cf.Geometry.from_messages(M).sq()).any()


def test_geometry_of_a_pytree_is_that_of_the_flat_messages(x64):
    rng = np.random.default_rng(2)
    tree = {"w": rng.normal(size=(4, 3, 2)), "b": [rng.normal(size=4), rng.normal(size=(4, 1, 5))]}
    flat = np.concatenate([leaf.reshape(4, -1) for leaf in jax.tree.leaves(tree)], axis=1)
    assert flat.shape == (4, 12)
    one, two = cf.Geometry.from_messages(tree), cf.Geometry.from_messages(flat)
    for name in ("sq", "dot", "norm"):
        for i in (None, 2):
            np.testing.assert_allclose(getattr(one, name)(i), getattr(two, name)(i), rtol=1e-12)


def test_rows_for_a_traced_index_are_those_of_the_whole():
    M = np.random.default_rng(3).normal(size=(5, 6)).astype(np.float32)
    for name in ("sq", "dot", "norm"):

        def row(i, name=name):
            return getattr(cf.Geometry.from_messages(M), name)(i)

        whole = getattr(cf.Geometry.from_messages(M), name)()
        np.testing.assert_allclose(jax.jit(jax.vmap(row))(jnp.arange(5)), whole, rtol=1e-5, atol=1e-6)


def compiled(ask, n, D):
    """The compiled form of a question to the geometry of n messages of D numbers."""
    shape = jax.ShapeDtypeStruct((n, D), jnp.float32)
    return jax.jit(lambda M: ask(cf.Geometry.from_messages(M))).lower(shape).compile()


@pytest.mark.parametrize("name", ["sq", "dot", "norm"])
def test_one_row_costs_a_few_operations_per_number_sent(name):
    for n, D in ((8, 500), (64, 500), (64, 4000)):
        program = compiled(lambda g: getattr(g, name)(1), n, D)
        assert program.cost_analysis()["flops"] <= 4 * n * D
        assert "while(" not in program.as_text()  # a loop's body would be counted once only


def test_all_inner_products_cost_n_times_as_much_as_one_row():
    row, whole = (compiled(lambda g, i=i: g.dot(i), 64, 500).cost_analysis()["flops"] for i in (1, None))
    assert whole > 60 * row


def test_the_weights_of_one_user_cost_a_few_operations_per_number_sent():
    n, D = 64, 2000
    w = cf.weights.erosion(user=1, p_d=0.1, p_s=0.2, batch=5)

    def update(M, state):
        return w.update(cf.Geometry.from_messages(M), state, context(np.ones(n)))

    program = jax.jit(update).lower(jax.ShapeDtypeStruct((n, D), jnp.float32), w.init(n)).compile()
    assert program.cost_analysis()["flops"] <= 4 * n * D
    assert "while(" not in program.as_text()


def test_opened_lists_what_was_asked_for():
    geometry = cf.Geometry.from_messages(np.eye(3))
    assert geometry.opened == []
    geometry.sq(0)
    geometry.norm(0)
    assert geometry.opened == ["sq[i]", "norm[i]"]
    geometry.dot()
    assert geometry.opened == ["sq[i]", "norm[i]", "dot"]


def test_erosion_opens_the_users_row_and_norm_only():
    geometry = cf.Geometry.from_messages(np.eye(3))
    w = cf.weights.erosion(user=1, p_d=0.1, p_s=0.2)
    w.update(geometry, w.init(3), context(np.ones(3)))
    assert sorted(geometry.opened) == ["norm[i]", "sq[i]"]


@pytest.mark.parametrize("weights", [cf.weights.uniform(), cf.weights.by_size(), cf.weights.self_only()])
def test_weights_that_ignore_the_messages_open_nothing(weights):
    geometry = cf.Geometry.from_messages(np.eye(3))
    weights.update(geometry, weights.init(3), context(np.ones(3)))
    assert geometry.opened == []


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (np.float32(3), "must be stacked"),
        ({}, "must be stacked"),
        ({"a": np.ones((3, 2)), "b": np.float32(1)}, "must be stacked"),
        ({"a": np.ones((3, 2)), "b": np.ones((2, 2))}, r"number of silos.*\[2, 3\]"),
    ],
)
def test_messages_that_are_not_stacked_are_refused(messages, words):
    with pytest.raises(ValueError, match=words):
        cf.Geometry.from_messages(messages)


# Weighted means


def test_simple_weights_are_what_they_say():
    ctx, geometry = context([True] * 3, [10, 30, 5]), cf.Geometry.from_messages(np.eye(3))
    for weights, expected in (
        (cf.weights.uniform(), [[1, 1, 1]]),
        (cf.weights.by_size(), [[10, 30, 5]]),
        (cf.weights.self_only(), np.eye(3)),
    ):
        W, _ = weights.update(geometry, weights.init(3), ctx)
        np.testing.assert_array_equal(W, expected)


def test_rows_are_normalised_or_zero():
    share, mass = normalise(jnp.array([[1.0, 3.0], [0.0, 0.0], [2.0, 0.0]]))
    np.testing.assert_allclose(share, [[0.25, 0.75], [0, 0], [1, 0]])
    np.testing.assert_allclose(mass, [4, 0, 2])


def test_the_mean_is_over_those_who_are_there(x64):
    rng = np.random.default_rng(4)
    W, M = rng.uniform(size=(3, 5)), {"x": rng.normal(size=(5, 2, 3)), "c": rng.normal(size=5)}
    for active in ([True] * 5, [True, False, True, True, False], [False, False, True, False, False]):
        mixed = mix(constant(W), M, active)
        counted = W * np.array(active)
        np.testing.assert_allclose(mixed.mass, counted.sum(1), rtol=1e-13)
        for name, part in M.items():
            expected = np.tensordot(counted / counted.sum(1, keepdims=True), part, 1)
            np.testing.assert_allclose(mixed.mean[name], expected, rtol=1e-12, atol=1e-14)


def test_the_weights_are_handed_on_as_the_rule_gave_them():
    W = np.array([[2.0, 5.0, 1.0]], np.float32)
    mixed = mix(constant(W), {"x": np.ones((3, 2), np.float32)}, [False, True, True])
    np.testing.assert_array_equal(mixed.weights, W)


@pytest.mark.parametrize(("W", "active"), [([[1.0, 1.0]], [False, False]), ([[0.0, 0.0]], [True, True])])
def test_no_mass_gives_a_mean_of_zero(W, active):
    mixed = mix(constant(W), {"x": np.ones((2, 3), np.float32)}, active)
    np.testing.assert_array_equal(mixed.mass, [0])
    np.testing.assert_array_equal(mixed.mean["x"], np.zeros((1, 3)))


def test_a_row_counts_for_nothing_without_the_silo_it_needs():
    M = {"x": np.arange(3, dtype=np.float32)[:, None]}
    assert mix(constant(np.ones((1, 3)), needs=1), M, [True, False, True]).mass.tolist() == [0]
    assert mix(constant(np.ones((1, 3)), needs=0), M, [True, False, True]).mass.tolist() == [2]


def test_each_receiver_may_need_a_silo_of_its_own():
    M = {"x": np.arange(3, dtype=np.float32)[:, None]}
    mixed = mix(constant(np.ones((3, 3)), needs=jnp.arange(3)), M, [True, False, True])
    np.testing.assert_array_equal(mixed.mass, [2, 0, 2])
    np.testing.assert_array_equal(mixed.mean["x"], [[1], [0], [1]])


def test_what_is_told_reaches_the_weights_and_is_not_averaged():
    def by_word(geometry, state, ctx):
        return geometry.told[None], state

    M = {"x": np.array([[1.0], [3.0]], np.float32), "told": np.array([1.0, 3.0], np.float32)}
    mixed = mix(cf.Weights(lambda n: (), by_word), M, [True, True])
    assert set(mixed.mean) == {"x"}
    np.testing.assert_allclose(mixed.mean["x"], [[2.5]])


def test_the_geometry_is_that_of_the_named_part():
    def norms(geometry, state, ctx):
        return geometry.norm()[None], state

    M = {"x": np.array([[1.0], [1.0]], np.float32), "c": np.array([[2.0], [6.0]], np.float32)}
    np.testing.assert_allclose(mix(cf.Weights(lambda n: (), norms), M, [True, True]).weights, [[1, 1]])
    np.testing.assert_allclose(mix(cf.Weights(lambda n: (), norms), M, [True, True], on="c").weights, [[2, 6]])


def test_another_way_to_the_mean_takes_the_place_of_the_open_one():
    def doubled(message, on, ctx):
        assert "told" not in message
        return cf.Geometry.from_messages(2 * message[on]), lambda W: combine_rows(2 * W, message)

    def norms(geometry, state, ctx):
        return geometry.norm()[None], state

    M = {"x": np.array([[1.0], [3.0]], np.float32), "told": np.zeros(2)}
    mixed = mix(cf.Weights(lambda n: (), norms), M, [True, True], via=doubled)
    np.testing.assert_allclose(mixed.weights, [[2, 6]])
    np.testing.assert_allclose(mixed.mean["x"], [[2 * 2.5]])


def test_the_mean_keeps_the_precision_of_the_messages(x64):
    mixed = mix(constant(np.ones((1, 2))), {"x": jnp.ones((2, 3), jnp.float32)}, [True, True])
    assert mixed.mean["x"].dtype == jnp.float32


# Rows, arrivals, keys


def test_rows_are_selected_leaf_by_leaf():
    new, old = {"a": jnp.ones((3, 2)), "b": jnp.ones(3)}, {"a": jnp.zeros((3, 2)), "b": jnp.zeros(3)}
    chosen = rows_where(jnp.array([True, False, True]), new, old)
    np.testing.assert_array_equal(chosen["a"], [[1, 1], [0, 0], [1, 1]])
    np.testing.assert_array_equal(chosen["b"], [1, 0, 1])


def test_what_did_not_arrive_or_is_not_finite_is_zeroed():
    x = jnp.array([[1.0, 2.0], [jnp.nan, 1.0], [3.0, 4.0], [jnp.inf, 0.0]])
    message, here = arrived({"x": x, "c": jnp.arange(4)}, jnp.array([True, True, False, True]))
    np.testing.assert_array_equal(here, [True, False, False, False])
    np.testing.assert_array_equal(message["x"], [[1, 2], [0, 0], [0, 0], [0, 0]])
    np.testing.assert_array_equal(message["c"], [0, 0, 0, 0])


def test_keys_follow_the_silo_and_not_its_place():
    def words(ids, round=3):
        mixer, silos = silo_keys(jax.random.key(0), jnp.int32(round), jnp.asarray(ids, jnp.int32))
        return [tuple(k) for k in jax.random.key_data(jnp.append(silos, mixer)).tolist()]

    here = words([4, 0, 7])
    assert len(set(here)) == 4
    assert words([7, 4])[:2] == [here[2], here[0]]
    assert words([7, 4])[2] == here[3]
    assert not set(words([4, 0, 7], round=4)) & set(here)


# Recipes


def test_a_recipe_is_equal_to_one_with_the_same_words_and_not_to_others():
    assert cf.fedavg(lr=0.1).make == cf.fedavg(lr=0.3).make
    assert hash(cf.fedavg(lr=0.1).make) == hash(cf.fedavg(lr=0.3).make)
    assert cf.fedavg(lr=0.1).make != cf.fedavg(lr=0.1, batch=7).make


def test_a_recipe_takes_other_numbers_but_no_unknown_ones():
    recipe = cf.weight_erosion(user=0, lr=0.1)
    assert recipe.replace(lr=0.5, user=2).hyper == {"user": 2, "lr": 0.5, "p_d": 0.01, "p_s": 0.2}
    assert recipe.hyper["lr"] == 0.1
    with pytest.raises(TypeError, match=r"weight_erosion has no hyper-parameter rate; it has user, lr, p_d, p_s"):
        recipe.replace(rate=1.0)


REFUSED = {
    "lr must be a finite number": lambda: cf.fedsgd(lr=-1.0),
    "lr must be a finite number, .* not nan": lambda: cf.local(lr=float("nan")),
    "lr must be a number": lambda: cf.fedsgd(lr="fast"),
    "weights must be 'size' or 'uniform'": lambda: cf.fedsgd(lr=0.1, weights="equal"),
    "epochs or steps, not both": lambda: cf.fedavg(lr=0.1, epochs=1, steps=2),
    "tune_steps must be a whole number": lambda: cf.fine_tuned(lr=0.1, tune_steps=-1),
    "p_d must be a finite number": lambda: cf.weight_erosion(user=0, lr=0.1, p_d=-0.1),
    "p_s must be a finite number": lambda: cf.weight_erosion(user=0, lr=0.1, p_s=float("inf")),
    "passes must be 'paper' or 'code'": lambda: cf.weight_erosion(user=0, lr=0.1, passes="both"),
    "newcomer must be 'mean' or 'median'": lambda: cf.weight_erosion(user=0, lr=0.1, newcomer="one"),
    "batch must be a whole number": lambda: cf.weight_erosion(user=0, lr=0.1, batch=0),
    "form must be 'gradient' or 'update'": lambda: cf.weight_erosion(user=0, lr=0.1, form="both"),
    "epochs: only with form='update'": lambda: cf.weight_erosion(user=0, lr=0.1, epochs=2),
}


@pytest.mark.parametrize("words", REFUSED)
def test_wrong_words_and_numbers_are_refused_at_the_door(words):
    with pytest.raises(ValueError, match=words):
        REFUSED[words]()


# A client and a mixer put together


def counting_client():
    """Sends the sum of its rows, and counts the rounds in which it took part."""

    def update(inbox, count, data, ctx):
        live = (jnp.arange(data.y.shape[0]) < data.size)[:, None]
        return {"x": jnp.where(live, data.X, 0).sum(0)}, count + 1

    return cf.Client(lambda params: ({"x": params}, jnp.int32(0)), update, lambda inbox, private, data: inbox.shared)


def counting_run(X, size, actives):
    """The record of every round and the last state of a run of counting clients."""
    n = len(X)
    data = cf.Block(jnp.asarray(X, jnp.float32), jnp.zeros((n, 2)), jnp.asarray(size, jnp.int32), jnp.arange(n))
    algorithm = cf.federate(counting_client(), cf.mixers.server(cf.weighted(cf.weights.uniform())))
    state = algorithm.init(jnp.zeros(1), data)
    records = []
    for active in actives:
        state, record = algorithm.update(state, data, jax.random.key(0), active)
        records.append(record)
    return records, state, algorithm, data


def test_a_round_mixes_messages_and_leaves_the_absent_alone():
    X = np.arange(6.0).reshape(3, 2, 1)  # sums 1, 5, 9
    records, state, algorithm, data = counting_run(X, [2, 2, 2], [[1, 1, 0], [0, 1, 0], [1, 1, 1], [0, 0, 0]])
    assert [r.arrived.tolist() for r in records] == [
        [True, True, False], [False, True, False], [True, True, True], [False, False, False]
    ]  # fmt: skip
    assert [r.mass.tolist() for r in records] == [[2], [1], [3], [0]]
    np.testing.assert_array_equal(state.private, [2, 3, 1])
    assert int(state.round) == 5
    np.testing.assert_allclose(algorithm.personal(state, data, 0)["x"], [-(1 + 5) / 2 - 5 - (1 + 5 + 9) / 3])


def test_a_silo_without_rows_has_nothing_to_say():
    records, state, *_ = counting_run(np.ones((3, 2, 1)), [2, 0, 1], [[1, 1, 1], None])
    assert [r.arrived.tolist() for r in records] == [[True, False, True]] * 2
    np.testing.assert_array_equal(state.private, [2, 0, 2])
    np.testing.assert_allclose(state.inbox.shared["x"], [-2 * (2 + 1) / 2])


def test_a_message_that_is_not_finite_counts_as_absent():
    X = np.ones((3, 2, 1))
    X[1, 0] = np.nan
    records, state, *_ = counting_run(X, [2, 2, 2], [None])
    assert records[0].arrived.tolist() == [True, False, True]
    np.testing.assert_array_equal(state.private, [1, 0, 1])
    np.testing.assert_allclose(state.inbox.shared["x"], [-2])


def test_a_silo_sees_its_own_slice():
    X = np.arange(6.0).reshape(3, 2, 1)
    _, state, algorithm, data = counting_run(X, [2, 2, 1], [[1, 0, 1]])
    inbox, private, own = silo_view(algorithm.mixer, state, data, 2)
    assert int(private) == 1
    assert int(own.size) == 1
    np.testing.assert_array_equal(own.X, X[2])
    np.testing.assert_array_equal(inbox.shared["x"], state.inbox.shared["x"])
