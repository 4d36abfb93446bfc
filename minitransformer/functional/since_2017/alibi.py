"""ALiBi, attention with linear biases (Press et al. 2022): the farther away a key is, the lower its score."""

from numpy.typing import DTypeLike

from minitransformer.backend import xp


def alibi_slopes(num_heads: int) -> list[float]:
    """The rate at which each head's scores fall with distance -> one number per head.

    If H is a power of two, they are a geometric sequence from 2^(-8 / H) to 2^-8; H = 8 has 1/2, 1/4, ... 1/256.
    Otherwise, for P the next lower power of two, the first P heads take the slopes of P heads, and the remaining heads
    every other slope of 2 P heads (section 3; the rule is in the authors' code). Raises ValueError for H < 1.
    """
    if num_heads < 1:
        raise ValueError(f"num_heads must be at least 1, got {num_heads}")
    power = 2 ** (num_heads.bit_length() - 1)
    slopes = [2.0 ** (-8.0 * i / power) for i in range(1, power + 1)]
    between = [2.0 ** (-8.0 * i / (2 * power)) for i in range(1, 2 * power, 2)]
    return slopes + between[: num_heads - power]


def alibi_bias(num_heads: int, T: int, S: int, start: int = 0, dtype: DTypeLike = "float32") -> xp.ndarray:
    """The bias that is added to the scores, -slope_h |t - s| -> (H, T, S).

    Queries are at positions t = start ... start + T - 1, keys at s = 0 ... S - 1. The paper is causal, so there s <= t;
    the absolute value also serves attention in both directions, and treats them alike. The authors' code adds slope_h s
    and leaves out t: adding one number to all scores of a query does not change its softmax.
    """
    slopes = xp.asarray(alibi_slopes(num_heads), dtype=dtype)
    queries, keys = xp.arange(start, start + T, dtype=dtype), xp.arange(S, dtype=dtype)
    distances = xp.abs(keys - queries[:, None])  # (T, S)
    return distances * -slopes[:, None, None]
