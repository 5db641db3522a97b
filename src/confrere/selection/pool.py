"""The common model of a pool of silos by Newton's method, from what each silo says around a point.

    objective of a pool = (sum of losses) / (rows) + 1/2 t'At,   A = l2 A0 (see `linear`)

A silo says how many rows it has, and the sum of their losses, its gradient and its curvature at the point: for D
parameters 2 + D + D(D + 1)/2 numbers. It is told the point: D numbers. Only sums over the pool enter the search.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import numpy as np

from confrere.borrowing.glm import Rows, derivatives, total_loss
from confrere.selection.asking import finite_tree
from confrere.selection.selection import Crossing

MOST_ROUNDS = 50
DECREMENT = 1e-16  # of the objective, in the last Newton step
MOST_HALVINGS = 30  # of one step
ROUNDING = 1e-12  # by which a value may rise
NUMBER = 8  # bytes


class Curvature(NamedTuple):
    """What a silo says around a point: rows, and the sums of losses, of gradients [D] and of curvatures [D, D]."""

    rows: float
    loss: float
    gradient: np.ndarray
    H: np.ndarray


Heard = Callable[[str, Curvature], Curvature | None]  # (silo, what it would say) -> what arrives; None: nothing


@dataclass
class Pool:
    """Silos that answer around any point, and a count of what they said and were told."""

    rows: Mapping[str, Rows]  # by silo
    penalty: np.ndarray  # [D] the diagonal of A
    task: str
    user: str  # says nothing across a border
    heard: Heard | None = None
    said: dict[str, int] = field(default_factory=dict)  # rounds that each silo took part in

    def ask(self, names: Sequence[str], theta: np.ndarray) -> dict[str, Curvature]:
        """What silos say around theta; whoever says nothing, or what cannot be, is not in it."""
        found = {}
        for name in names:
            self.said[name] = self.said.get(name, 0) + 1
            own = around(self.rows[name], theta, self.task)
            told = own if self.heard is None or name == self.user else self.heard(name, own)
            if told is not None and possible(told):
                found[name] = told
        return found

    def optimum(self, names: Sequence[str], start: np.ndarray) -> tuple[np.ndarray, dict[str, Curvature]]:
        """The optimum of the silos that answer, and what they say there; a step that leads upwards is halved."""
        theta, told = start, self.ask(names, start)
        value = self.value(told.values(), theta)
        for _ in range(MOST_ROUNDS):
            step = self.newton(told.values(), theta) - theta
            if -(self.slope(told.values(), theta) @ step) <= DECREMENT * max(1.0, abs(value)):
                break
            heard = self.ask(list(told), theta + step)
            for _ in range(MOST_HALVINGS):
                if self.value(heard.values(), theta + step) <= value + ROUNDING * max(1.0, abs(value)):
                    break
                step = step / 2
                heard = self.ask(list(told), theta + step)
            theta, told = theta + step, heard
            value = self.value(told.values(), theta)
        return theta, told

    def value(self, told: Iterable[Curvature], theta: np.ndarray) -> float:
        """The objective of those who told, at theta."""
        every = summed(told)
        return every.loss / every.rows + 0.5 * float(theta @ (self.penalty * theta))

    def slope(self, told: Iterable[Curvature], theta: np.ndarray) -> np.ndarray:
        """The gradient of the objective of those who told [D]."""
        every = summed(told)
        return every.gradient / every.rows + self.penalty * theta

    def curvature(self, told: Iterable[Curvature]) -> np.ndarray:
        """The curvature of the objective of those who told [D, D]."""
        every = summed(told)
        return every.H / every.rows + np.diag(self.penalty)

    def newton(self, told: Iterable[Curvature], theta: np.ndarray) -> np.ndarray:
        """One Newton step on the objective of those who told, from theta [D]."""
        every = list(told)
        return theta - solved(self.curvature(every), self.slope(every, theta))

    def crossings(self, more: str = "") -> tuple[Crossing, ...]:
        """What passed between the user and the others so far."""
        D = len(self.penalty)
        up, down = NUMBER * (2 + D + D * (D + 1) // 2), NUMBER * D
        what = "a point, and rows, loss, gradient and curvature there, in {} rounds" + more
        return tuple(
            Crossing(name, what.format(rounds), rounds * up, rounds * down)
            for name, rounds in self.said.items()
            if name != self.user
        )


def solved(curvature: np.ndarray, right: np.ndarray) -> np.ndarray:
    """curvature^-1 right, or an error that says why there is none."""
    try:
        return np.linalg.solve(curvature, right)
    except np.linalg.LinAlgError:
        raise ValueError(
            "without a penalty the model is not unique: a feature is constant, or follows from others, or there are "
            "more than two classes. Say a positive l2, such as l2=0.01"
        ) from None


def summed(told: Iterable[Curvature]) -> Curvature:
    """The sums over silos, added up in an order that does not depend on theirs: equal silos stay equal to the bit."""
    ordered = sorted(told, key=lambda c: (c.rows, c.loss, c.gradient.tobytes()))
    return Curvature(*(sum(parts) for parts in zip(*ordered, strict=True)))  # type: ignore[arg-type]


def around(rows: Rows, theta: np.ndarray, task: str) -> Curvature:
    """What one silo says of its own rows around a point."""
    loss, gradient, H = _around(rows, theta, task)
    return Curvature(float(np.asarray(rows.weight).sum()), float(loss), np.asarray(gradient), np.asarray(H))


@functools.partial(jax.jit, static_argnames="task")
def _around(rows: Rows, theta: jax.Array, task: str) -> tuple[jax.Array, jax.Array, jax.Array]:
    return total_loss(rows, theta, task), *derivatives(rows, theta, task)


def optimum_alone(rows: Rows, penalty: np.ndarray, task: str) -> np.ndarray:
    """The optimum of one silo's rows by themselves [D]."""
    return Pool({"itself": rows}, penalty, task, "itself").optimum(["itself"], np.zeros_like(penalty))[0]


def possible(told: Curvature) -> bool:
    """Whether a silo could have said this: finite, from some rows, and with a curvature that is nowhere negative."""
    if not finite_tree(told) or told.rows <= 0:
        return False
    least = np.linalg.eigvalsh((told.H + told.H.T) / 2)[0]
    return bool(least >= -1e-8 * max(np.trace(told.H), 1e-12))
