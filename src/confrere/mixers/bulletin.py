"""The mixer of evidence-weighted borrowing: it keeps every silo's summary, and searches the point that pools them.

The first message of a silo is kept in a table. From the later ones, which are around a common point x, comes Newton's
next point: x - t (R + sum H_i)^-1 (R x + sum g_i), where R is a small ridge and t starts at 1 and is quartered whenever
the summed loss rose (a forged message cannot send the search astray). Only sums enter there, so that they could be made
securely. A step is made when everybody is there who was ever heard; with a newcomer the search begins anew, and until
its next step there are no pooled sums (n = 0): readers then add up the table.

With a user, that silo sends nothing, and the table and the pooled sums go to it alone.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from confrere.borrowing.factor import solve
from confrere.borrowing.summary import SEARCHING, Share, Summary, unpacked
from confrere.core import Inbox, Listener, Mixed, Mixer, present, rows_where, silo_count

BACK = 0.25
NONE = 3e38  # the value before the first point: as good as infinite, but a number
NOBODY = -1  # the number of no silo: what the user receives is never its own, whatever number a silo claims
RIDGE = 0.1  # keeps the pooled optimum finite where classes are separable; what is borrowed does not contain it


class Search(NamedTuple):
    """Where the search for the pooled optimum stands."""

    trial: jax.Array  # [D] the point that silos expand around next
    point: jax.Array  # [D] the best so far
    value: jax.Array  # the summed loss there, with the ridge; NONE before the first
    H: jax.Array  # [D, D] summed curvature there
    h: jax.Array  # [D]
    n: jax.Array  # rows behind it; 0: nothing yet from all who were heard
    length: jax.Array  # of the step to the trial point; 1 is Newton's


def bulletin(user=None, share: Share = "full") -> Mixer:
    """A table of summaries, and a search for the point that pools them; with a user, for it alone."""

    def init(shared, message):
        x, table = shared["x"], blank_table(message)
        D = x.shape[0]
        zero = jnp.zeros((), x.dtype)
        search = Search(x, x, zero + NONE, jnp.zeros((D, D), x.dtype), x, zero, zero + 1)
        heard = jnp.zeros(silo_count(message), bool)
        return inbox_of(search, delivered(table, share), zero), (table, heard, search)

    def update(message, state, ctx):
        table, heard, search = state
        here = present(ctx)
        if user is not None:
            here = here & (jnp.arange(len(here)) != user)
        fresh = here & ~heard
        told = message["told"]["id"] if user is None else jnp.full_like(message["told"]["id"], NOBODY)
        new = {**message["x"]._asdict(), "id": told}
        table = rows_where(fresh, {k: new[k] for k in table}, table)
        complete = (here >= heard).all() & heard.any()
        if share in SEARCHING:
            search = stepped(search, message["x"], here & heard, complete)
        restart = search._replace(value=jnp.full_like(search.value, NONE), n=jnp.zeros_like(search.n))
        search = jax.tree.map(lambda a, b: jnp.where(fresh.any(), a, b), restart, search)
        mass = here.sum(dtype=search.n.dtype)
        inbox = inbox_of(search, delivered(table, share), mass)
        return inbox, (table, heard | fresh, search), Mixed(None, mass[None])

    listener = None if user is None else Listener(user, ("table", "pool"))
    return Mixer(init, update, listener=listener, graded=False)


def blank_table(message) -> dict[str, jax.Array]:
    """A row of zeros for every silo: it has said nothing."""
    x: Summary = message["x"]
    return {"h": x.h, "H": x.H, "n": x.n, "id": message["told"]["id"]}


def delivered(table: dict[str, jax.Array], share: Share) -> dict[str, jax.Array]:
    """The table as it is handed out: row by row, or summed to a single row that belongs to no silo."""
    if share != "sum":
        return table
    summed = {name: table[name].sum(axis=0, keepdims=True) for name in ("h", "H", "n")}
    return {**summed, "id": jnp.full(1, NOBODY, table["id"].dtype)}


def inbox_of(search: Search, table: dict[str, jax.Array], mass: jax.Array) -> Inbox:
    """What silos receive."""
    pool = {"point": search.point, "H": search.H, "h": search.h, "n": search.n}
    return Inbox({"x": search.trial, "table": table, "pool": pool}, mass)


def stepped(search: Search, message: Summary, who: jax.Array, complete: jax.Array) -> Search:
    """One step of the damped search from messages around the trial point; none if not all are there."""
    D = search.point.shape[0]
    H = unpacked(jnp.where(who[:, None], message.H, 0).sum(0), D, "full")
    h = jnp.where(who[:, None], message.h, 0).sum(0)
    value = jnp.where(who, message.loss, 0).sum() + 0.5 * RIDGE * jnp.square(search.trial).sum()
    rows = jnp.where(who, message.n, 0).sum()
    better = value <= search.value
    found = Search(search.trial, search.trial, value, H, h, rows, jnp.ones_like(value))
    worse = search._replace(length=search.length * BACK)
    now = jax.tree.map(lambda a, b: jnp.where(better, a, b), found, worse)
    curvature = now.H + RIDGE * jnp.eye(D, dtype=H.dtype)
    step = solve(curvature, now.h - curvature @ now.point)
    step = jnp.where(jnp.isfinite(step).all(), step, 0)  # a forged curvature may be no curvature
    now = now._replace(trial=now.point + now.length * step)
    return jax.tree.map(lambda a, b: jnp.where(complete, a, b), now, search)
