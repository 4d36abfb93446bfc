"""A learning rate for short runs, which is not in the paper; the paper's is `noam` in optimizers.py."""

import math


def cosine(step: int, steps: int, peak: float, warmup: int = 100) -> float:
    """A straight rise to `peak` for `warmup` steps, then half a cosine down to 0 at step = `steps`.

    If the number of steps is known in advance, ending with a small rate reaches a lower loss than 1/sqrt(step).
    `step` counts from 1 (ValueError for less).
    """
    if step < 1:
        raise ValueError(f"step counts from 1, got {step}")
    if step <= warmup:
        return peak * step / warmup
    return peak * 0.5 * (1.0 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, steps - warmup))))
