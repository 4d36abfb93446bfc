"""Random generators on the device in use: how they are made, saved and restored, and the random bits for dropout."""

import json
import math

import numpy as np

from minitransformer.backend import backend_name, xp


def make_generator(seed):
    """A random generator for dropout on the device in use. SFC64 is NumPy's fastest; CuPy has its own."""
    if backend_name() == "numpy":
        return np.random.Generator(np.random.SFC64(seed))
    return xp.random.default_rng(seed)


def generator_state(rng):
    """Where a generator stands, as what JSON can hold; None for one that cannot tell, as CuPy's."""
    state = getattr(getattr(rng, "bit_generator", None), "state", None)
    if not isinstance(state, dict):
        return None
    return json.loads(json.dumps(state, default=lambda array: [int(word) for word in array]))


def restore_generator(rng, state):
    """Let a generator go on from where `generator_state` found it; nothing for None."""
    if state is None:
        return
    inner = {
        name: np.array(value, dtype=np.uint64) if isinstance(value, list) else value
        for name, value in state["state"].items()
    }
    rng.bit_generator.state = {**state, "state": inner}


def random_uint16(rng, shape):
    """Independent integers from 0 to 65535, all equally likely: four from each 64-bit random number of `rng`."""
    size = math.prod(shape)
    words = rng.integers(0, 2**64 - 1, size=-(-size // 4), dtype=xp.uint64, endpoint=True)
    return words.view(xp.uint16)[:size].reshape(shape)
