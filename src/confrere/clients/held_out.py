"""Rows of a silo's own that are set aside inside the silo, to choose something on them."""

from confrere.core import Block

EVERY = 5  # one row in so many is held out


def hold_out(data: Block, every: int = EVERY, first: bool = False) -> tuple[Block, Block]:
    """The rows to train on and those to choose on, one in `every`; each packed at the front.

    Of rows 0 to 4 with every=5 row 4 is held out or, with `first`, row 0. So a silo of fewer rows chooses on none, or
    with `first` on one at least, be it the only row it has. Taking them at even distances leaves both parts a share of
    each class, also where rows are sorted by it.
    """
    m, place = data.y.shape[0], 0 if first else every - 1
    choosing = [k for k in range(m) if k % every == place]
    training = [k for k in range(m) if k % every != place] or [0]  # a block has one row at least
    held = (data.size + every - 1 - place) // every

    def rows(which: list[int], size) -> Block:
        return data._replace(X=data.X[which, ...], y=data.y[which, ...], size=size)

    return rows(training, data.size - held), rows(choosing, held)
