"""Compression of messages, with error feedback: what is not sent now is kept, and sent later.

    p = g + e;    c = C(p);    e <- p - c;    send c

where g is what the silo would send and e, 0 at first, stays in the silo: over rounds, what was sent and what is kept
sum to everything that was to be sent. Seide, Fu, Droppo, Li, Yu: 1-bit stochastic gradient descent (2014); Stich,
Cordonnier, Jaggi: Sparsified SGD with memory (2018), for top-k; Karimireddy, Rebjock, Stich, Jaggi: Error feedback
fixes SignSGD (2019). Levels and rounding: Alistarh, Grubic, Li, Tomioka, Vojnovic: QSGD (2017), scaled by the largest
number instead of the norm.

Where the code goes beyond: some algorithms send the model itself (peers, `multi_task`), and there a remainder that is
added to the next model would count twice. What is compressed is then the change since the last message,

    send C(x - h);    h <- h + C(x - h)

with h at both ends (Richtárik, Sokolov, Fatkhullin: EF21, 2021); the mixer is given h. In the simulation the silo's
wrapper does the receiver's addition, too.

Error feedback needs a C whose error is smaller than the message. That of rounding at random to 2 or 3 bits need not be,
and what is kept then grows to many times a message: it is refused, and rounding to the nearest level, whose error never
is larger than the number, is offered.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from confrere.checks import check_numbers, check_switches
from confrere.core import Client, Tree
from confrere.transforms.after import after
from confrere.transforms.wire import Quantised, Rounding, TopK

FEWEST_AT_RANDOM = 4  # bits with which errors of rounding at random stay smaller than the message
WAYS = "top_k=FRACTION or bits=BITS, as in top_k=0.1 or bits=8"


class Compression(NamedTuple):
    """How messages are compressed: an optax transformation that knows its size on the wire. Equal if it does the same.

    `changes`: what is compressed are changes since the last message, for messages that are models themselves.
    """

    format: TopK | Quantised
    feedback: bool = True
    changes: bool = False

    def __str__(self) -> str:
        return f"{self.format}{'' if self.feedback else ', nothing kept'}"

    def init(self, part: Tree) -> Tree:
        """What is kept, nothing yet; or what the receiver knows, the model that everybody starts from."""
        if self.changes:
            return jax.tree.map(jnp.copy, part)
        return jax.tree.map(jnp.zeros_like, part) if self.feedback else ()

    def update(self, part: Tree, state: Tree, params: Any = None, *, key: Any = None) -> tuple[Tree, Tree]:
        """What the receiver reads of a part, and what is kept."""
        if self.format.whole(part):
            return part, state
        if self.changes:
            change = self.format.squeeze(jax.tree.map(jnp.subtract, part, state), key)
            known = jax.tree.map(jnp.add, state, change)
            return known, known
        if not self.feedback:
            return self.format.squeeze(part, key), state
        whole = jax.tree.map(jnp.add, part, state)
        sent = self.format.squeeze(whole, key)
        return sent, jax.tree.map(jnp.subtract, whole, sent)

    def size(self, part: Tree) -> int:
        """The bytes of a part on the wire, from its shapes."""
        return self.format.size(part)

    def wrap(self, client: Client, models: bool) -> Client:
        """The client that compresses its part `x`; `models`: which is the model itself."""
        return after(client, self._replace(changes=models))


def top_k(fraction: float, feedback: bool = True) -> Compression:
    """Send only the given fraction of a message's numbers, the largest, with their places; at least one.

    With `feedback` the others are kept and added to the next message. A fraction of 1 sends messages as they are.

    >>> import jax.numpy as jnp, confrere as cf
    >>> compression = cf.transforms.top_k(0.25)
    >>> message = {"w": jnp.array([3.0, -4.0, 1.0, 0.5])}
    >>> sent, kept = compression.update(message, compression.init(message))
    >>> sent["w"].tolist(), kept["w"].tolist(), compression.size(message)
    ([0.0, -4.0, 0.0, 0.0], [3.0, 0.0, 1.0, 0.5], 5)
    """
    check_numbers(fraction=fraction)
    check_switches(feedback=feedback)
    return Compression(TopK(float(fraction)), feedback)


def quantised(bits: int, rounding: Rounding = "stochastic", feedback: bool = True) -> Compression:
    """Send every number of a message with so few bits, from 2 to 16, and one scale for every array.

    rounding: "stochastic", up or down at random so that the mean is right, or "nearest". With `feedback` what was
    rounded off is kept and added to the next message; at random that takes 4 bits at least.

    >>> import confrere as cf
    >>> recipe = cf.fedavg(lr=0.1).compressed(cf.transforms.quantised(8))
    >>> recipe.name
    'fedavg (8 bits)'
    """
    format_ = Quantised(bits, rounding)
    check_switches(feedback=feedback)
    if feedback and rounding == "stochastic" and bits < FEWEST_AT_RANDOM:
        raise ValueError(
            f"with {bits} bits, errors of rounding at random may be larger than the message, and pile up: say "
            "rounding='nearest', or feedback=False, or take 4 bits or more"
        )
    return Compression(format_, feedback)


def compression_named(words: str) -> Compression:
    """A compression from the words of the command line and of study.toml.

    >>> str(compression_named("top_k=0.1")), str(compression_named("bits=8"))
    ('top-k 0.1', '8 bits')
    """
    name, _, value = words.partition("=")
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"compress: {words!r} is not understood: say {WAYS}") from None
    if name.strip() == "top_k":
        return top_k(number)
    if name.strip() == "bits" and number == int(number):
        few = number < FEWEST_AT_RANDOM
        return quantised(int(number), "nearest" if few else "stochastic")
    raise ValueError(f"compress: {words!r} is not understood: say {WAYS}")
