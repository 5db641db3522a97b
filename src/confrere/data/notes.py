"""What people are told about their data: a warning category of its own, and one place that gives warnings."""

import warnings
from collections.abc import Iterable


class DataWarning(UserWarning):
    """Something about a table that is worth a look: rows or columns left out, or a column that knows too much.

    >>> import warnings
    >>> from confrere.data import DataWarning
    >>> warnings.simplefilter("error", DataWarning)  # to be strict: what is only warned about becomes an error
    >>> warnings.simplefilter("default", DataWarning)
    """


def tell(texts: Iterable[str], depth: int) -> None:
    """Give every text as a warning, pointing to the line `depth` calls up."""
    for text in texts:
        warnings.warn(text, DataWarning, stacklevel=depth + 1)
