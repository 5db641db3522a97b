"""Similarity: who is like whom, in what sense, and what it rests on.

asking      `similarity`: from silos to what every measure found
own         inside a silo: what it tells, and how that varies; fitting, summaries: models and gradients, summaries
common_set  rows that belong to nobody, for predictions
telling     from what silos tell to distances; measures, measured: what they are and how sure
pairs       measures that are not the same both ways: transfer and influence
combining   all dissimilarities as one
scaling     from distances to places on a plane; mapping: with uncertainty; grouping: groups, if they are stable
words       in words, as tables and as plain values
"""

from confrere.insight.similarity.asking import similarity
from confrere.insight.similarity.grouping import Groups
from confrere.insight.similarity.mapping import Ellipse, Map
from confrere.insight.similarity.measured import Measured
from confrere.insight.similarity.scaling import Planar, planar
from confrere.insight.similarity.similarity import Similarity
from confrere.insight.similarity.words import Likeness

__all__ = ["Ellipse", "Groups", "Likeness", "Map", "Measured", "Planar", "Similarity", "planar", "similarity"]
