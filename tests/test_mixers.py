"""The server and its parts, against loops in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import confrere as cf
from confrere.core import received
from confrere.mixers import add, replace, server, step, table, tempered

N, D, ROUNDS = 4, 3, 8


def constant(W, needs=None):
    """Weights that are always W."""
    return cf.Weights(lambda n: (), lambda geometry, state, ctx: (jnp.asarray(W), state), needs)


def context(active, round=1):
    active = np.asarray(active, bool)
    return cf.Ctx(jnp.int32(round), jnp.asarray(active), jnp.full(len(active), 10, jnp.int32))


def absences(rng, rounds=ROUNDS, n=N):
    """Who is there when: at random, with a first round of one, a round of nobody and a round of all."""
    active = rng.uniform(size=(rounds, n)) > 0.4
    active[0], active[2], active[4] = np.arange(n) == 1, False, True
    return active


def run(mixer, shared, messages, active):
    """The inbox after every round."""
    blank = {name: jnp.zeros_like(part[0]) for name, part in messages.items()}
    inbox, state = mixer.init({name: jnp.asarray(a) for name, a in shared.items()}, blank)
    update, inboxes = jax.jit(mixer.update), []
    for r in range(len(active)):
        message = {name: jnp.asarray(part[r]) for name, part in messages.items()}
        inbox, state, _ = update(message, state, context(active[r], r + 1))
        inboxes.append(inbox)
    return inboxes


def shares(W, active):
    """Rows of W over those who are there, normalised; and the mass of each row."""
    counted = W * active
    mass = counted.sum(1)
    return counted / np.where(mass > 0, mass, 1)[:, None], mass


DELIVERIES = {"same": 1, "own": N, "all": 2}


def weights_for(deliver, rng):
    """One row of weights per model held, with zeros such that some rows have no mass in some rounds."""
    W = rng.uniform(0.5, 2.0, size=(DELIVERIES[deliver], N))
    if deliver == "own":
        return W * (np.eye(N) + np.eye(N, k=1))
    return W * ([[1, 1, 1, 1]] if deliver == "same" else [[1, 0, 0, 1], [0, 1, 1, 0]])


def start_for(deliver, rng):
    """What is shared before round 1, and the rows that the server then holds."""
    if deliver == "all":
        models = rng.normal(size=(2, D))
        return models, models
    model = rng.normal(size=D)
    return model, np.tile(model, (DELIVERIES[deliver], 1))


def handed_out(deliver, held):
    return held[0] if deliver == "same" else held


def adam_step(x, g, m, v, t, lr=0.1, b1=0.9, b2=0.999, eps=1e-8):
    """Kingma and Ba (2015), Algorithm 1."""
    t = t + 1
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
    return x - lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps), m, v, t


# Parts


@pytest.mark.parametrize("deliver", DELIVERIES)
def test_adam_steps_by_the_mean_and_stands_still_where_nobody_counts(x64, deliver):
    rng = np.random.default_rng(0)
    W, g, active = weights_for(deliver, rng), rng.normal(size=(ROUNDS, N, D)), absences(rng)
    shared, held = start_for(deliver, rng)
    inboxes = run(server(cf.weighted(constant(W)), deliver, x=step(optax.adam(0.1))), {"x": shared}, {"x": g}, active)
    memory = [(x, np.zeros(D), np.zeros(D), 0) for x in held]
    stood_still = moved = 0
    for r in range(ROUNDS):
        share, mass = shares(W, active[r])
        for k in range(len(held)):
            if mass[k] > 0:
                memory[k] = adam_step(memory[k][0], share[k] @ g[r], *memory[k][1:])
            stood_still, moved = stood_still + (mass[k] == 0), moved + (mass[k] > 0)
        expected = np.stack([x for x, *_ in memory])
        np.testing.assert_allclose(inboxes[r].shared["x"], handed_out(deliver, expected), rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(inboxes[r].mass, handed_out(deliver, mass), rtol=1e-13)
    assert stood_still
    assert moved


@pytest.mark.parametrize("deliver", DELIVERIES)
def test_replace_holds_the_mean_itself(x64, deliver):
    rng = np.random.default_rng(1)
    W, g, active = weights_for(deliver, rng), rng.normal(size=(ROUNDS, N, D)), absences(rng)
    shared, held = start_for(deliver, rng)
    inboxes = run(server(cf.weighted(constant(W)), deliver, x=replace()), {"x": shared}, {"x": g}, active)
    for r in range(ROUNDS):
        share, mass = shares(W, active[r])
        held = np.where(mass[:, None] > 0, share @ g[r], held)
        np.testing.assert_allclose(inboxes[r].shared["x"], handed_out(deliver, held), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("deliver", DELIVERIES)
def test_add_adds_the_mean_scaled_by_the_share_of_the_weight_there(x64, deliver):
    """SCAFFOLD's c + |S|/N mean(dc), where everybody counts the same."""
    rng = np.random.default_rng(2)
    W, g, active = weights_for(deliver, rng), rng.normal(size=(ROUNDS, N, D)), absences(rng)
    shared, held = start_for(deliver, rng)
    inboxes = run(server(cf.weighted(constant(W)), deliver, x=add()), {"x": shared}, {"x": g}, active)
    heard = np.zeros(N, bool)
    for r in range(ROUNDS):
        before = (W * heard).sum(axis=1, keepdims=True)
        heard |= active[r]
        total = (W * heard).sum(axis=1, keepdims=True)
        moves = ((W * active[r]).sum(axis=1, keepdims=True) > 0) & (total > 0)
        kept = np.where(moves & (before > 0), before / np.where(total > 0, total, 1), 1)
        share = np.where(moves, W * active[r] / np.where(total > 0, total, 1), 0)
        held = kept * held + share @ g[r]
        np.testing.assert_allclose(inboxes[r].shared["x"], handed_out(deliver, held), rtol=1e-12, atol=1e-14)


def test_add_is_exact_where_the_share_of_silos_is_no_binary_fraction(x64):
    mixer = server(cf.weighted(cf.weights.uniform()), x=add())
    active = [[True, True, True], [True, True, False]]
    inboxes = run(mixer, {"x": np.zeros(1)}, {"x": np.ones((2, 3, 1))}, active)
    np.testing.assert_allclose([float(box.shared["x"][0]) for box in inboxes], [1, 1 + 2 / 3], rtol=1e-15)


def test_add_counts_nobody_who_has_yet_to_come(x64):
    mixer = server(cf.weighted(cf.weights.uniform()), x=add())
    inboxes = run(mixer, {"x": np.zeros(1)}, {"x": np.ones((1, 3, 1))}, [[True, True, False]])
    np.testing.assert_allclose(inboxes[0].shared["x"], [1], rtol=1e-15)


@pytest.mark.parametrize("deliver", DELIVERIES)
def test_table_holds_the_weighted_mean_of_everybodys_last_word(x64, deliver):
    rng = np.random.default_rng(3)
    W, g, active = weights_for(deliver, rng), rng.normal(size=(ROUNDS, N, D)), absences(rng)
    shared, held = start_for(deliver, rng)
    inboxes = run(server(cf.weighted(constant(W)), deliver, x=table()), {"x": shared}, {"x": g}, active)
    last, known = np.zeros((N, D)), np.zeros(N, bool)
    for r in range(ROUNDS):
        last, known = np.where(active[r][:, None], g[r], last), known | active[r]
        share, mass = shares(W, known)
        held = np.where(mass[:, None] > 0, share @ last, held)
        np.testing.assert_allclose(inboxes[r].shared["x"], handed_out(deliver, held), rtol=1e-12, atol=1e-14)


def changing(rows):
    """Weights that are given round by round; nobody counts without silo 0."""
    return cf.Weights(lambda n: (), lambda geometry, state, ctx: (jnp.asarray(rows)[ctx.round - 1][None], state), 0)


def corrections(alpha, values):
    """s_i (c - c_i), written out."""
    s = np.minimum(1, len(alpha) * alpha)
    c = (alpha * s) @ values / (alpha * s).sum()
    return s[:, None] * (c - values)


def test_tempered_hands_out_corrections_as_far_as_a_silo_counts(x64):
    rng = np.random.default_rng(8)
    rows, g, active = rng.exponential(size=(ROUNDS, N)) ** 3, rng.normal(size=(ROUNDS, N, D)), absences(rng)
    active[:3, 2] = False  # comes late
    inboxes = run(server(cf.weighted(changing(rows)), x=tempered()), {"x": np.zeros(D)}, {"x": g}, active)
    last, known, held = np.zeros((N, D)), np.zeros(N, bool), np.zeros((N, D))
    for r in range(ROUNDS):
        last, known = np.where(active[r][:, None], g[r], last), known | active[r]
        if active[r, 0]:
            alpha = rows[r] * known / rows[r][known].sum()
            held = np.zeros((N, D))
            held[known] = corrections(alpha[known], last[known])
            np.testing.assert_allclose(alpha @ held, 0, atol=1e-14)  # they cancel over those who are averaged
        np.testing.assert_allclose(inboxes[r].shared["x"], held, rtol=1e-11, atol=1e-13)
        assert not np.any(inboxes[r].shared["x"][~known])
    assert known.all()
    assert not active[:, 0].all()


def test_tempered_is_the_full_correction_for_equal_weights_and_none_for_one_who_counts_alone(x64):
    values = np.random.default_rng(9).normal(size=(3, D))
    for row, expected in (([1, 1, 1], values.mean(0) - values), ([0, 1, 0], 0 * values)):
        mixer = server(cf.weighted(constant(np.array([row], float))), x=tempered())
        (inbox,) = run(mixer, {"x": np.zeros(D)}, {"x": values[None]}, [[True] * 3])
        np.testing.assert_allclose(inbox.shared["x"], expected, atol=1e-14)


def test_a_part_may_be_every_silos_own_while_the_model_is_common():
    mixer = server(cf.weighted(cf.weights.uniform()), x=step(), c=tempered())
    assert mixer.axis == cf.Inbox({"x": None, "c": 0}, None)
    message = {"x": jnp.ones((3, 2)), "c": jnp.arange(6.0).reshape(3, 2)}
    _, state = mixer.init({"x": jnp.zeros(2), "c": jnp.zeros(2)}, message)
    inbox, _, _ = mixer.update(message, state, context([True] * 3))
    one = received(mixer, inbox, 2)
    np.testing.assert_allclose(one.shared["x"], [-1, -1])
    np.testing.assert_allclose(one.shared["c"], [-2, -2], rtol=1e-6)
    assert float(one.mass) == 3


@pytest.mark.parametrize("deliver", ["own", "all"])
def test_a_part_that_is_every_silos_own_wants_one_model_for_all(deliver):
    with pytest.raises(ValueError, match=f"part 'c' follows one model for all, but deliver='{deliver}' holds several"):
        server(cf.weighted(cf.weights.uniform()), deliver, x=step(), c=tempered())


def test_each_part_goes_its_own_way(x64):
    rng = np.random.default_rng(4)
    active = absences(rng)
    messages = {name: rng.normal(size=(ROUNDS, N, D)) for name in "xcm"}
    shared = {name: rng.normal(size=D) for name in "xcm"}
    mixer = server(cf.weighted(cf.weights.uniform()), x=step(optax.sgd(0.5)), c=add(), m=replace())
    inboxes = run(mixer, shared, messages, active)
    held, heard = dict(shared), np.zeros(N, bool)
    for r in range(ROUNDS):
        before = heard.sum()
        heard |= active[r]
        if active[r].any():
            mean = {name: messages[name][r][active[r]].mean(0) for name in "xcm"}
            kept, share = before / heard.sum() if before else 1, active[r].sum() / heard.sum()
            held = {"x": held["x"] - 0.5 * mean["x"], "c": kept * held["c"] + share * mean["c"], "m": mean["m"]}
        for name in "xcm":
            np.testing.assert_allclose(inboxes[r].shared[name], held[name], rtol=1e-12, atol=1e-14)


def test_a_plain_step_is_the_average_of_the_local_models(x64):
    rng = np.random.default_rng(5)
    x, y, size = rng.normal(size=D), rng.normal(size=(3, D)), np.array([10, 30, 5])
    mixer = server(cf.weighted(cf.weights.by_size()))
    _, state = mixer.init({"x": jnp.asarray(x)}, {"x": jnp.zeros((3, D))})
    inbox, _, _ = mixer.update({"x": jnp.asarray(x - y)}, state, cf.Ctx(1, np.ones(3, bool), size))
    np.testing.assert_allclose(inbox.shared["x"], size @ y / size.sum(), rtol=1e-12)


def test_parts_may_be_trees():
    tree = {"w": jnp.zeros((2, 2)), "b": jnp.zeros(2)}
    message = {"x": {"w": jnp.ones((3, 2, 2)), "b": 2 * jnp.ones((3, 2))}}
    for part in (step(), replace(), add(), table()):
        mixer = server(cf.weighted(cf.weights.uniform()), x=part)
        _, state = mixer.init({"x": tree}, message)
        inbox, _, _ = mixer.update(message, state, context([True] * 3))
        assert jax.tree.map(jnp.shape, inbox.shared) == {"x": {"w": (2, 2), "b": (2,)}}
        np.testing.assert_allclose(np.abs(inbox.shared["x"]["b"]), [2, 2])


PARTS = {"step": step(optax.adam(0.1)), "replace": replace(), "add": add(), "table": table(), "tempered": tempered()}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("here", [[False, False, False], [False, True, True]])
def test_every_part_keeps_what_it_holds_when_nobody_counts(part, here):
    """Because nobody is there, or because the one silo is absent without whom nobody counts."""
    mixer = server(cf.weighted(constant(np.ones((1, 3), np.float32), needs=0)), x=PARTS[part])
    message = {"x": jnp.array([[1.0], [2.0], [6.0]])}
    _, state = mixer.init({"x": jnp.zeros(1)}, message)
    before, state, _ = mixer.update(message, state, context([True, True, False]))
    after, _, mixed = mixer.update(message, state, context(here, 2))
    assert mixed.mass.tolist() == [0]
    np.testing.assert_array_equal(after.shared["x"], before.shared["x"])


def test_adams_memory_stands_still_when_nobody_counts():
    mixer = server(cf.weighted(cf.weights.uniform()), x=step(optax.adam(0.1)))
    message = {"x": jnp.ones((2, 1))}
    _, state = mixer.init({"x": jnp.zeros(1)}, message)
    _, state, _ = mixer.update(message, state, context([True, True]))
    _, after, _ = mixer.update(message, state, context([False, False], 2))
    jax.tree.map(np.testing.assert_array_equal, after, state)


def test_a_state_keeps_its_shapes_and_types(x64):
    message = {"x": jnp.ones((3, 2), jnp.float32), "c": jnp.ones((3, 2), jnp.float32)}
    shared = {"x": jnp.zeros(2, jnp.float32), "c": jnp.zeros(2, jnp.float32)}
    for part in (add(), table(), tempered(), replace()):
        mixer = server(cf.weighted(cf.weights.uniform()), x=step(optax.adam(0.1)), c=part)
        inbox, state = mixer.init(shared, message)
        new_inbox, new_state, _ = mixer.update(message, state, context([True] * 3))
        kind = lambda tree: jax.tree.map(lambda a: (jnp.shape(a), jnp.asarray(a).dtype.name), tree)  # noqa: E731
        assert kind((inbox, state)) == kind((new_inbox, new_state))


# Delivery


def test_the_first_inbox_is_the_start_with_no_mass():
    shared, message = {"x": jnp.array([1.0, 2.0])}, {"x": jnp.zeros((3, 2))}
    same, _ = server(cf.weighted(cf.weights.uniform())).init(shared, message)
    own, _ = server(cf.weighted(cf.weights.self_only()), deliver="own").init(shared, message)
    np.testing.assert_array_equal(same.shared["x"], [1, 2])
    assert float(same.mass) == 0
    np.testing.assert_array_equal(own.shared["x"], [[1, 2]] * 3)
    np.testing.assert_array_equal(own.mass, [0, 0, 0])


def test_only_own_models_have_a_silo_axis():
    rule = cf.weighted(cf.weights.uniform())
    assert [server(rule, deliver).axis for deliver in ("same", "own", "all")] == [None, 0, None]


def test_a_mixer_that_runs_inside_each_silo_sends_nothing():
    assert server(cf.weighted(cf.weights.self_only()), deliver="own").sends
    assert not cf.mixers.alone().sends


def test_alone_is_a_server_at_which_everybody_listens_to_itself():
    rng = np.random.default_rng(0)
    shared = {"x": jnp.asarray(rng.normal(size=4), jnp.float32)}
    mixers = [server(cf.weighted(cf.weights.self_only()), deliver="own"), cf.mixers.alone()]
    blank = {"x": jnp.zeros((3, 4))}
    states = [mixer.init(shared, blank)[1] for mixer in mixers]
    for active in ([True, True, True], [False, True, False]):
        message = {"x": jnp.asarray(rng.normal(size=(3, 4)), jnp.float32)}
        ctx = cf.Ctx(1, jnp.array(active), jnp.ones(3, jnp.int32))
        (one, first, record), (two, second, other) = (
            mixer.update(message, state, ctx) for mixer, state in zip(mixers, states, strict=True)
        )
        states = [first, second]
        np.testing.assert_allclose(one.shared["x"], two.shared["x"], atol=1e-7)
        np.testing.assert_array_equal(one.mass, two.mass)
        np.testing.assert_array_equal(record.weights, other.weights)


# What is refused


def started():
    mixer = server(cf.weighted(cf.weights.uniform()))
    _, state = mixer.init({"x": {"w": jnp.zeros(2)}}, {"x": {"w": jnp.zeros((3, 2))}})
    return mixer, state


WRONG_MESSAGES = {
    r"part 'x' .* shapes \{'w': \(5,\)\}, .* holds \{'w': \(2,\)\}": {"x": {"w": jnp.ones((3, 5))}},
    r"part 'x' .* shapes \{'w': \(2, 1\)\}": {"x": {"w": jnp.ones((3, 2, 1))}},
    r"part 'x' .* shapes \{'v': \(2,\)\}": {"x": {"v": jnp.ones((3, 2))}},
    r"part 'x' .* shapes \(2,\)": {"x": jnp.ones((3, 2))},
    r"no part 'x'; they have c": {"c": jnp.ones((3, 2))},
}


@pytest.mark.parametrize("words", WRONG_MESSAGES)
def test_a_message_of_the_wrong_shape_is_refused(words):
    mixer, state = started()
    with pytest.raises(ValueError, match=words):
        mixer.update(WRONG_MESSAGES[words], state, context([True] * 3))


def test_messages_of_another_number_of_silos_are_refused():
    mixer, state = started()
    with pytest.raises(ValueError, match="silo"):
        mixer.update({"x": {"w": jnp.ones((4, 2))}}, state, context([True] * 3))


def test_a_part_that_the_server_has_no_use_for_is_refused():
    mixer = server(cf.weighted(cf.weights.uniform()), x=step())
    both = {"x": jnp.zeros(2), "c": jnp.zeros(2)}
    with pytest.raises(ValueError, match=r"no part for 'c' .*say e\.g\. c="):
        mixer.init(both, {name: jnp.zeros((3, 2)) for name in both})


def test_a_part_that_is_not_shared_is_refused():
    mixer = server(cf.weighted(cf.weights.uniform()), x=step(), c=add())
    with pytest.raises(ValueError, match=r"\bc\b"):
        mixer.init({"x": jnp.zeros(2)}, {"x": jnp.zeros((3, 2)), "c": jnp.zeros((3, 2))})


def test_a_part_that_is_not_sent_is_refused():
    mixer = server(cf.weighted(cf.weights.uniform()), x=step(), c=add())
    with pytest.raises(ValueError, match=r"\bc\b"):
        mixer.init({"x": jnp.zeros(2), "c": jnp.zeros(2)}, {"x": jnp.zeros((3, 2))})


def test_geometry_of_a_part_that_is_not_sent_is_refused():
    mixer = server(cf.weighted(cf.weights.uniform(), on="c"))
    with pytest.raises(ValueError, match=r"\bc\b"):
        mixer.init({"x": jnp.zeros(2)}, {"x": jnp.zeros((3, 2))})


MISMATCHES = {
    r"1 row\(s\) of weights, but deliver='own' holds 3 model": (cf.weights.uniform(), "own", (2,)),
    r"3 row\(s\) of weights, but deliver='same' holds 1 model": (cf.weights.self_only(), "same", (2,)),
    r"1 row\(s\) of weights, but deliver='all' holds 4 model": (cf.weights.uniform(), "all", (4, 2)),
}


@pytest.mark.parametrize("words", MISMATCHES)
def test_a_rule_must_give_one_row_per_model_held(words):
    weights, deliver, shape = MISMATCHES[words]
    with pytest.raises(ValueError, match=words):
        server(cf.weighted(weights), deliver).init({"x": jnp.zeros(shape)}, {"x": jnp.zeros((3, 2))})


def test_an_unknown_delivery_is_refused():
    with pytest.raises(ValueError, match="deliver must be 'same', 'own' or 'all', not 'each'"):
        server(cf.weighted(cf.weights.uniform()), deliver="each")


def test_a_table_needs_weights():
    def mean_without_weights(message, state, ctx):
        return cf.Mixed(jax.tree.map(lambda a: a.mean(0)[None], message), jnp.ones(1)), state

    mixer = server(cf.Rule(lambda message: (), mean_without_weights), x=table())
    message = {"x": jnp.ones((3, 2))}
    _, state = mixer.init({"x": jnp.zeros(2)}, message)
    with pytest.raises(ValueError, match="needs a rule with weights"):
        mixer.update(message, state, context([True] * 3))
