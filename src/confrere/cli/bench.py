"""`confrere bench`: how fast this machine is, beside a plain numpy loop."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from confrere.cli.common import console, for_people, print_json, progress_bar, start_jax
from confrere.cli.inputs import Json

if TYPE_CHECKING:
    from confrere.speed.measure import Speed

OTHERS = "`make bench` compares with PyTorch, FedJAX, pfl and Flower, each in an environment of its own."


def bench(
    task: Annotated[
        Literal["L", "S", "C", "both"],
        typer.Option(help="L: four silos and small rounds; S: a thousand silos; both: L and S; C: LeNet-5 on images."),
    ] = "both",
    repeats: Annotated[int, typer.Option(min=1, help="Laps of each, in turns; the median counts.")] = 5,
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="Rounds in a lap; if not said, 300 in L, 20 in S and 5 in C.", show_default=False),
    ] = None,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Rounds per second of federated averaging on this machine, beside a plain numpy loop: about half a minute.

    Both train the same model on the same rows, in turns, so that a busy spell of the machine falls on both. The last
    losses show that they train alike. Task C, a network, takes minutes, and is measured only if asked for. The
    comparison with other libraries is `make bench` in the source folder.
    """
    with for_people():
        start_jax()
        from confrere.speed.machine import facts

        machine = facts()
        with progress_bar("Measuring", hidden=quiet or json) as progress:
            speeds = measured(["L", "S"] if task == "both" else [task], repeats, rounds, progress)
        if json:
            print_json({"machine": machine, "tasks": {speed.task: speed.to_dict() for speed in speeds}})
        else:
            show(machine, speeds)


def measured(
    tasks: Sequence[str], repeats: int, rounds: int | None, progress: Callable[[int, int], None] | None
) -> "list[Speed]":
    """The tasks in turn, as one piece of work."""
    from confrere.speed.measure import measure

    def part(number: int) -> Callable[[int, int], None] | None:
        return progress and (lambda done, total: progress(number * total + done, len(tasks) * total))

    return [measure(task, repeats, rounds, part(number)) for number, task in enumerate(tasks)]


def show(machine: dict[str, Any], speeds: "Sequence[Speed]") -> None:
    """A table, and what it was measured on."""
    from rich.table import Table

    from confrere.speed.measure import LOOP, OURS

    table = Table(title="Federated averaging: rounds per second", caption="medians over laps, in turns")
    for column, side in {"Task": "left", "confrere": "right", "numpy loop": "right", "Ratio": "right",
                         "First run,\ns": "right", "Last loss,\nours / loop": "right"}.items():  # fmt: skip
        table.add_column(column, justify=side)  # type: ignore[arg-type]
    for speed in speeds:
        ours, loop = (pace(speed.rounds_per_second[who]) for who in (OURS, LOOP))
        losses = " / ".join(f"{speed.loss[who]:.3f}" for who in (OURS, LOOP))
        table.add_row(speed.task, ours, loop, f"{speed.ratio:.1f}x", f"{speed.first_run_s:.1f}", losses)
    console().print(table)
    for speed in speeds:
        print(f"{speed.task}: {speed.what}")
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    print(OTHERS)


def pace(rounds_per_second: float) -> str:
    """A speed in words: slow ones with decimals.

    >>> pace(20_000.4), pace(2.618)
    ('20,000', '2.62')
    """
    return f"{rounds_per_second:,.0f}" if rounds_per_second >= 100 else f"{rounds_per_second:.2f}"
