"""Mistakes that NumPy does not mind and a GPU does are seen in a real training step; test_strict.py has all kinds."""

import numpy as np
import pytest

from minitransformer.backend import use_backend
from minitransformer.exercises.planting import planted
from minitransformer.functional import relu
from minitransformer.functional.reductions import column_sum
from minitransformer.training.clipping import clip_factor
from tests.strict.strict import strict
from tests.strict.training import SmallTraining, train_steps


def two_steps(module, *mistake):
    """The meters of two training steps with a mistake."""
    with use_backend(module), planted(*mistake):
        return train_steps(SmallTraining(), 2)[1]


def test_a_function_of_numpy_on_a_device_array_is_refused():
    mistake = (relu, "xp.maximum(x, 0)", "__import__('numpy').maximum(x, 0)")
    with pytest.raises(TypeError, match="does not support ufuncs"):
        two_steps(strict, *mistake)
    two_steps(np, *mistake)  # NumPy itself says nothing


def test_a_decision_of_the_host_is_counted_as_a_wait():
    mistake = "xp.fmin(max_norm / (norm + 1e-6), 1.0)", "min(max_norm / (norm + 1e-6), 1.0)"
    meters = two_steps(strict, clip_factor, *mistake)
    assert all(meter.waits and all(wait.startswith("bool()") for wait in meter.waits) for meter in meters)


def test_the_line_that_makes_float64_is_named():
    mistake = "xp.ones(len(x), x.dtype) @ x", "(xp.ones(len(x)) @ x).astype(x.dtype)"
    for meter in two_steps(strict, column_sum, *mistake):
        lines = meter.lines_that_made("float64")
        assert lines
        assert all(line.startswith("<planted") for line in lines), "the line that was planted, and no other"
