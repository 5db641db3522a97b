"""Networks of places: an edge between those that are near, in the plane or on the globe."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from scipy.spatial import KDTree

from confrere.checks import check_counts, check_functions, check_single_numbers, real_array

Metric = Literal["euclidean", "great-circle"]
Weighting = Callable[[np.ndarray], Any]  # distances [E] -> weights [E]
EARTH = 6371.0  # km


def places_of(coordinates: Any, metric: Metric) -> np.ndarray:
    """Points [n, q] whose straight distances are in the order of the metric: on the globe, chords of a unit sphere."""
    points = real_array("coordinates", coordinates, None, False)
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or not len(points):
        raise ValueError(f"coordinates must have one row per node [n, q], not the shape {points.shape}")
    if not np.isfinite(points).all():
        node = int((~np.isfinite(points)).any(axis=1).argmax())
        raise ValueError(f"the coordinates of node {node} are not finite: {points[node].tolist()}")
    if metric == "euclidean":
        return points
    if metric != "great-circle":
        raise ValueError(f"metric must be 'euclidean' or 'great-circle', not {metric!r}")
    if points.shape[1] != 2 or (np.abs(points[:, 0]) > 90).any():
        raise ValueError("a great circle needs (latitude, longitude) in degrees, the latitude between -90 and 90")
    latitude, longitude = np.radians(points).T
    flat = np.cos(latitude)
    return np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1)


def distances(points: np.ndarray, pairs: np.ndarray, metric: Metric) -> np.ndarray:
    """The distance of every pair: in the coordinates' unit, or in km along a great circle."""
    straight = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    return straight if metric == "euclidean" else 2 * EARTH * np.arcsin(np.minimum(straight / 2, 1))


def nearest_pairs(points: np.ndarray, k: int) -> np.ndarray:
    """Every node with its k nearest others; of several at one distance, those that the search tree meets first."""
    check_counts(k=k)
    n = len(points)
    if k >= n:
        raise ValueError(f"a node of {n} has {n - 1} others, so that it cannot have {k} nearest neighbours")
    _, found = KDTree(points).query(points, k + 1)
    own = found == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True  # of more than k coinciding points a node may not find itself
    return np.stack([np.repeat(np.arange(n), k), found[~own]], axis=1)


def pairs_within(points: np.ndarray, radius: float, metric: Metric) -> np.ndarray:
    """All pairs that are at most `radius` apart."""
    check_single_numbers(radius=radius)
    reach = radius if metric == "euclidean" else 2 * np.sin(min(radius / EARTH, np.pi) / 2)
    return KDTree(points).query_pairs(reach, output_type="ndarray").astype(np.int64).reshape(-1, 2)


def weights_of(weight: Weighting | None, gaps: np.ndarray) -> np.ndarray:
    """What the edges weigh: 1, or by their distance."""
    if weight is None:
        return np.ones(len(gaps))
    check_functions(weight=weight)
    found = real_array("what weight makes of distances", weight(gaps), None, False)
    if found.shape not in ((), gaps.shape):
        raise ValueError(f"weight must make one weight of each of {len(gaps)} distances, not the shape {found.shape}")
    return np.broadcast_to(found, gaps.shape)
