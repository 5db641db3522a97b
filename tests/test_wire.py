"""A whole answer over a recording transport: hospitals that share nothing but the bytes on the wire.

Every silo's part of the algorithm runs by itself, on its own rows; messages and inboxes are flattened to bytes, kept,
and rebuilt from those bytes alone. The answer is that of `personalise`, and what was on the wire is what it names.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import confrere as cf
from confrere.algorithms.borrowing import EVIDENCE_ROUNDS
from confrere.answers.trials import FOLDS
from confrere.borrowing.glm import QUICK_COMPILATION
from confrere.borrowing.summary import Summary
from confrere.core import Ctx, blank_message, received, silo_keys
from confrere.program import numbers
from confrere.simulation.inputs import initial_params

USER = 1
SAID = {f"['x'].{name}" for name in Summary._fields} | {"['told']['id']"}


class Wire:
    """Bytes by sender and receiver, and the names of the parts they were."""

    def __init__(self):
        self.sent: dict[tuple[str, str], list[bytes]] = {}
        self.parts: set[str] = set()

    def carry(self, sender: str, receiver: str, tree):
        """What the receiver gets: rebuilt from bytes."""
        leaves, treedef = jax.tree.flatten_with_path(tree)
        if receiver == "server":
            self.parts |= {jax.tree_util.keystr(path) for path, _ in leaves}
        texts = [np.asarray(leaf).tobytes() for _, leaf in leaves]
        self.sent.setdefault((sender, receiver), []).extend(texts)
        rebuilt = [
            jnp.asarray(np.frombuffer(text, leaf.dtype).reshape(leaf.shape))
            for text, (_, leaf) in zip(texts, leaves, strict=True)
        ]
        return jax.tree.unflatten(treedef, rebuilt)

    def bytes_from(self, sender: str) -> int:
        return sum(len(text) for (who, _), texts in self.sent.items() if who == sender for text in texts)

    def bytes_to(self, receiver: str) -> int:
        return sum(len(text) for (_, who), texts in self.sent.items() if who == receiver for text in texts)

    def numbers_from(self, sender: str) -> np.ndarray:
        texts = [text for (who, _), texts in self.sent.items() if who == sender for text in texts]
        return np.frombuffer(b"".join(texts), np.float32)


def over_the_wire(recipe, silos, model, rounds, wire):
    """The user's personal model, every silo apart."""
    names, block, key = silos.names, jax.tree.map(jnp.asarray, silos.block("train")), jax.random.key(0)
    algorithm = recipe.bound.on(model, **numbers(recipe.hyper))
    client, mixer = algorithm.client, algorithm.mixer
    own = [jax.tree.map(lambda a, i=i: a[i], block) for i in range(len(names))]
    shared, private = client.init(initial_params(model, silos, key))
    blank = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), blank_message(client, shared, private, own[0]))
    stack = lambda trees: jax.tree.map(lambda *a: jnp.stack(a), *trees)  # noqa: E731
    inbox, state = mixer.init(shared, stack([blank] * len(names)))
    kept = [private] * len(names)
    compiled = functools.partial(jax.jit, compiler_options=QUICK_COMPILATION)
    update, listens = compiled(client.update), mixer.listener is not None

    def heard_at(i):
        return wire.carry("server", names[i], received(mixer, inbox, i))

    for number in range(1, rounds + 1):
        at_server, keys = silo_keys(key, jnp.int32(number), block.id)
        messages = []
        for i, name in enumerate(names):
            if listens and i == USER:  # sends nothing
                messages.append(blank)
                continue
            ctx = Ctx(jnp.int32(number), jnp.bool_(True), own[i].size, jnp.int32(0), keys[i])
            message, kept[i] = update(heard_at(i), kept[i], own[i], ctx)
            messages.append(wire.carry(name, "server", message))
        active = jnp.arange(len(names)) != (USER if listens else -1)
        ctx = Ctx(jnp.int32(number), active, block.size, jnp.zeros(len(names), jnp.int32), at_server)
        inbox, state, _ = mixer.update(stack(messages), state, ctx)
    return compiled(client.personal)(heard_at(USER), kept[USER], own[USER])


def small_silos(sizes=(40, 60, 50)):
    """Clinics with two amounts each."""
    rng = np.random.default_rng(0)
    tables = []
    for rows in sizes:
        X = rng.normal(size=(rows, 2))
        tables.append((X, (X.sum(axis=1) + rng.logistic(size=rows) > 0).astype(int)))
    return cf.Silos.from_arrays(tables, names=[*"abcd"][: len(sizes)], feature_names=["age", "dose"])


def no_row_is_told(silos, wire, amounts, by_chance=0):
    """Of no row, more than `by_chance` amounts are among the numbers that its silo sent."""
    columns = [silos.feature_names.index(name) for name in amounts]
    for i, name in enumerate(silos.names):
        rows = np.float32(silos[i].X[:, columns])
        there = (rows != 0) & np.isin(rows, wire.numbers_from(name))  # zero is a value that is missing
        assert there.sum(axis=1).max() <= by_chance


def check(silos, amounts, by_chance, wire=None):
    """The answer over the wire is that of `personalise`, and what was on the wire is what it names."""
    wire, model = wire or Wire(), cf.models.logistic()
    params = over_the_wire(cf.evidence(USER), silos, model, EVIDENCE_ROUNDS, wire)
    answer = cf.personalise(silos, USER)
    X = np.concatenate([silo.X for silo in silos])
    scores = np.asarray(model.apply(params, jnp.asarray(X, jnp.float32)))
    np.testing.assert_allclose(jax.nn.softmax(scores)[:, 1], answer.model.predict_proba(X)[:, 1], atol=1e-3)

    assert wire.parts == SAID
    assert wire.bytes_from(silos.names[USER]) == 0
    named = {entry.silo: entry.count for entry in answer.shared if "curvature" in entry.what}
    assert set(named) == set(silos.names) - {silos.names[USER]}
    for i, name in enumerate(silos.names):
        if i != USER:
            assert wire.bytes_from(name) == 4 * named[name]
    no_row_is_told(silos, wire, amounts, by_chance)
    return answer


def test_what_leaves_a_clinic_is_what_the_answer_names():
    wire = Wire()
    answer = check(small_silos((40, 60, 50, 3)), ["age", "dose"], by_chance=0, wire=wire)
    assert not wire.numbers_from("d")[wire.numbers_from("d") > 1e-30].size  # but for its number, which is no float
    assert answer.silent == ("d",)
    assert "d has too few rows to be heard: its messages were empty." in answer.reason
    assert [entry.silo for entry in answer.shared if entry.what.startswith("zeros in place of")] == ["d"]


ASKED = {
    "weight_erosion": (cf.weight_erosion, {"user": USER}, {"lr": [0.1, 0.3], "p_d": [0.01], "p_s": [0.2]}),
    "fedavg": (cf.fedavg, {}, {"lr": [0.1, 0.3]}),
    "fine_tuned": (cf.fine_tuned, {}, {"lr": [0.1, 0.3]}),
    "ditto": (cf.ditto, {}, {"lr": [0.1], "pull": [0.1, 1.0]}),
}
LOGISTIC, NETWORK = cf.models.logistic(), cf.models.mlp(hidden=(4,))


@pytest.mark.parametrize(
    ("name", "model"),
    [
        pytest.param("weight_erosion", NETWORK, id="weight_erosion-mlp"),
        *(
            pytest.param(name, model, marks=pytest.mark.slow, id=f"{name}-{model.name}")
            for name in ASKED
            for model in (LOGISTIC, NETWORK)
            if (name, model) != ("weight_erosion", NETWORK)
        ),
    ],
)
def test_what_leaves_a_clinic_in_a_named_algorithm_is_what_the_answer_names(name, model):
    silos, rounds, wire = small_silos(), 3, Wire()
    make, whose, grid = ASKED[name]
    answer = cf.personalise(silos, USER, make, model, rounds=rounds, grid=grid)
    recipe = make(**whose, **{number: values[0] for number, values in grid.items()})
    params = over_the_wire(recipe, silos, model, rounds, wire)
    simulated = cf.simulate(recipe, model, silos, rounds, metrics=()).personal(USER)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), params, simulated)

    told = {entry.silo: entry for entry in answer.shared}
    assert len(told) == len(answer.shared)
    runs = 2 * FOLDS + 1  # two sets of numbers, and the better one again on all rows
    assert {name: entry.count for name, entry in told.items()} == {
        name: runs * wire.bytes_from(name) // 4 for name in silos.names
    }
    assert all(f"{rounds} rounds of {name}, run {runs} times" in entry.what for entry in answer.shared)
    no_row_is_told(silos, wire, ["age", "dose"])


def test_each_silo_receives_the_common_model_and_its_own_correction_alone():
    silos, rounds, wire = small_silos(), 4, Wire()
    recipe = cf.waffle(USER, rounds=rounds, lr=0.3, batch=None, steps=3)
    params = over_the_wire(recipe, silos, LOGISTIC, rounds, wire)
    history = cf.simulate(recipe, LOGISTIC, silos, rounds, metrics=())
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), params, history.personal(USER))
    asked = {name: rounds + (name == silos.names[USER]) for name in silos.names}  # once more for its personal model
    for i, name in enumerate(silos.names):
        assert wire.bytes_from(name) == history.bytes_up[:, i].sum()
        assert wire.bytes_to(name) == history.bytes_down[0, i] * asked[name]
    corrections = [wire.sent["server", name][5 * 2 : 5 * 3][:2] for name in silos.names]  # of round 3
    assert len({b"".join(texts) for texts in corrections}) == len(silos.names)


@pytest.mark.slow
def test_what_leaves_a_hospital_is_what_the_answer_names(shared_data):
    hospitals = cf.data.heart_disease()
    amounts = ("age", "trestbps", "chol", "thalach", "oldpeak")
    answer = check(hospitals, amounts, by_chance=1)  # values of few digits may agree with a sum
    sent = answer.history.bytes_up.sum(axis=0)
    named = {entry.silo: entry.count for entry in answer.shared if "curvature" in entry.what}
    for i, name in enumerate(hospitals.names):
        assert sent[i] == 4 * named.get(name, 0)
