"""Inside a site: from the inbox of a round to its message. The rows never leave this object."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from confrere.core import Block, Inbox, Tree
from confrere.deploy.agreed import Agreed, client_step, personal_model
from confrere.deploy.store import Kept, Store
from confrere.deploy.wire import Header, Refused, byte_limit, check_finite, fill, pack, unpack

Measure = Callable[[Tree], Mapping[str, float]]


def nothing_measured(_: Tree) -> Mapping[str, float]:
    """No metric leaves."""
    return {}


class Site:
    """One silo of a run: it answers the hub's requests, and keeps its private state on its own disk.

    `measure` turns its personal model into the metrics that may leave. Requests are answered one at a time: after a
    deadline that was missed, the next one may come while the last is still worked on.
    """

    def __init__(self, name: str, agreed: Agreed, own: Block, store: Store, measure: Measure = nothing_measured):
        self.name, self.agreed, self.store, self.measure = name, agreed, store, measure
        self.place = agreed.names.index(name)
        self.own = jax.tree.map(jnp.asarray, own)
        self.before = agreed.start().private  # what every site is before round 1
        self.spec = agreed.inbox_spec(self.place)
        self.parcel = agreed.parcel()
        self.sequence = store.last_sequence()
        self.model: Tree = None  # the personal model, once the run is over
        self.lock = threading.Lock()

    def answer(self, request: bytes) -> bytes:
        """The reply to a request of a round, or to the last one, that brings the finished model."""
        with self.lock:
            header, arrays = unpack(request, byte_limit(self.spec))
            self.check(header)
            inbox = self.read_inbox(arrays)
            counted = self.counted(header)
            self.sequence = header.sequence
            if header.kind == "final":
                return self.finish(header, inbox, counted)
            return self.step(header, inbox, counted)

    def check(self, header: Header) -> None:
        """Refuse what is not for this site, this study and this run, and what has been answered before."""
        if header.silo != self.name:
            raise Refused("forged", f"this is site {self.name!r}, but the request is for {header.silo!r}")
        if header.study != self.store.study:
            raise Refused("wrong study", f"this is study {self.store.study[:12]}, not {header.study[:12]}")
        if header.run != self.store.run:
            raise Refused("wrong run", f"this is run {self.store.run}, not {header.run}")
        if header.sequence <= self.sequence:
            raise Refused("replayed", f"request {header.sequence} comes after request {self.sequence}")
        if header.kind not in ("round", "final"):
            raise Refused("not expected", f"there is no request of the kind {header.kind!r}")

    def read_inbox(self, arrays: Mapping[str, np.ndarray]) -> Inbox:
        """The inbox, as it was sent to this site."""
        check_finite(arrays)
        return self.agreed.completed(jax.tree.map(jnp.asarray, fill(arrays, self.spec)), self.place)

    def counted(self, header: Header) -> Kept:
        """The state after the last round of this site that the hub counted: the one to go on from."""
        round = header.facts.get("counted")
        if not isinstance(round, int) or isinstance(round, bool) or round < 0:
            raise Refused("unreadable", f"the request does not say which round counted last, but {round!r}")
        if round >= header.round:
            raise Refused("wrong round", f"round {header.round} cannot come after round {round}")
        return Kept(0, 0, self.before) if round == 0 else self.store.load(round, self.before)

    def step(self, header: Header, inbox: Inbox, counted: Kept) -> bytes:
        """One round: `client.update`, the new private state to the disk, and then the message."""
        agreed = self.agreed
        message, private = client_step(
            agreed.static, agreed.hyper, inbox, counted.private, self.own, jnp.int32(header.round), agreed.key
        )
        facts = {}
        if header.facts.get("measure"):
            facts["metrics"] = dict(self.measure(self.personal(inbox, counted)))
        self.store.save(Kept(header.round, header.sequence, private), needed=counted.round)
        return pack(self.reply(header, facts), self.parcel.packed(message))

    def finish(self, header: Header, inbox: Inbox, counted: Kept) -> bytes:
        """The run is over: the personal model stays here, the metrics that may leave do."""
        self.model = jax.tree.map(np.asarray, self.personal(inbox, counted))
        return pack(self.reply(header, {"metrics": dict(self.measure(self.model))}))

    def personal(self, inbox: Inbox, counted: Kept) -> Tree:
        """The personal model that belongs to an inbox."""
        return personal_model(self.agreed.static, self.agreed.hyper, inbox, counted.private, self.own)

    def reply(self, header: Header, facts: Mapping[str, Any]) -> Header:
        """The header of the reply to a request."""
        return Header(header.kind, header.study, header.run, header.round, self.name, header.sequence, facts)


def own_block(X: np.ndarray, y: np.ndarray, place: int, classes: bool) -> Block:
    """The training rows of a site as its slice of the simulator's block: as many rows as it has, one at least."""
    precision = np.dtype(jnp.result_type(float))
    rows = max(1, len(y))
    block_X = np.zeros((rows, *X.shape[1:]), precision)
    block_y = np.zeros(rows, np.int32 if classes else precision)
    block_X[: len(y)], block_y[: len(y)] = X, y
    return Block(*map(jnp.asarray, (block_X, block_y, np.int32(len(y)), np.int32(place))))
