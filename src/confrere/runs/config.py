"""`study.toml`: what to compare on which data. Unknown keys and wrong types are refused, with line and field."""

import contextlib
import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from confrere.algorithm_names import AlgorithmName
from confrere.checks import WrongField
from confrere.data.choose import Choice, data_sets
from confrere.data.intake.options import did_you_mean

Count = Annotated[int, Field(ge=1)]
ALL = "all"
ALL_ALONE = "'all' stands alone: say all, or name the silos"
NOTHING_NAMED = "nothing is named: name one at least"
NAMES = re.compile(r"'([^']*)'")
KEY = r"""(?:[\w-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
BEGINNING = re.compile(rf"\s*(\[*)\s*({KEY}(?:\s*\.\s*{KEY})*)")  # of a table or of a field, with its name
FOR_NETWORKS = ["local", "fedavg", "fine_tuned", "weight_erosion"]


class Part(BaseModel):
    """A part of the file: strict, and nothing that is not named."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ColumnsPart(Part):
    """Of [data]: how the columns of a table are read."""

    label: str | None = None
    features: list[str] = []
    drop: list[str] = []
    categorical: list[str] = []
    numeric: list[str] = []
    missing: dict[str, list[float | int | str]] = {}
    scale: Literal["shared", "silo"] = "shared"
    task: Literal["classification", "regression"] | None = None
    min_level: Count = 5


class DataPart(ColumnsPart):
    """[data]: whose rows, and how they are read."""

    path: str | list[str]
    silo: str | None = None
    silos: list[str] = []
    exclude: list[str] = []


class StudyPart(Part):
    """[study]: what is compared, for whom, and how often."""

    users: Literal["all"] | list[str] = "all"
    algorithms: list[AlgorithmName] = ["auto", "ridge_local", "fedavg", "weight_erosion"]  # or FOR_NETWORKS
    model: Literal["linear", "mlp"] = "linear"
    seeds: Count = 10
    rounds: Count = 30
    others: Literal["all", "train"] = "train"
    budget: str | int | None = None
    compress: str | None = None
    grid: dict[str, list[float | int] | dict[str, list[float | int]]] = {}

    @model_validator(mode="before")
    @classmethod
    def algorithms_for_networks(cls, given: Any) -> Any:
        """Unless said otherwise, networks are compared by what they can do: they have no ridge optimum."""
        network = isinstance(given, dict) and given.get("model") == "mlp"
        return {"algorithms": FOR_NETWORKS, **given} if network else given


class Config(Part):
    """The whole file."""

    data: DataPart
    study: StudyPart = StudyPart()
    derive: dict[str, str | dict[str, str]] = {}

    def choice(self) -> Choice:
        """The data as a choice of silos."""
        part = self.data
        given = {
            "drop": tuple(part.drop), "categorical": tuple(part.categorical), "numeric": tuple(part.numeric),
            "missing": part.missing, "task": part.task, "scale": None if part.scale == "shared" else part.scale,
            "min_level": part.min_level,
        }  # fmt: skip
        paths = (part.path,) if isinstance(part.path, str) else tuple(part.path)
        own = {silo: formulas for silo, formulas in self.derive.items() if isinstance(formulas, dict)}
        common = {name: formula for name, formula in self.derive.items() if isinstance(formula, str)}
        return Choice(
            paths, part.label, part.silo, tuple(part.silos), tuple(part.exclude), tuple(part.features),
            {name: value for name, value in given.items() if value}, {**({"": common} if common else {}), **own},
        )  # fmt: skip

    @property
    def overridden(self) -> dict[str, str]:
        """What the person decided about silos, features and the model, in words."""
        model = self.study.model
        return self.choice().overridden | ({"model": model} if model != StudyPart().model else {})

    def beside(self, folder: Path) -> "Config":
        """The same with paths that hold wherever it is read: those of files are taken from a folder."""

        def whole(path: str) -> str:
            return path if path in data_sets() and not (folder / path).exists() else os.path.abspath(folder / path)

        paths = self.data.path
        found = whole(paths) if isinstance(paths, str) else [whole(path) for path in paths]
        return self.model_copy(update={"data": self.data.model_copy(update={"path": found})})


def read_config(path: str | os.PathLike[str]) -> Config:
    """The configuration in a file, its paths taken from the file's folder.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "study.toml"
    >>> _ = file.write_text('[data]\\npath = "titanic"\\n[study]\\nseeds = 3\\n')
    >>> read_config(file).study.seeds
    3
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}; `confrere init` writes one")
    found, text = parsed(file.read_bytes(), file)
    return checked(found, text, file).beside(file.resolve().parent)


def parsed(content: bytes, file: Path) -> tuple[dict[str, Any], str]:
    """The tables and the text of a TOML file."""
    try:
        text = content.decode()
        return tomllib.loads(text), text
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise ValueError(f"{file} is no TOML file: {problem}") from problem


def checked(found: dict[str, Any], text: str, file: Path) -> Config:
    """The configuration, or every mistake with its line and field."""
    config = validated(Config, found, text, file)
    with told_with_line(text, file):
        check_lists(config)
    return config


P = TypeVar("P", bound=Part)


def validated(kind: type[P], found: dict[str, Any], text: str, file: Path) -> P:
    """What a file says as a whole of some kind, or every mistake with its line and field."""
    try:
        return kind.model_validate(found)
    except ValidationError as problem:
        lines, mistakes = lines_of(text), by_field(problem, found).items()
        said = [complaint(field, errors, lines, file, kind) for field, errors in mistakes]
        raise ValueError("\n".join(said)) from None


def check_lists(config: Config) -> None:
    """Refuse lists that name nothing, and silos named beside "all"."""
    users = config.study.users
    if ALL in users and users != ALL:
        raise WrongField(("study", "users"), ALL_ALONE)
    lists = {("data", "path"): config.data.path, ("study", "users"): users}
    for field, named in {**lists, ("study", "algorithms"): config.study.algorithms}.items():
        if not named:
            raise WrongField(field, NOTHING_NAMED)


def told_by_line(file: Path) -> contextlib.AbstractContextManager[None]:
    """Say of a mistake that shows only with the data at hand in which line and field of a file it is."""
    return told_with_line(file.read_text(encoding="utf-8"), file)


@contextlib.contextmanager
def told_with_line(text: str, file: Path) -> Iterator[None]:
    """The same for a file that has been read."""
    try:
        yield
    except WrongField as problem:
        where = place_of(problem.field, lines_of(text), file)
        raise ValueError(f"{where}: {'.'.join(problem.field)}: {problem}") from problem


def by_field(problem: ValidationError, found: dict[str, Any]) -> dict[tuple[str, ...], list[Any]]:
    """The mistakes of every field: a value that fits none of several types is one. Those that lie deepest say most: of
    the list [1, "a"], that "a" is no number; of a table, what is wrong with its field."""
    fields: dict[tuple[str, ...], list[Any]] = {}
    for error in problem.errors():
        fields.setdefault(field_of(error, found), []).append(error)
    around = {field[:n] for field in fields for n in range(len(field))}
    return {
        field: [error for error in errors if depth(error) == max(map(depth, errors))]
        for field, errors in fields.items()
        if field not in around
    }


def depth(error: Any) -> int:
    """How many places in lists lead to a mistake."""
    return sum(isinstance(step, int) for step in error["loc"])


def field_of(error: Any, found: Any) -> tuple[str, ...]:
    """The names of tables and keys that lead to a mistake, without places in lists and names of types."""
    *inner, last = error["loc"]
    field = []
    for step in inner:
        if isinstance(found, dict) and step in found:
            field.append(step)
            found = found[step]
    if error["type"] == "missing" or (isinstance(found, dict) and last in found):
        field.append(last)
    return tuple(field)


def place_of(field: tuple[str, ...], lines: dict[tuple[str, ...], int], file: Path) -> str:
    """The file, and the line of a field or of the table that it is in."""
    line = next((lines[field[:n]] for n in range(len(field), 0, -1) if field[:n] in lines), None)
    return f"{file}, line {line}" if line else str(file)


def complaint(
    field: tuple[str, ...], errors: Sequence[Any], lines: dict[tuple[str, ...], int], file: Path, kind: type[Part]
) -> str:
    """One mistake in words."""
    where, name = place_of(field, lines, file), ".".join(field)
    match errors[0]["type"]:
        case "extra_forbidden":
            return f"{where}: there is no field {name!r}{meant(field, kind)}"
        case "missing":
            return f"{where}: the field {name!r} is missing"
    if all(error["type"] == "literal_error" and isinstance(error["input"], str) for error in errors):
        known = NAMES.findall(errors[0]["ctx"]["expected"])
        return f"{where}: {name}: there is no {errors[0]['input']!r}{did_you_mean(errors[0]['input'], known)}"
    wanted = list(dict.fromkeys(map(in_words, errors)))
    if WORDS["float_type"] in wanted:
        wanted = [words for words in wanted if words != WORDS["int_type"]]
    return f"{where}: {name}: should be {' or '.join(wanted)}, not {errors[0]['input']!r}"


WORDS = {
    "model_type": "a table, as in [data]", "dict_type": "a table", "list_type": "a list", "string_type": "text",
    "int_type": "a whole number (integer)", "int_from_float": "a whole number (integer)", "float_type": "a number",
    "bool_type": "true or false",
}  # fmt: skip


def in_words(error: Any) -> str:
    """What a value should be."""
    said = error["msg"].removeprefix("Input should be ")
    return WORDS.get(error["type"], f"{said[0].lower()}{said[1:]}")


def meant(field: Sequence[str], kind: type[Part]) -> str:
    """What the name of a field may have been meant to be."""
    there: Any = kind.model_fields[field[0]].annotation if len(field) > 1 and field[0] in kind.model_fields else kind
    there = there if hasattr(there, "model_fields") else kind
    return did_you_mean(field[-1], list(there.model_fields))


def lines_of(text: str) -> dict[tuple[str, ...], int]:
    """The line of every table and field, and of the tables that a name with dots makes.

    >>> lines_of("study.seeds = 3\\n[data]\\n'path' = [\\n  'a',\\n]\\n")
    {('study',): 1, ('study', 'seeds'): 1, ('data',): 2, ('data', 'path'): 3}
    """
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        named = BEGINNING.match(line)
        if named and is_whole("\n".join(lines[: number - 1])):
            above = () if named[1] else table
            path = (*above, *key_path(named[2]))
            table = path if named[1] else table
            for n in range(len(above) + 1, len(path) + 1):
                found.setdefault(path[:n], number)
    return found


def is_whole(text: str) -> bool:
    """Whether no list and no text is still open, so that what follows is a table or a field."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def key_path(key: str) -> tuple[str, ...]:
    """The names in a name with dots, without their quotes.

    >>> key_path("derive.'St. Mary' . days")
    ('derive', 'St. Mary', 'days')
    """
    path: list[str] = []
    found: Any = tomllib.loads(f"{key} = 0")
    while isinstance(found, dict):
        [(name, found)] = found.items()
        path.append(name)
    return tuple(path)
