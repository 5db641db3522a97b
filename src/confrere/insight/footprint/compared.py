"""A finished run: what every algorithm cost, and what it reached for that.

Bytes are those of one run of an algorithm for one user, exact. Processor seconds are those of the whole comparison, on
this machine, compilation included; of one run they are the seconds of the algorithm over the number of its experiments
(those that tune it are runs like any other). Accuracy per megabyte and per gram divide the mean over splits by a
number, and so do the ends of its 95 % interval, if it has one. An algorithm that sends nothing has no accuracy per
megabyte.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from confrere.insight.footprint.energy import Energy, energy_of
from confrere.insight.footprint.flops import Operations
from confrere.study.result import ALL, StudyResult
from confrere.study.statistics import Interval, interval

MEGA = 1e6


@dataclass(frozen=True)
class Price:
    """One algorithm: what it reached, and what one run of it costs. None: not known, or nothing to divide by."""

    algorithm: str
    rounds: int
    value: Interval  # of the metric, mean over users
    bytes_each: int  # of one silo at most
    bytes_total: int
    cpu_seconds: float | None
    operations: Operations | None  # of training; None: not counted
    grams: float | None
    per_megabyte: Interval | None
    per_gram: Interval | None
    stopped: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        plain = {k: None if v is None else v._asdict() for k, v in self.ratios().items()}
        return {
            "algorithm": self.algorithm, "rounds": self.rounds, **plain, "bytes_each": self.bytes_each,
            "bytes_total": self.bytes_total, "cpu_seconds": self.cpu_seconds, "grams": self.grams,
            "operations": None if self.operations is None else self.operations._asdict(),
            "stopped": self.stopped or None,
        }  # fmt: skip

    def ratios(self) -> dict[str, Interval | None]:
        """What has an interval."""
        return {"value": self.value, "per_megabyte": self.per_megabyte, "per_gram": self.per_gram}


@dataclass(frozen=True)
class RunFootprint:
    """What a comparison cost as a whole, and what its algorithms do, each on its own."""

    metric: str
    prices: tuple[Price, ...]
    energy: Energy | None  # of the whole comparison; None: its journal does not tell
    words: tuple[str, ...]
    result: StudyResult

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "metric": self.metric, "algorithms": [price.to_dict() for price in self.prices],
            "energy": None if self.energy is None else self.energy.to_dict(), "words": list(self.words),
        }  # fmt: skip

    def with_words(self, *more: str) -> "RunFootprint":
        """The same, with more to be known about it."""
        return replace(self, words=(*self.words, *more))

    def plot(self, path: Any = None) -> Any:
        """The metric against bytes, round by round, mean over users and splits; written to `path` if it is given."""
        from confrere.insight.footprint.drawing import against_bytes

        return against_bytes(self.result, self.metric, path)


def compared(
    result: StudyResult, journal: list[dict[str, Any]], country: str | None = None, watts: float | None = None,
    counted: Mapping[str, Operations | None] | None = None,
) -> RunFootprint:  # fmt: skip
    """The footprint of a finished comparison, from its result and its journal, and operations if they were counted."""
    metric = "accuracy" if result.config["task"] == "classification" else "rmse"
    work = by_algorithm(journal)
    done = [entry for entry in journal if entry["event"] == "finished" and "cpu_seconds" in entry]
    worked = sum(entry["cpu_seconds"] for entry in journal if entry["event"] == "computed")
    seconds = max(
        worked, sum(entry["cpu_seconds"] for entry in done)
    )  # work of other processes is in the first sum only
    energy = energy_of(seconds, measured_by(done), watts, country) if done else None
    known = counted or {}
    prices = tuple(price(result, name, metric, work.get(name), energy, known.get(name)) for name in result.algorithms)
    words = (*in_words(journal, energy), intervals_in_words(result), *operations_in_words(prices))
    return RunFootprint(metric, prices, energy, words, result)


def by_algorithm(journal: list[dict[str, Any]]) -> dict[str, float]:
    """Processor seconds of one experiment of every algorithm."""
    seconds: dict[str, float] = {}
    runs: dict[str, int] = {}
    for entry in journal:
        if entry["event"] == "computed" and entry["experiments"]:
            seconds[entry["algorithm"]] = seconds.get(entry["algorithm"], 0.0) + entry["cpu_seconds"]
            runs[entry["algorithm"]] = runs.get(entry["algorithm"], 0) + entry["experiments"]
    return {name: seconds[name] / runs[name] for name in runs}


def measured_by(done: list[dict[str, Any]]) -> float | None:
    """The joules of all sessions, if all were measured."""
    return sum(entry["joules"] for entry in done) if done and all("joules" in entry for entry in done) else None


def price(
    result: StudyResult,
    name: str,
    metric: str,
    seconds: float | None,
    energy: Energy | None,
    counted: Operations | None,
) -> Price:
    """What one algorithm reached and costs."""
    found = over_seeds(result, name, metric)
    cells = result.of(name, ALL)
    rounds = cells[0].partners.shape[1]
    each, total = (max(getattr(c, of) for c in cells) * rounds for of in ("bytes_each", "bytes_total"))
    grams = None if energy is None or seconds is None else energy.share(seconds).grams
    larger = metric == "accuracy"  # an error per megabyte says nothing
    return Price(
        name, rounds, found, each, total, seconds, counted, grams, per(found, total / MEGA) if larger else None,
        per(found, grams) if larger and grams is not None else None,
        result.config["algorithms"].get(name, {}).get("stopped", ""),
    )  # fmt: skip


def over_seeds(result: StudyResult, name: str, metric: str) -> Interval:
    """What an algorithm reached, with its interval; where all seeds gave one number there is none, not one of no width.

    That is so where nothing is left to chance: the test rows came with the data, and training draws nothing.
    No interval reaches below 0, nor that of an accuracy above 1.
    """
    found = interval(result.values(name, ALL, metric, "last"), result.test_per_train(name, ALL))
    if found.se == 0 or found.low is None or found.high is None:
        return found._replace(low=None, high=None)
    most = 1.0 if metric == "accuracy" else np.inf
    return found._replace(low=max(found.low, 0.0), high=min(found.high, most))


def per(value: Interval, amount: float) -> Interval | None:
    """A mean and its interval over an exact number; None where that is 0."""
    if not amount > 0:
        return None
    return Interval(*(None if v is None else float(np.divide(v, amount)) for v in value))  # type: ignore[arg-type]


def intervals_in_words(result: StudyResult) -> str:
    """What intervals are over."""
    if result.config["intervals"] == "resplit":
        return "Intervals are over random splits, and widened, as splits share rows."
    return (
        "The test rows came with the data, so that all seeds have one split: intervals tell how much the training "
        "varies from seed to seed, not what other rows would give, and where it does not vary there is none."
    )


def in_words(journal: list[dict[str, Any]], energy: Energy | None) -> list[str]:
    """What is to be known about the numbers."""
    said = ["Bytes are exact: counted from shapes before a run, and the same after it. They have no interval."]
    if energy is None:
        return [*said, "How long processors worked is not in the run's journal: it was made by an older version."]
    sessions = sum(entry["event"] in ("begun", "resumed") for entry in journal)
    ended = sum(entry["event"] == "finished" for entry in journal)
    if sessions > ended:
        said.append(f"{sessions - ended} of {sessions} sessions were cut off: what they took is not counted.")
    said.append(
        f"The whole comparison kept processors busy for {energy.cpu_seconds:.1f} s, compilation and tuning included; "
        "measured once, so that there is no interval."
    )
    if energy.joules is not None:
        how = "measured" if energy.measured else "estimated"
        co2 = "" if energy.grams is None else f" and {energy.grams:.3g} g of CO2 equivalents"
        said.append(f"That is {energy.joules:.3g} J ({energy.joules / 3.6e6:.2g} kWh){co2}, {how}.")
    if energy.grams is not None:
        said.append("Intervals per gram are those of what was reached: the grams are taken as if they were exact.")
    return [*said, *energy.assumptions]


def operations_in_words(prices: tuple[Price, ...]) -> list[str]:
    """What is to be known about operations, where they were counted."""
    if not any(price.operations for price in prices):
        return []
    said = [
        "Operations are those of training once, in millions (M), as XLA counts them in the compiled program, loops as "
        "often as they run; they have no interval."
    ]
    open_ended = [price.algorithm for price in prices if price.operations and price.operations.unknown]
    if open_ended:
        said.append(f"Of {', '.join(open_ended)} it is at least so much: some loops run until something is reached.")
    return said


def read(folder: Path) -> tuple[StudyResult, list[dict[str, Any]]]:
    """The result and the journal of a finished run; its data need not be there any more."""
    from confrere.runs.run import CONFIG, RESULT, journal

    if not (folder / CONFIG).is_file():
        raise FileNotFoundError(f"{folder} holds no run: there is no {CONFIG} in it")
    if not (folder / RESULT).is_file():
        raise ValueError(f"the run in {folder} is not finished: `confrere resume {folder}` goes on with it")
    return StudyResult.load(folder), journal(folder)


def table(found: RunFootprint) -> tuple[list[str], list[list[str]]]:
    """Titles and rows for people."""
    from confrere.budget import in_words as size

    titles = ["", "rounds", found.metric, "one silo at most", "all silos", f"{found.metric} per MB", "CPU s of a run",
              "operations", "g CO2 of a run", f"{found.metric} per g"]  # fmt: skip
    rows = [
        [p.algorithm, str(p.rounds), shown(p.value), size(p.bytes_each), size(p.bytes_total), shown(p.per_megabyte),
         number(p.cpu_seconds), counted_in_words(p.operations), number(p.grams), shown(p.per_gram)]
        for p in found.prices
    ]  # fmt: skip
    kept = [k for k in range(len(titles)) if k < 5 or any(row[k] != "–" for row in rows)]
    return [titles[k] for k in kept], [[row[k] for k in kept] for row in rows]


def shown(value: Interval | None) -> str:
    """A value with its interval, or that it has none.

    >>> shown(Interval(0.8, 0.1, 0.6, 1.0)), shown(Interval(0.8, None, None, None)), shown(None)
    ('0.8 (0.6 to 1)', '0.8 (no interval)', '–')
    """
    if value is None:
        return "–"
    none = value.low is None or value.high is None
    return f"{number(value.mean)} ({'no interval' if none else f'{number(value.low)} to {number(value.high)}'})"


def counted_in_words(found: Operations | None) -> str:
    """Operations in millions, or that there are at least so many.

    >>> counted_in_words(Operations(1_234_567.0, 0)), counted_in_words(Operations(2e9, 1)), counted_in_words(None)
    ('1.23 M', '>= 2,000 M', '–')
    """
    if found is None:
        return "–"
    return f"{'>= ' if found.unknown else ''}{number(found.count / 1e6)} M"


def number(value: float | None) -> str:
    """Three digits, and all of those before the point.

    >>> number(0.81234), number(123456.7), number(None)
    ('0.812', '123,457', '–')
    """
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
