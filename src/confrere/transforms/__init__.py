"""Transforms: wrappers of a client that change what it sends, whatever the algorithm.

    after          a client whose messages go through an optax transformation, its state private, its key the silo's
    top_k          only the largest numbers of a message are sent, the rest is caught up later
    quantised      numbers of a message are rounded to a few bits, at random but right on average
    attacked       a recipe with silos that do not train, but say something else: to be simulated

`recipe.compressed(top_k(0.1))` is the recipe whose messages are compressed.
"""

from confrere.transforms.after import after
from confrere.transforms.attack import adversary, attack, attacked, echo, noise
from confrere.transforms.compress import Compression, compression_named, quantised, top_k
from confrere.transforms.wire import Quantised, TopK

__all__ = [
    "Compression",
    "Quantised",
    "TopK",
    "adversary",
    "after",
    "attack",
    "attacked",
    "compression_named",
    "echo",
    "noise",
    "quantised",
    "top_k",
]
