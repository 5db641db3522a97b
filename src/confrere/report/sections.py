"""The sections of the page: the questions about one user."""

import re
import zlib

from confrere.answers.answer import RELEVANT
from confrere.budget import in_words as size
from confrere.report import figures, html
from confrere.report.choosing import about_choice
from confrere.report.contents import Contents, Effect, Estimate, Gain, Grouping, Help, Hospital
from confrere.report.credit import credit
from confrere.report.feedback import about_own_data
from confrere.report.figures import Row, style_of
from confrere.report.helping import CALIBRATION, TOLD
from confrere.report.likeness import likeness
from confrere.report.metrics import (
    algorithm_title,
    amount,
    between,
    decimals,
    gained,
    metric_of,
    number,
    signed,
    within,
)
from confrere.report.why import intervals, reasons

MOST_FEATURES = 16  # in a figure; the table has all
MOST_ON_MAP = 12


def anchor(name: str) -> str:
    """A name for links, whatever the silo is called.

    >>> anchor("36+")
    'h-36-fccceaee'
    """
    plain = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")
    return f"h-{plain}-{zlib.crc32(name.encode()):08x}"


def questions(contents: Contents, hospital: Hospital, level: int) -> str:
    """All of them, in the order in which they are asked."""
    name, one = hospital.name, anchor(hospital.name)
    asked = (
        (f"Did learning together help {name}?", helping(hospital)),
        (f"Whose data did {name}'s model listen to, and when?", listening(hospital) + reasons(hospital)),
        ("What did the model learn, and how does it differ from training alone?", learning(hospital)),
        (f"Does it work equally for all {contents.people}?", groups(contents, hospital)),
        ("How sure is it?", sureness(contents, hospital) + intervals(hospital)),
        ("What did it cost, and what was shared?", cost(contents, hospital)),
        (
            f"Who is like {name}, in what sense, and what does it rest on?",
            likeness(contents.resemblance, hospital.similar, name),
        ),
        *about_choice(hospital),
        ("Who deserves credit?", credit(hospital.name, hospital.credit)),
        *about_own_data(hospital),
    )
    notes = html.paragraphs(hospital.notes, "note")
    return notes + "".join(
        html.section(f"{one}-{k}", f"{k}. {heading}", inside, level)
        for k, (heading, inside) in enumerate(asked, 1)
        if inside
    )


def helping(hospital: Hospital) -> str:
    """Question 1."""
    found = hospital.help
    return html.listed(found.words) + gain_plots(found, hospital.name) + score_table(found, hospital.name)


def gain_plots(found: Help, name: str) -> str:
    """A figure per metric: the gain on every rival."""
    return html.plots(*(gain_plot([g for g in found.gains if g.metric == m], m, name) for m in shown_metrics(found)))


def shown_metrics(found: Help) -> list[str]:
    """The metrics that are drawn: those that are told in words, or else the first."""
    known = list(dict.fromkeys(g.metric for g in found.gains))
    return [m for m in known if m in TOLD] or known[:1]


def gain_plot(gains: list[Gain], metric: str, name: str) -> str:
    """Gains on the rivals with their intervals."""
    known = metric_of(metric)
    rows = [Row(shorter(algorithm_title(g.rival)), {g.rival: g.gain}) for g in gains]
    series = {g.rival: (algorithm_title(g.rival), *style_of(g.rival, k)) for k, g in enumerate(gains)}
    told = "; ".join(
        f"{gained(metric, g.gain.value)} over {algorithm_title(g.rival)} ({between(metric, g.gain)})" for g in gains
    )
    unit = "gain over it, points of accuracy" if known.unit == "%" else f"gain over it (reduction of {known.title})"
    words = f"Right of the line learning together is better, left of it worse. {told}."
    return figures.intervals(
        f"{CALIBRATION if metric == 'brier' else known.title}: gain of {name}", rows, series, words, unit, known.factor
    )


def shorter(label: str) -> str:
    """A label that fits beside a figure."""
    return re.sub(r" \(.*\)$", "", label).removeprefix("training ")


def score_table(found: Help, name: str) -> str:
    """Every algorithm with every metric."""
    metrics = list(dict.fromkeys(s.metric for s in found.scores))
    algorithms = list(dict.fromkeys(s.algorithm for s in found.scores))
    known = {(s.algorithm, s.metric): s for s in found.scores}
    count = max((s.n for s in found.scores), default=0)

    def cell(algorithm: str, metric: str) -> str:
        s = known[algorithm, metric]
        digits = decimals(metric, s.mean)
        spread = "" if s.std is None else f" ± {number(metric_of(metric).factor * s.std, digits)}"
        return amount(metric, s.mean) + spread

    rows = [[algorithm_title(a), *(cell(a, m) for m in metrics)] for a in algorithms]
    many = f"mean ± standard deviation over {count} random splits" if count > 1 else "one split"
    meanings = "; ".join(f"{metric_of(m).title}: {metric_of(m).meaning}" for m in metrics)
    shown = html.table(f"On test rows of {name}, {many}", ["", *(metric_of(m).title for m in metrics)], rows)
    return shown + html.paragraphs([meanings + "."], "small")


def listening(hospital: Hospital) -> str:
    """Question 2."""
    heard, name = hospital.listening, hospital.name
    told = "; ".join(f"{n} {number(100 * v, 1)} %" for n, v in heard.shares.items())
    flags = [n for n, v in heard.relevance.items() if v < RELEVANT]
    hatched = f" Outlined and pale: looks unrelated ({', '.join(flags)})." if flags else ""
    bars = figures.shares(
        name, heard.shares, heard.prior, heard.relevance,
        f"Shares of the information behind the model: {told}; assumed beforehand {number(100 * heard.prior, 1)} %. "
        f"They have no interval.{hatched}",
    )  # fmt: skip
    return html.listed(heard.words) + html.plots(bars, relevance_map(hospital), rounds_plot(hospital))


def relevance_map(hospital: Hospital) -> str:
    """The map of the silos, if their relevance is known and they are not too many to be told apart."""
    heard = hospital.listening
    if not heard.relevance or len(heard.relevance) > MOST_ON_MAP:
        return ""
    told = "; ".join(f"{n} {v:.2f}" for n, v in heard.relevance.items())
    words = (
        f"The nearer to the middle, the more a silo has to say to {hospital.name}; outside the dashed ring (relevance "
        f"{RELEVANT}) it looks unrelated. The size of a circle is its share of the information. Relevance: {told}; no "
        "intervals."
    )
    return figures.similarity_map(hospital.name, heard.relevance, heard.shares, words)


def rounds_plot(hospital: Hospital) -> str:
    """Weights over rounds, for methods that have some."""
    rounds = hospital.listening.rounds
    if not rounds or len(rounds) < 2:
        return ""
    told = "; ".join(f"{n} from {v[0]:.2f} to {v[-1]:.2f}" for n, v in rounds.items() if n != hospital.name)
    words = f"Weights from the first round to the last: {told}. Of one run: no intervals."
    return figures.weights_over_rounds(hospital.name, rounds, words)


def learning(hospital: Hospital) -> str:
    """Question 3."""
    found = hospital.learned
    drawable = found.effects if found.kind == "importance" else found.effects[:-1] or found.effects
    order = sorted(drawable, key=lambda e: -max(abs(e.together), abs(e.alone or 0.0)))
    shown = [e for e in drawable if e in order[:MOST_FEATURES]]
    left_out = len(drawable) - len(shown)
    apart = " The intercept is in the table." if len(drawable) < len(found.effects) else ""
    words = (
        f"{found.unit[0].upper()}{found.unit[1:]}. "
        + (f"The {MOST_FEATURES} largest; {left_out} more are in the table." if left_out else "All features are shown.")
        + apart
        + " Of one model: they have no interval."
    )
    kind = "Coefficients" if found.kind == "coefficients" else "Importance of the columns"
    unit = "rise of the loss" if found.kind == "importance" else found.unit.split(" per ")[0]
    picture = figures.effects(f"{kind} of {hospital.name}'s model", shown, unit, words)
    return html.listed(found.words) + html.plots(picture) + html.folded("All numbers", effect_table(hospital))


def effect_table(hospital: Hospital) -> str:
    """Every feature with its numbers; odds ratios where there are log-odds."""
    found = hospital.learned
    with_odds = "log-odds" in found.unit
    with_steps = any(e.per for e in found.effects)
    header = [
        "",
        *(["what for"] if with_steps else []),
        "together",
        "alone",
        "difference",
        *(["odds ratio, together"] if with_odds else []),
    ]

    def row(e: Effect) -> list[str]:
        odds = [number(2.718281828459045**e.together, 2)] if with_odds else []
        apart = None if e.alone is None else e.together - e.alone
        step = [e.per] if with_steps else []
        return [e.name, *step, signed(e.together), signed(e.alone), signed(apart), *odds]

    rows = [row(e) for e in found.effects]
    return html.table(f"{found.unit}, {hospital.name}; no intervals", header, rows, reasons=with_steps)


def groups(contents: Contents, hospital: Hospital) -> str:
    """Question 4."""
    if hospital.without_groups:
        return html.listed((hospital.without_groups,))
    shown = "".join(one_grouping(contents, hospital, g) for g in hospital.groupings)
    rule = (
        f"Test {contents.people} of {contents.split}. Groups of fewer than {contents.min_group} are not shown by "
        "themselves: they are put together. Intervals are 95 % intervals of each group by itself; means of predictions "
        "have none."
    )
    return shown + html.paragraphs([rule], "small")


def one_grouping(contents: Contents, hospital: Hospital, found: Grouping) -> str:
    """The groups of one column."""
    if not found.groups:
        return html.paragraphs(found.words)
    classes = contents.task == "classification"
    rows = [Row(g.name, {"right": g.right}) for g in found.groups]
    what = "accuracy" if classes else "mean absolute error"
    told = "; ".join(f"{g.name} {within(g.right, classes)}, {g.rows} {contents.people}" for g in found.groups)
    picture = figures.intervals(
        f"{what.capitalize()} by {found.column}, {hospital.name}", rows, {"right": ("", 0, "one")},
        f"With 95 % intervals: {told}.", f"{what}, %" if classes else what, 100 if classes else 1, None,
    )  # fmt: skip
    cells = [
        [g.name, str(g.rows), within(g.right, classes),
         f"{number(100 * g.predicted, 0)} %" if classes else number(g.predicted, 2), within(g.observed, classes)]
        for g in found.groups
    ]  # fmt: skip
    header = ["", contents.people, what, f"predicted for {hospital.sureness.measured}", "observed"]
    shown = html.table(f"By {found.column}, {hospital.name}", header, cells)
    return html.listed(found.words) + f'<div class="plots">{picture}{shown}</div>'


def sureness(contents: Contents, hospital: Hospital) -> str:
    """Question 5."""
    sure = hospital.sureness
    rows = f"{sure.train_rows} {contents.people} for training, {sure.test_rows} for test: {contents.split}."
    if "one " in contents.split:
        rows += " What is said here may differ from the means over all splits, which answer question 1."
    if not sure.bins:
        return html.listed(sure.words) + html.paragraphs([rows])
    classes = contents.task == "classification"
    told = "; ".join(
        f"{number(100 * b.predicted, 0)} % predicted, {within(b.observed, True)} observed, {b.rows} {contents.people}"
        if classes else f"{number(b.predicted, 2)} predicted, {within(b.observed, False)} observed, {b.rows} rows"
        for b in sure.bins
    )  # fmt: skip
    picture = figures.reliability(
        f"Calibration of {hospital.name}'s model", sure.bins, sure.measured,
        f"On the dashed line what is predicted is what happens. {told}.", classes,
    )  # fmt: skip
    models = list(next(iter(sure.scores.values())))
    cells = [[metric_of(m).title, *(amount(m, sure.scores[m][name]) for name in models)] for m in sure.scores]
    scores = html.table(
        f"On the {sure.test_rows} test rows of {hospital.name} in {contents.split}; measured once, no intervals",
        ["", *models],
        cells,
    )
    return html.listed((*sure.words, rows)) + f'<div class="plots">{picture}{scores}</div>'


def cost(contents: Contents, hospital: Hospital) -> str:
    """Question 6."""
    found = hospital.cost
    took = ", ".join(f"{what} {value:.1f} s" for what, value in contents.engineer.seconds.items())
    seconds = [f"Time: {took}."] if took else []
    traffic = [[algorithm_title(t.algorithm), str(t.rounds), size(t.bytes_each), size(t.bytes_total)]
               for t in found.traffic]  # fmt: skip
    names = [n for n in contents.sizes if any(n in s.numbers for s in found.sent)]
    others = [n for s in found.sent for n in s.numbers if n not in contents.sizes]
    names += list(dict.fromkeys(others))
    sent = [[s.what, s.why, *(str(s.numbers.get(n, 0)) for n in names)] for s in found.sent]
    tables = html.table(
        f"Sent and received in one run for {hospital.name}", ["", "rounds", "one silo at most", "all silos"], traffic
    )
    if sent:
        tables += html.table(f"What left each silo for {hospital.name}'s model, in numbers (or words)",
                             ["quantity", "what for", *names], sent, reasons=True)  # fmt: skip
    return html.listed((*found.words, *seconds)) + tables + spent(contents)


def spent(contents: Contents) -> str:
    """What the whole comparison cost, and what each algorithm reached for it."""
    found = contents.footprint
    if found is None:
        return ""
    title = "What one run of each algorithm costs, and what it reached, mean over all users (95 % intervals)"
    rows = [[algorithm_title(name), *cells] for name, *cells in found.rows]
    return html.table(title, list(found.titles), rows) + html.listed(found.words)


def estimate_cell(metric: str, value: Estimate) -> str:
    """A gain and its interval in a cell of a table."""
    factor, digits = metric_of(metric).factor, decimals(metric, *value)
    text = signed(factor * value.value, digits)
    if value.low is None or value.high is None:
        return text
    ends = " to ".join(signed(factor * v, digits) for v in (value.low, value.high))
    return f"{text} ({ends})"
