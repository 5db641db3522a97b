"""Rows of a silo's own that are set aside inside the silo, to choose something on them."""

from confrere.core import Block

EVERY = 5  # one row in so many is held out


def hold_out(data: Block) -> tuple[Block, Block]:
    """The rows to train on, and every fifth row, to choose on: of fewer than five rows, none.

    Taking them at even distances leaves both parts a share of each class, also where rows are sorted by it.
    """
    m, held = data.y.shape[0], data.size // EVERY
    choosing = [k for k in range(m) if k % EVERY == EVERY - 1]
    training = [k for k in range(m) if k % EVERY != EVERY - 1]

    def rows(which: list[int], size) -> Block:
        return data._replace(X=data.X[which, ...], y=data.y[which, ...], size=size)

    return rows(training, data.size - held), rows(choosing, held)
