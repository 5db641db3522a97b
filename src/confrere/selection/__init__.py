"""Selection before training: whom to learn with, shown to the user before any model is trained.

    ndoye          how well a silo's own model carries over to the user's rows
    influence      how much the user's loss would rise without a silo; row_influence: without a row
    gradients      how long a silo keeps its weight in a short run of Weight Erosion
    discrepancy    how differently silo and user judge one and the same linear model, at worst
    payments       what batches are worth that arrive one after another

Each of the first four returns a `Selection`: scores with intervals, reasons in words, what crossed the border, and a
prior that every recipe accepts (`prior=selection`).
"""

from confrere.selection.arrivals import Payment, payments, row_influence
from confrere.selection.descent import Descent
from confrere.selection.discrepancy import discrepancy
from confrere.selection.gradients import gradients
from confrere.selection.influence import influence
from confrere.selection.ndoye import Offer, ndoye
from confrere.selection.pool import Curvature
from confrere.selection.selection import Crossing, Selection

__all__ = [
    "Crossing",
    "Curvature",
    "Descent",
    "Offer",
    "Payment",
    "Selection",
    "discrepancy",
    "gradients",
    "influence",
    "ndoye",
    "payments",
    "row_influence",
]
