"""Weights: who counts, and for how much, decided from the geometry of the messages."""

from confrere.weights.erosion import Eroded, erosion
from confrere.weights.interpolated import interpolated
from confrere.weights.omega import Omega, omega
from confrere.weights.simple import by_size, self_only, uniform

__all__ = ["Eroded", "Omega", "by_size", "erosion", "interpolated", "omega", "self_only", "uniform"]
