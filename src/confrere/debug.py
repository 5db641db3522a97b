"""The debugging host: one silo at a time, without compilation, everything checked.

It calls the same `client.update` and `mixer.update` as the simulator, but where the simulator leaves a silo out whose
message is not finite, this one stops and says which silo, in which round, at which stage.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from confrere.core import Algorithm, Block, Ctx, Record, State, Tree, blank_message, silo_keys, silo_view, taking_part


class NotFinite(FloatingPointError):
    """Something is NaN or infinite; the message names the round, the stage, the silo and the part."""


def check_finite(tree: Tree, round: int, stage: str, silo: str | None = None) -> None:
    """Raise `NotFinite` if any number in the tree is NaN or infinite."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        if not bool(jnp.isfinite(leaf).all()):
            where = "" if silo is None else f" of silo {silo!r}"
            name = jax.tree_util.keystr(path)
            count = int((~jnp.isfinite(leaf)).sum())
            raise NotFinite(
                f"round {round}, {stage}{where}: {count} of {jnp.size(leaf)} numbers of {name or 'it'} are not finite"
            )


def checked_update(algorithm: Algorithm, names: Sequence[str]):
    """`algorithm.update`, silo by silo, raising `NotFinite` at the first number that is not finite."""
    client, mixer = algorithm.client, algorithm.mixer

    def update(state: State, data: Block, key, active=None, observe=None, each=None) -> tuple[State, Record]:
        n, number = len(names), int(state.round)
        here = data.size > 0 if active is None else (jnp.asarray(active) > 0) & (data.size > 0)
        here = taking_part(here, algorithm.prior)
        mixer_key, keys = silo_keys(key, state.round, data.id)
        messages: list[Tree] = []
        privates: list[Tree] = []
        for i, name in enumerate(names):
            inbox, private, own = silo_view(mixer, state, data, i)
            if here[i]:
                check_finite((own.X, own.y), number, "data", name)
                ctx = Ctx(state.round, here[i], own.size, jnp.int32(0), keys[i])
                message, private = client.update(inbox, private, own, ctx)
                check_finite(message, number, "message", name)
                check_finite(private, number, "private state", name)
            else:
                blank = blank_message(client, inbox.shared, private, own)
                message = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), blank)
            messages.append(message)
            privates.append(private)
        stacked = jax.tree.map(lambda *rows: jnp.stack(rows), *messages)
        ctx = Ctx(state.round, here, data.size, jnp.zeros(n, jnp.int32), mixer_key, algorithm.prior)
        inbox, mix, mixed = mixer.update(stacked, state.mix, ctx)
        check_finite(mixed, number, "mix")
        check_finite(inbox, number, "model handed out")
        seen = () if observe is None else observe(stacked, ctx)
        private = jax.tree.map(lambda *rows: jnp.stack(rows), *privates)
        return State(inbox, private, mix, state.round + 1), Record(mixed.weights, mixed.mass, here, seen)

    return update
