"""LeNet-5, in the variant that today goes by that name.

Two convolutions 5 x 5 without padding (6 and 16 channels), each with ReLU and the maximum of 2 x 2 pixels, then dense
layers of 120, 84 and as many outputs as classes; 44,426 parameters for images of 28 x 28 and ten classes. LeCun,
Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition (1998) had scaled hyperbolic tangents,
trainable averages in place of maxima, images padded to 32 x 32, a second layer joined to some of the first's channels
only, and Gaussian outputs. Parameters, biases too, begin uniform between -1/sqrt(fan-in) and 1/sqrt(fan-in), as in
torch.
"""

import functools

import jax

from confrere.core import Tree
from confrere.models.convolution import Kernel, check_kernel, conv_max
from confrere.models.images import (
    Layer,
    Shape,
    as_pictures,
    check_inputs,
    check_shape,
    dense_columns,
    image_model,
    init_conv,
    init_linear,
)
from confrere.models.model import Model


def lenet5(shape: Shape = (28, 28, 1), kernel: Kernel = "auto") -> Model:
    """LeNet-5 with ReLU and maxima, for rows of height x width x channels pixels.

    `kernel` says how to convolve: as a matrix product ("gemm"), which is fast on a CPU, by XLA ("lax"), or as suits
    the platform.

    >>> import jax, confrere as cf
    >>> params = cf.models.lenet5().init(jax.random.key(0), 784, 10)
    >>> sum(leaf.size for leaf in jax.tree.leaves(params))
    44426
    """
    check_kernel(kernel)
    return _lenet5(check_shape(shape, 16), kernel)


@functools.cache
def _lenet5(shape: Shape, kernel: Kernel) -> Model:
    height, width = (((size - 4) // 2 - 4) // 2 for size in shape[:2])

    def init(key: jax.Array, inputs: int, outputs: int) -> Tree:
        check_inputs(inputs, shape, "LeNet-5")
        keys = jax.random.split(key, 5)
        return {
            "conv1": init_conv(keys[0], 5, shape[2], 6),
            "conv2": init_conv(keys[1], 5, 6, 16),
            "dense1": init_linear(keys[2], 16 * height * width, 120),
            "dense2": init_linear(keys[3], 120, 84),
            "dense3": init_linear(keys[4], 84, outputs),
        }

    def forward(params: Tree, X: jax.Array, live: jax.Array | None) -> Layer:
        x = as_pictures(X, shape)
        for name in ("conv1", "conv2"):
            x = conv_max(x, params[name]["w"], kernel)  # before bias and ReLU: the same, at less work
            x = jax.nn.relu(x + params[name]["b"][:, None, None, None])
        x = x.reshape(-1, x.shape[-1])
        for name in ("dense1", "dense2"):
            x = jax.nn.relu(dense_columns(params[name], x))
        return dense_columns(params["dense3"], x).T, 0.0

    return image_model(init, forward, "lenet5", together=False)
