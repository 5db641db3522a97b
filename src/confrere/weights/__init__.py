"""Weights: who counts, and for how much, decided from the geometry of the messages."""

from confrere.weights.erosion import Eroded, erosion
from confrere.weights.simple import by_size, self_only, uniform

__all__ = ["Eroded", "by_size", "erosion", "self_only", "uniform"]
