"""Coalitions of players, and what Shapley's value makes of theirs: plain arithmetic, without silos or models.

    phi_i = sum over coalitions S without i of  |S|! (k - |S| - 1)! / k!  (v(S with i) - v(S))

which is the mean over all orders of k players of what i adds to those before it. It is linear in v, so that one matrix
turns the values of all coalitions into the values of all players, judging row by judging row. With too many players
for all 2^k coalitions, the mean is taken over orders drawn at random.

Shapley: A value for n-person games (1953). Castro, Gómez, Tejada: Polynomial calculation of the Shapley value based on
sampling (2009). Drawn orders come in pairs, each with its reverse, which makes the mean more exact at no cost.
"""

from math import comb

import numpy as np

MOST_EXACT = 12  # players whose coalitions are all tried: 4096


def every_coalition(players: int) -> np.ndarray:
    """All coalitions [2^k, k] as booleans; the first is empty, the last has everybody.

    >>> every_coalition(2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    return (np.arange(2**players)[:, None] >> np.arange(players)) & 1 > 0


def exact_weights(players: int) -> np.ndarray:
    """The matrix [k, 2^k] that turns the values of `every_coalition` into Shapley values.

    >>> exact_weights(2).tolist()
    [[-0.5, 0.5, -0.5, 0.5], [-0.5, -0.5, 0.5, 0.5]]
    """
    member = every_coalition(players)
    size = member.sum(axis=1)
    # |S|! (k - |S| - 1)! / k! = 1 / (k C(k - 1, |S|)), S being the coalition without the player
    share = np.array([1 / (players * comb(players - 1, s)) for s in range(players)] or [0.0])
    joined, left = share[np.maximum(size - 1, 0)], share[np.minimum(size, max(players - 1, 0))]
    return np.where(member, joined[:, None], -left[:, None]).T


def drawn_orders(players: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Orders of the players [count, k]; every second is the reverse of the one before it."""
    first = np.stack([rng.permutation(players) for _ in range((count + 1) // 2)])
    return np.stack([first, first[:, ::-1]], axis=1).reshape(-1, players)[:count]


def beginnings(order: np.ndarray) -> np.ndarray:
    """The coalitions [k + 1, k] that grow as players join in an order, from nobody to everybody."""
    players = len(order)
    place = np.argsort(order)
    return place[None, :] < np.arange(players + 1)[:, None]


def without_each(players: int) -> np.ndarray:
    """Everybody but one [k, k]."""
    return ~np.eye(players, dtype=bool)


def marginals(orders: np.ndarray, values: np.ndarray) -> np.ndarray:
    """What each player adds in each order [P, k, ...], from the values of the growing coalitions [P, k + 1, ...]."""
    steps = np.diff(values, axis=1)
    place = np.argsort(orders, axis=1)
    return np.take_along_axis(steps, place.reshape(*place.shape, *(1,) * (steps.ndim - 2)), axis=1)
