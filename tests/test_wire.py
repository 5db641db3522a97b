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
from confrere.algorithms import EVIDENCE_ROUNDS
from confrere.borrowing.glm import QUICK_COMPILATION
from confrere.borrowing.summary import Summary
from confrere.core import Ctx, Inbox, blank_message, heard_by
from confrere.simulate import initial_params

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

    def numbers_from(self, sender: str) -> np.ndarray:
        texts = [text for (who, _), texts in self.sent.items() if who == sender for text in texts]
        return np.frombuffer(b"".join(texts), np.float32)


def over_the_wire(silos, model, wire):
    """The user's personal model, every silo apart."""
    names, block = silos.names, jax.tree.map(jnp.asarray, silos.block("train"))
    recipe = cf.evidence(USER)
    client, mixer = recipe.bound.on(model, user=USER)[-2:]
    own = [jax.tree.map(lambda a, i=i: a[i], block) for i in range(len(names))]
    shared, private = client.init(initial_params(model, silos, jax.random.key(0)))
    blank = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), blank_message(client, shared, private, own[0]))
    stack = lambda trees: jax.tree.map(lambda *a: jnp.stack(a), *trees)  # noqa: E731
    inbox, state = mixer.init(shared, stack([blank] * len(names)))
    kept = [private] * len(names)
    compiled = functools.partial(jax.jit, compiler_options=QUICK_COMPILATION)
    update = compiled(client.update)
    for number in range(1, EVIDENCE_ROUNDS + 1):
        messages = []
        for i, name in enumerate(names):
            if i == USER:  # sends nothing
                messages.append(blank)
                continue
            heard = wire.carry("server", name, Inbox(heard_by(mixer.listener, inbox.shared, i), inbox.mass))
            ctx = Ctx(jnp.int32(number), jnp.bool_(True), own[i].size, jnp.int32(0), jax.random.key(0))
            message, kept[i] = update(heard, kept[i], own[i], ctx)
            messages.append(wire.carry(name, "server", message))
        active = jnp.arange(len(names)) != USER
        ctx = Ctx(jnp.int32(number), active, block.size, jnp.zeros(len(names), jnp.int32), jax.random.key(0))
        inbox, state, _ = mixer.update(stack(messages), state, ctx)
    heard = wire.carry("server", names[USER], Inbox(heard_by(mixer.listener, inbox.shared, USER), inbox.mass))
    return compiled(client.personal)(heard, kept[USER], own[USER])


@pytest.fixture
def hospitals(shared_data):
    return cf.data.heart_disease()


def test_what_leaves_a_hospital_is_what_the_answer_names(hospitals):
    wire, model = Wire(), cf.models.logistic()
    params = over_the_wire(hospitals, model, wire)
    answer = cf.personalise(hospitals, USER)
    X = np.concatenate([silo.X for silo in hospitals])
    scores = np.asarray(model.apply(params, jnp.asarray(X, jnp.float32)))
    np.testing.assert_allclose(jax.nn.softmax(scores)[:, 1], answer.model.predict_proba(X)[:, 1], atol=1e-3)

    assert wire.parts == SAID
    assert wire.bytes_from(hospitals.names[USER]) == 0
    named = {entry.silo: entry.count for entry in answer.shared if "curvature" in entry.what}
    assert set(named) == set(hospitals.names) - {hospitals.names[USER]}
    for i, name in enumerate(hospitals.names):
        if i == USER:
            continue
        assert wire.bytes_from(name) == 4 * named[name] == answer.history.bytes_up[:, i].sum()
        columns = [hospitals.feature_names.index(c) for c in ("age", "trestbps", "chol", "thalach", "oldpeak")]
        amounts = np.float32(hospitals[i].X[:, columns])
        there = (amounts != 0) & np.isin(amounts, wire.numbers_from(name))  # zero is a value that is missing
        assert there.sum(axis=1).max() <= 1  # one of five may agree by chance
