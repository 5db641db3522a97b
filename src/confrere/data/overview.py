"""An overview of silos: what the intake understood of each, without giving anybody away.

Of a silo that is not one's own only counts and statistics over a minimum number of rows are told, and of a silo with
fewer rows nothing but the names of its columns. A count below the minimum is hidden, and so are the zeros and the
smallest of the others beside it: else it could be found by subtraction, or by counting who is left. Hidden levels are
not even named, nor is it said how many they are; nor are classes and features of levels of which no silo has enough
rows but one's own. Where a number has two or three values, its mean and spread would tell how many rows have each: they
are hidden if one of these is rare. Of whole numbers more can be told apart (of counts that are 0 but for a few rows,
each of these), so that up to twelve values are treated so, and all means and spreads are rounded.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from confrere.data.intake.encoding import Category
from confrere.data.intake.tables import Tables
from confrere.data.intake.tidy import Table, nameless
from confrere.data.quirks import quirks
from confrere.data.silo import Silo
from confrere.data.silos import Silos

LEAST = 5
MOST_LEVELS = 12
SOLVABLE = 3  # the counts of so many values follow from the number of rows, the mean and the spread
SOLVABLE_WHOLE = 12  # the same where values can be guessed, as they are whole numbers
HIDDEN = "hidden levels"
ZEROS_AND_ONES = "zeros and ones"
HOW_SCALED = {"shared": "scaled alike", "silo": "scaled by each silo", None: "unscaled"}
DIGITS = 3  # of a spread; a mean has as many places


def overview(silos: Silos, own: str | None = None, least: int = LEAST) -> dict[str, Any]:
    """What there is to say about every silo, as plain values; hidden numbers are None.

    >>> import polars as pl, confrere as cf
    >>> table = pl.DataFrame({"age": range(40, 60), "ill": [0, 1] * 8 + [0] * 4, "clinic": ["a"] * 8 + ["b"] * 12})
    >>> seen = overview(cf.Silos.from_table(table, label="ill", silo="clinic"), own="b")
    >>> seen["silos"]["a"]["label"], seen["silos"]["b"]["label"]
    ({'0': None, '1': None}, {'0': 8, '1': 4})
    """
    if own is not None:
        silos.index(own)
    tables = {t.name: t for t in silos.source.tables} if isinstance(silos.source, Tables) else {}
    rare = rare_classes(silos, own, least)
    made = features_of(silos, tables, own, least)
    seen: dict[str, Any] = {
        "origin": silos.origin, "kind": silos.kind,
        "label": silos.encoding.label if silos.encoding else "label",
        "classes": None if silos.label_names is None else [name for name in silos.label_names if name not in rare],
        "features": [name for features in made.values() for name in features], "made": how_made(silos, made),
        "least": least, "own": own,
        "silos": {
            silo.name: of_silo(silo, silos, tables.get(silo.name), 0 if silo.name == own else least, rare)
            if silo.name == own or len(silo.y) >= least
            else of_tiny_silo(silo, silos, tables.get(silo.name), rare)
            for silo in silos.silos
        },
        "shared": len(silos.shared), "notes": list(silos.notes),
    }  # fmt: skip
    return seen | {"quirks": quirks(seen)}


def features_of(silos: Silos, tables: Mapping[str, Table], own: str | None, least: int) -> dict[str, list[str]]:
    """The features by column; those of levels that only few rows of other silos have are one, without their names."""
    if silos.encoding is None:
        return {name: [name] for name in silos.feature_names}
    found: dict[str, list[str]] = {}
    for column in silos.encoding.columns:
        known = common_levels(column.name, tables, own, least)
        rare = [f"{column.name}={level}" for level in getattr(column, "levels", ()) if level not in known]
        shown = [name for name in column.features if name not in rare]
        hidden = len(shown) < len(column.features)  # at the end, as their place would tell of their letters
        found[column.name] = [*shown, f"{column.name}={HIDDEN}"] if hidden else shown
    return found


def common_levels(name: str, tables: Mapping[str, Table], own: str | None, least: int) -> set[str]:
    """Levels of a column that enough rows of some silo have; of one's own silo all."""
    found: set[str] = set()
    for silo, table in tables.items():
        if table.kinds.get(name) == "categorical":
            levels = nameless(table.columns[name]).drop_nulls().value_counts().iter_rows()
            found |= {level for level, count in levels if silo == own or count >= least}
    return found


def how_made(silos: Silos, features: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Any]]:
    """How every column was made interoperable, and the features that it became."""
    if silos.encoding is None:
        return {}
    scale = silos.source.options.scale if isinstance(silos.source, Tables) else "shared"
    return {
        column.name: {
            "how": ZEROS_AND_ONES if isinstance(column, Category) or column.constant else HOW_SCALED[scale],
            "features": list(features[column.name]),
        }
        for column in silos.encoding.columns
        if features[column.name]
    }


def of_silo(silo: Silo, silos: Silos, table: Table | None, least: int, rare: Collection[str]) -> dict[str, Any]:
    """One silo with enough rows: how many they are, its labels and its columns."""
    found: dict[str, Any] = {"rows": len(silo.y), "label": without_rare(of_label(silo.y, silos, least), rare)}
    if table is None:
        found["columns"] = {name: of_numbers(silo.X[:, j], least) for j, name in enumerate(silos.feature_names)}
        return found | {"absent": []}
    absent = silos.encoding.absent.get(silo.name, ()) if silos.encoding else ()
    columns = {name: of_column(table, name, least) for name in table.columns.columns if name not in absent}
    return found | {"columns": columns, "absent": list(absent)}


def of_tiny_silo(silo: Silo, silos: Silos, table: Table | None, rare: Collection[str]) -> dict[str, Any]:
    """A silo with so few rows that all is hidden: the same whatever they hold."""
    agreed = silos.source.plan.columns if isinstance(silos.source, Tables) else {}
    absent = silos.encoding.absent.get(silo.name, ()) if silos.encoding else ()
    names = silos.feature_names if table is None else [n for n in table.columns.columns if n not in absent]
    kinds = dict.fromkeys(names, "numeric") if table is None else {n: agreed.get(n, "left out") for n in names}
    classes = classes_of(silos)
    return {
        "rows": None,
        "label": without_rare(dict.fromkeys(("mean", "std") if classes is None else map(str, classes)), rare),
        "columns": {n: {"kind": kind, "known": None, "missing": None, "few": "rows"} for n, kind in kinds.items()},
        "absent": list(absent),
    }


def classes_of(silos: Silos) -> Sequence[Any] | None:
    """The names of the classes, or their numbers; none if the label is an amount."""
    if silos.label_names is not None:
        return silos.label_names
    if any(silo.y.dtype.kind not in "biu" for silo in silos.silos):
        return None
    values = np.unique(np.concatenate([silo.y for silo in silos.silos]))
    return values.tolist() if len(values) <= MOST_LEVELS else None


def of_label(y: np.ndarray, silos: Silos, least: int) -> dict[str, Any]:
    """How many rows of each class; of an amount, its mean and spread."""
    classes = classes_of(silos)
    return of_numbers(y, least) if classes is None else told(class_counts(y, silos, classes), least)


def class_counts(y: np.ndarray, silos: Silos, classes: Sequence[Any]) -> dict[str, int]:
    """How many rows of each class, by its name."""
    numbers = range(len(classes)) if silos.label_names is not None else classes
    return {str(name): int((y == number).sum()) for name, number in zip(classes, numbers, strict=True)}


def rare_classes(silos: Silos, own: str | None, least: int) -> set[str]:
    """Classes that are not named: the silo that is one's own has none, and no other has enough rows of them."""
    classes = classes_of(silos) or ()
    counts = {silo.name: class_counts(silo.y, silos, classes) for silo in silos.silos}
    return {
        str(name)
        for name in classes
        if not any(count[str(name)] >= (1 if silo == own else least) for silo, count in counts.items())
    }


def without_rare(label: Mapping[str, Any], rare: Collection[str]) -> dict[str, Any]:
    """Counts by class; of those that are not named, that there are some hidden ones.

    >>> (
    ...     without_rare({"flu": None, "plague": None, "pox": 0}, {"plague", "pox"}),
    ...     without_rare({"plague": 0}, {"plague"}),
    ... )
    ({'flu': None, 'other classes': None}, {})
    """
    shown = {name: count for name, count in label.items() if name not in rare}
    hidden = any(label[name] is None for name in rare if name in label)
    return {**shown, "other classes": None} if hidden else shown


def of_column(table: Table, name: str, least: int) -> dict[str, Any]:
    """One column of a silo's table."""
    column = nameless(table.columns[name])
    if table.kinds.get(name) == "numeric":
        return of_numbers(column.to_numpy(), least)
    gaps = gaps_of(len(column) - column.null_count(), column.null_count(), least)
    if table.kinds.get(name) != "categorical":
        return {"kind": table.kinds.get(name, "text"), **gaps}
    levels = dict(column.drop_nulls().value_counts(sort=True).iter_rows())
    if len(levels) > MOST_LEVELS:
        return {"kind": "categorical", **gaps, "levels": sum(count >= least for count in levels.values())}
    shown = named(levels, least)
    if gaps["missing"] is None:  # it would follow from the counts of all levels
        shown = dict.fromkeys(shown)
    return {"kind": "categorical", **gaps, "levels": shown}


def of_numbers(values: np.ndarray, least: int) -> dict[str, Any]:
    """Mean and standard deviation of known values, if there are enough and they tell of no small group.

    >>> of_numbers(np.array([0.0] * 237 + [1.0, 2.0, 3.0]), 5)
    {'kind': 'numeric', 'known': 240, 'missing': 0, 'mean': None, 'std': None}
    """
    known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    found: dict[str, Any] = {"kind": "numeric", **gaps_of(len(known), len(values) - len(known), least)}
    groups = np.unique(known, return_counts=True)[1]
    solvable = SOLVABLE_WHOLE if (known == np.floor(known)).all() else SOLVABLE
    if len(known) < max(least, 1) or (len(groups) <= solvable and groups.min() < least):
        return found | {"mean": None, "std": None}
    mean, std = float(known.mean()), float(known.std())
    return found | ({"mean": mean, "std": std} if least == 0 else rounded(mean, std))


def rounded(mean: float, std: float) -> dict[str, float]:
    """A mean and a spread with no more digits than say something about a group.

    >>> rounded(54.36639344, 9.0487132), rounded(1e6 / 7, 0.0)
    ({'mean': 54.37, 'std': 9.05}, {'mean': 142857.142857, 'std': 0.0})
    """
    places = DIGITS - 1 - int(np.floor(np.log10(std))) if std > 0 else 6
    return {"mean": round(mean, places), "std": round(std, places)}


def gaps_of(known: int, missing: int, least: int) -> dict[str, int | str | None]:
    """How many values are known and how many are missing; where that is hidden, which of them are few.

    >>> gaps_of(40, 0, 5), gaps_of(3, 40, 5)
    ({'known': 40, 'missing': 0}, {'known': None, 'missing': None, 'few': 'known'})
    """
    found = told({"known": known, "missing": missing}, least)
    if None not in found.values():
        return dict(found)
    return {**found, "few": "known" if 0 < known < least else "missing"}


def named(levels: Mapping[str, int], least: int) -> dict[str, int | None]:
    """Counts by level; what is hidden is not named, and together so many rows that it tells of no small group.

    >>> named({"white": 40, "asian": 9, "samoan": 1, "maori": 2}, least=5)
    {'white': 40, 'other levels': None}
    """
    counts = told(levels, least)
    shown: dict[str, int | None] = {level: count for level, count in counts.items() if count is not None}
    return shown if len(shown) == len(counts) else {**shown, "other levels": None}


def told(counts: Mapping[str, int], least: int) -> dict[str, int | None]:
    """Counts of which none gives away a small group, also not by subtraction from the sum.

    Zeros are hidden beside a small count: if five classes are hidden, of five rows, and none is 0, each has one row. So
    is the smallest large one, which any of the hidden ones may then be.

    >>> told({"a": 40, "b": 3, "c": 60, "d": 0}, least=5)
    {'a': None, 'b': None, 'c': 60, 'd': None}
    """
    if not any(0 < count < least for count in counts.values()):
        return dict(counts)
    smallest_large = min((count for count in counts.values() if count >= least), default=least)
    return {name: None if count <= smallest_large else count for name, count in counts.items()}
