"""One silo's training rows as a linear model sees them, and where they are in the silo's own table."""

from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np

from confrere.borrowing.glm import Rows
from confrere.data.silo import part_number
from confrere.data.silos import Silos
from confrere.insight.quality.fits import Task
from confrere.insight.quality.recorded import recorded
from confrere.models import Model, logistic
from confrere.selection.linear import linear_rows

MOST_ROWS = 2000  # more are looked at in an even sample


class Own(NamedTuple):
    """Rows with intercept, labels, the task, and the place of every row in the silo's own table."""

    rows: Rows
    y: np.ndarray
    task: Task
    places: np.ndarray


def own_rows(silos: Silos, user: int | str, l2: float, why: str) -> Own:
    """The training rows of one silo, at most MOST_ROWS, in double precision if that is on."""
    place = silos.index(user)
    silo = silos.silos[place]
    training = np.flatnonzero(silo.part == part_number("train"))
    if len(training) > MOST_ROWS:
        training = training[np.linspace(0, len(training) - 1, MOST_ROWS).astype(np.int64)]
    few = replace(silo, X=silo.X[training], y=silo.y[training], part=np.zeros(len(training), np.int8))
    data = linear_rows(replace(silos, silos=(few,), source=None), model_for(silos), l2, why)
    rows = jax.tree.map(lambda a: a[0], data.rows)
    return Own(rows, few.y, Task(data.task, data.penalty), recorded(silos)[place].places[training])


def model_for(silos: Silos) -> Model:
    """Logistic regression for classes, linear regression for amounts."""
    from confrere.answers.personalise import fitting_model

    found = fitting_model(silos)
    return logistic("zero") if found.name == "logistic" else found
