"""Scaling: places on a plane whose distances are as near as can be to given ones, and how near that is.

    stress = sqrt( sum over i < j of w_ij (|z_i - z_j| - d_ij)^2 / sum over i < j of w_ij d_ij^2 )

Started by classical scaling (Torgerson, Psychometrika 17, 1952), which is exact where the distances are those of a
plane, and improved by majorisation (SMACOF: de Leeuw, 1977), in which no step makes the stress worse. Stress 0 is a
perfect map; Kruskal (Psychometrika 29, 1964) calls 0.05 good, 0.1 fair and 0.2 poor.
"""

from typing import NamedTuple

import numpy as np

DIMENSIONS = 2
MOST_STEPS = 300
TOLERANCE = 1e-9  # of the stress, in one step


class Planar(NamedTuple):
    """Places on a plane, and how far their distances are from the ones that were given (0: not at all)."""

    places: np.ndarray  # [n, 2], centred
    stress: float


def planar(distances: np.ndarray, start: np.ndarray | None = None) -> Planar:
    """Places on a plane for distances [n, n], which are symmetric and 0 or more; NaN where none is known.

    The first axis is the one along which places are spread most. `start` are places to begin with.

    >>> import numpy as np
    >>> triangle = planar(np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]]))
    >>> triangle.places.shape, round(triangle.stress, 6)
    ((3, 2), 0.0)
    """
    d = checked(distances)
    weight = np.where(np.isnan(d), 0.0, 1.0) * ~np.eye(len(d), dtype=bool)
    known = np.where(weight > 0, d, 0.0)
    total = float((weight * known**2).sum())
    if total == 0:
        return Planar(np.zeros((len(d), DIMENSIONS)), 0.0)
    z = classical(filled(d)) if start is None else np.array(start, float)
    V = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.pinv(V)
    stress = stress_of(z, known, weight, total)
    for _ in range(MOST_STEPS):
        moved = inverse @ guttman(z, known, weight) @ z
        after = stress_of(moved, known, weight, total)
        if after >= stress - TOLERANCE:
            break
        z, stress = moved, after
    return Planar(turned(z - z.mean(axis=0)), stress)


def checked(distances: np.ndarray) -> np.ndarray:
    """Distances as a square of numbers, or an error that says what is wrong with them."""
    d = np.array(distances, float)
    if d.ndim != 2 or d.shape[0] != d.shape[1]:
        raise ValueError(f"distances must be a square [n, n], not of shape {d.shape}")
    if not np.allclose(d, d.T, equal_nan=True):
        raise ValueError("distances must be the same both ways: take the mean of both")
    if (d < 0).any() or np.isinf(d).any():
        raise ValueError("distances must be finite numbers, 0 or more")
    return d


def filled(d: np.ndarray) -> np.ndarray:
    """Unknown distances stood in for by the shortest way over the others, or by the largest if there is none."""
    way = np.where(np.isnan(d), np.inf, d)
    np.fill_diagonal(way, 0.0)
    for k in range(len(way)):
        way = np.minimum(way, way[:, k : k + 1] + way[k : k + 1])
    return np.where(np.isinf(way), way[np.isfinite(way)].max(), way)


def classical(d: np.ndarray) -> np.ndarray:
    """Classical scaling: the two leading eigenvectors of the centred squares."""
    n = len(d)
    centre = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-0.5 * centre @ d**2 @ centre)
    z = np.zeros((n, DIMENSIONS))
    most = min(n, DIMENSIONS)
    z[:, :most] = vectors[:, ::-1][:, :most] * np.sqrt(np.maximum(values[::-1][:most], 0))
    return z


def lengths(z: np.ndarray) -> np.ndarray:
    """Distances between places [n, n]."""
    return np.linalg.norm(z[:, None] - z[None], axis=2)


def stress_of(z: np.ndarray, d: np.ndarray, weight: np.ndarray, total: float) -> float:
    """The stress of places."""
    return float(np.sqrt((weight * (lengths(z) - d) ** 2).sum() / total))


def guttman(z: np.ndarray, d: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The matrix of one step of majorisation [n, n]."""
    apart = lengths(z)
    B = -weight * np.divide(d, apart, out=np.zeros_like(d), where=apart > 0)
    return B - np.diag(B.sum(axis=1))


def turned(z: np.ndarray) -> np.ndarray:
    """The same places with the widest spread along the first axis, and the farthest place on its right, and above."""
    axes = np.linalg.svd(z, full_matrices=False)[2]
    z = z @ axes.T
    farthest = np.abs(z).argmax(axis=0)
    sign = np.where(z[farthest, np.arange(DIMENSIONS)] < 0, -1.0, 1.0)
    return z * sign


def aligned(places: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Places moved, turned, mirrored and scaled to lie as near as can be to a target [n, 2] (Procrustes)."""
    centre, goal = places.mean(axis=0), target.mean(axis=0)
    a, b = places - centre, target - goal
    U, s, Vt = np.linalg.svd(a.T @ b)
    size = float((a**2).sum())
    scale = float(s.sum()) / size if size > 0 else 0.0
    return scale * a @ (U @ Vt) + goal
