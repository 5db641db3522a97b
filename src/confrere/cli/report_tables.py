"""The report in short, as a table for the terminal."""

from rich.table import Table

from confrere.cli.common import console
from confrere.report.contents import Contents, Help
from confrere.report.metrics import algorithm_title, amount, metric_of
from confrere.report.page import ANSWERS, most_heard
from confrere.report.sections import estimate_cell


def show_contents(contents: Contents) -> None:
    """One row per user: is it worth it, how good, how much better than the rivals, and who is listened to."""
    first = contents.hospitals[0].help
    metric = first.scores[0].metric
    rivals = list(dict.fromkeys(g.rival for g in first.gains))
    splits = max(s.n for s in first.scores)
    many = f"{splits} random splits" if splits > 1 else "one random split"
    unit = " in points" if metric_of(metric).unit == "%" else ""
    known = any(g.gain.low is not None for h in contents.hospitals for g in h.help.gains)
    unit += " with 95 % intervals" if known else ", too few splits for intervals"
    table = Table(
        title=f"Is learning together worth it? {metric_of(metric).title} on test rows, {many}",
        caption=f"gains{unit}; listens most to: share of the information behind the model",
    )
    for title in (contents.place, "worth it?", metric_of(metric).title.lower()):
        table.add_column(title, justify="left" if title in (contents.place, "worth it?") else "right", no_wrap=True)
    for rival in rivals:
        table.add_column(f"gain over {algorithm_title(rival)}", justify="right")
    table.add_column("listens most to")
    for hospital in contents.hospitals:
        table.add_row(hospital.name, *cells(hospital.help, metric), most_heard(hospital))
    if contents.overall is not None:
        table.add_section()
        table.add_row("mean of all", *cells(contents.overall, metric), "")
    console().print(table)
    if contents.overall is not None:
        print(contents.overall.words[0])


def cells(found: Help, metric: str) -> list[str]:
    """The verdict, the value, and the gains."""
    mean = next(s.mean for s in found.scores if s.metric == metric and s.algorithm == found.main)
    gains = [estimate_cell(metric, g.gain) for g in found.gains if g.metric == metric]
    return [ANSWERS[found.worth], amount(metric, mean), *gains]
