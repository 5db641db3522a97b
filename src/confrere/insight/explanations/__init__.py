"""Explanations: why a model listened as it did, in which features silos disagree, what was expected, how sure it is.

why           the weight of a silo round by round, in terms that add up to it: erosion, waffle, plain, borrowed
disagreement  which features, or layers, make the gradients of two silos differ
guesses       what a clinician expects of some cases: the score; guided: training that heeds it
uncertainty   intervals beside predictions, from rows and silos drawn anew; calibration: how wide they must be
"""

from confrere.insight.explanations.disagreement import Disagreement, disagreement
from confrere.insight.explanations.guesses import Agreement, Guesses, agreement, read_guesses
from confrere.insight.explanations.guided import flagged, guided
from confrere.insight.explanations.uncertainty import Interval, Uncertainty
from confrere.insight.explanations.why import Why, why

__all__ = [
    "Agreement",
    "Disagreement",
    "Guesses",
    "Interval",
    "Uncertainty",
    "Why",
    "agreement",
    "disagreement",
    "flagged",
    "guided",
    "read_guesses",
    "why",
]
