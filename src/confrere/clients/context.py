"""The client that describes itself to a common model: the silo's context as further features of all its rows.

The context c_i is made of the silo's own rows and is the same for each of them, so that weights V for it in the first
layer add c_i V to that layer's bias, for every row alike:

    (x, c_i) (W; V) + b  =  x W + (b + c_i V)

So nothing is appended to the rows. The silo trains the model with the bias b + c_i V, and W, b and V are common: the
same numbers as rows with the context as columns give, started from V = 0. The silo's personal model is the one with its
own bias, which takes plain rows. Featurization: Kairouz et al.: Advances and open problems in federated learning
(2019), section 3.3. For a convolution the bias is that of every channel, as if the context were planes of constants.
"""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp

from confrere.core import Block, Client, Inbox, Loss, Tree
from confrere.layers import layer_names

Context = Literal["means", "moments"]


def contextual(client_of: Callable[[Loss], Client], loss: Loss, context: Context, layer: str | None = None) -> Client:
    """The client that `client_of` makes, for the model together with weights V for the silo's context.

    context: "means", the mean of every feature, for a first layer that takes the features; "moments", mean and standard
    deviation of all numbers of the rows, for any. layer: the name of the first layer, by default the first by name.
    """

    def told(data: Block) -> Client:
        describing = described(data, context)
        return client_of(lambda wide, batch: loss(absorbed(wide, describing, layer), batch))

    def init(params):
        return client_of(loss).init({"model": params, "context": blank_context(params, context, layer)})

    def update(inbox, private, data, ctx):
        return told(data).update(inbox, private, data, ctx)

    def personal(inbox: Inbox, private, data):
        return absorbed(told(data).personal(inbox, private, data), described(data, context), layer)

    return Client(init, update, personal)


def described(data: Block, context: Context) -> jax.Array:
    """The silo's description of itself; zeros without a row."""
    live = (jnp.arange(data.y.shape[0]) < data.size)[:, None]
    X = jnp.where(live, data.X.reshape(data.y.shape[0], -1), 0)
    means = X.sum(axis=0) / jnp.maximum(data.size, 1)
    if context == "means":
        return means
    mean = means.mean()
    variance = jnp.where(live, jnp.square(X - mean), 0).sum() / jnp.maximum(data.size * X.shape[1], 1)
    return jnp.stack([mean, jnp.sqrt(jnp.maximum(variance, jnp.finfo(X.dtype).tiny))])


def first_layer(params: Tree, layer: str | None) -> tuple[str | None, dict[str, Any]]:
    """The name of the first layer (None: the model is one) and its parameters."""
    names = layer_names(params)
    name = layer if layer is not None or not names else names[0]
    if name is not None and name not in names:
        raise ValueError(f"the model has no layer named {name}; it has {', '.join(names) or 'a single layer'}")
    found = params if name is None else params[name]
    if not isinstance(found, dict) or not {"w", "b"} <= set(found):
        called = "the model" if name is None else f"layer {name}"
        raise ValueError(f"{called} has no weights w and bias b to add a context to: name a layer that has, layer=...")
    return name, found


def blank_context(params: Tree, context: Context, layer: str | None) -> jax.Array:
    """V before round 1: the context means nothing yet."""
    _, first = first_layer(params, layer)
    return jnp.zeros((len(first["w"]) if context == "means" else 2, *first["b"].shape), first["b"].dtype)


def absorbed(wide: Tree, context: jax.Array, layer: str | None) -> Tree:
    """The plain model whose first bias has taken in the context."""
    params, V = wide["model"], wide["context"]
    name, first = first_layer(params, layer)
    if len(context) != len(V):
        raise ValueError(
            f"the first layer takes {len(V)} numbers, but rows have {len(context)}: choose context='moments'"
        )
    bias = {**first, "b": first["b"] + (context @ V).astype(first["b"].dtype)}
    return bias if name is None else {**params, name: bias}
