"""Loading: the whole way from tables to silos, with all that there is to say about them on the way."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from confrere.checks import WrongField
from confrere.data.intake import messages
from confrere.data.intake.advice import advise, ask
from confrere.data.intake.options import Options, check_name, check_named, did_you_mean
from confrere.data.intake.read import PARQUET, TEXT, NoRows, reading
from confrere.data.intake.survey import Plan, agree, check_kinds, class_names, common_classes, label_levels, survey
from confrere.data.intake.tables import Tables
from confrere.data.intake.tidy import (
    TELLING,
    Raw,
    Table,
    Tidied,
    days,
    hidden_gaps,
    how_many,
    nameless,
    on_command_line,
    text_levels,
    tidy,
    without_columns,
)
from confrere.data.notes import tell
from confrere.data.silo import check_names
from confrere.data.silos import Silos
from confrere.data.source import Kind

OWN_SCALE = (
    "scale='silo': each silo standardises its numbers on its own, so that features mean different things in different "
    "silos; on the four hospitals of data.heart_disease() this costs a model of the other hospitals' rows 4 to 8 "
    "points of accuracy, and a model of all rows 1"
)


def from_table(table: Any, options: Options, silo: str | None, depth: int = 2) -> Silos:
    """Silos from one table, by the values of its column `silo`; None: all rows are one silo."""
    if silo is not None:
        check_name("silo", silo)
    frame, commas = reading(table)
    if frame.height == 0:
        raise ValueError("the table has no rows")
    check_column(frame, options.label, "label")
    origin = Path(table).name if isinstance(table, str) or hasattr(table, "__fspath__") else "table"
    if silo is None:
        return load([Raw("all", frame, np.arange(frame.height), commas)], options, origin, depth=depth + 1)
    check_column(frame, silo, "silo")
    if silo == options.label:
        raise ValueError(f"{silo!r} cannot be both the label and the column of silos")
    return load(by_silo(frame, silo, commas), options, origin, depth=depth + 1)


def check_column(frame: pl.DataFrame, name: str, what: str) -> None:
    """Refuse the name of a column that is not there."""
    if name not in frame.columns:
        raise WrongField(("data", what), f"the table has no {what} column {name!r}{did_you_mean(name, frame.columns)}")


def by_silo(frame: pl.DataFrame, silo: str, commas: tuple[str, ...] = ()) -> list[Raw]:
    """One table per silo, in the order of their names."""
    names = silo_names(nameless(frame[silo]), silo)
    unnamed = (names.is_null() | (names == "")).to_numpy()
    if unnamed.any():
        raise ValueError(
            f"{int(unnamed.sum())} row(s) have no value in the silo column {silo!r}, the first is row "
            f"{int(np.flatnonzero(unnamed)[0])} (counted from 0): whose are they?"
        )
    rest = without_columns(frame, {silo})
    values, place = np.unique(names.to_numpy(), return_inverse=True)
    order = np.argsort(place, kind="stable")
    cuts = np.split(order, np.cumsum(np.bincount(place))[:-1])
    return [Raw(str(name), rest[rows], rows, commas) for name, rows in zip(values, cuts, strict=True)]


def silo_names(column: pl.Series, silo: str) -> pl.Series:
    """The values of the silo column as names; durations, as elsewhere, in days."""
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):
        raise TypeError(f"the silo column {silo!r} holds {column.dtype}, not names or numbers")
    return text_levels((days(column) if column.dtype == pl.Duration else column).cast(pl.String))


def from_folder(folder: "str | PathLike[str]", options: Options, depth: int = 2) -> Silos:
    """Silos from a folder with one file per silo, which is named after its file; hidden files are ignored."""
    place = Path(folder)
    if not place.is_dir():
        raise NotADirectoryError(f"there is no folder {place}")
    files = sorted(file for file in place.iterdir() if file.is_file() and not file.name.startswith((".", "~")))
    tables = [file for file in files if file.suffix.lower() in TEXT | PARQUET]
    if not tables:
        found = f"; there is {', '.join(file.name for file in files[:5])}" if files else ""
        raise ValueError(f"the folder {place} has no file that ends in {', '.join(sorted(TEXT | PARQUET))}{found}")
    others = [file.name for file in files if file not in tables]
    notes = (f"files that are no tables were passed over: {', '.join(others)}",) if others else ()
    check_names(tuple(file.stem for file in tables), len(tables))
    return load(one_each(tables), options, f"folder {place.name}", notes=notes, depth=depth + 1)


def one_each(files: Sequence[Path]) -> list[Raw]:
    """One silo for each file, in the order of their names."""
    return [one_silo(file) for file in sorted(files, key=lambda file: file.stem)]


def one_silo(file: Path) -> Raw:
    """A silo that is a file, named after it."""
    try:
        frame, commas = reading(file)
    except NoRows as problem:
        without = on_command_line("exclude", file.stem)
        raise ValueError(f"{problem}: leave this silo out ({without}), or move the file away") from problem
    return Raw(file.stem, frame, np.arange(frame.height), commas)


def from_frames(
    frames: Mapping[str, pl.DataFrame],
    options: Options,
    origin: str,
    kind: Kind = "real",
    notes: tuple[str, ...] = (),
    depth: int = 2,
) -> Silos:
    """Silos from one polars table per silo."""
    raws = [Raw(name, frames[name], np.arange(frames[name].height)) for name in sorted(frames)]
    return load(raws, options, origin, kind, notes, depth + 1)


def load(
    raws: Sequence[Raw],
    options: Options,
    origin: str,
    kind: Kind = "real",
    notes: tuple[str, ...] = (),
    depth: int = 2,
) -> Silos:
    """Tidy, agree, encode; then say what there is to say."""
    check_named(options, {name for raw in raws for name in raw.frame.columns})
    tidied, unlabelled = zip(*(tidy(raw, options) for raw in raws), strict=True)
    surveys = messages.gather(survey(table, options) for table in tidied)
    plan = agree(surveys, options)
    for table in tidied:
        check_kinds(table, plan)
    said = messages.gather(class_names(table, options) for table in tidied) if plan.classes else ()
    classes = common_classes(said, options) if plan.classes else None
    tables = tuple(settle(table, classes) for table in tidied)
    check_labels(tables, options)
    opening = tuple(entry for message in (*surveys, *said) for entry in messages.record(message))
    source = Tables.open(tables, options, plan, classes, origin, kind, opening)
    told = ask(tables, plan, options.min_level)
    asked = (entry for message in (*told.looks, *told.distances) for entry in messages.record(message))
    source = replace(source, opening=(*source.opening, *asked))
    silos = source.all_for_training()
    suspicious, odd = advise(tables, plan, classes, told)
    cautions = (
        *without_label(tidied, unlabelled),
        *spellings(classes or (), f"the label {options.label!r} has classes"),
        *spellings([raw.name for raw in raws], "there are silos"),
        *plan.left_out.values(),
        *source.notes,
        *suspicious,
        *scale(options),
    )
    remarks = (
        *odd,
        *hidden(raws, options),
        *about(plan, options, classes),
        *durations(raws, options),
        *decimal_commas(raws, options),
    )
    source = replace(source, notes=(*cautions, *remarks, *notes))
    tell(cautions, depth + 1)
    return replace(silos, source=source, notes=source.notes)


def settle(tidied: Tidied, classes: Sequence[str] | None) -> Table:
    """A silo's table with its labels as class numbers, or as numbers."""
    if classes is not None:
        y = label_levels(tidied.label).cast(pl.Enum(classes)).to_physical().to_numpy().astype(np.int64)
    else:
        y = tidied.label.to_numpy().astype(np.float64)
    return Table(tidied.name, tidied.columns, tidied.kinds, y, tidied.hidden, tidied.rows)


def check_labels(tables: Sequence[Table], options: Options) -> None:
    """Labels must differ."""
    first = tables[0].y[0]
    if all((table.y == first).all() for table in tables):
        raise ValueError(f"the label {options.label!r} has only one value, {first}: there is nothing to learn")


def without_label(tables: Sequence[Tidied], counts: Sequence[int]) -> list[str]:
    """Rows that were left out because their label is not known; few are not counted."""
    return [
        f"silo {table.name!r}: {count if count >= TELLING else 'some'} rows without a label are left out"
        for table, count in zip(tables, counts, strict=True)
        if count
    ]


def hidden(raws: Sequence[Raw], options: Options) -> list[str]:
    """Values that were taken as missing, as the options say."""
    found: list[str] = []
    for raw in raws:
        for name, count in hidden_gaps(raw.frame, options).items():
            codes = " or ".join(f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}"
                                for value in options.missing[name])  # fmt: skip
            many = how_many(count, raw.frame.height)
            found += [f"silo {raw.name!r}: {codes} is taken as missing (in {many} rows)"] if count else []
    return found


def scale(options: Options) -> list[str]:
    """What standardising silo by silo costs."""
    return [OWN_SCALE] if options.scale == "silo" else []


def about(plan: Plan, options: Options, classes: Sequence[str] | None) -> list[str]:
    """What was assumed: absent columns, and the task if it was guessed from numbers."""
    found = [
        f"silo {silo!r} lacks the column(s) {', '.join(map(repr, names))}: filled with the mean or zeros, and indicated"
        for silo, names in plan.absent.items()
        if names
    ]
    if classes is not None and len(classes) > 2 and options.task is None and classes[0].isdigit():
        found.append(
            f"the label {options.label!r} is taken as {len(classes)} classes; for numbers say task='regression' "
            "(--task regression)"
        )
    if classes is None and options.task is None:
        found.append(
            f"the label {options.label!r} is taken as numbers; for classes say task='classification' "
            "(--task classification)"
        )
    return found + lookalikes(plan)


def durations(raws: Sequence[Raw], options: Options) -> list[str]:
    """Columns of durations: in which unit they became numbers."""
    schemas = [raw.frame.schema for raw in raws]
    names = dict.fromkeys(n for schema in schemas for n, dtype in schema.items() if dtype == pl.Duration)
    return [f"column {name!r} holds durations, taken as days" for name in names if name not in options.drop]


def decimal_commas(raws: Sequence[Raw], options: Options) -> list[str]:
    """Columns of numbers that were written with decimal commas."""
    names = dict.fromkeys(name for raw in raws for name in raw.commas if name not in options.drop)
    return [f"column {name!r} is written with decimal commas, read as points" for name in names]


def spellings(names: Sequence[str], what: str) -> list[str]:
    """Classes or silos whose names differ only in case or blanks: perhaps one with several spellings."""
    spelt: dict[str, list[str]] = {}
    for name in names:
        spelt.setdefault("".join(name.casefold().split()), []).append(name)
    several = [" and ".join(map(repr, alike)) for alike in spelt.values() if len(alike) > 1]
    return [
        f"{what} that differ only in case or blanks, {alike}: spell them alike if they are one" for alike in several
    ]


def lookalikes(plan: Plan) -> list[str]:
    """Columns whose names differ only in case, blanks or signs: perhaps one column with two spellings."""
    spelt: dict[str, list[str]] = {}
    for name in plan.columns:
        spelt.setdefault("".join(c for c in name.casefold() if c.isalnum()), []).append(name)
    alike = [names for letters, names in spelt.items() if letters and len(names) > 1]
    return [f"columns {' and '.join(map(repr, names))} look like one column: rename one if so" for names in alike]
