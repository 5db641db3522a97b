"""What was measured, as a structure: processes timed, medians over them, ratios between contestants."""

from dataclasses import dataclass, field
from statistics import median

from contestants import GOALS, OURS, Contestant, required_ratio


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
    """How many times faster than a peer we are, beside what was required and what was hoped for."""

    measured: float
    required: float | None
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
        ours = next((r.round_ms for r in self.of_task(result.task) if r.contestant.name == OURS), None)
        name = result.contestant.name
        if name == OURS or ours is None or result.round_ms is None:
            return None
        goal = GOALS.get(name, {}).get(result.task)
        return Ratio(result.round_ms / ours, required_ratio(name, result.task), goal)
