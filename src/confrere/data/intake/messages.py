"""Messages: all that silos say about their tables so that features agree, and the record of it.

Every message is made inside one silo, passes through `gather`, and is all that the other side ever sees. A silo
first says which columns it has (`Survey`), the names of the classes if the label has some (`Classes`), and its levels
and gaps (`Layout`), so that the features are the same for every split; then, whenever the training rows change, what
is needed to encode them alike (`Summary`). What numeric columns look like (`Looks`, `Distance`) is for advice alone.

The sum of squares is taken about the silo's own mean, from which, with count and sum, the plain one follows
(squares + sum^2 / count): the same information without the loss of digits of large numbers that vary little.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from confrere.data.intake.tidy import Kind
from confrere.data.source import Shared


class Survey(NamedTuple):
    """Which columns a silo has, what they hold, and what its label looks like ("text", "codes" or "numbers").

    A column that fewer than `min_level` rows know is said to be empty. Of categories with few known values the silo
    cannot tell whether they are names: it says how many values are known and how many of them differ, so that this can
    be told from all silos' counts.
    """

    silo: str
    kinds: Mapping[str, Kind]
    label: str
    few: Mapping[str, tuple[int, int]]  # column -> known values, different ones


class Classes(NamedTuple):
    """The names of the classes that a silo has."""

    silo: str
    names: tuple[str, ...]


class Moments(NamedTuple):
    """Known training values of one column: their number, their sum, and their squares about the silo's own mean."""

    count: int
    sum: float
    squares: float | None  # None: not needed, so it stays


class Levels(NamedTuple):
    """Levels of one column that occur often enough to be named, and whether there are others."""

    names: tuple[str, ...]
    others: bool


class Layout(NamedTuple):
    """What decides on the features, from all rows of a silo: column by column, of those that it has.

    Nothing is said of gaps if there are fewer than `min_level` rows, nor of levels if fewer know them.
    """

    silo: str
    missing: Mapping[str, bool]
    levels: Mapping[str, Levels]  # categorical columns


class Summary(NamedTuple):
    """What a silo says about its training rows: column by column, of those that it has and that enough rows know."""

    silo: str
    missing: Mapping[str, bool]
    moments: Mapping[str, Moments]  # numeric columns, unless nothing may leave
    varies: Mapping[str, bool]  # numeric columns whose squares stay
    levels: Mapping[str, Levels]  # categorical columns


class Looks(NamedTuple):
    """What a silo's numeric columns look like, yes or no: for advice that no silo could give alone."""

    silo: str
    codes: Mapping[str, bool]  # whether there are at most five different values, all of them whole numbers
    several: Mapping[str, bool]  # whether they are more than two, where they may be codes
    zeros: Mapping[str, bool]  # whether there are five values or more, and all are 0


class Distance(NamedTuple):
    """Whether values other than 0 are many and far from 0, of numeric columns that are 0 throughout in another silo."""

    silo: str
    far: Mapping[str, bool]


Message = Survey | Classes | Layout | Summary | Looks | Distance
M = TypeVar("M", Survey, Classes, Layout, Summary, Looks, Distance)


def gather(messages: Iterable[M]) -> tuple[M, ...]:
    """What silos send, as it arrives: the one place through which anything leaves a silo."""
    return tuple(messages)


def record(message: Message) -> list[Shared]:
    """What a message reveals, in words and in numbers."""
    if isinstance(message, Survey):
        return record_survey(message)
    if isinstance(message, Classes):
        return [Shared(message.silo, "names of the classes", len(message.names), "so that class numbers agree")]
    if isinstance(message, Layout):
        return record_layout(message, "all rows")
    if isinstance(message, Looks):
        return record_looks(message)
    if isinstance(message, Distance):
        what = "whether values other than 0 are many and far from 0"
        return [Shared(message.silo, f"{what} in {name!r}", 1, "to find zeros for missing") for name in message.far]
    return record_summary(message)


def record_survey(message: Survey) -> list[Shared]:
    """The name of the silo, its columns, and what they and the label hold."""
    columns = len(message.kinds)
    return [
        Shared(message.silo, "its name", 1, "so that silos can be told apart"),
        Shared(message.silo, "names of columns", columns, "so that silos agree on the features"),
        Shared(message.silo, "kinds of columns", columns, "so that silos agree on the features"),
        Shared(message.silo, "kind of the label", 1, "so that silos agree on the task"),
        *(
            Shared(message.silo, f"number of known and of different values of {name!r}", 2, "to tell names from levels")
            for name in message.few
        ),
    ]


def record_looks(message: Looks) -> list[Shared]:
    """What numeric columns look like."""
    few, codes = "whether there are at most five values, all whole numbers,", "to find codes"
    found = [(f"{few} in {name!r}", 1, codes) for name in message.codes]
    found += [(f"whether there are more than two values in {name!r}", 1, codes) for name in message.several]
    found += [
        (f"whether there are five values or more, all 0, in {name!r}", 1, "to find zeros for missing")
        for name in message.zeros
    ]
    return [Shared(message.silo, *entry) for entry in found]


def record_layout(message: Layout | Summary, rows: str) -> list[Shared]:
    """Whether values are missing, and the levels of categorical columns."""
    found = [(f"whether values are missing in {rows} of {name!r}", 1, "for indicators") for name in message.missing]
    for name, levels in message.levels.items():
        found.append((f"levels in {rows} of {name!r}", len(levels.names), "for common one-hot columns"))
        found.append((f"whether there are rarer levels in {rows} of {name!r}", 1, "for the column of other levels"))
    return [Shared(message.silo, *entry) for entry in found]


def record_summary(message: Summary) -> list[Shared]:
    """Statistics of numeric columns, and what the layout's record has, of the training rows."""
    found: list[tuple[str, int, str]] = []
    for name, moments in message.moments.items():
        if moments.squares is None:
            found.append((f"count and sum of training values of {name!r}", 2, "to fill gaps with the common mean"))
        else:
            what = f"count, sum and sum of squares of training values of {name!r}"
            found.append((what, 3, "to standardise with common statistics"))
    found += [(f"whether training values differ in {name!r}", 1, "to find constant columns") for name in message.varies]
    return [Shared(message.silo, *entry) for entry in found] + record_layout(message, "training rows")
