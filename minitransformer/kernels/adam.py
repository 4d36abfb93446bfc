"""One step of Adam on a GPU, in one kernel."""

import math
from typing import Any

from minitransformer.backend import xp
from minitransformer.kernels.launch import common_real, launch_entries


def adam_update(
    data: xp.ndarray,
    grad: xp.ndarray,
    m: xp.ndarray,
    v: xp.ndarray,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    t: int,
    scale: Any,
) -> Any:
    """As the formula of `training.optimizers.adam_update`, in place.

    All arrays have one shape; data, m and v are contiguous. `scale` is a number or a 0-d array on the device, which
    stays there: nothing waits.
    """
    dtype = common_real(data, grad, m, v)
    if dtype is None:
        return NotImplemented
    root = math.sqrt(1.0 - beta2**t)
    step = lr * root / (1.0 - beta1**t)
    numbers = [dtype.type(x) for x in (beta1, 1.0 - beta1, beta2, 1.0 - beta2, step, root * eps)]
    arrays = data, xp.ascontiguousarray(grad), m, v, xp.asarray(scale, dtype)
    launch_entries("adam_update", dtype, data.size, *arrays, data.size, *numbers)
    return None
