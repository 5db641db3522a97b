"""A study is named by its hash, or by enough of its beginning: the one rule for all commands."""

from collections.abc import Collection

ENOUGH = 6  # characters of a hash that name a study: fewer may be a slip, as an unset variable is


def the_one(beginning: str, hashes: Collection[str], where: str) -> str:
    """The one hash that begins so; `where` says whose studies these are.

    >>> the_one("3f2a9c", ["3f2a9c01", "77aa0000"], "at the hub")
    '3f2a9c01'
    >>> the_one("3f2a9c01ff", ["3f2a9c01", "77aa0000"], "at the hub")
    Traceback (most recent call last):
    FileNotFoundError: no study at the hub begins with '3f2a9c01ff'; there is 3f2a9c01, 77aa0000
    """
    if len(beginning) < ENOUGH:
        raise ValueError(f"name a study by {ENOUGH} characters of its hash at least, not by {beginning!r}")
    found = sorted({hash for hash in hashes if hash.startswith(beginning)})
    if not found:
        raise FileNotFoundError(f"no study {where} begins with {beginning!r}; there is {listed(hashes)}")
    if len(found) > 1:
        raise ValueError(f"{len(found)} studies {where} begin with {beginning!r}: {listed(found)}; say more of it")
    return found[0]


def listed(hashes: Collection[str], most: int = 5) -> str:
    """Hashes in a sentence, cut short, but long enough to tell them apart."""
    every = sorted(set(hashes))
    length = next((n for n in range(12, 65, 4) if len({hash[:n] for hash in every}) == len(every)), 64)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return (", ".join(hash[:length] for hash in every[:most]) or "none") + more
