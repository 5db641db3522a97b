"""The columns of the table that silos came from, and which features each became."""

from confrere.data.silos import Silos


def columns_of(silos: Silos) -> dict[str, list[int]]:
    """The columns of the table, if there was one, with the places of their features; else every feature."""
    names = silos.feature_names
    if silos.encoding is None:
        return {name: [j] for j, name in enumerate(names)}
    return {c.name: [names.index(f) for f in c.features if f in names] for c in silos.encoding.columns if c.features}
