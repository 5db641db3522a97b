"""Bounds of gradient steps on w'Qw + q'w, whose smallest and largest eigenvalues are those of Q (book, chapter 4)."""

import math
from typing import Any

import numpy as np

from confrere.checks import check_single_numbers, real_array


def contraction(lr: float, smallest: float, largest: float) -> float:
    """(4.7): by how much a gradient step on w'Qw + q'w brings w nearer to its minimum; the eigenvalues are Q's.

    >>> import confrere as cf
    >>> cf.networks.bounds.contraction(lr=0.25, smallest=1.0, largest=3.0)
    0.5
    """
    check_single_numbers(lr=lr, smallest=smallest, largest=largest)
    return max(abs(1 - 2 * lr * smallest), abs(1 - 2 * lr * largest))


def best_rate(smallest: float, largest: float) -> float:
    """(4.9): the learning rate with the smallest contraction factor, 1/(smallest + largest).

    Where the solution is not unique the smallest eigenvalue is 0, and no rate contracts: give the smallest above 0,
    `extreme_eigenvalues(p, nonzero=True)`, since gradient steps leave free directions alone.

    >>> import confrere as cf
    >>> cf.networks.bounds.best_rate(smallest=1.0, largest=3.0)
    0.25
    """
    check_single_numbers(-math.inf, smallest=smallest, largest=largest)
    if not 0 < smallest <= largest:
        raise ValueError(
            f"no rate contracts with the eigenvalues {smallest:g} and {largest:g}: the smallest must be above 0, such "
            "as that of extreme_eigenvalues(p, nonzero=True)"
        )
    return 1 / (smallest + largest)


def iterations_needed(distance: float, tol: float, factor: float) -> int:
    """(4.8): so many gradient steps bring a distance from the minimum below tol.

    >>> import confrere as cf
    >>> cf.networks.bounds.iterations_needed(distance=1.0, tol=1e-3, factor=0.5)  # 0.5^10 is below a thousandth
    10
    """
    check_single_numbers(distance=distance)
    check_single_numbers(-math.inf, factor=factor)
    if not 0 <= factor < 1:
        raise ValueError(f"a contraction factor of {factor:g} does not lead to the minimum: it must be below 1")
    if not tol > 0:
        raise ValueError(f"tol must be above 0, not {tol:g}: no number of steps leaves nothing of a distance")
    if distance <= tol:
        return 0
    return 1 if factor == 0 else math.ceil(math.log(distance / tol) / math.log(1 / factor))


def perturbed_bound(factor: float, distance: float, perturbations: Any) -> float:
    """(4.14): how far perturbed gradient steps end from the minimum, given the norms of the perturbations [k].

        factor^k distance + sum over k' = 1..k of factor^(k'-1) |e_(k-k')|

    The book has factor^k', by which the last perturbation would already have shrunk: it has not.

    >>> import confrere as cf
    >>> cf.networks.bounds.perturbed_bound(factor=0.5, distance=8.0, perturbations=[1.0, 2.0])  # 8/4 + 2 + 1/2
    4.5
    """
    check_single_numbers(factor=factor, distance=distance)
    sizes = real_array("perturbations", perturbations, "[k]")
    k = len(sizes)
    return float(factor**k * distance + (factor ** np.arange(k) * sizes[::-1]).sum())
