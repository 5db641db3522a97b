"""A site's own table, read as the study says: the half of the intake that happens inside a silo.

What leaves are the intake's messages (`data.intake.messages`) and nothing else; which rows are for testing is decided
here, from the study's seed and the site's name.

What is said of all rows and what is said of the training rows differ by the test rows. So sums are of training rows
alone; of all rows yes or no is all that is said (whether numbers vary, whether values are missing, which levels there
are), and where fewer than `min_level` rows make the difference, what is said of all rows is that of the training rows.
The simulator's columns and scales follow from it as from sums of all rows (`opening.common_encoding`).
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from confrere.data.choose import options_of, with_derived
from confrere.data.intake.encoding import Encoding
from confrere.data.intake.layout import lay_out, often_known, own_columns
from confrere.data.intake.load import settle
from confrere.data.intake.messages import Classes, Layout, Summary, Survey
from confrere.data.intake.options import Options
from confrere.data.intake.read import NoRows, Reading, reading
from confrere.data.intake.summary import own_lines, statistics, summarise
from confrere.data.intake.survey import Plan, check_kinds, class_names, survey
from confrere.data.intake.tidy import Raw, Table, Tidied, tidy
from confrere.data.silo import PARTS, Silo
from confrere.deploy.logbook import on_one_line
from confrere.deploy.study import Deployed

UNREADABLE, EMPTY, GONE = (
    "its table cannot be read", "its table has no rows", "its table is not where its site.toml says",
)  # fmt: skip
NO_LABEL = "its table has no column that the study calls its label"
UNTIDY = "a column of its table does not hold what it should"
NOT_MADE = "a column that the study makes from others cannot be made from its table"
OTHER_KIND = "a column that few of its rows know is of another kind than at the others"
NO_CLASSES = "its label has too many values to be classes"
NEW_CLASS = "its label has a class that was not agreed on before round 1"
TOO_LARGE = "numbers in its table are too large to be added up"
TROUBLES = pl.exceptions.PolarsError, ValueError, TypeError, OSError


class Mistake(ValueError):
    """Something is wrong with a file of the site's: a few words that the hub may hear, caused by what is true."""

    def __init__(self, words: str, file: Path):
        super().__init__(words)
        self.file = file

    @property
    def truth(self) -> str:
        """What is true, on one line; it names the file."""
        said = on_one_line(self.__cause__ or self)
        return said if str(self.file) in said else f"{self.file}: {said}"


class OwnRows:
    """The rows of one site, for one study."""

    def __init__(self, study: Deployed, name: str, path: Path):
        self.study, self.name, self.path = study, name, path

    @contextlib.contextmanager
    def told_as(self, words: str) -> Iterator[None]:
        """Whatever is wrong with the table in here is told in these words."""
        try:
            yield
        except Mistake:
            raise
        except TROUBLES as problem:
            raise Mistake(words, self.path) from problem

    @cached_property
    def raw(self) -> Raw:
        """The table as it is on the disk, with derived columns."""
        frame, commas = self.table()
        raw = Raw(self.name, frame, np.arange(frame.height), commas)
        with self.told_as(NOT_MADE):
            return with_derived(raw, self.study.choice(str(self.path)), self.study.names)

    def table(self) -> Reading:
        """The table as it is on the disk."""
        try:
            return reading(self.path)
        except NoRows as problem:
            raise Mistake(EMPTY, self.path) from problem
        except FileNotFoundError as problem:
            raise Mistake(GONE, self.path) from problem
        except TROUBLES as problem:
            raise Mistake(UNREADABLE, self.path) from problem

    @cached_property
    def options(self) -> Options:
        """How the columns that this site has are read."""
        choice, own = self.study.choice(str(self.path)), self.raw.frame.columns
        here = lambda names: tuple(name for name in names if name in own)  # noqa: E731
        given = {k: here(v) if k in ("drop", "categorical", "numeric") else v for k, v in choice.options.items()}
        given["missing"] = {name: values for name, values in choice.options["missing"].items() if name in own}
        if choice.features:
            given["drop"] = (*given["drop"], *(n for n in own if n not in (*choice.features, choice.label)))
        return options_of(replace(choice, features=(), options=given), [self.raw])

    @cached_property
    def tidied(self) -> Tidied:
        """The table, tidied."""
        with self.told_as(UNTIDY if self.study.said.data.label in self.raw.frame.columns else NO_LABEL):
            return tidy(self.raw, self.options)[0]

    def survey(self) -> Survey:
        """The first message: which columns there are."""
        return survey(self.tidied, self.options)

    def classes(self, plan: Plan) -> Classes | None:
        """The second: the names of the classes, if the label has some."""
        with self.told_as(OTHER_KIND):
            check_kinds(self.tidied, plan)
        with self.told_as(NO_CLASSES):
            return class_names(self.tidied, self.options) if plan.classes else None

    def layout(self, plan: Plan) -> Layout:
        """The third: levels and gaps."""
        whole, training = lay_out(self.table_without_labels, plan, self.options), self.summary(plan)
        missing, levels = dict(whole.missing), dict(whole.levels)
        if self.too_few_apart(np.ones(len(self.part), bool)):
            missing |= training.missing
        levels |= {name: known for name, known in training.levels.items() if self.too_few_know_apart(name)}
        return Layout(self.name, missing, levels)

    @property
    def table_without_labels(self) -> Table:
        """The table before class numbers are agreed on."""
        return Table(self.name, self.tidied.columns, self.tidied.kinds, np.zeros(len(self.tidied.label)))

    def summaries(self, plan: Plan) -> tuple[Summary, Summary]:
        """The last: of all rows, which numeric columns vary; of the training rows, what the encoding rests on."""
        return Summary(self.name, {}, {}, self.varies(plan), {}), self.summary(plan)

    def summary(self, plan: Plan) -> Summary:
        """What the encoding rests on, of the training rows."""
        with self.told_as(TOO_LARGE):
            return summarise(self.table_without_labels, plan, self.part == 0, self.options)

    def varies(self, plan: Plan) -> dict[str, bool]:
        """Whether a numeric column that enough rows know has different values."""
        table = self.table_without_labels
        names = often_known(table.columns, own_columns(table, plan, "numeric"), self.options.min_level)
        with self.told_as(TOO_LARGE):
            whole, training = (statistics(table, names, rows).squares > 0 for rows in (self.part >= 0, self.part == 0))
        few = np.array([self.too_few_know_apart(name) for name in names], bool)
        return dict(zip(names, np.where(few, training, whole).tolist(), strict=True))

    def too_few_know_apart(self, name: str) -> bool:
        """The same of the rows that know a column."""
        return self.too_few_apart(self.tidied.columns[name].is_not_null().to_numpy())

    def too_few_apart(self, rows: np.ndarray) -> bool:
        """Whether what is said of these rows [rows] and of the training rows among them tells of the few others."""
        training, least = int((rows & (self.part == 0)).sum()), self.options.min_level
        return training >= least and 0 < int(rows.sum()) - training < least

    @cached_property
    def part(self) -> np.ndarray:
        """Which part every row belongs to."""
        return own_parts(len(self.tidied.label), self.study.said.study.test, self.study.said.study.seed, self.name)

    def encoded(self, plan: Plan, encoding: Encoding) -> Silo:
        """The rows as features."""
        with self.told_as(NEW_CLASS):
            table = settle(self.tidied, encoding.label_names)
        whole = self.own_encoding(plan, encoding)
        return Silo(self.name, whole.rows(table.columns, len(table), self.name), table.y, self.part)

    def own_encoding(self, plan: Plan, encoding: Encoding) -> Encoding:
        """The encoding with this site's own means and scales, where none are shared."""
        if self.options.scale != "silo":
            return encoding
        return encoding.with_own({self.name: own_lines(self.table_without_labels, plan, self.part == 0)})


def own_parts(rows: int, test: float, seed: int, name: str) -> np.ndarray:
    """A part for every row [rows]: a share of them, drawn by the site itself, is for testing."""
    place = np.random.default_rng([abs(seed), *name.encode()]).permutation(rows)
    return np.where(place < round(test * rows), PARTS.index("test"), 0).astype(np.int8)
