"""The page: one self-contained HTML file. Nothing is loaded, nothing is run; it opens offline, prints, and follows the
reader's choice of light or dark."""

import json
import os
from pathlib import Path

from confrere._version import __version__
from confrere.disk import write_whole
from confrere.plural import plural
from confrere.report import figures, html
from confrere.report.contents import Contents, Hospital, Worth
from confrere.report.figures import Row, style_of
from confrere.report.helping import LONELY
from confrere.report.html import escape
from confrere.report.metrics import EVERYBODY, MAIN, algorithm_title, amount, metric_of, number
from confrere.report.sections import anchor, estimate_cell, questions, shown_metrics
from confrere.report.style import STYLE

ANSWERS: dict[Worth, str] = {
    "yes": "yes", "no": "no", "mixed": "it depends", "unclear": "not certain", "unknown": "not known",
}  # fmt: skip
RIVALS = {**dict.fromkeys(LONELY, "one trained alone"), EVERYBODY: "one trained for all"}

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="confrere {version}">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{title}</h1>{opening}</header>
<main>{main}</main>
<footer><p>Made by confrere {version} on {made}. Nothing on this page is loaded from elsewhere.</p></footer>
</body>
</html>
"""


def write_report(contents: Contents, path: "str | os.PathLike[str]") -> Path:
    """Write the report as one HTML file that needs nothing else; folders on the way are made.

    >>> import confrere.report, inspect
    >>> list(inspect.signature(confrere.report.write_report).parameters)
    ['contents', 'path']
    """
    target = Path(path)
    text = page(contents)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, text)
    return target


def page(contents: Contents) -> str:
    """The page as text."""
    several = len(contents.hospitals) > 1
    parts = [overview(contents)] if several else []
    parts += [chapter(contents, h, several, k == 0) for k, h in enumerate(contents.hospitals)]
    return PAGE.format(
        title=escape(contents.title), version=escape(__version__), style=STYLE, opening=opening(contents),
        main="".join(parts) + engineer(contents), made=escape(contents.made),
    )  # fmt: skip


def opening(contents: Contents) -> str:
    """What this is about, and what to know before reading."""
    count, rows = plural(len(contents.sizes), "silo"), sum(a + b for a, b in contents.sizes.values())
    kind = {
        "artificial": f" The {contents.people} are real, but their division into silos is artificial.",
        "synthetic": " The data are invented.",
    }.get(contents.kind, "")
    label = "" if contents.label == "the label" else f" What is predicted is {contents.label}."
    said = [f"{contents.origin}: {rows} {contents.people} in {count}. {what_was_done(contents)}{label}{kind}"]
    said += [f"Chosen by the user: {'; '.join(contents.overridden)}."] if contents.overridden else []
    links = "".join(f'<li><a href="#{anchor(h.name)}-1">{escape(h.name)}</a></li>' for h in contents.hospitals)
    nav = f'<nav aria-label="On this page"><ul>{links}<li><a href="#engineer">For the engineer</a></li></ul></nav>'
    notes = html.folded(counted(contents.notes), listing(contents.notes)) if contents.notes else ""
    return html.paragraphs(said, "lead") + nav + notes


def what_was_done(contents: Contents) -> str:
    """Which model the page is about, and what it is compared with."""
    found = contents.hospitals[0].help
    rivals = [RIVALS.get(r, algorithm_title(r)) for r in dict.fromkeys(g.rival for g in found.gains)]
    against = f", and compared with {' and '.join(rivals)}" if rivals else "; there is nothing to compare it with"
    return f"For each {contents.place} below, {what_was_made(found.main, contents.people)}{against}."


def what_was_made(main: str, people: str) -> str:
    """The model that the page is about, in words."""
    if main == EVERYBODY:
        return "the one model of all silos together (FedAvg) was taken"
    how = {
        **dict.fromkeys(MAIN, ", learning from the others as far as that helps"),
        **dict.fromkeys(LONELY, ", which learned from nobody else"),
    }.get(main, f" by {algorithm_title(main)}")
    return f"a model was made for its own {people}{how}"


def counted(notes: tuple[str, ...]) -> str:
    """How many notes there are."""
    return f"{plural(len(notes), 'note')} on the data"


def listing(words: tuple[str, ...]) -> str:
    """A plain list."""
    return f"<ul>{''.join(f'<li>{escape(said)}</li>' for said in words)}</ul>"


def overview(contents: Contents) -> str:
    """A table over all users first, and all gains in one figure."""
    decisive = next((g.metric for g in contents.hospitals[0].help.gains), None)
    if decisive is None:
        return ""
    rows = [overview_row(contents, h, decisive) for h in contents.hospitals]
    rivals = list(dict.fromkeys(g.rival for g in contents.hospitals[0].help.gains))
    main = contents.hospitals[0].help.main
    metric = metric_of(decisive)
    unit = "points" if metric.unit == "%" else metric.title
    header = [
        contents.place, "train / test", "worth it?", f"{metric.title}, {algorithm_title(main)}",
        *(f"gain over {algorithm_title(r)}, {unit}" for r in rivals), "listens most to",
    ]  # fmt: skip
    table = html.table(f"Is learning together worth it? Every {contents.place} in one row", header, rows, raw=True)
    inside = (
        (html.listed(contents.overall.words) if contents.overall else "") + table
        + html.plots(*(overview_plot(contents, m) for m in shown_metrics(contents.hospitals[0].help)))
        + relevance_table(contents)
    )  # fmt: skip
    return html.section("overview", f"Every {contents.place} at a glance", inside, 2)


def overview_row(contents: Contents, hospital: Hospital, metric: str) -> list[str]:
    """One user in a row of HTML cells."""
    train, test = contents.sizes[hospital.name]
    mean = next(s.mean for s in hospital.help.scores if s.metric == metric and s.algorithm == hospital.help.main)
    gains = [estimate_cell(metric, g.gain) for g in hospital.help.gains if g.metric == metric]
    name = f'<a href="#{anchor(hospital.name)}-1">{escape(hospital.name)}</a>'
    badge = f'<span class="badge {hospital.help.worth}">{ANSWERS[hospital.help.worth]}</span>'
    return [name, f"{train} / {test}", badge, amount(metric, mean), *gains, escape(most_heard(hospital))]


def most_heard(hospital: Hospital) -> str:
    """The other silo with the largest share."""
    others = {n: v for n, v in hospital.listening.shares.items() if n != hospital.name and v > 0}
    if not others:
        return "nobody"
    name = max(others, key=lambda n: others[n])
    return f"{name} ({number(100 * others[name], 0)} %)"


def overview_plot(contents: Contents, metric: str) -> str:
    """The gains of all users in one figure."""
    known = metric_of(metric)
    rows = [Row(h.name, {g.rival: g.gain for g in h.help.gains if g.metric == metric}) for h in contents.hospitals]
    if contents.overall is not None:
        rows.append(Row("mean of all", {g.rival: g.gain for g in contents.overall.gains if g.metric == metric}))
    rivals = list(dict.fromkeys(r for row in rows for r in row.values))
    series = {r: (f"over {algorithm_title(r)}", *style_of(r, k)) for k, r in enumerate(rivals)}
    unit = "gain, points of accuracy" if known.unit == "%" else f"gain (reduction of {known.title})"
    first = rivals[0]
    told = "; ".join(f"{row.label} {estimate_cell(metric, row.values[first])}" for row in rows)
    drawn = any(v.low is not None for row in rows for v in row.values.values())
    lines = "Lines are 95 % intervals." if drawn else "There are too few splits for intervals."
    words = f"Right of the line learning together is better. {lines} Gain over {algorithm_title(first)}: {told}."
    return figures.intervals(f"{known.title}: who gains", rows, series, words, unit, known.factor)


def relevance_table(contents: Contents) -> str:
    """How relevant every silo is to every user: the map of all as a table."""
    if not any(h.listening.relevance for h in contents.hospitals):
        return ""
    heard = (n for h in contents.hospitals for n in (*h.listening.relevance, *h.listening.shares))
    names = list(dict.fromkeys((*contents.sizes, *heard)))

    def cell(hospital: Hospital, name: str) -> str:
        share = number(100 * hospital.listening.shares.get(name, 0.0), 0)
        if name == hospital.name:
            return f'<span class="own">own rows, {share} %</span>'
        value = hospital.listening.relevance.get(name)
        return number(None) if value is None else f"{value:.2f}, {share} %"

    rows = [[escape(h.name), *(cell(h, n) for n in names)] for h in contents.hospitals]
    title = "Who is like whom: relevance of each silo (column) to each user (row), and its share of the information"
    return html.table(title, ["user", *names], rows, raw=True)


def chapter(contents: Contents, hospital: Hospital, several: bool, first: bool) -> str:
    """One user: by itself, or to be opened."""
    inside = questions(contents, hospital, 3 if several else 2)
    if not several:
        return inside
    badge = f'<span class="badge {hospital.help.worth}">worth it: {ANSWERS[hospital.help.worth]}</span>'
    return (
        f'<details class="hospital"{" open" if first else ""}><summary><h2>{escape(hospital.name)}</h2>{badge}'
        f"</summary>{inside}</details>"
    )


def engineer(contents: Contents) -> str:
    """Config, versions, hashes, seeds and curves."""
    config = contents.engineer.config
    hashes = [["data (rows, labels, parts, names)", contents.engineer.data_hash]]
    hashes += [[f"model of {h.name}", h.model_hash] for h in contents.hospitals]
    versions = [[name, str(version)] for name, version in config.get("versions", {}).items()]
    metric = metric_of(contents.engineer.criterion).title
    some = [curve_plot(h, metric) for h in contents.hospitals if any(figures.multi(c) for c in h.curves)]
    seeds = ", ".join(map(str, config.get("seeds", ())))
    keys = "; ".join(f"seed {seed}: {' '.join(map(str, key))}" for seed, key in contents.engineer.key.items())
    inside = (
        html.paragraphs([
            f"Seeds: {seeds}. Model: {config.get('model')}, {config.get('precision')}. Intervals over seeds: "
            f"{config.get('intervals')} (resplit: widened after Nadeau and Bengio, 2003, as splits overlap).",
            f"JAX keys (all others are folded in from these): {keys}.",
        ]) + html.plots(*some)
        + html.table("Versions", ["", "version"], versions) + html.table("SHA-256", ["", "hash"], hashes)
        + html.folded("The study's configuration", f'<pre tabindex="0">{escape(json.dumps(config, indent=1))}</pre>')
    )  # fmt: skip
    return html.section("engineer", "For the engineer", inside, 2)


def curve_plot(hospital: Hospital, metric: str) -> str:
    """Convergence for one user."""
    ends = [(algorithm_title(c.algorithm), figures.last(c)) for c in hospital.curves if any(c.values)]
    told = "; ".join(f"{name} {number(value)}" for name, value in ends)
    words = f"Mean over seeds, on test rows. Dashed: methods of which only the end was measured. At the end: {told}."
    return figures.convergence(hospital.name, hospital.curves, metric, words)
