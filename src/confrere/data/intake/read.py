"""Reading: a pandas, polars or pyarrow table, a CSV or a Parquet file becomes a polars table.

Text stays text here, numbers in a CSV file included: what a column holds is decided silo by silo (see `tidy`). Only
decimal commas become points, in columns of numbers of files whose fields are not separated by commas.
"""

import contextlib
import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from confrere.data.intake.tidy import has_decimal_commas, nameless, with_points

TEXT = {".csv", ".tsv"}
PARQUET = {".parquet", ".pq"}
SEPARATORS = ",;\t|"
QUOTED = re.compile(r'(?<![^,;\t|\r\n]) *"[^"]*(?:""[^"]*)*"')  # a field in quotes, after a separator or a line's end
CLOSED = re.compile(rf"{QUOTED.pattern} *(?=[,;\t|\r\n]|\Z)")  # the same up to its end
HEADER = re.compile(rf"(?:{QUOTED.pattern}|[^\n])*")
ALONE = re.compile(r"\r(?![\r\n])")  # a carriage return that ends a line without a line feed


class NoRows(ValueError):
    """A file has no rows."""


class Reading(NamedTuple):
    """A table, and the columns that were written with decimal commas."""

    frame: pl.DataFrame
    commas: tuple[str, ...] = ()


def read(table: Any) -> pl.DataFrame:
    """A table, or the table behind a path; its column names are stripped of blanks and must differ."""
    return reading(table).frame


def reading(table: Any) -> Reading:
    """The same, with the columns that were written with decimal commas."""
    if isinstance(table, str) or hasattr(table, "__fspath__"):
        return read_file(Path(table))
    return Reading(read_table(table))


def read_table(table: Any) -> pl.DataFrame:
    """A table of any library."""
    check_one_level(table)
    check_distinct(column_names(table), "the table")
    try:
        frame = nw.from_native(table)
    except TypeError as problem:
        raise TypeError(
            f"a table is a pandas, polars or pyarrow table, or the path of a CSV or Parquet file, not {type(table)}"
        ) from problem
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return stripped(from_pandas(frame) if frame.implementation.is_pandas_like() else frame.to_polars(), "the table")


def check_one_level(table: Any) -> None:
    """Refuse a pandas table whose columns have names in levels, be it one: such names are tuples."""
    columns: Any = None if isinstance(table, pl.LazyFrame) else getattr(table, "columns", None)
    if hasattr(columns, "levels"):
        levels = f"{columns.nlevels} level{'s' * (columns.nlevels > 1)}"
        raise ValueError(
            f"the table's columns have names in {levels} (a MultiIndex): join them to one name each, "
            "as in table.columns = ['_'.join(map(str, names)) for names in table.columns]"
        )


def column_names(table: Any) -> list[str]:
    """The column names of a table of any library; none where that is not known."""
    if isinstance(table, pl.LazyFrame):
        return table.collect_schema().names()
    found = getattr(table, "column_names", None)  # pyarrow
    found = getattr(table, "columns", ()) if found is None else found
    return [str(name) for name in found]


def from_pandas(frame: nw.DataFrame[Any]) -> pl.DataFrame:
    """A pandas table column by column, so that pyarrow is not needed and columns of mixed values are accepted."""
    pairs = zip(frame.columns, frame.iter_columns(), strict=True)  # names may be numbers, which would mean places
    columns = [series_of(str(name), column) for name, column in pairs]
    return pl.DataFrame(columns) if columns else pl.DataFrame()


def series_of(name: str, column: nw.Series[Any]) -> pl.Series:
    """One column: numbers as numbers, durations as durations, dates and everything else as text."""
    if column.dtype.is_numeric():
        return pl.Series(name, column.cast(nw.Float64).to_numpy(), pl.Float64, nan_to_null=True)
    if column.dtype == nw.Duration:
        return pl.Series(name, column.to_numpy().astype("timedelta64[us]"))
    unknown = column.is_null().to_list()
    values = [None if gone else value for gone, value in zip(unknown, column.to_list(), strict=True)]
    if column.dtype.is_temporal():
        return pl.Series(name, [None if v is None else str(v)[:10] for v in values], pl.String)
    return pl.Series(name, [None if v is None else str(v) for v in values], pl.String)


def stripped(frame: pl.DataFrame, what: str) -> pl.DataFrame:
    """The table with column names without blanks around them; a column without a name is named after its place."""
    names = [str(name).strip() or f"column {place}" for place, name in enumerate(frame.columns, start=1)]
    check_distinct(names, what)
    return frame.rename(dict(zip(frame.columns, names, strict=True)))


def check_distinct(names: Sequence[str], what: str) -> None:
    """Refuse a column name that occurs twice."""
    bare = [name.strip() for name in names]
    if len(set(bare)) == len(bare):
        return
    twice = sorted({name for name in bare if bare.count(name) > 1})
    raise ValueError(f"{what} has more than one column called {', '.join(map(repr, twice))}: rename all but one")


def read_file(path: Path) -> Reading:
    """The table in a CSV or Parquet file."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: use Silos.from_folder for one file per silo")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    suffix = path.suffix.lower()
    if suffix not in TEXT | PARQUET:
        raise ValueError(f"{path}: files end in {', '.join(sorted(TEXT | PARQUET))}, not in {path.suffix!r}")
    if path.stat().st_size == 0:
        raise NoRows(f"{path} is empty")
    found = read_csv(path) if suffix in TEXT else Reading(read_parquet(path))
    if found.frame.height == 0:
        raise NoRows(f"{path} has no rows")
    return found


def read_parquet(path: Path) -> pl.DataFrame:
    """The table in a Parquet file."""
    try:
        return stripped(pl.read_parquet(path), str(path))
    except (pl.exceptions.PolarsError, OSError) as problem:
        raise ValueError(f"{path} could not be read as a Parquet file: {problem}") from problem


def read_csv(path: Path) -> Reading:
    """The table in a text file in UTF-8 with a header; commas, semicolons, tabs or bars separate the fields."""
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = data[: problem.start].count(b"\n") + 1
        raise ValueError(f"{path} is not in UTF-8 (see line {line}): save it anew with that encoding") from problem
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise ValueError(f"{path}, line {line}: a byte is zero, which is no text: save the file anew as CSV in UTF-8")
    if not text.strip():
        raise NoRows(f"{path} is empty")
    if ALONE.search(text):
        text = with_line_feeds(text)
        data = text.encode()
    separator = separator_of(text)
    names = header_of(text, separator, str(path))
    check_distinct(names, str(path))
    frame = parse_csv(data, separator, str(path))
    if names and frame.width > len(names):
        raise ValueError(
            f"{path}: a quoted name in the header holds the separator and has a blank before it: remove it"
        )
    if frame.width and frame.to_series(-1).null_count():  # polars fills up lines that end too early
        check_lengths(text, separator, str(path))
    if len(names) == frame.width:  # polars leaves doubled quotes in names
        frame.columns = names
    frame = stripped(frame, str(path))
    return Reading(frame) if separator == "," else without_commas(frame)


def without_commas(frame: pl.DataFrame) -> Reading:
    """The table with decimal points in place of commas, in columns of numbers."""
    commas = [column.name for column in frame.get_columns() if has_decimal_commas(nameless(column))]
    mended = [with_points(nameless(c.str.strip_chars())).alias(c.name) if c.name in commas else c for c in frame]
    return Reading(pl.DataFrame(mended), tuple(commas)) if commas else Reading(frame)


def with_line_feeds(text: str) -> str:
    """The text with line feeds at the ends of lines, if most end in a carriage return alone, as on old Macs.

    >>> with_line_feeds('x,y\\r1,"two\\nlines"\\r2,b\\r\\n')
    'x,y\\n1,"two\\nlines"\\n2,b\\n'
    """
    bare = QUOTED.sub("", text)
    if len(ALONE.findall(bare)) < bare.count("\n"):
        return text
    return re.sub(rf"({QUOTED.pattern})|\r\n?", lambda found: found[1] or "\n", text)


def header_of(text: str, separator: str, what: str) -> list[str]:
    """The names in the first line of a text file."""
    try:
        return next(csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True))
    except csv.Error as problem:
        check_quotes(text, what)
        raise ValueError(f"{what}: the header is not readable ({problem}): save the file anew as CSV") from problem


def check_quotes(text: str, what: str) -> None:
    """Refuse a file with a quotation mark that neither opens nor closes a field, and say where it is."""
    rest = CLOSED.sub(lambda found: "\n" * found[0].count("\n"), text)
    place = rest.find('"')
    if place >= 0:
        raise ValueError(
            f"{what}, line {rest[:place].count(chr(10)) + 1}: a field has a quotation mark that is not closed, or that "
            "stands inside it: close it, or put the field in quotes and write marks inside it twice"
        )


def separator_of(text: str) -> str:
    """What separates the fields: the sign that the header has most of, but for those in quoted names.

    >>> separator_of('"age, in years";"sex, at birth, as told";ill')
    ';'
    """
    header = HEADER.match(text)
    bare = QUOTED.sub("", header[0] if header else "")
    return max(SEPARATORS, key=bare.count)


def parse_csv(data: bytes, separator: str, what: str) -> pl.DataFrame:
    """The fields of a text file, all as text; where there seem to be none, a quotation mark may have swallowed them."""
    try:
        frame = pl.read_csv(data, separator=separator, infer_schema=False)
    except pl.exceptions.PolarsError as problem:
        reason = str(problem).strip().split("\n", 1)[0]
        if "more fields" not in reason or data.count(b'"') % 2:
            check_quotes(data.decode("utf-8"), what)
        check_lengths(data.decode("utf-8"), separator, what)
        raise ValueError(
            f"{what} could not be read as a table, are all rows of the same length? ({reason})"
        ) from problem
    if frame.height == 0:
        check_quotes(data.decode("utf-8"), what)
    return frame


def check_lengths(text: str, separator: str, what: str) -> None:
    """Refuse the first line that has more or fewer fields than the header; blank lines pass."""
    for line, (count, width) in lengths(text, separator):
        if count != width:
            raise ValueError(
                f"{what}, line {line}: {count} field{'s' * (count > 1)}, but the header has {width}: are all rows of "
                "the same length? A value that is missing needs its separator, too"
            )


def lengths(text: str, separator: str) -> Iterator[tuple[int, tuple[int, int]]]:
    """The first line of every row that is not blank, how many fields it has, and how many the header."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    with contextlib.suppress(csv.Error):  # of fields too large for this reader nothing is said
        width, line = len(next(rows)), rows.line_num + 1
        for row in rows:
            if "".join(row).strip():
                yield line, (len(row), width)
            line = rows.line_num + 1
