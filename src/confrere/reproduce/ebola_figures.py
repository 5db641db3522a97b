"""The Ebola case study's figures on synthetic patients, as PNG and on one HTML page.

One panel per user. Full lines: accuracy on the user's test rows, round by round; dashed red: always the same label;
dotted: the weights of the other silos in Weight Erosion.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path

import matplotlib.pyplot as plt
import plotly.graph_objects as go
from matplotlib.figure import Figure
from plotly.subplots import make_subplots

from confrere.reproduce.drawing import SCHEMES, Scheme
from confrere.reproduce.ebola import FIGURES, LEARNING_RATES, Drawn, split_report
from confrere.reproduce.figures import accuracy_panel, outside_legend, save, weight_lines
from confrere.reproduce.page import CONFIG, accuracy_table, add_accuracies, add_weights, html_page

TITLES = {"fedavg": "Global", "weight_erosion": "Weight Erosion", "local": "Local"}
LEGEND = {
    name: Scheme(f"{title} (lr {LEARNING_RATES[name]:g})", SCHEMES[name].colour) for name, title in TITLES.items()
}
COLUMNS = {**TITLES, "fedavg_as_published": "Global as published"}
DOTTED = (":",)

INTRODUCTION = """\
<p><strong>SYNTHETIC DATA: these patients do not exist; nothing here speaks of Ebola.</strong>
The table of the case study is private; its rows are drawn from what is known about it (see
<code>confrere.data.ebola_synthetic</code>), so the experiment is the report's, its numbers are not.</p>
<p>Three silos by age, each the user once: half of its rows are kept for test. Batches of 125, p_d = 0.01, p_s = 0.2,
seed {seed}. Learning rates as in the report's legends, which count half the cross-entropy.</p>
"""
SECTION = """\
<h2>Figure {number}: SYNTHETIC Ebola patients, {split}</h2>
<figure aria-label="Figure {number}: accuracy and weights per round, synthetic data">{figure}
<figcaption>Full lines: accuracy on the user's test rows, after each round. Dashed red: always the same label. Dotted:
how much each of the other silos counts in Weight Erosion.</figcaption></figure>
<div class="scroll">{table}</div>
"""
NOTE = """\
<p>Accuracy after the last round; in brackets the mean over batches, as the report has it: the same, where the test rows
are one batch. <em>Global as published</em> has the defect of the authors' program, which adds up the rows of one silo's
update onto the next.</p>
"""


def heading(drawn: Drawn) -> str:
    """The title of a figure."""
    return f"Figure {FIGURES[drawn.split]} on SYNTHETIC Ebola patients: {drawn.split}, seed {drawn.seed}"


def draw(figures: Sequence[Drawn], folder: Path) -> Path:
    """Write a PNG per figure, and the page with all of them; returns the page."""
    for drawn in figures:
        save(png_figure(drawn), folder / f"ebola-synthetic-figure{FIGURES[drawn.split]}-{drawn.split}-{drawn.seed}.png")
    seed = figures[0].seed
    sections = [html_section(drawn, first=i == 0) for i, drawn in enumerate(figures)]
    body = INTRODUCTION.format(seed=seed) + "".join(sections) + NOTE
    path = folder / f"ebola-synthetic-{seed}.html"
    path.write_text(html_page("Weight Erosion on SYNTHETIC Ebola patients", body), encoding="utf-8")
    return path


def png_figure(drawn: Drawn) -> Figure:
    """Accuracies and weights, a panel per user."""
    n = len(drawn.silos)
    figure, axes = plt.subplots(1, n, figsize=(4 * n, 4.6), sharex=True, sharey=True, layout="constrained")
    for user, axis in enumerate(axes):
        accuracy_panel(axis, drawn.silos, drawn.results, user, LEGEND)
        weight_lines(axis, drawn.silos, drawn.results["weight_erosion"], user, DOTTED)
        axis.set_ylim(0, 1.02)
        axis.set_xlabel("round")
    axes[0].set_ylabel("accuracy (full), weight of a silo (dotted)")
    outside_legend(figure, axes[:1], columns=4)
    figure.suptitle(heading(drawn))
    return figure


def html_section(drawn: Drawn, first: bool) -> str:
    """One figure and its table; the first brings plotly along for all."""
    drawing = html_figure(drawn).to_html(full_html=False, include_plotlyjs=first, config=CONFIG)
    table = accuracy_table(split_report(drawn), drawn.silos, COLUMNS)
    return SECTION.format(number=FIGURES[drawn.split], split=escape(drawn.split), figure=drawing, table=table)


def html_figure(drawn: Drawn) -> go.Figure:
    """The same figure for the page."""
    n = len(drawn.silos)
    titles = [f"user {name}" for name in drawn.silos.names]
    figure = make_subplots(1, n, shared_yaxes=True, subplot_titles=titles)
    for user in range(n):
        add_accuracies(figure, drawn.silos, drawn.results, user, LEGEND)
        add_weights(figure, drawn.silos, drawn.results["weight_erosion"], user, row=1, dashes=("dot",))
    figure.update_xaxes(title_text="round")
    figure.update_yaxes(range=[0, 1.02])
    figure.update_yaxes(title_text="accuracy, weight of a silo", col=1)
    figure.update_layout(template="plotly_white", height=460, margin={"t": 80}, title={"text": heading(drawn)})
    return figure
