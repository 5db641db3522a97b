"""`confrere demo`: the main job on real data that the install brings."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from confrere.cli.common import for_people, print_json, progress_bar, start_jax

if TYPE_CHECKING:
    from confrere.answers import Answer
    from confrere.data import Silos
    from confrere.report import Contents
    from confrere.study import StudyResult

SPLIT = "age-strict"
PAGE = "report.html"
Progress = Callable[[int, int], None]


def demo(
    seeds: Annotated[int, typer.Option(min=1, help="Random splits to average over.")] = 10,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("confrere-report"),
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Four groups of Titanic passengers as silos: with whom should each learn, and is it worth it?

    For each group a model of survival is made for its own passengers, learning from the others as far as that helps,
    and compared with one trained alone and one trained for all. A table, and a report to open in a browser.
    """
    with for_people():
        start_jax()
        out.mkdir(parents=True, exist_ok=True)
        with progress_bar("Models and experiments", hidden=quiet or json) as progress:
            contents = titanic_contents(seeds, progress)
        from confrere.report import write_report

        page = write_report(contents, out / PAGE)
        if json:
            print_json({**contents.to_dict(), "report": str(page)})
            return
        from confrere.cli.report_tables import show_contents

        show_contents(contents)
        print(f"Report: {page.resolve()}")


def titanic_contents(seeds: int, progress: Progress | None = None) -> "Contents":
    """A model for each group of each split, beside training alone and one model for all; and what there is to say."""
    from confrere import data
    from confrere.answers.joining import with_answers
    from confrere.report import report_on

    splits = {seed: data.titanic(SPLIT, seed=seed) for seed in range(seeds)}
    began = time.perf_counter()
    ours, theirs = halves(progress)
    with ThreadPoolExecutor(1) as beside:  # compilation takes most of the time, and uses one core
        rivals = beside.submit(titanic_rivals, splits, theirs)
        answered = titanic_answers(splits, ours)
        result = with_answers(rivals.result(), answered)
    silos, answers = answered[0]
    return report_on(
        silos, silos.names, result, answers, title="Who should learn with whom? Four groups of Titanic passengers",
        people="passengers", place="group", label="survival", seed=0,
        seconds={f"{4 * seeds} personal models and their rivals": time.perf_counter() - began},
    )  # fmt: skip


def halves(progress: Progress | None) -> tuple[Progress | None, Progress | None]:
    """Two that go on at the same time, each half of the whole.

    >>> ours, theirs = halves(lambda done, total: print(f"{done / total:.2f}"))
    >>> ours(1, 2), theirs(3, 3)
    0.25
    0.75
    (None, None)
    """
    if progress is None:
        return None, None
    shares = [0.0, 0.0]

    def part(which: int) -> Progress:
        def tell(done: int, total: int) -> None:
            shares[which] = done / total
            progress(round(500 * sum(shares)), 1000)

        return tell

    return part(0), part(1)


def titanic_answers(
    splits: "dict[int, Silos]", progress: Progress | None
) -> "dict[int, tuple[Silos, dict[str, Answer]]]":
    """The personal model of every group of every split."""
    from confrere.answers import personalise

    answered: dict[int, tuple[Silos, dict[str, Answer]]] = {}
    for seed, silos in splits.items():
        answered[seed] = (silos, {name: personalise(silos, name) for name in silos.names})
        if progress is not None:
            progress(len(answered), len(splits))
    return answered


def titanic_rivals(splits: "dict[int, Silos]", progress: Progress | None) -> "StudyResult":
    """Training alone and one model for all, on the same splits, as `compare` does: FedAvg with the library's defaults,
    its learning rate tuned on training rows."""
    from confrere import algorithms
    from confrere.models import logistic
    from confrere.study import Study

    methods = {"ridge_local": algorithms.ridge_local, "fedavg": algorithms.fedavg}
    metrics = ("accuracy", "log_loss", "brier", "auroc")
    study = Study(splits.__getitem__, logistic(), methods, seeds=list(splits), metrics=metrics)
    return study.run(progress=progress)
