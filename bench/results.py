"""What was measured, as a structure: processes timed, medians over them, ratios between contestants."""

from dataclasses import dataclass, field
from statistics import median

from contestants import GOALS, OURS, SKETCH, Contestant, first_ratio


@dataclass(frozen=True)
class Measurement:
    """One process of one contestant on one task: the line of JSON that it printed."""

    contestant: str
    task: str
    version: str
    rounds: int
    round_ms: list[float]
    first_round_s: float
    loss: float | None = None
    note: str = ""


@dataclass
class Result:
    """All processes of one contestant on one task, and why there are none or no more."""

    contestant: Contestant
    task: str
    runs: list[Measurement] = field(default_factory=list)
    reason: str = ""

    @property
    def medians_ms(self) -> list[float]:
        """Milliseconds per round, the median of each process."""
        return [median(run.round_ms) for run in self.runs]

    @property
    def round_ms(self) -> float | None:
        """Milliseconds per round, the median over the processes."""
        return median(self.medians_ms) if self.runs else None

    @property
    def first_round_s(self) -> float | None:
        """Seconds from a process's start to the end of its first round, the median over the processes."""
        return median(run.first_round_s for run in self.runs) if self.runs else None


@dataclass(frozen=True)
class Ratio:
    """How many times faster than a peer we are, beside the sketch in this run and at first, and what was hoped for."""

    measured: float
    sketch: float | None
    sketch_at_first: float | None
    goal: float | None


@dataclass
class Comparison:
    """The whole run: results in the order of the contestants, task by task."""

    results: list[Result]
    quick: bool

    @property
    def tasks(self) -> list[str]:
        """The tasks that were run."""
        return list(dict.fromkeys(result.task for result in self.results))

    def of_task(self, task: str) -> list[Result]:
        """The results of one task."""
        return [result for result in self.results if result.task == task]

    def ratio(self, result: Result) -> Ratio | None:
        """The peer's time over ours; None if either is missing, or for ourselves."""
        name, task = result.contestant.name, result.task
        ours, sketch = self._round_ms(OURS, task), self._round_ms(SKETCH, task)
        if name == OURS or ours is None or result.round_ms is None:
            return None
        beside = result.round_ms / sketch if sketch is not None and name != SKETCH else None
        return Ratio(result.round_ms / ours, beside, first_ratio(name, task), GOALS.get(name, {}).get(task))

    def _round_ms(self, name: str, task: str) -> float | None:
        return next((r.round_ms for r in self.of_task(task) if r.contestant.name == name), None)
