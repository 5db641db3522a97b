"""The reproduction as one self-contained HTML page: the table and both figures."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from confrere.data.silos import Silos
from confrere.reproduce.drawing import SCHEMES, SILO_COLOURS, Scheme, constant_predictors, model_values
from confrere.reproduce.runs import Result

CONFIG = {"displayModeBar": False, "responsive": True}
COLUMNS = {**{name: scheme.title for name, scheme in SCHEMES.items()}, "fedavg_as_published": "FedAvg as published"}

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 1180px; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a;
  background: #fff; }}
table {{ border-collapse: collapse; margin: 1rem 0; }}
th, td {{ padding: .35rem .8rem; border-bottom: 1px solid #ccc; text-align: right; }}
th:first-child, td:first-child {{ text-align: left; }}
.scroll {{ overflow-x: auto; }}
figure {{ margin: 2rem 0; }} figcaption {{ color: #444; max-width: 50rem; }}
</style></head><body>
<h1>{title}</h1>
{body}</body></html>
"""

BODY = """\
<p>Four groups of passengers are the silos ({split}). Each is the user once: half of its passengers are kept for test,
and a model of survival is trained for {rounds} rounds, alone (Local), with everybody alike (FedAvg), or with Weight
Erosion, which listens less to silos whose gradients differ from the user's. Seed {seed}.</p>
<div class="scroll">{table}</div>
<p>Accuracy on the user's test passengers after the last round. In brackets: the mean over batches, as the authors
published it, in which a last batch of a single passenger counts as much as a full one. <em>FedAvg as published</em> has
the defect of the authors' program, which adds up the rows of one silo's update onto the next; their figures show that
one.</p>
<figure aria-label="Figure 1: accuracy and weights per round">{figure_1}
<figcaption>Figure 1. Above: accuracy round by round; dashed red: always the same label. Below: how much each of the
other silos counts.</figcaption></figure>
<figure aria-label="Figure 2: parameters of the models">{figure_2}
<figcaption>Figure 2. Parameters after the last round. Black: the output for {died}; grey: for {survived}. A long grey
bar to the right speaks for survival.</figcaption></figure>
"""


def write_page(silos: Silos, results: dict[str, Result], report: dict[str, Any], path: Path) -> Path:
    """Write the page; it needs no network, plotly is inside."""
    labels = silos.label_names or ("0", "1")
    body = BODY.format(
        split=escape(report["split"]), rounds=report["rounds"], seed=report["seed"],
        table=accuracy_table(report, silos), died=escape(labels[0]), survived=escape(labels[1]),
        figure_1=figure_1(silos, results).to_html(full_html=False, include_plotlyjs=True, config=CONFIG),
        figure_2=figure_2(silos, results).to_html(full_html=False, include_plotlyjs=False, config=CONFIG),
    )  # fmt: skip
    path.write_text(html_page("Weight Erosion on the Titanic", body), encoding="utf-8")
    return path


def html_page(title: str, body: str) -> str:
    """A page with a heading; the body is HTML."""
    return PAGE.format(title=escape(title), body=body)


def accuracy_table(report: dict[str, Any], silos: Silos, titles: Mapping[str, str] = COLUMNS) -> str:
    """The final accuracies as an HTML table."""
    head = "".join(f"<th scope='col'>{title}</th>" for title in ("User", *titles.values()))
    rows = []
    for user, row in report["users"].items():
        cells = [f"{row['accuracy'][k]:.3f} ({row['accuracy_batch_mean'][k]:.3f})" for k in titles]
        name = escape(silos.names[int(user)])
        rows.append(f"<tr><th scope='row'>{name}</th>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def figure_1(silos: Silos, results: dict[str, Result]) -> go.Figure:
    """Accuracy and weights per round."""
    n = len(silos)
    titles = [f"user {name}" for name in silos.names]
    figure = make_subplots(2, n, shared_xaxes=True, shared_yaxes=True, subplot_titles=titles, vertical_spacing=0.08)
    for user in range(n):
        add_accuracies(figure, silos, results, user)
        add_weights(figure, silos, results["weight_erosion"], user, row=2)
    figure.update_xaxes(title_text="round", row=2)
    figure.update_yaxes(range=[0, 1.02])
    figure.update_yaxes(title_text="accuracy", row=1, col=1)
    figure.update_yaxes(title_text="weight of the silo", row=2, col=1)
    figure.update_layout(template="plotly_white", height=620, margin={"t": 40})
    return figure


def add_accuracies(
    figure: go.Figure, silos: Silos, results: dict[str, Result], user: int, schemes: Mapping[str, Scheme] = SCHEMES
) -> None:
    """The schemes' accuracies in the user's column, and the two constant predictors'."""
    for scheme, (title, colour) in schemes.items():
        figure.add_scatter(
            y=results[scheme].accuracy[user], name=title, legendgroup=title, showlegend=user == 0,
            line={"color": colour}, row=1, col=user + 1,
        )  # fmt: skip
    for level in constant_predictors(silos, user):
        figure.add_hline(level, line={"color": "#B00000", "dash": "dash", "width": 1}, row=1, col=user + 1)


def add_weights(
    figure: go.Figure, silos: Silos, eroded: Result, user: int, row: int,
    dashes: Sequence[str] = ("solid", "dash", "dashdot", "dot"),
) -> None:  # fmt: skip
    """The weights of the other silos in the user's column."""
    for i, name in enumerate(silos.names):
        if i != user:
            figure.add_scatter(
                x=list(range(1, eroded.alpha.shape[1] + 1)), y=eroded.alpha[user, :, i],
                name=f"silo {name}", legendgroup=f"silo {name}", showlegend=user == (1 if i == 0 else 0),
                legendrank=2000 + i,
                line={"color": SILO_COLOURS[i % len(SILO_COLOURS)], "dash": dashes[i % len(dashes)]},
                row=row, col=user + 1,
            )  # fmt: skip


def figure_2(silos: Silos, results: dict[str, Result], users: tuple[int, ...] = (0, 2)) -> go.Figure:
    """The parameters of the three models, for two users."""
    schemes = ("local", "weight_erosion", "fedavg")
    titles = [f"{SCHEMES[scheme].title}, user {silos.names[user]}" for user in users for scheme in schemes]
    figure = make_subplots(
        len(users), len(schemes), shared_xaxes="all", shared_yaxes=True, subplot_titles=titles, vertical_spacing=0.1
    )
    names = ["bias", *silos.feature_names]
    for row, user in enumerate(users, start=1):
        for column, scheme in enumerate(schemes, start=1):
            values = model_values(results[scheme], user)
            for output, colour in enumerate(("#000000", "#999999")):
                label = (silos.label_names or ("0", "1"))[output]
                figure.add_bar(
                    x=values[:, output], y=names, orientation="h", name=label, legendgroup=label,
                    showlegend=row == column == 1, marker={"color": colour}, row=row, col=column,
                )  # fmt: skip
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(title_text="parameter", row=len(users))
    figure.update_layout(template="plotly_white", height=700, margin={"t": 40}, bargap=0.25)
    return figure
