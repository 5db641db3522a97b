"""How data is read: the options that every command on data has, written here alone."""

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

import typer

from confrere.cli.inputs import apart, gone, is_study

MIN_LEVEL = 5  # as in study.toml


def option(text: str, *written: str, default: bool = False, **more: Any) -> Any:
    """An option of the panel of its own that they have in the help; `written` if not as its parameter."""
    return typer.Option(*written, help=text, show_default=default, rich_help_panel="How the data is read", **more)


Names = list[str] | None
Label = Annotated[str | None, option("The column to be predicted.")]
SiloColumn = Annotated[str | None, option("The column that tells silos apart.")]
Only = Annotated[Names, option("Only these silos: north,west; a name with a comma in double quotes.", "--silos")]


class Reading(NamedTuple):
    """What a person says of the data: which columns and silos, and what values mean."""

    label: Label = None
    silo: SiloColumn = None
    only: Only = None
    exclude: Annotated[Names, option("These silos take no part; written as for --silos.")] = None
    features: Annotated[Names, option("Only these columns are used.")] = None
    drop: Annotated[Names, option("These columns are not used.")] = None
    categorical: Annotated[Names, option("These columns hold codes.")] = None
    missing: Annotated[Names, option("Values that mean that there is none, as in chol=0.", metavar="COLUMN=VALUE")] = (
        None
    )
    scale: Annotated[
        Literal["shared", "silo"],
        option("Standardise with statistics that silos share, or each by itself.", default=True),
    ] = "shared"
    min_level: Annotated[
        int,
        option(
            "Levels that fewer rows of a silo have are not named by it, but share one, and of columns that fewer know "
            "nothing is told (not in named data sets).",
            default=True,
            min=1,
        ),
    ] = MIN_LEVEL
    task: Annotated[
        Literal["classification", "regression"] | None, option("What the label is (by default told from its values).")
    ] = None

    def part(self, data: Sequence[str]) -> dict[str, Any]:
        """The same as [data] of a study.toml; lists may have been written with commas."""
        lists = ("exclude", "features", "drop", "categorical")
        named = {name: list(apart(getattr(self, name))) for name in lists}
        return {
            "path": data[0] if len(data) == 1 else list(data), "silos": list(apart(self.only)), **named,
            "missing": gone(self.missing), "label": self.label, "silo": self.silo, "scale": self.scale,
            "min_level": self.min_level, "task": self.task,
        }  # fmt: skip

    def choice(self, data: Sequence[str]) -> Any:
        """The data that are chosen; a study.toml in their place says all of this itself."""
        from confrere.runs.config import checked, read_config

        if not is_study(data):
            return checked({"data": self.part(data)}, "", Path("the command line")).choice()
        given = [name for name, value in self._asdict().items() if value != self._field_defaults[name]]
        if given:
            options = ", ".join(f"--{name.replace('_', '-')}" for name in given).replace("--only", "--silos")
            raise ValueError(f"{data[0]} says which data: write what {options} would say into its [data]")
        return read_config(data[0]).choice()


def with_reading(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter `reading` is told by the options of `Reading`, each by its own name."""
    hints = get_type_hints(Reading, include_extras=True)
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
        for name, default in Reading._field_defaults.items()
    ]

    @functools.wraps(command)
    def told(**given: Any) -> None:
        said = {name: given.pop(name) for name in Reading._fields if name in given}
        command(reading=Reading(**said), **given)

    signature = inspect.signature(command)
    own = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in signature.parameters.values()]
    at = next(i for i, parameter in enumerate(own) if parameter.name == "reading")
    parameters = [*own[:at], *options, *own[at + 1 :]]
    annotations = {p.name: p.annotation for p in parameters}
    told.__dict__.update(__signature__=signature.replace(parameters=parameters), __annotations__=annotations)
    return told
