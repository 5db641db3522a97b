"""Explanations on the page: why silos counted as they did and about what they disagree, and intervals of predictions.

They belong to questions 2 and 5: `reasons` and `intervals` are what is added to these.
"""

import numpy as np

from confrere.answers.answer import Answer
from confrere.answers.predictor import Predictor
from confrere.data.silos import Silos
from confrere.insight.explanations.disagreement import Disagreement, disagreement
from confrere.insight.explanations.why import why
from confrere.report import html
from confrere.report.contents import Differing, Explained, Hospital
from confrere.report.intervals import share
from confrere.report.metrics import number, within

LEVEL = 0.95
MOST_SILOS = 8  # that are told about one by one
MOST_FEATURES = 5  # of a silo, in the table
RESAMPLES = 100


def explained_by(answer: Answer, silos: Silos, user: int) -> Explained:
    """What the page says about reasons, features and intervals."""
    others = sorted((n for n in answer.weights if n != answer.user), key=lambda n: -answer.weights[n])[:MOST_SILOS]
    reasons = {name: tuple(why(answer, name).words) for name in others}
    found = [d for name in others if (d := apart(answer.model, silos, user, name)) is not None]
    differing = tuple(
        Differing(d.b, part.name, part.share, part.low, part.high, part.clear)
        for d in found for part in d.parts[:MOST_FEATURES]
    )  # fmt: skip
    return Explained(reasons, differing, tuple(sure(answer.model, silos, user)))


def apart(model: Predictor, silos: Silos, user: int, other: str) -> Disagreement | None:
    """About what a silo would change the user's own model; None where that cannot be told feature by feature."""
    linear = model.model.name in ("linear", "logistic") and len(model.members) == 1
    if (
        not linear
        or other not in silos.names
        or not silos.sizes("train")[user]
        or not silos.sizes("train")[silos.index(other)]
    ):
        return None
    return disagreement(silos, user, other, model.model, model.params, resamples=RESAMPLES)


def sure(model: Predictor, silos: Silos, user: int) -> list[str]:
    """How wide intervals are on the user's test rows, and how often they were right."""
    X, y = silos[user].rows("test")
    if model.uncertainty is None or not len(y):
        return []
    told = model.predict_interval(X, LEVEL)
    said = [f"Beside each prediction stands how sure it is: {told.words}"]
    if told.possible is None:
        inside = share(int(((told.low <= y) & (y <= told.high)).sum()), len(y))
        width = f"{np.median(told.high - told.low):.3g}"
        return [
            *said,
            f"Half of these intervals are narrower than {width}; {within(inside, True)} held the true value.",
        ]
    width = number(100 * float(np.median((told.high - told.low).max(axis=1))), 0)
    inside = share(int(told.possible[np.arange(len(y)), y.astype(int)].sum()), len(y))
    several = int((told.possible.sum(axis=1) > 1).sum())
    return [
        *said, f"Half of the intervals of a probability are narrower than {width} percentage points.",
        f"For {several} of {len(y)} more than one outcome must be reckoned with; {within(inside, True)} of these sets "
        "of outcomes held the true one.",
    ]  # fmt: skip


def reasons(hospital: Hospital) -> str:
    """What is added to question 2: why each silo counted as it did, and about what it would change the model."""
    found = hospital.explained
    if found is None or not found.reasons:
        return ""
    name = hospital.name
    told = "".join(f"<li>{html.escape(words[0])}</li>" for words in found.reasons.values())
    more = html.paragraphs(dict.fromkeys(w for words in found.reasons.values() for w in words[1:]), "small")
    rows = [
        [d.silo, d.feature, f"{number(100 * d.share, 0)} %",
         "none" if np.isnan(d.low) else f"{number(100 * d.low, 0)} to {number(100 * d.high, 0)} %",
         "yes" if d.clear else "no"]
        for d in found.differing
    ]  # fmt: skip
    table = html.table(
        f"In which features the others would change {name}'s model",
        ["silo", "feature", "share of the difference", "95 % interval", "more than chance"], rows, reasons=True,
    )  # fmt: skip
    return f"<p>Why each counted as it did:</p><ul>{told}</ul>" + html.folded(
        "More on this", more + (table if rows else "")
    )


def intervals(hospital: Hospital) -> str:
    """What is added to question 5: how sure single predictions are."""
    return "" if hospital.explained is None else html.paragraphs(hospital.explained.intervals)
