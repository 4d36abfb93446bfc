"""Random generators on the device in use: how they are made, saved and restored."""

import json
from typing import Any

import numpy as np

from minitransformer.backend import backend_name, xp


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
