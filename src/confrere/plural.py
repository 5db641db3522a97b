"""Numbers of things in words."""


def plural(count: int, one: str, several: str | None = None) -> str:
    """A number of things, in the singular if it is one.

    >>> plural(1, "silo"), plural(2, "silo"), plural(2, "quantity", "quantities")
    ('1 silo', '2 silos', '2 quantities')
    """
    return f"{count} {one if count == 1 else several or one + 's'}"
