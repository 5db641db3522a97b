"""Explanations: why a model listened as it did, and in which features silos disagree.

why           the weight of a silo round by round, in terms that add up to it: erosion, waffle, plain, borrowed
disagreement  which features, or layers, make the gradients of two silos differ
"""

from confrere.insight.explanations.disagreement import Disagreement, disagreement
from confrere.insight.explanations.why import Why, why

__all__ = ["Disagreement", "Why", "disagreement", "why"]
