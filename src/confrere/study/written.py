"""What a model and an algorithm compute, as a hash: two of one name that differ do not share cells.

Both are traced, and what the trace says is hashed, constants included. The library's own algorithms are known by their
names and the library's version, unless they were given functions to work with. What calls back into Python cannot be
told from its trace: its cells are never found again.
"""

import dataclasses
import functools
import hashlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from confrere.core import Batch, Block
from confrere.models import Model
from confrere.recipe import Bound
from confrere.simulation.inputs import params_spec
from confrere.study.cases import Shape
from confrere.study.contenders import Contender
from confrere.study.store import fingerprint

Spec: Any = jax.ShapeDtypeStruct


def model_in_full(model: Model, shape: Shape) -> str:
    """A hash of what the model computes: its start, its scores and its loss."""
    return _model_in_full(model, shape, str(jnp.result_type(float)))


@functools.lru_cache(maxsize=64)
def _model_in_full(model: Model, shape: Shape, precision: str) -> str:
    params = params_spec(model, shape.features, shape.outputs)
    y = labels_spec(model, (1,))
    batch = Batch(numbers_spec(1, shape.features), y, Spec((1,), bool), Spec((1,), bool))
    start = lambda key: model.init(key, shape.features, shape.outputs)  # noqa: E731
    return hash_of(
        jax.make_jaxpr(model.apply)(params, batch.X),
        jax.make_jaxpr(start)(jax.random.key(0)),
        jax.make_jaxpr(jax.value_and_grad(model.loss))(params, batch),
    )


def algorithm_in_full(contender: Contender, model: Model, shape: Shape) -> str | None:
    """A hash of what an algorithm computes; None for the library's own, which their names tell apart."""
    if is_ours(contender.make.maker) and not holds_functions(contender.make.static):
        return None
    names, precision = tuple(contender.candidates[0]), str(jnp.result_type(float))
    return _algorithm_in_full(contender.make, model, shape, names, contender.personal, precision)


@functools.lru_cache(maxsize=64)
def _algorithm_in_full(
    make: Bound, model: Model, shape: Shape, names: tuple[str, ...], personal: bool, precision: str
) -> str:
    def first_round(params, data, key, hyper, user):
        algorithm = make.on(model, **hyper, **({"user": user} if personal else {}))
        state, record = algorithm.update(algorithm.init(params, data), data, key)
        return algorithm.personal(state, data, user), state, record

    one, each = Spec((), jnp.int32), Spec((shape.silos,), jnp.int32)
    X = numbers_spec(shape.silos, shape.rows, shape.features)
    data: Any = Block(X, labels_spec(model, (shape.silos, shape.rows)), each, each)
    params = params_spec(model, shape.features, shape.outputs)
    hyper = dict.fromkeys(names, numbers_spec())
    return hash_of(jax.make_jaxpr(first_round)(params, data, jax.random.key(0), hyper, one))


def is_ours(maker: Callable[..., Any]) -> bool:
    """Whether a maker is a function of this library, which is the same wherever its name is."""
    module, name = str(getattr(maker, "__module__", "")), getattr(maker, "__qualname__", "<locals>")
    return module.split(".")[0] == "confrere" and "<" not in name


def holds_functions(thing: Any) -> bool:
    """Whether a static argument is or holds a function, whose name does not tell what it does."""
    if isinstance(thing, (str, bytes, np.ndarray, jax.Array)):
        return False
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return any(holds_functions(getattr(thing, part.name)) for part in dataclasses.fields(thing))
    parts = thing.values() if isinstance(thing, Mapping) else thing
    return any(map(holds_functions, parts)) if isinstance(parts, Iterable) else callable(thing)


def numbers_spec(*shape: int) -> Any:
    """An array of numbers."""
    return Spec(shape, jnp.result_type(float))


def labels_spec(model: Model, shape: tuple[int, ...]) -> Any:
    """An array of labels."""
    return Spec(shape, jnp.int32 if model.task == "classification" else jnp.result_type(float))


def hash_of(*traced: Any) -> str:
    """A hash of traces and of the constants in them."""
    return fingerprint({
        "jaxprs": [str(jaxpr) for jaxpr in traced],
        "constants": [listed(a) for jaxpr in traced for part in parts_of(jaxpr) for a in getattr(part, "consts", ())],
        "once": str(uuid.uuid4()) if any(map(calls_back, traced)) else None,
    })  # fmt: skip


def parts_of(traced: Any) -> Iterator[Any]:
    """A trace and those of its inner functions, whose constants are not written out in it."""
    yield traced
    for equation in traced.eqns:
        for value in jax.tree.leaves(tuple(equation.params.values()), is_leaf=lambda v: hasattr(v, "eqns")):
            if hasattr(value, "eqns"):
                yield from parts_of(value)


def calls_back(traced: Any) -> bool:
    """Whether a trace calls functions of Python, of which it shows nothing but the name."""
    return any("callback" in equation.primitive.name for part in parts_of(traced) for equation in part.eqns)


def listed(constant: Any) -> list[Any]:
    """An array with its type, as plain values."""
    if jnp.issubdtype(jnp.result_type(constant), jax.dtypes.prng_key):
        constant = jax.random.key_data(constant)
    array = np.asarray(constant)
    return [array.dtype.str, array.shape, hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()]
