"""Layers that stay in the silo: FedPer, FedRep and FedBN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import confrere as cf
from confrere import layers
from confrere.program import byte_size
from tests.helpers import NORMALISED, two_class_silos

LOGISTIC, NETWORK = cf.models.logistic(), cf.models.mlp((3,))
PARAMS = {"layer0": {"w": 1, "b": 2}, "layer2": {"w": 3, "norm1": {"gain": 4}}, "layer10": {"w": 5, "b": 6}}
SILOS = two_class_silos((12, 9, 6))


def run(recipe, model=NETWORK, silos=SILOS, rounds=3, **how):
    return cf.simulate(recipe, model, silos, rounds, seed=3, metrics=(), record=(), **how)


def close(one, two, atol=1e-6):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=atol, rtol=0), one, two)


def chosen(filter, params=PARAMS):
    return sorted(jax.tree.leaves(layers.split(params, filter)[0]))


def test_layers_are_chosen_by_name():
    assert chosen(layers.layers("head")) == [5, 6]
    assert chosen(layers.layers("layer0")) == [1, 2]
    assert chosen(layers.layers(("layer2", "b"))) == [2, 3, 4, 6]
    assert chosen(layers.norms()) == [4]
    assert chosen(layers.layers("head"), {"head": {"w": 1}, "layer9": {"w": 2}}) == [1]
    assert chosen(layers.layers("head"), {"w": 1, "b": 2}) == [1, 2]
    assert chosen(layers.layers("head"), [{"w": 1}, {"w": 2}]) == [2]


def test_a_split_model_can_be_put_together_again():
    for filter in (layers.layers("head"), layers.layers(("b",)), layers.norms()):
        assert layers.merge(*layers.split(PARAMS, filter)) == PARAMS


def test_names_that_the_model_has_not_are_refused_with_those_that_it_has():
    with pytest.raises(ValueError, match="no layer named layer7; it has b, layer0, layer1, w"):
        run(cf.fedper(lr=0.1, keep=("layer0", "layer7")))
    with pytest.raises(ValueError, match=r"no normalisation layer .* it has layer0, layer1"):
        run(cf.fedbn(lr=0.1))
    with pytest.raises(ValueError, match=r"no normalisation layer .* it has a single layer"):
        run(cf.fedbn(lr=0.1), LOGISTIC)


@pytest.mark.parametrize("keep", [(), 3, ["layer1", 2], ""])
def test_what_is_no_name_is_refused(keep):
    with pytest.raises(ValueError, match=r"keep must be 'head' or the names of layers, such as \('layer1',\), not"):
        cf.fedper(lr=0.1, keep=keep)


@pytest.mark.parametrize("make", [cf.fedper, cf.fedrep])
def test_the_head_of_a_linear_model_is_all_of_it_and_keeping_all_is_refused(make):
    with pytest.raises(ValueError, match=r"the whole model is kept.*that is training alone"):
        run(make(lr=0.1), LOGISTIC)


KEEPING = {
    "fedper-head": (cf.fedper(lr=0.2, batch=4), NETWORK, ("layer1",)),
    "fedrep": (cf.fedrep(lr=0.2, batch=4), NETWORK, ("layer1",)),
    "fedbn": (cf.fedbn(lr=0.2, batch=4), NORMALISED, ("norm",)),
    "fedper-intercept": (cf.fedper(lr=0.2, batch=4, keep=("b",)), LOGISTIC, ("b",)),
}


@pytest.mark.parametrize("name", KEEPING)
def test_kept_layers_differ_between_silos_are_never_shared_and_save_their_bytes(name):
    recipe, model, kept = KEEPING[name]
    history, everything = run(recipe, model), run(cf.fedavg(lr=0.2, batch=4), model)
    bytes_kept = byte_size([history.personal(0)[layer] for layer in kept])
    np.testing.assert_array_equal(everything.bytes_up - history.bytes_up, bytes_kept)
    np.testing.assert_array_equal(everything.bytes_down - history.bytes_down, bytes_kept)
    for layer, params in history.models.items():
        spread = max(float(np.ptp(a, axis=0).max()) for a in jax.tree.leaves(params))
        assert (spread > 1e-3) == (layer in kept)
    assert byte_size(history.state.inbox.shared) == byte_size(history.personal(0)) - bytes_kept


def by_hand(model, params, lr, decay, rounds, head, first_head):
    """FedPer or FedRep with full batches, silo by silo: `head` names the kept layer; what is frozen does not decay."""
    data = jax.tree.map(jnp.asarray, SILOS.block())
    p, n = np.array(SILOS.sizes()) / sum(SILOS.sizes()), len(SILOS)
    rows = [cf.Batch(data.X[i], data.y[i], jnp.arange(data.y.shape[1]) < data.size[i]) for i in range(n)]
    gradient, body, heads = jax.jit(jax.grad(model.loss)), params, [params[head]] * n

    def step(y, i, names):
        g = gradient(y, rows[i])
        return {k: jax.tree.map(lambda a, b: a - lr * (b + decay * a), y[k], g[k]) if k in names else y[k] for k in y}

    for _ in range(rounds):
        ends = []
        for i in range(n):
            y = {**body, head: heads[i]}
            if first_head:
                y = step(y, i, {head})
                y = step(step(y, i, set(y) - {head}), i, set(y) - {head})
            else:
                y = step(step(y, i, set(y)), i, set(y))
            heads[i] = y[head]
            ends.append(y)
        body = jax.tree.map(lambda *leaves: sum(q * a for q, a in zip(p, leaves, strict=True)), *ends)
    return [{**body, head: own} for own in heads]


@pytest.mark.parametrize("make", [cf.fedper, cf.fedrep])
def test_fedper_and_fedrep_are_their_algorithms_by_hand(x64, make):
    params = NETWORK.init(jax.random.key(0), 3, 2)
    history = run(make(lr=0.3, batch=None, steps=2, weight_decay=0.1), params=params)
    for i, model in enumerate(by_hand(NETWORK, params, 0.3, 0.1, 3, "layer1", make is cf.fedrep)):
        close(history.personal(i), model, 1e-12)


def test_an_absent_silo_has_the_common_layers_of_the_others_and_its_own_as_they_were():
    here = np.array([[True, True, True], [True, True, False]])
    before, after = (run(cf.fedper(lr=0.2, batch=4), rounds=r, active=here[:r]) for r in (1, 2))
    close(after.personal(2)["layer1"], before.personal(2)["layer1"], 0)
    close(after.personal(2)["layer0"], after.personal(0)["layer0"], 0)


def test_keep_refuses_clients_that_share_more_than_a_model():
    def init(params):
        return {"x": params, "c": params}, ()

    client = cf.Client(init, lambda *_: None, lambda *_: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(ValueError, match="only the part x can be kept in parts, but the client has c, x"):
        cf.clients.keep(client, layers.layers("layer1")).init(NETWORK.init(jax.random.key(0), 3, 2))
