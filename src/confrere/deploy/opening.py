"""Before round 1: sites say which columns they have, and the hub makes one encoding for all from what they said.

propose   the study itself -> an objection, or which columns there are (`Survey`)
columns   what was agreed on columns -> names of classes, levels and gaps (`Classes`, `Layout`), which columns vary and
          sums of training rows (`Summary`)
begin     the encoding and everybody's number of rows -> an objection, or that the site is ready

Only names, kinds, counts and, where a policy allows it, sums for a shared scale cross; no row does. The hub keeps
what was agreed, so that a run that goes on later has the same features, and a site that joins late is told them.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from confrere.data.intake.encoding import Encoding
from confrere.data.intake.layout import common_layout, without_constants
from confrere.data.intake.messages import Classes, Layout, Summary, Survey
from confrere.data.intake.options import Options, make_options
from confrere.data.intake.summary import combine
from confrere.data.intake.survey import Disagreement, Plan, agree, common_classes
from confrere.deploy.agreed import Agreed
from confrere.deploy.study import Deployed
from confrere.deploy.wire import Refused
from confrere.disk import write_whole

T = TypeVar("T")
OPENING = "opening.json"


def said(kind: type[T], message: T) -> Any:
    """A message of the intake as plain values for JSON."""
    return TypeAdapter(kind).dump_python(message, mode="json")


def heard(kind: type[T], plain: Any) -> T:
    """The same read back; what is none is refused."""
    try:
        return TypeAdapter(kind).validate_json(json.dumps(plain))
    except (ValidationError, ValueError) as problem:
        raise Refused("unreadable", f"it is no {kind.__name__}") from problem


class Apart(ValueError):
    """Sites recorded a column differently; `refuses` says to whom of them what."""

    def __init__(self, column: str, kinds: Mapping[str, str]):
        usual = Counter(kinds.values()).most_common(1)[0][0]
        others = ", ".join(sorted(site for site, kind in kinds.items() if kind == usual))
        settled = "record it alike, or name it in categorical, numeric or drop of [data] in the study's file"
        self.refuses = {
            site: [f"its column {column!r} is {kind}, but {usual} at {others}: {settled}"]
            for site, kind in sorted(kinds.items()) if kind != usual
        }  # fmt: skip
        super().__init__("; ".join(f"{site}: {words}" for site, [words] in self.refuses.items()))


@dataclass
class Opening:
    """What was agreed on before round 1, and who takes part."""

    plan: Plan
    encoding: Encoding
    sizes: dict[str, int] = field(default_factory=dict)  # training rows of the sites that take part
    refuses: dict[str, list[str]] = field(default_factory=dict)  # why others do not
    heard_of: dict[str, int] = field(default_factory=dict)  # training rows of all that ever said, here or away

    def agreed(self, study: Deployed) -> Agreed:
        """What hub and sites compute with."""
        labels = self.encoding.label_names
        return study.agreed(len(self.encoding.features), None if labels is None else len(labels))

    def facts(self) -> dict[str, Any]:
        """What a site is told when it begins."""
        return {"plan": said(Plan, self.plan), "encoding": self.encoding.to_dict(), "sizes": dict(self.sizes)}

    @classmethod
    def heard(cls, facts: Mapping[str, Any]) -> "Opening":
        """The same as a site, or the hub when it comes back, reads it."""
        try:
            sizes = {str(name): int(size) for name, size in facts["sizes"].items()}
            return cls(heard(Plan, facts["plan"]), Encoding.from_dict(facts["encoding"]), sizes)
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise Refused("unreadable", "it does not say what was agreed on before round 1") from problem

    def save(self, folder: Path) -> None:
        """Keep it at the hub."""
        write_whole(folder / OPENING, json.dumps({**self.facts(), "refuses": self.refuses, "heard_of": self.heard_of}))

    @classmethod
    def load(cls, folder: Path) -> "Opening | None":
        """What was kept, if anything was."""
        path = folder / OPENING
        if not path.is_file():
            return None
        facts = json.loads(path.read_text(encoding="utf-8"))
        found = cls.heard(facts)
        found.refuses, found.heard_of = facts["refuses"], facts["heard_of"]
        return found


def hub_options(study: Deployed) -> Options:
    """What the hub needs to know of the options: no column names but the label's."""
    data = study.said.data
    missing = {name: list(values) for name, values in data.missing.items()}
    return make_options(data.label, missing=missing, scale=data.scale, task=data.task, min_level=data.min_level)


def common_plan(surveys: Sequence[Survey], study: Deployed) -> Plan:
    """Which columns become features, from what sites said."""
    try:
        return agree(sorted(surveys, key=lambda message: message.silo), hub_options(study))
    except Disagreement as problem:
        column = problem.column
        kinds = {message.silo: message.kinds.get(column, "empty") for message in surveys}
        raise Apart(column, {site: kind for site, kind in kinds.items() if kind != "empty"}) from problem


def common_encoding(
    plan: Plan,
    classes: Sequence[Classes],
    layouts: Sequence[Layout],
    everything: Sequence[Summary],
    training: Sequence[Summary],
    study: Deployed,
) -> Encoding:
    """The encoding for all, as `Silos.from_table` and `Silos.split` make it from sums of all rows.

    A numeric column is constant over all rows if it is so over the training rows and at no site varies over all of its.
    """
    options = hub_options(study)
    names = common_classes(classes, options) if plan.classes else None
    first = common_layout(layouts, plan, options, names)
    varying = {name for message in everything for name, varies in message.varies.items() if varies}
    silent = tuple(name for name in combine(training, first).silent if name not in varying)
    layout = without_constants(replace(first, silent=silent))
    encoding = combine(training, layout)
    if len(encoding.silent) == len(encoding.features):
        raise ValueError("no feature is left: every column is constant, a date, free text, dropped or too rarely known")
    return encoding
