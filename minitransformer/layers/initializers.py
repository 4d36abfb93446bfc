"""Initial weights, always drawn on the host with NumPy, so that a model starts the same on every device."""

import math

import numpy as np
from numpy.typing import DTypeLike


def xavier_uniform(
    rng: np.random.Generator | None, fan_in: int, fan_out: int, blocks: int = 1, dtype: DTypeLike = np.float32
) -> np.ndarray:
    """Uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010) -> (fan_in, blocks * fan_out).

    The paper does not say how it initializes weights; PyTorch's `nn.Transformer` uses this distribution. `blocks`
    independent matrices are side by side. With rng=None the weights are zeros, for uses where only shapes matter.
    """
    if rng is None:
        return np.zeros((fan_in, blocks * fan_out), dtype)
    bound = math.sqrt(6.0 / (fan_in + fan_out))
    return rng.uniform(-bound, bound, (fan_in, blocks * fan_out)).astype(dtype)


def normal(
    rng: np.random.Generator | None, shape: tuple[int, ...], std: float, dtype: DTypeLike = np.float32
) -> np.ndarray:
    """Normal with mean 0 and standard deviation `std` -> array of `shape`; zeros with rng=None."""
    if rng is None:
        return np.zeros(shape, dtype)
    return (std * rng.standard_normal(shape)).astype(dtype)
