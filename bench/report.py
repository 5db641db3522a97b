"""RESULTS.md: the comparison as tables, the further sections, the raw numbers."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from contestants import OURS, REMARKS
from results import Comparison, Result
from tasks import TASKS

_INTRODUCTION = """\
Written by `python bench/run.py`. Every contestant runs in a process of its own, in its own environment; the
processes take turns, the order rotating, so that a busy spell of the machine falls on all. A time is the median over
processes of the median over rounds, after one round to warm up; confrere and the sketch, whose rounds are one
program, are timed by whole runs, and a round's time is a run's over its rounds. Nothing is evaluated, and confrere
keeps no record but of who took part. The sampling law is the same for all: a fresh shuffle of each silo's rows in each
round, without replacement. The first round counts from the start of the process, imports and compilation included (the
first run, of confrere and the sketch).

A ratio is a contestant's time over ours: the median over turns, each turn by itself, and the range. The sketch is the
bare program that this library grew from; its ratios are the least to reach, as measured in these turns and, in the
next column, as they were first measured, on another day and partly on a busy machine. Where not all turns agree on a
verdict, it is said how many reach the mark."""

_RAW_TITLE = "Raw numbers"
_RAW = """\
One line per process; median, min and max are milliseconds per round, of single rounds or (confrere, the sketch) of
whole runs. The loss is that of the last model over
all rows: it depends on the number of rounds, and shows that all train alike."""


def render(comparison: Comparison, machine: Mapping[str, str], sections: Iterable[str]) -> str:
    """The whole page."""
    quick = "This was a **quick run**: one process each and few rounds. It shows what works, not how fast."
    parts = [
        "# Results\n\n" + _INTRODUCTION,
        *([quick] if comparison.quick else []),
        "## The machine\n\n" + _table(("", ""), machine.items()),
        *(_task(comparison, task) for task in comparison.tasks),
        *sections,
        f"## {_RAW_TITLE}\n\n" + _RAW + "\n\n" + _raw(comparison),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def spliced(page: str, sections: Iterable[str]) -> str:
    """A page with some sections in the place of those of the same title.

    New ones come before the raw numbers; a new task after the last one.
    """
    head, *parts = page.strip().split("\n\n## ")
    by_title = {_title(part): part for part in parts}
    for text in sections:
        part = text.strip().removeprefix("## ")
        by_title[_title(part)] = part
    old = [_title(part) for part in parts]
    new = [title for title in by_title if title not in old]
    tasks = [title for title in new if title.startswith("Task ")]
    places = [place for place, title in enumerate(old, start=1) if title.startswith("Task ")]
    after = max(places) if places else 0
    order = [*old[:after], *tasks, *old[after:], *(title for title in new if title not in tasks)]
    order.sort(key=lambda title: title == _RAW_TITLE)
    return "\n\n## ".join([head, *(by_title[title].strip() for title in order)]) + "\n"


def renewed(page: str, comparison: Comparison, load: str) -> str:
    """A page with the tables and raw numbers of the tasks that were run anew, and the load before that."""
    apart = f"\n\nMeasured in a run of its own; load of the machine before it: {load}."
    page = spliced(page, [_task(comparison, task) + apart for task in comparison.tasks])
    fresh = tuple(f"{task}," for task in comparison.tasks)
    kept = [line for line in page.splitlines() if not line.startswith(fresh)]
    end = len(kept) - 1 - kept[::-1].index("```")
    return "\n".join([*kept[:end], *_raw_lines(comparison), *kept[end:]]) + "\n"


def _title(part: str) -> str:
    return part.split("\n", 1)[0]


def summary(comparison: Comparison) -> str:
    """The tables alone, for the terminal."""
    return "\n\n".join(_task(comparison, task) for task in comparison.tasks)


def _task(comparison: Comparison, name: str) -> str:
    task = TASKS[name]
    results = comparison.of_task(name)
    title = f"## Task {name}\n\n{task.in_words()}.\n\n"
    head = (
        "contestant",
        "version",
        "ms per round",
        "range",
        "first round, s",
        "ratio",
        "the sketch's",
        "at first",
        "goal",
    )
    rows = [_row(comparison, result) for result in results]
    return title + _table(head, rows) + _remarks(results)


def _row(comparison: Comparison, result: Result) -> tuple[str, ...]:
    title = result.contestant.title
    if result.round_ms is None:
        return (title, "-", "did not run", *("-",) * 6)
    medians = result.medians_ms
    spread = f"{figure(min(medians))} to {figure(max(medians))}" if len(medians) > 1 else "one process"
    first = figure(result.first_round_s or 0.0)
    measured = (title, result.runs[0].version, figure(result.round_ms), spread, first)
    return (*measured, *_verdicts(comparison, result))


def _verdicts(comparison: Comparison, result: Result) -> tuple[str, ...]:
    ratio = comparison.ratio(result)
    if ratio is None:
        return ("1x" if result.contestant.name == OURS else "-", "-", "-", "-")
    each = ratio.each
    spread = f" ({figure(min(each))} to {figure(max(each))})" if len(each) > 1 else ""
    fixed = (None if mark is None else (mark,) * len(each) for mark in (ratio.sketch_at_first, ratio.goal))
    return (f"{figure(median(each))}x{spread}", *(_verdict(each, marks) for marks in (ratio.sketch, *fixed)))


def _verdict(each: Sequence[float], marks: Sequence[float] | None) -> str:
    """Whether the median reaches the marks, turn by turn the same or not; and in how many turns, if not in all."""
    if marks is None:
        return "-"
    reached = [ratio >= mark for ratio, mark in zip(each, marks, strict=False)]
    turns = f" ({sum(reached)} of {len(reached)} turns)" if 0 < sum(reached) < len(reached) else ""
    good = median(ratio / mark for ratio, mark in zip(each, marks, strict=False)) >= 1
    return f"{figure(median(marks))}x, {'reached' if good else '**missed**'}{turns}"


def _remarks(results: list[Result]) -> str:
    lines = []
    for result in results:
        notes = dict.fromkeys(run.note for run in result.runs if run.note)
        remark = REMARKS.get((result.contestant.name, result.task)) if result.runs else None
        ended = f"{'stopped' if result.runs else 'skipped'}: {result.reason}" if result.reason else ""
        said = [text for text in (*notes, remark, ended) if text]
        if said:
            lines.append(f"- {result.contestant.title}: {'; '.join(said)}")
    return "\n\n" + "\n".join(lines) if lines else ""


def _raw(comparison: Comparison) -> str:
    head = "task,contestant,process,rounds,median,min,max,first_round_s,loss"
    return "\n".join(["```csv", head, *_raw_lines(comparison), "```"])


def _raw_lines(comparison: Comparison) -> list[str]:
    lines = []
    for result in comparison.results:
        for number, (run, middle) in enumerate(zip(result.runs, result.medians_ms, strict=True), start=1):
            times = (middle, min(run.round_ms), max(run.round_ms))
            lines.append(
                f"{run.task},{run.contestant},{number},{run.rounds},"
                + ",".join(f"{ms:.4g}" if ms < 1000 else f"{ms:.0f}" for ms in times)
                + f",{run.first_round_s},{'' if run.loss is None else run.loss}"
            )
    return lines


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def figure(number: float) -> str:
    """A number with about three significant figures and no exponent."""
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}" if number >= 1 else f"{number:.3f}"
