"""Weights: who counts, and for how much, decided from the geometry of the messages."""

from confrere.weights.attention import attention
from confrere.weights.chosen import chosen
from confrere.weights.cluster import Clusters, cluster
from confrere.weights.erosion import Eroded, erosion
from confrere.weights.graph import graph
from confrere.weights.interpolated import interpolated
from confrere.weights.omega import Omega, omega
from confrere.weights.simple import by_size, self_only, uniform

__all__ = [
    "Clusters",
    "Eroded",
    "Omega",
    "attention",
    "by_size",
    "chosen",
    "cluster",
    "erosion",
    "graph",
    "interpolated",
    "omega",
    "self_only",
    "uniform",
]
