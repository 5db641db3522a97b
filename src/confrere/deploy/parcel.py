"""A site's message on its way: as it is, or its part `x` in the few bytes of a compression.

What a compressed message holds was rounded or cut by the client already (see `confrere.transforms`), in the simulator
too; here it is put into the bytes of its format, and read back to the last bit.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from confrere.core import Tree
from confrere.deploy.wire import Refused, check_finite, fill, named_arrays
from confrere.transforms import Quantised, TopK

PART = "x"  # what is compressed


class Parcel(NamedTuple):
    """How a message of these shapes travels; `format` is None if it does as it is."""

    spec: Tree
    format: TopK | Quantised | None = None

    @property
    def on_the_way(self) -> Tree:
        """The shapes of what travels."""
        if self.format is None:
            return self.spec
        size = self.format.size(self.spec[PART])
        return {**self.spec, PART: jax.ShapeDtypeStruct((size,), np.uint8)}

    def packed(self, message: Tree) -> Tree:
        """What travels of a message."""
        if self.format is None:
            return message
        return {**message, PART: np.frombuffer(self.format.pack(message[PART]), np.uint8)}

    def opened(self, arrays: dict[str, np.ndarray]) -> Tree:
        """The message of which this travelled, if it is one: of the right shapes, all numbers finite."""
        check_finite(arrays)
        found = fill(arrays, self.on_the_way)
        if self.format is None:
            return found
        try:
            part: Any = self.format.unpack(found[PART].tobytes(), self.spec[PART])
        except (IndexError, ValueError) as problem:
            raise Refused("unreadable", f"its part {PART!r} is no message of {self.format}: {problem}") from problem
        message = {**found, PART: part}
        check_finite(named_arrays(message))
        return message
