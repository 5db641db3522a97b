"""The server: it holds one or more models, and lets a rule and its parts move them."""

from typing import Any, Literal

import jax
import jax.numpy as jnp

from confrere.core import Ctx, Inbox, Mixed, Mixer, Part, Rule, present, silo_count
from confrere.mixers.parts import step


def server(rule: Rule, deliver: Literal["same", "own", "all"] = "same", **parts: Part) -> Mixer:
    """A server that holds one model for all ("same"), one per silo ("own"), or k that all receive ("all").

    Each keyword names a part of the message and what is done with its mean; the default is `x=step()`, the
    plain average of the local models. The rule must give one row of weights per model held. Parts that are every silo's
    own, such as `tempered()`, are for a server that holds one model for all.
    """
    chosen = parts or {"x": step()}
    if deliver not in ("same", "own", "all"):
        raise ValueError(f"deliver must be 'same', 'own' or 'all', not {deliver!r}")
    delivered = {name: "own" if part.own else deliver for name, part in chosen.items()}
    every_silos = [name for name, part in chosen.items() if part.own]
    if every_silos and deliver != "same":
        raise ValueError(f"part {every_silos[0]!r} follows one model for all, but deliver={deliver!r} holds several")

    def hold(how, shared, n):
        if how == "same":
            return jax.tree.map(lambda a: a[None], shared)
        if how == "own":
            return jax.tree.map(lambda a: jnp.broadcast_to(a, (n, *a.shape)), shared)
        return shared

    def hand_out(how, held):
        return jax.tree.map(lambda a: a[0], held) if how == "same" else held

    def inbox_of(held, mass):
        return Inbox({name: hand_out(how, held[name]) for name, how in delivered.items()}, hand_out(deliver, mass))

    def init(shared, message):
        n = silo_count(message)
        check_parts(set(chosen), set(shared), set(message))
        held = {name: hold(how, shared[name], n) for name, how in delivered.items()}
        mass = first_mass(rule, message, n)
        models = 1 if deliver == "same" else jax.tree.leaves(held)[0].shape[0]
        if mass.shape[0] != models:
            raise ValueError(
                f"the rule gives {mass.shape[0]} row(s) of weights, but deliver={deliver!r} holds {models} model(s)"
            )
        states = {name: part.init(held[name], message[name]) for name, part in chosen.items()}
        return inbox_of(held, mass), (held, states, rule.init(message))

    def update(message, state, ctx):
        held, states, rule_state = state
        check_shapes(held, message)
        mixed, rule_state = rule.update(message, rule_state, ctx)
        moved = {
            name: part.update(mixed._replace(mean=mixed.mean[name]), message[name], held[name], states[name], ctx)
            for name, part in chosen.items()
        }
        held = {name: new for name, (new, _) in moved.items()}
        states = {name: new for name, (_, new) in moved.items()}
        return inbox_of(held, mixed.mass), (held, states, rule_state), mixed._replace(mean=None)

    models = "x" in chosen and chosen["x"].models
    return Mixer(init, update, axis_of(deliver, delivered), models=models)


def axis_of(deliver: str, delivered: dict[str, str]) -> Any:
    """What of the inbox is stacked over silos: all of it, nothing, or some parts."""
    if deliver == "own":
        return 0
    if "own" not in delivered.values():
        return None
    return Inbox({name: 0 if how == "own" else None for name, how in delivered.items()}, None)


def first_mass(rule: Rule, message, n: int) -> jax.Array:
    """Zeros in the shape and type of the mass that the rule will give."""

    def mass():
        ones = jnp.ones(n, bool)
        ctx = Ctx(jnp.int32(1), ones, jnp.ones(n, jnp.int32), jnp.zeros(n, jnp.int32), jax.random.key(0))
        return rule.update(message, rule.init(message), ctx)[0].mass

    spec = jax.eval_shape(mass)
    return jnp.zeros(spec.shape, spec.dtype)


def check_parts(parts: set[str], shared: set[str], message: set[str]) -> None:
    """Every part of what is shared needs a part of the server, and every part of the server a part of both."""
    for name in sorted(shared - parts):
        raise ValueError(f"the server has no part for {name!r} of what silos share: say e.g. {name}=replace()")
    for name in sorted(parts - shared):
        raise ValueError(f"the server has a part {name!r}, but the client shares only {', '.join(sorted(shared))}")
    for name in sorted(parts - message):
        raise ValueError(f"the server has a part {name!r}, but the messages have only {', '.join(sorted(message))}")


def check_shapes(held, message) -> None:
    """Refuse messages that do not have the shape of what the server holds, naming the part."""
    for name, models in held.items():
        if name not in message:
            raise ValueError(f"the messages have no part {name!r}; they have {', '.join(sorted(message))}")
        want = jax.tree.map(lambda a: a.shape[1:], models)
        got = jax.tree.map(lambda a: a.shape[1:], message[name])
        if want != got:
            raise ValueError(f"part {name!r} of the messages has the shapes {got}, but the server holds {want}")


def alone(part: Part | None = None) -> Mixer:
    """Every silo holds a model of its own and moves it by its own message, so that none is sent.

    What `server(weighted(self_only()), deliver="own")` does, without a product by the identity.
    """
    own = step() if part is None else part

    def init(shared, message):
        check_parts({"x"}, set(shared), set(message))
        n = silo_count(message)
        held = jax.tree.map(lambda a: jnp.broadcast_to(a, (n, *a.shape)), shared["x"])
        return Inbox({"x": held}, jnp.zeros(n)), (held, own.init(held, message["x"]))

    def update(message, state, ctx):
        held, state = state
        check_shapes({"x": held}, message)
        mixed = Mixed(message["x"], 1.0 * present(ctx), jnp.eye(silo_count(message)))
        held, state = own.update(mixed, message["x"], held, state, ctx)
        return Inbox({"x": held}, mixed.mass), (held, state), mixed._replace(mean=None)

    return Mixer(init, update, axis=0, sends=False)
