"""Attacks on what silos send, to be simulated: wrappers of a client or a mixer, nothing else of an algorithm changes.

    attack(client, who, lie)          some silos say what a lie makes of their inbox, in place of what they should say
    adversary(mixer, who, victim)     some silos say what another says in the same round, having overheard it
    attacked(recipe, ...)             a recipe with one of these inside

Lies: `noise(scale)` says random numbers; `echo()` sends back the model that was received as if trained on, so that the
difference which a server takes for a gradient is 0 (Fraboni, Vidal, Lorenzi: Free-rider attacks on model aggregation in
federated learning, 2021, the plain attack; with noise, the disguised one). What is told openly stays as it is.
"""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp

from confrere.checks import check_numbers, check_word
from confrere.core import Algorithm, Client, Ctx, Inbox, Mixer, Tree, federate, present
from confrere.recipe import Bound, Recipe

Lie = Callable[[Tree, Inbox, jax.Array], Tree]  # (honest message, inbox, key) -> what is said
Kind = Literal["noise", "echo", "overheard"]
LYING = 0x11E  # the key of a lie is folded from the silo's, which its honest half uses as it is


def noise(scale: float) -> Lie:
    """Random numbers of a standard deviation, in place of every part but what is told."""
    check_numbers(scale=scale)

    def lie(message: Tree, inbox: Inbox, key: jax.Array) -> Tree:
        leaves, structure = jax.tree.flatten(message)
        keys = jax.random.split(key, len(leaves))
        drawn = [scale * jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves, strict=True)]
        return jax.tree.unflatten(structure, drawn)

    return lie


def echo() -> Lie:
    """Zeros: the model that came, sent back as if it had been trained."""
    return lambda message, inbox, key: jax.tree.map(jnp.zeros_like, message)


def attack(client: Client, who: tuple[int, ...], lie: Lie) -> Client:
    """A client that, in the silos `who`, says what the lie makes of it."""

    def update(inbox, private, data, ctx):
        message, private = client.update(inbox, private, data, ctx)
        open_part = {name: part for name, part in message.items() if name == "told"}
        closed = {name: part for name, part in message.items() if name != "told"}
        said = lie(closed, inbox, jax.random.fold_in(ctx.key, LYING))
        lies = jnp.isin(data.id, jnp.asarray(who, jnp.int32))
        return {**jax.tree.map(lambda a, b: jnp.where(lies, a, b), said, closed), **open_part}, private

    return client._replace(update=update)


def adversary(mixer: Mixer, who: tuple[int, ...], victim: int) -> Mixer:
    """A mixer that hears, from the silos `who`, what `victim` says; with nothing to overhear they are absent."""

    def update(message, state, ctx):
        heard, ctx = overheard(message, ctx, who, victim)
        return mixer.update(heard, state, ctx)

    return mixer._replace(update=update)


def overheard(message: Tree, ctx: Ctx, who: tuple[int, ...], victim: int) -> tuple[Tree, Ctx]:
    """The messages as they arrive if some say what the victim says, and who is then there."""
    everybody = jnp.arange(len(ctx.active))
    copies = jnp.isin(everybody, jnp.asarray(who, jnp.int32))
    source = jnp.where(copies, victim, everybody)
    here = present(ctx) & (~copies | present(ctx)[victim])
    return jax.tree.map(lambda a: a[source], message), ctx._replace(active=here)


def attacked(
    recipe: Recipe, who: tuple[int, ...], kind: Kind, *, victim: int | None = None, scale: float = 0.1
) -> Recipe:
    """The recipe with silos, by their places, that do not train: "noise", "echo", or "overheard" from a victim.

    >>> import numpy as np, confrere as cf
    >>> rows = [(x, x[:, 0] > 0) for x in np.random.default_rng(0).normal(size=(3, 40, 2))]
    >>> recipe = attacked(cf.weight_erosion(user=0, lr=0.5, p_d=0.1), (2,), "noise")
    >>> weights = cf.simulate(recipe, cf.models.logistic(), cf.Silos.from_arrays(rows), 9).weights
    >>> bool(weights[-1, 0, 1] > weights[-1, 0, 2])
    True
    """
    check_word("kind", kind, ("noise", "echo", "overheard"))
    if (kind == "overheard") != (victim is not None):
        raise ValueError("a victim is overheard: name one with kind='overheard', and none otherwise")
    base = recipe.bound
    static = (("base", base), ("kind", kind), ("scale", scale), ("victim", victim), ("who", tuple(who)))
    return recipe._replace(make=Bound(_attacked, static, base.whole))


def _attacked(
    loss: Any, base: Bound, kind: Kind, scale: float, victim: int | None, who: tuple[int, ...], **hyper: Any
) -> Algorithm:
    made = base.maker(loss, **dict(base.static), **hyper)
    if victim is not None:
        return observed_so(federate(made.client, adversary(made.mixer, who, victim), made.prior), who, victim)
    return federate(attack(made.client, who, noise(scale) if kind == "noise" else echo()), made.mixer, made.prior)


def observed_so(algorithm: Algorithm, who: tuple[int, ...], victim: int) -> Algorithm:
    """The algorithm whose host sees messages as they arrive, those that were overheard included."""

    def update(state, data, key, active=None, observe=None, each=jax.vmap):
        seen = None if observe is None else lambda message, ctx: observe(*overheard(message, ctx, who, victim))
        return algorithm.update(state, data, key, active, seen, each)

    return algorithm._replace(update=update)
