"""Initial weights, always drawn on the host with NumPy, so that a model starts equal on every device."""

import math

import numpy as np


def xavier_uniform(rng, fan_in, fan_out, blocks=1, dtype=np.float32):
    """Uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010) -> (fan_in, blocks * fan_out).

    The paper does not give its initialisation; this is what PyTorch's `nn.Transformer` takes. `blocks` independent
    matrices stand side by side. With rng=None the weights are zeros: enough where only shapes matter.
    """
    if rng is None:
        return np.zeros((fan_in, blocks * fan_out), dtype)
    bound = math.sqrt(6.0 / (fan_in + fan_out))
    return rng.uniform(-bound, bound, (fan_in, blocks * fan_out)).astype(dtype)


def normal(rng, shape, std, dtype=np.float32):
    """Normal with mean 0 and standard deviation `std`; zeros with rng=None."""
    if rng is None:
        return np.zeros(shape, dtype)
    return (std * rng.standard_normal(shape)).astype(dtype)
