"""Influence of single rows and small batches, to first order; payments for batches that arrive one after another."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.borrowing.glm import Rows, slopes
from confrere.checks import check_numbers
from confrere.data.silos import Silos
from confrere.models import Model
from confrere.selection.asking import LEAST, Others, asked, start_with
from confrere.selection.influence import judge_of
from confrere.selection.pool import Pool, solved


def row_influence(
    silos: Silos,
    user: int | str,
    of: int | str,
    model: Model | None = None,
    *,
    every: int = 3,
    l2: float = 0.01,
    others: Others = "all",
    silent: Sequence[str] = (),
    min_count: int = LEAST,
    seed: int = 0,
) -> np.ndarray:
    """How much the user's loss would rise without each row that silo `of` trains on, to first order [rows].

        phi_r = <H^-1 grad L_T, g_r + A theta> / (n - 1)

    Rows of a small batch add up. For a whole silo the sum is no good: see `influence`. A row that is not in the pool,
    such as one that judges (`of` the user), is NaN. The silo finds these numbers by itself, once it is told the vector
    H^-1 grad L_T.

    >>> import numpy as np, confrere as cf
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> y = (x[:, 0] > 0).astype(int)
    >>> wrong = np.where(np.arange(20) == 19, 0, y)  # the last label is wrong
    >>> silos = cf.Silos.from_arrays([(x, y), (x, wrong)], names=["a", "b"])
    >>> int(cf.selection.row_influence(silos, "a", of="b").argmin())
    19
    """
    silos, place, model = start_with(silos, user, model, others)
    who, without = asked(silos, place, silent, min_count)
    whose = silos.names[silos.index(of)]
    members = [silos.names[place], *who]
    if whose not in members:
        raise ValueError(f"silo {whose!r} cannot be judged row by row: {without[whose]}")
    with jax.enable_x64(True):
        judge = judge_of(silos, place, model, l2, every, None, seed)
        theta, told = judge.pool.optimum(members, np.zeros_like(judge.data.penalty))
        lost = np.asarray(row_gradients(judge.test, theta, judge.data.task))
        live = np.asarray(judge.test.weight) > 0
        direction = solved(judge.pool.curvature(told.values()), lost[live].mean(axis=0))
        rows = judge.pool.rows[whose]
        gradients = np.asarray(row_gradients(rows, theta, judge.data.task))
    n = sum(c.rows for c in told.values())
    phi = (gradients + judge.data.penalty * theta) @ direction / (n - 1)
    return np.where(np.asarray(rows.weight) > 0, phi, np.nan)[: silos.sizes("train")[silos.index(whose)]]


def row_gradients(rows: Rows, theta: np.ndarray, task: str) -> jax.Array:
    """The gradient of every row's loss [m, D]."""
    z = rows.X @ jnp.asarray(theta).reshape(rows.X.shape[1], -1)
    first, _ = slopes(rows, z, task)
    return jnp.einsum("mj,mc->mjc", rows.X, first).reshape(len(rows.X), -1)


class Payment(NamedTuple):
    """What one batch was worth when it arrived: the fall of the user's loss a row, and what is paid for it."""

    silo: str
    rows: int
    worth: float
    paid: float


def payments(
    silos: Silos,
    user: int | str,
    arrivals: Sequence[str | tuple[str, Sequence[int]]],
    budget: float = 1.0,
    model: Model | None = None,
    *,
    every: int = 3,
    l2: float = 0.01,
    others: Others = "all",
    seed: int = 0,
) -> list[Payment]:
    """Pay batches in the order in which they arrive, each by its influence on the model of those before it.

    `arrivals` names silos, or pairs (silo, numbers of its training rows). The first model is that of the user alone,
    with loss L_0 on the judging rows; a batch that makes the loss fall by w is paid budget * w / L_0, one that does not
    is paid nothing, and what is left of the budget is never exceeded. The same batch is so worth more early than late.

    >>> import confrere as cf
    >>> silos = cf.data.titanic("age-some")
    >>> paid = cf.selection.payments(silos, "0-35 a", ["0-35 b", "36+"], budget=100)
    >>> [p.silo for p in paid], sum(p.paid for p in paid) <= 100
    (['0-35 b', '36+'], True)
    """
    check_numbers(budget=budget)
    silos, place, model = start_with(silos, user, model, others)
    name = silos.names[place]
    with jax.enable_x64(True):
        judge = judge_of(silos, place, model, l2, every, None, seed)
        batches = {f"{k}": batch_of(silos, judge.pool, arrival, name) for k, arrival in enumerate(arrivals)}
        pool = Pool({name: judge.pool.rows[name]} | batches, judge.data.penalty, model.task, name)
        theta, _ = pool.optimum([name], np.zeros_like(judge.data.penalty))
        first = before = float(judge.losses(theta).mean())
        members, left = [name], budget
        paid: list[Payment] = []
        for number, arrival in zip(batches, arrivals, strict=True):
            members.append(number)
            theta, _ = pool.optimum(members, theta)
            after = float(judge.losses(theta).mean())
            fee = min(left, budget * max(before - after, 0.0) / first) if first > 0 else 0.0
            whose = arrival if isinstance(arrival, str) else arrival[0]
            paid.append(Payment(whose, int(np.asarray(batches[number].weight).sum()), before - after, fee))
            before, left = after, left - fee
    return paid


def batch_of(silos: Silos, pool: Pool, arrival: str | tuple[str, Sequence[int]], user: str) -> Rows:
    """The rows of one batch."""
    name, chosen = (arrival, None) if isinstance(arrival, str) else arrival
    name = silos.names[silos.index(name)]
    if name == user:
        raise ValueError(f"silo {name!r} is the user, and is not paid by itself")
    rows, count = pool.rows[name], silos.sizes("train")[silos.index(name)]
    if chosen is None:
        return rows
    numbers = np.asarray(chosen)
    if numbers.size == 0 or numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= count:
        raise ValueError(
            f"silo {name!r}: a batch is whole numbers of its training rows, 0 to {count - 1}, not {chosen!r}"
        )
    there = np.isin(np.arange(rows.y.shape[0]), numbers)
    return rows._replace(weight=rows.weight * there)
