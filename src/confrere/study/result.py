"""`StudyResult`: what a study found, as tables, paired differences, curves, summaries, plots and files."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from confrere.study import summary as summaries
from confrere.study.cell import WHEN, Cell, When
from confrere.study.statistics import interval, spread, tally
from confrere.study.tuning import larger_is_better
from confrere.study.users import ALL

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

By = Literal["user", "all"]


@dataclass(frozen=True, eq=False)
class StudyResult:
    """The cells of a study and what was studied. Tables are polars data frames.

    Every cell has two models: "last", the numbers that cross-validation found best after the last round; and "best",
    the numbers and the round that it found best together. Test rows took no part in either choice.
    """

    config: Mapping[str, Any]
    cells_: tuple[Cell, ...]

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The names of the algorithms, in order."""
        return tuple(dict.fromkeys(c.algorithm for c in self.cells_))

    @property
    def users(self) -> tuple[str, ...]:
        """The names of the users, in order."""
        return tuple(dict.fromkeys(c.user for c in self.cells_))

    def cells(self) -> "pl.DataFrame":
        """Every value, one row per algorithm, user, seed, choice and metric, with the numbers that were chosen."""
        import polars as pl

        numbers = list(dict.fromkeys(name for c in self.cells_ for name in c.hyper[0]))
        rows = [
            {"algorithm": c.algorithm, "user": c.user, "seed": c.seed, "chosen": when, "metric": metric,
             "value": c.value(metric, when), "round": c.round[c.row(when)], "score": c.score[c.row(when)],
             "train_rows": c.train_rows, "test_rows": c.test_rows,
             **{name: c.hyper[c.row(when)].get(name) for name in numbers}}
            for c in self.cells_ for when in WHEN for metric in c.curves
        ]  # fmt: skip
        return pl.DataFrame(rows, infer_schema_length=None)

    def table(self, metric: str | None = None, by: By = "user", at: When = "last") -> "pl.DataFrame":
        """Mean and standard deviation over seeds, and how often which numbers were chosen.

        by="all": the mean over users is taken seed by seed first. With a single seed the deviation is unknown (null).
        """
        import polars as pl

        metric = self.metric(metric)
        rows = []
        for algorithm in self.algorithms:
            for user in self.groups(by):
                values = self.values(algorithm, user, metric, at)
                rows.append({
                    "algorithm": algorithm, "user": user, "metric": metric, "mean": float(values.mean()),
                    "std": spread(values), "n": len(values), "chosen": self.chosen(algorithm, user, at),
                })  # fmt: skip
        return pl.DataFrame(rows, infer_schema_length=None, schema_overrides={"std": pl.Float64})

    def paired(self, a: str, b: str, metric: str | None = None, at: When = "last") -> "pl.DataFrame":
        """a minus b, seed by seed: mean, standard error, 95 % confidence interval, and how often a is better.

        The last row is the mean over users. `interval` says how: "resplit" (Nadeau and Bengio's correction, for seeds
        that split the same rows anew) or "plain" (Student's t). With one or two seeds there is no interval (null).
        """
        import polars as pl

        metric = self.metric(metric)
        for name in (a, b):
            if name not in self.algorithms:
                raise KeyError(f"there is no algorithm {name!r}; there are {', '.join(self.algorithms)}")
        rows = []
        for user in (*self.users, *([ALL] if len(self.users) > 1 else [])):
            one, two = self.values(a, user, metric, at), self.values(b, user, metric, at)
            found = interval(one - two, self.test_per_train(a, user))
            wins, ties, losses = tally(one, two, larger_is_better(metric))
            rows.append({
                "user": user, "metric": metric, "difference": found.mean, "se": found.se, "low": found.low,
                "high": found.high, "wins": wins, "ties": ties, "losses": losses, "n": len(one),
                "interval": self.config["intervals"],
            })  # fmt: skip
        unknown = dict.fromkeys(("se", "low", "high"), pl.Float64)
        return pl.DataFrame(rows, infer_schema_length=None, schema_overrides=unknown)

    def curves(self, metric: str | None = None, mean: bool = True, at: When = "last") -> "pl.DataFrame":
        """A metric round by round, from before round 1: mean and std over seeds, or every seed with traffic and scope.

        bytes and bytes_each count from the start; partners and borrowed are those of the round.
        """
        import polars as pl

        metric = self.metric(metric)
        if not mean:
            return pl.DataFrame(list(self.curve_rows(metric, at)), infer_schema_length=None)
        rows: list[dict[str, Any]] = []
        for algorithm in self.algorithms:
            for user in self.users:
                every = np.array([c.curves[metric][c.row(at)] for c in self.of(algorithm, user)])
                rows += [
                    {"algorithm": algorithm, "user": user, "round": r, "metric": metric,
                     "mean": float(column.mean()), "std": spread(column), "n": len(column)}
                    for r, column in enumerate(every.T)
                ]  # fmt: skip
        return pl.DataFrame(rows, infer_schema_length=None, schema_overrides={"std": pl.Float64})

    def curve_rows(self, metric: str, at: When) -> Iterator[dict[str, Any]]:
        """Every seed's curve, round by round."""
        for c in self.cells_:
            row = c.row(at)
            for r, value in enumerate(c.curves[metric][row]):
                yield {
                    "algorithm": c.algorithm, "user": c.user, "seed": c.seed, "chosen": at, "metric": metric,
                    "round": r, "value": float(value), "bytes": r * c.bytes_total, "bytes_each": r * c.bytes_each,
                    "partners": int(c.partners[row, r - 1]) if r else 0,
                    "borrowed": float(c.borrowed[row, r - 1]) if r else 0.0,
                }  # fmt: skip

    def summary(
        self, metric: str | None = None, rounds: Sequence[int] = (), traffic: Sequence[float] = (),
        traffic_each: Sequence[float] = (), silos: Sequence[int] = (), weight: Sequence[float] = (), by: By = "all",
    ) -> "pl.DataFrame":  # fmt: skip
        """A metric within budgets, mean and standard deviation over seeds, and the mean round that was taken.

        Always: after the last round, and best by cross-validation (numbers and round chosen on the user's training
        rows). On demand: after so many `rounds`; within a `traffic` budget, bytes that all silos together (or, with
        `traffic_each`, that each silo) sent and received since the start; within a collaborative scope, at most so many
        other `silos` with a weight above 0 in the round, or a share of the others in the round's `weight` of at most so
        much. A budget names the last round that respects it, and round 0, the start, if none does. An
        algorithm that has a model only at its end (`evidence`) has none before: null.
        """
        import polars as pl

        metric = self.metric(metric)
        rows = []
        for budget in summaries.budgets(rounds, traffic, traffic_each, silos, weight):
            for algorithm in self.algorithms:
                for user in self.groups(by):
                    found = [
                        [summaries.value_at(c, metric, budget) for c in some] for some in self.by_seed(algorithm, user)
                    ]
                    values = np.array([np.mean([v for v, _ in some]) for some in found])
                    values = values[~np.isnan(values)]  # there is no model yet
                    taken = float(np.mean([r for some in found for _, r in some]))
                    rows.append({
                        "budget": budget.words, "algorithm": algorithm, "user": user, "metric": metric,
                        "mean": float(values.mean()) if len(values) else None,
                        "std": spread(values) if len(values) else None, "n": len(values), "round": taken,
                    })  # fmt: skip
        numbers = dict.fromkeys(("mean", "std"), pl.Float64)
        return pl.DataFrame(rows, infer_schema_length=None, schema_overrides=numbers)

    def plot(
        self, kind: Literal["table", "curves", "paired"] = "table", path: str | os.PathLike[str] | None = None,
        metric: str | None = None, a: str | None = None, b: str | None = None, at: When = "last",
    ) -> "Figure":  # fmt: skip
        """A figure of means, of curves, or of paired differences (a minus b; by default of all with the first).

        Written to `path` (PNG, PDF, SVG) if that is given. Needs the extra `plots`.
        """
        from confrere.study.drawing import draw

        return draw(self, kind, path, self.metric(metric), a, b, at)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a folder (study.json, cells.parquet, curves.parquet), to a .json file, or the cells to a
        .parquet file."""
        from confrere.study.files import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "StudyResult":
        """What `save` wrote to a folder or a .json file."""
        from confrere.study.files import load

        return load(path)

    def metric(self, name: str | None) -> str:
        """A metric by name; the first of the study if none is given."""
        known = tuple(self.config["metrics"])
        if name is None:
            return known[0]
        if name not in known:
            raise ValueError(f"{name!r} was not measured; there are {', '.join(known)}")
        return name

    def groups(self, by: By) -> tuple[str, ...]:
        """The users, or all of them together."""
        if by not in ("user", "all"):
            raise ValueError(f"by must be 'user' or 'all', not {by!r}")
        return self.users if by == "user" else (ALL,)

    def of(self, algorithm: str, user: str) -> list[Cell]:
        """The cells of an algorithm and a user (or of all), seed by seed."""
        return [c for c in self.cells_ if c.algorithm == algorithm and (user in (ALL, c.user))]

    def by_seed(self, algorithm: str, user: str) -> list[list[Cell]]:
        """The same, those of a seed together."""
        cells = self.of(algorithm, user)
        return [[c for c in cells if c.seed == seed] for seed in dict.fromkeys(c.seed for c in cells)]

    def values(self, algorithm: str, user: str, metric: str, at: When) -> np.ndarray:
        """One value per seed; over all users, their mean."""
        if at not in WHEN:
            raise ValueError(f"at must be 'last' or 'best', not {at!r}")
        return np.array([np.mean([c.value(metric, at) for c in some]) for some in self.by_seed(algorithm, user)])

    def chosen(self, algorithm: str, user: str, at: When) -> str:
        """The numbers that were chosen, the most frequent first, with how often; the round too where it was chosen."""
        cells = self.of(algorithm, user)
        candidates = self.config["algorithms"][algorithm]["candidates"]
        varied = [name for name in candidates[0] if len({c[name] for c in candidates}) > 1] or list(candidates[0])
        counts = Counter(
            ", ".join(f"{name} {c.hyper[c.row(at)][name]:g}" for name in varied if name in c.hyper[c.row(at)])
            for c in cells
        )
        words = "; ".join(f"{which} ({times})" if len(counts) > 1 else which for which, times in counts.most_common())
        rounds = sorted(c.round[c.row(at)] for c in cells)
        return words if at == "last" else f"{words}; rounds {rounds[0]} to {rounds[-1]}".lstrip("; ")

    def test_per_train(self, algorithm: str, user: str) -> float | None:
        """Test rows per training row, where seeds split the same rows anew."""
        if self.config["intervals"] != "resplit":
            return None
        cells = self.of(algorithm, user)
        return sum(c.test_rows for c in cells) / sum(c.train_rows for c in cells)
