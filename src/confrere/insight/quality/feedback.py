"""Feedback to one silo about its own data, and to the others after a selection: everything in one object."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from confrere.data.silos import Silos
from confrere.data.source import Shared
from confrere.insight.quality.finding import Finding
from confrere.insight.quality.findings import ALPHA, LEAST, Findings, findings
from confrere.insight.quality.fits import FOLDS
from confrere.insight.quality.labels import Suspects, label_suspects
from confrere.insight.quality.next_feature import Next, rarely_recorded, record_next
from confrere.insight.quality.others import ToOther, to_others
from confrere.insight.quality.rows import HarmfulRow, harmful_rows
from confrere.insight.quality.telling import NoiseKind
from confrere.plural import plural
from confrere.report.contents import plain
from confrere.selection.selection import Selection

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, eq=False)
class Feedback:
    """What one silo could do better, and what the others are told.

    `findings`, `rows` and `labels` are about the user's own rows and for its own eyes: they stay in the silo.
    `to_others` has what each other silo is told about itself; `record_next` which columns the user might record;
    `shared` what left every silo for all this. `without` says what could not be done, and why.
    """

    user: str
    findings: tuple[Finding, ...]
    columns: int  # looked at
    tests: int  # made, all counted in the rate of false discoveries
    rows: tuple[HarmfulRow, ...]
    labels: Suspects
    to_others: tuple[ToOther, ...]
    record_next: tuple[Next, ...]
    shared: tuple[Shared, ...]
    without: tuple[str, ...]
    alpha: float
    min_count: int
    noise: float

    def to_dict(self, rows: bool = True) -> dict[str, Any]:
        """As plain values, for JSON; without `rows`, nothing that tells of single rows."""
        found: dict[str, Any] = {
            "user": self.user, "findings": [f.to_dict(rows) for f in self.findings], "columns": self.columns,
            "tests": self.tests, "labels": self.labels.to_dict(rows),
            "to_others": [t.to_dict() for t in self.to_others],
            "record_next": [n.to_dict() for n in self.record_next], "shared": [s._asdict() for s in self.shared],
            "without": list(self.without), "alpha": self.alpha, "min_count": self.min_count, "noise": self.noise,
        }  # fmt: skip
        return plain(found | ({"rows": [r.to_dict() for r in self.rows]} if rows else {}))

    def to_json(self, rows: bool = True) -> str:
        """As a JSON object."""
        return json.dumps(self.to_dict(rows), allow_nan=False)

    def table(self) -> "Table":
        """The findings as a table for a terminal."""
        from confrere.insight.quality.words import table_of

        return table_of(self)

    def __rich__(self) -> "Table":
        return self.table()

    def __str__(self) -> str:
        from confrere.insight.quality.words import plain_text

        return plain_text(self)


def feedback(
    silos: Silos,
    user: int | str,
    *,
    ranges: Mapping[str, Any] | str | Path | None = None,
    min_count: int = LEAST,
    noise: float = 0.0,
    noise_kind: NoiseKind = "laplace",
    alpha: float = ALPHA,
    selection: Selection | None = None,
    seed: int = 0,
) -> Feedback:
    """What could be better in the user's own data, and what the others are told after a selection.

    Args:
        ranges: possible values by column, `{"temp": [30, 45, "°C"]}`, or a TOML file with a table [ranges]; they come
            before the built-in ones, and False takes a column out.
        min_count: of fewer rows nothing is told by the other silos, nor to them: neither columns nor models.
        noise: the scale of the noise in what they tell of their columns, in typical rows; 0: none. It blurs, and is no
            differential privacy. Models and losses, and gains by a column, are sent without noise.
        alpha: the rate of false discoveries among the findings of tests.
        selection: after which the others are told; by default that of `cf.selection.ndoye`.

    Findings are about all rows of the silos; models are made of training rows of the user, and of all rows of others.

    >>> import confrere as cf
    >>> found = cf.insight.feedback(cf.data.heart_disease(), "switzerland")
    >>> found.findings[0].words
    'chol was 0 in 123 rows of 123, which means: not taken'
    """
    place = silos.index(user)
    about = findings(
        silos, place, ranges=ranges, min_count=min_count, noise=noise, noise_kind=noise_kind, alpha=alpha, seed=seed
    )
    without: list[str] = []
    rows, labels = own_models(silos, place, seed, without)
    told, nexts, sent = with_others(silos, place, selection, min_count, seed, without)
    return assembled(silos.names[place], about, rows, labels, told, nexts, sent, without, alpha, min_count, noise)


def own_models(silos: Silos, user: int, seed: int, without: list[str]) -> tuple[tuple[HarmfulRow, ...], Suspects]:
    """What the silo's own rows say about themselves."""
    y = silos.silos[user].rows("train")[1]
    few = f"{plural(len(y), 'training row')}, where it takes {2 * FOLDS}" if len(y) < 2 * FOLDS else ""
    one = "one label only in its training rows" if len(np.unique(y)) < 2 else ""
    if few or one:
        without.append(f"rows and labels are not judged: {silos.names[user]} has {few or one}")
    return harmful_rows(silos, user, seed=seed), label_suspects(silos, user, seed=seed)


def with_others(
    silos: Silos, user: int, selection: Selection | None, least: int, seed: int, without: list[str]
) -> tuple[tuple[ToOther, ...], tuple[Next, ...], tuple[Shared, ...]]:
    """What needs other silos."""
    if len(silos) < 2:
        without.append(f"{silos.names[user]} is alone: nothing can be compared with other silos")
        return (), (), ()
    if silos.sizes("train")[user] < 2:
        without.append(f"{silos.names[user]} has too few training rows to select silos by")
        return (), (), ()
    told, sent = to_others(silos, user, selection, min_count=least, seed=seed)
    nexts, more = record_next(silos, user, min_count=least, seed=seed)
    unknown = [name for name in rarely_recorded(silos, user) if name not in {n.column for n in nexts}]
    if unknown:
        without.append(
            f"what recording {', '.join(unknown)} would gain cannot be told: no silo that records it has enough rows "
            f"like those of {silos.names[user]}"
        )
    return told, nexts, (*sent, *more)


def assembled(
    user: str, about: Findings, rows: tuple[HarmfulRow, ...], labels: Suspects, told: tuple[ToOther, ...],
    nexts: tuple[Next, ...], sent: tuple[Shared, ...], without: list[str], alpha: float, min_count: int, noise: float,
) -> Feedback:  # fmt: skip
    """All parts as one."""
    return Feedback(
        user, about.found, about.columns, about.tests, rows, labels, told, nexts, (*about.shared, *sent),
        tuple(without), alpha, min_count, noise,
    )  # fmt: skip
