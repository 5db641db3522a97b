"""Similarity: who is like whom, in what sense, and what it rests on.

scaling   from distances to places on a plane
"""

from confrere.insight.similarity.scaling import Planar, planar

__all__ = ["Planar", "planar"]
