"""Random generators on the device in use: how they are made, saved and restored, and the random bits for dropout."""

import json
import math
from typing import Any

import numpy as np

from minitransformer.backend import backend_name, to_host, xp


def make_generator(seed: Any) -> np.random.Generator:
    """A random generator for dropout on the device in use: NumPy's SFC64, its fastest, or CuPy's own.

    `seed` is an integer or a sequence of integers.
    """
    if backend_name() == "numpy":
        return np.random.Generator(np.random.SFC64(seed))
    return xp.random.default_rng(seed)


def generator_state(rng: np.random.Generator) -> dict[str, Any] | None:
    """The state of a generator as values that JSON can hold; None for CuPy's, which do not reveal theirs."""
    state = getattr(getattr(rng, "bit_generator", None), "state", None)
    if not isinstance(state, dict):
        return None
    return json.loads(json.dumps(state, default=lambda array: [int(word) for word in array]))


def restore_generator(rng: np.random.Generator, state: dict[str, Any] | None) -> None:
    """Set a generator to a state from `generator_state`, so that it continues from there; None changes nothing."""
    if state is None:
        return
    inner = {
        name: np.array(value, dtype=np.uint64) if isinstance(value, list) else value
        for name, value in state["state"].items()
    }
    rng.bit_generator.state = {**state, "state": inner}


def random_uint16(rng: np.random.Generator, shape: tuple[int, ...]) -> xp.ndarray:
    """Independent integers from 0 to 65535, all equally likely: four from each 64-bit random number of `rng`."""
    size = math.prod(shape)
    words = rng.integers(0, 2**64 - 1, size=-(-size // 4), dtype=xp.uint64, endpoint=True)
    return words.view(xp.uint16)[:size].reshape(shape)


def generator_of_rank(rng: np.random.Generator | None, rank: int) -> np.random.Generator | None:
    """A generator of this rank's own, from one that is in the same state in all ranks; None stays None.

    All ranks draw as much of `rng`, so that it stays the same in all, for what they compute alike. On a GPU this waits
    for it, once.
    """
    if rng is None:
        return None
    return make_generator([*to_host(random_uint16(rng, (4,))).tolist(), rank])
