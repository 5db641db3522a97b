"""From what a person names (files, a folder, a data set) to silos: whose rows, which columns, which silos."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confrere.checks import WrongField
from confrere.data.derive import derived
from confrere.data.intake.load import by_silo, check_column, load, one_each
from confrere.data.intake.options import Options, did_you_mean, make_options
from confrere.data.intake.read import PARQUET, TEXT, reading
from confrere.data.intake.tidy import Raw
from confrere.data.notes import DataWarning
from confrere.data.silo import check_names
from confrere.data.silos import Silos


@dataclass(frozen=True)
class Choice:
    """What was named, and what was decided about it."""

    data: tuple[str, ...]
    label: str | None = None
    silo: str | None = None
    silos: tuple[str, ...] = ()  # these only; none: all
    exclude: tuple[str, ...] = ()  # not these
    features: tuple[str, ...] = ()  # these columns only; none: all
    options: Mapping[str, Any] = field(default_factory=dict)  # of `Silos.from_table`
    derive: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # silo -> column -> formula; "": all silos
    one_site: bool = False  # a single table without a column of silos is one silo, named after its file

    @property
    def overridden(self) -> dict[str, str]:
        """What the person decided about silos and features, in words."""
        derived = dict.fromkeys(name for formulas in self.derive.values() for name in formulas)
        chosen = {
            "silos": self.silos, "without": self.exclude, "features": self.features,
            "left out": self.options.get("drop", ()), "derived": derived,
        }  # fmt: skip
        return {name: ", ".join(values) for name, values in chosen.items() if values}

    def formulas(self, silo: str, label: bool = False) -> dict[str, str]:
        """The derived columns of a silo, with or without the label; a formula of its own comes before that of all."""
        both = {**self.derive.get("", {}), **self.derive.get(silo, {})}
        return {name: formula for name, formula in both.items() if label or name != self.label}


def data_sets() -> dict[str, Callable[[], Silos]]:
    """The data sets that have a name."""
    from confrere import data

    return {
        "titanic": lambda: data.titanic("age-strict"),
        "heart_disease": data.heart_disease,
        "breast_cancer": data.breast_cancer,
        "diabetes": data.diabetes,
    }


def chosen_silos(choice: Choice) -> Silos:
    """The silos of a choice, all rows for training; what is noticed is in their notes, and no warning is given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        if len(choice.data) == 1 and choice.data[0] in data_sets() and not Path(choice.data[0]).exists():
            return named_data_set(choice)
        raws, origin = tables_of(choice)
        names = [raw.name for raw in raws]
        kept = [with_derived(raw, choice, names) for raw in raws]
        return load(kept, options_of(choice, kept), origin)


def with_derived(raw: Raw, choice: Choice, names: Sequence[str]) -> Raw:
    """A silo's table with its derived columns."""
    for silo in choice.derive:
        if silo and silo not in names:
            raise WrongField(("derive", silo), f"there is no silo {silo!r}{did_you_mean(silo, names)}")
    formulas = choice.formulas(raw.name, label=True)
    if not formulas:
        return raw
    try:
        return raw._replace(frame=derived(raw.frame, formulas, raw.name, choice.label, choice.silo))
    except WrongField as problem:
        own = (raw.name,) if set(problem.field) <= set(choice.derive.get(raw.name, {})) else ()
        raise WrongField(("derive", *own, *problem.field), str(problem)) from problem


def named_data_set(choice: Choice) -> Silos:
    """A data set by its name; it brings its own label, silos and levels."""
    if choice.label or choice.silo or set(choice.options) - {"min_level"} or choice.derive:
        raise ValueError(f"{choice.data[0]} is a data set with a label and silos of its own: name no others")
    silos = data_sets()[choice.data[0]]()
    if choice.features:
        raise ValueError(f"the features of {choice.data[0]} are fixed: save its table and name the file instead")
    return silos.only(kept_names(silos.names, choice))


def kept_names(names: Sequence[str], choice: Choice) -> list[str]:
    """The silos that take part; unknown names are refused."""
    for where, given in (("silos", choice.silos), ("exclude", choice.exclude)):
        for name in given:
            if name not in names:
                raise WrongField(("data", where), f"there is no silo {name!r}{did_you_mean(name, names)}")
    kept = [n for n in names if (not choice.silos or n in choice.silos) and n not in choice.exclude]
    if not kept:
        raise ValueError("no silo is left: name fewer in exclude")
    return kept


def check_user(user: str, names: Sequence[str], choice: Choice) -> None:
    """Refuse a user that is none of the silos that take part."""
    if user in choice.exclude:
        said = f"silo {user!r} is excluded, and can be no user then: take it out of exclude, or name another user"
        raise WrongField(("study", "users"), said)
    if choice.silos and user not in choice.silos:
        said = f"silo {user!r} is none of the silos that were named, and can be no user then: name it in silos, too"
        raise WrongField(("study", "users"), said)
    if user not in names:
        raise WrongField(("study", "users"), f"there is no silo {user!r}{did_you_mean(user, names)}")


def tables_of(choice: Choice) -> tuple[list[Raw], str]:
    """One table per silo that takes part, and where they come from in words."""
    paths = [Path(name) for name in choice.data]
    if len(paths) == 1 and paths[0].is_dir():
        folder = paths[0]
        files = sorted(f for f in folder.iterdir() if f.suffix.lower() in TEXT | PARQUET and f.name[0] not in ".~")
        if not files:
            raise ValueError(f"the folder {folder} has no file that ends in {', '.join(sorted(TEXT | PARQUET))}")
        return one_per_file(files, choice), f"folder {folder.name}"
    if len(paths) > 1:
        return one_per_file(paths, choice), ", ".join(path.name for path in paths)
    if not paths[0].exists():
        known = ", ".join(data_sets())
        raise FileNotFoundError(f"there is no file or folder {paths[0]}, nor a data set of that name ({known})")
    if choice.silo is None and choice.one_site:
        return one_per_file(paths, choice), paths[0].name
    frame, commas = reading(paths[0])
    if choice.silo is None:
        raise ValueError(f"{paths[0].name}: say which column tells the silos apart (--silo)")
    check_column(frame, choice.silo, "silo")
    raws = by_silo(frame, choice.silo, commas)
    names = kept_names([raw.name for raw in raws], choice)
    return [raw for raw in raws if raw.name in names], paths[0].name


def one_per_file(files: Sequence[Path], choice: Choice) -> list[Raw]:
    """A silo for every file, named after it; files of silos that take no part are not read."""
    if choice.silo is not None:
        raise ValueError("every file is a silo here: a column of silos is for a single file")
    check_names(tuple(file.stem for file in files), len(files))
    names = kept_names(sorted(file.stem for file in files), choice)
    return one_each([file for file in files if file.stem in names])


def options_of(choice: Choice, raws: Sequence[Raw]) -> Options:
    """The options of the intake; columns that are no chosen features are dropped."""
    columns = list(dict.fromkeys(name for raw in raws for name in raw.frame.columns))
    if choice.label is None:
        raise ValueError(f"say which column is to be predicted (--label); there is {', '.join(columns[:12])}")
    options = dict(choice.options)
    if choice.features:
        for name in choice.features:
            if name == choice.label:
                said = f"column {name!r} is the label, so it cannot be named in features"
                raise WrongField(("data", "features"), said)
            if name not in columns:
                raise WrongField(("data", "features"), f"there is no column {name!r}{did_you_mean(name, columns)}")
        rest = [name for name in columns if name not in (*choice.features, choice.label)]
        options["drop"] = (*options.get("drop", ()), *rest)
        for kind in ("categorical", "numeric"):
            options[kind] = tuple(name for name in options.get(kind, ()) if name not in rest)
    return make_options(choice.label, **options)
