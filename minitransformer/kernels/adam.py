"""One step of Adam on a GPU, in one kernel."""

import math

from minitransformer.backend import xp
from minitransformer.kernels.launch import common_real, launch_entries


def adam_update(adam, data, g, m, v, lr, scale):
    """As the method of `training.Adam`. `scale`, also a 0-d array on the device, stays where it is: nothing waits."""
    dtype = common_real(data, g, m, v)
    if dtype is None or not all(array.flags.c_contiguous for array in (data, g, m, v)):
        return NotImplemented
    beta1, beta2 = adam.betas
    root = math.sqrt(1.0 - beta2**adam.t)
    step = lr * root / (1.0 - beta1**adam.t)
    numbers = [dtype.type(x) for x in (beta1, 1.0 - beta1, beta2, 1.0 - beta2, step, root * adam.eps)]
    launch_entries("adam_update", dtype, data.size, data, g, m, v, xp.asarray(scale, dtype), data.size, *numbers)
    return None
