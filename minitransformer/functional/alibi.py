"""ALiBi, attention with linear biases (Press et al. 2022): the farther a key, the lower its score."""

from minitransformer.backend import xp


def alibi_slopes(num_heads):
    """How fast each head's scores fall with distance -> one number per head.

    For H a power of two they are a geometric sequence from 2^(-8 / H) to 2^-8; H = 8 has 1/2, 1/4, ... 1/256.
    Otherwise the heads take the slopes of the next lower power of two, and those left over every other slope of twice
    as many (section 3; the rule is in the authors' code).
    """
    if num_heads < 1:
        raise ValueError(f"num_heads must be at least 1, got {num_heads}")
    power = 2 ** (num_heads.bit_length() - 1)
    slopes = [2.0 ** (-8.0 * i / power) for i in range(1, power + 1)]
    between = [2.0 ** (-8.0 * i / (2 * power)) for i in range(1, 2 * power, 2)]
    return slopes + between[: num_heads - power]


def alibi_bias(num_heads, T, S, start=0, dtype="float32"):
    """What is added to the scores, -slope_h |t - s| -> (H, T, S).

    Queries stand at positions t = start ... start + T - 1, keys at s = 0 ... S - 1. The paper is causal, so there
    s <= t; the absolute value serves both directions, where before and behind count the same. Its own code adds
    slope_h s and leaves out t: the softmax of a query does not see what all its scores have in common.
    """
    slopes = xp.asarray(alibi_slopes(num_heads), dtype=dtype)
    queries, keys = xp.arange(start, start + T, dtype=dtype), xp.arange(S, dtype=dtype)
    distances = xp.abs(keys - queries[:, None])  # (T, S)
    return distances * -slopes[:, None, None]
