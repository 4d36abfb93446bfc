"""The learning rate over time: the paper's (section 5.3, equation 3), and a cosine for short runs."""

import math


def noam(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """factor d_model^-0.5 min(step^-0.5, step warmup^-1.5): a straight rise for `warmup` steps, then 1/sqrt(step).

    `step` and `warmup` count from 1 (at 0 the formula has no value: ValueError). The peak, at step = warmup, is
    factor / sqrt(d_model warmup): 6.99e-4 for the base model. `factor` is not in the paper; its authors' code has it.
    """
    if step < 1:
        raise ValueError(f"step counts from 1, got {step}")
    if warmup < 1:
        raise ValueError(f"warmup must be at least 1, got {warmup}")
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def cosine(step: int, steps: int, peak: float, warmup: int = 100) -> float:
    """A straight rise to `peak` for `warmup` steps, then half a cosine down to 0 at step = `steps`. Not in the paper.

    If the number of steps is known in advance, ending with a small rate reaches a lower loss than 1/sqrt(step).
    `step` counts from 1 (ValueError for less).
    """
    if step < 1:
        raise ValueError(f"step counts from 1, got {step}")
    if step <= warmup:
        return peak * step / warmup
    return peak * 0.5 * (1.0 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, steps - warmup))))
