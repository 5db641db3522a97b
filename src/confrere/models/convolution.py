"""Convolution and pooling of images in the layout [channels, height, width, rows], the batch last.

On a CPU a convolution is one matrix product: the pixels under each place of the kernel are gathered into columns
(im2col), each of which is a copy of whole runs of rows, and the product with the kernel has channels x (places x rows)
numbers. Its gradients, left to automatic differentiation, are two more products and a sum of shifted pictures, which
was measured to be quicker than a convolution with the kernel turned round. Where the largest of 2 x 2 results is all
that is wanted, the four are rows of one product (`conv_max`) with the kernel moved by one pixel down, right or both: a
quarter as many columns, each somewhat longer, and four times as many rows, which was measured to be quicker although
some factors are 0; and the pixels are kept in pairs, so that all shifts are plain slices. On an accelerator it is XLA's
convolution, whose speed is not measured.
"""

from typing import Literal, get_args

import jax
import jax.numpy as jnp
from jax import lax

Kernel = Literal["auto", "gemm", "lax"]


def check_kernel(kernel: str) -> None:
    """Refuse a way to convolve that there is not."""
    if kernel not in get_args(Kernel):
        raise ValueError(f"kernel must be one of {', '.join(get_args(Kernel))}, not {kernel!r}")


def conv(x: jax.Array, w: jax.Array, stride: int = 1, padding: int = 0, kernel: Kernel = "auto") -> jax.Array:
    """x [c, h, w, b] and the kernel w [k, k, c, d] -> [d, h', w', b].

    `kernel`: "gemm", "lax", or the one for the platform at hand.
    """
    if by_xla(kernel):
        around, names = ((padding, padding),) * 2, ("CHWN", "HWIO", "CHWN")
        both = jnp.result_type(x, w)  # XLA's convolution wants one precision
        return lax.conv_general_dilated(
            x.astype(both), w.astype(both), (stride, stride), around, dimension_numbers=names
        )
    if padding:
        x = jnp.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    return product(x, w, stride)


def by_xla(kernel: Kernel) -> bool:
    """Whether XLA convolves, rather than a matrix product."""
    return kernel == "lax" or (kernel == "auto" and jax.default_backend() != "cpu")


def product(x: jax.Array, w: jax.Array, stride: int) -> jax.Array:
    """The convolution without padding as one matrix product."""
    k, _, c, d = w.shape
    height, width = ((size - k) // stride + 1 for size in x.shape[1:3])
    down = [slice(i, i + stride * (height - 1) + 1, stride) for i in range(k)]
    right = [slice(j, j + stride * (width - 1) + 1, stride) for j in range(k)]
    columns = jnp.stack([x[:, rows, places] for rows in down for places in right])
    return (w.reshape(-1, d).T @ columns.reshape(k * k * c, -1)).reshape(d, height, width, -1)


def conv_max(x: jax.Array, w: jax.Array, kernel: Kernel = "auto") -> jax.Array:
    """max_pool(conv(x, w)): x [c, h, w, b] and the kernel w [k, k, c, d] -> [d, h'/2, w'/2, b].

    Where several of the four are largest, the matrix product's gradient is the first one's alone.
    """
    if by_xla(kernel):
        return max_pool(conv(x, w, kernel=kernel))
    k, _, c, d = w.shape
    pairs = k // 2 + 1  # of pixels, down or right, under the four places of the kernel
    high, wide = ((size - k + 1) // 2 for size in x.shape[1:3])
    x = in_pairs(x, high + pairs - 1, wide + pairs - 1)
    columns = jnp.stack([x[:, :, :, i : i + high, j : j + wide] for i in range(pairs) for j in range(pairs)])
    ends = lambda start: (start, 2 * pairs - k - start)  # noqa: E731
    moved = [jnp.pad(w, (ends(i), ends(j), (0, 0), (0, 0))) for i in (0, 1) for j in (0, 1)]
    rows = jnp.concatenate(moved, axis=-1).reshape(pairs, 2, pairs, 2, c, 4 * d).transpose(0, 2, 1, 3, 4, 5)
    four = rows.reshape(-1, 4 * d).T @ columns.reshape(4 * pairs**2 * c, high * wide * x.shape[-1])
    return largest(four.reshape(4, d, high, wide, x.shape[-1]))


def in_pairs(x: jax.Array, high: int, wide: int) -> jax.Array:
    """The first `high` and `wide` pairs of pixels of x [c, h, w, b] -> [2, 2, c, high, wide, b].

    Shifts by whole pairs are then plain slices, whose gradients are quick sums. What x lacks is 0.
    """
    c, h, w, b = x.shape
    x = jnp.pad(x[:, : 2 * high, : 2 * wide], ((0, 0), (0, max(2 * high - h, 0)), (0, max(2 * wide - w, 0)), (0, 0)))
    return x.reshape(c, high, 2, wide, 2, b).transpose(2, 4, 0, 1, 3, 5)


@jax.custom_jvp
def largest(four: jax.Array) -> jax.Array:
    """four [4, ...] -> [...]: the same as `four.max(axis=0)`, whose gradient would be shared by equals.

    XLA spreads the reductions of that gradient over all cores, which takes longer than it saves where each core has a
    silo of its own: a step of LeNet-5 on two devices took 1.6 times as long.
    """
    return jnp.maximum(jnp.maximum(four[0], four[1]), jnp.maximum(four[2], four[3]))


@largest.defjvp
def _largest_jvp(given: tuple[jax.Array], change: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """The change of the first that is largest."""
    four, out = given[0], largest(given[0])
    is_it: list[jax.Array] = []
    open_still = jnp.ones(out.shape, bool)
    for one in four[:-1]:
        is_it.append(open_still & (one == out))
        open_still &= one != out
    is_it.append(open_still)  # also where nothing equals the largest, since it is not a number
    return out, jnp.where(jnp.stack(is_it), change[0], 0).sum(axis=0)


def max_pool(x: jax.Array) -> jax.Array:
    """The largest of every 2 x 2 pixels; an odd last row or column is left out."""
    c, h, w, b = x.shape
    pairs = x[:, : h // 2 * 2, : w // 2 * 2].reshape(c, h // 2, 2, w // 2, 2, b)
    return pairs.max(axis=(2, 4))
