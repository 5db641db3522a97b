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
    """How many times faster than a peer we are, turn by turn, beside the sketch in the same turns and at first."""

    each: tuple[float, ...]
    sketch: tuple[float, ...] | None
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
        """The peer's time over ours, of the processes of one turn; None if either is missing, or for ourselves."""
        name, task = result.contestant.name, result.task
        each = self._over(result, OURS)
        if name == OURS or not each:
            return None
        sketch = None if name == SKETCH else self._over(result, SKETCH) or None
        return Ratio(each, sketch, first_ratio(name, task), GOALS.get(name, {}).get(task))

    def _over(self, result: Result, name: str) -> tuple[float, ...]:
        """The result's times over those of a contestant; who may run less often has the first turns."""
        other = next((r.medians_ms for r in self.of_task(result.task) if r.contestant.name == name), [])
        return tuple(ms / beside for ms, beside in zip(result.medians_ms, other, strict=False))
