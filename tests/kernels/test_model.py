"""A whole training step, fused: the kernels meet each other, and the shapes and masks that a model really has."""

import numpy as np
import pytest

from minitransformer.backend import to_host, xp
from minitransformer.kernels import launch
from minitransformer.kernels.dispatch import plain_formulas
from tests.helpers import relative_error
from tests.kernels.cuda_on_cpu import kernels_in
from tests.strict.meter import measured
from tests.strict.training import SmallTraining, batches

SIZES = {"d_model": 12, "num_heads": 3, "d_ff": 20, "num_layers": 1}


def _training(dtype):
    # a large eps, or else Adam makes full steps along gradients that are 0 except for rounding
    return SmallTraining(dtype, max_norm=0.5, eps=1e-3, **SIZES)


def _train(training, steps=2):
    """Some steps -> the losses, on the device."""
    return [training.step(batch, lr=0.01)[0] for batch in batches(steps, 3)]


def _results(dtype):
    """The losses, and the last gradient and the weights after some steps, on the host."""
    training = _training(dtype)
    losses = np.array([float(loss) for loss in _train(training)])
    return losses, to_host(training.optimizer.flat.grad), to_host(training.optimizer.weights)


@pytest.mark.parametrize(
    ("dtype", "most"), [(np.float32, 3e-5), pytest.param(np.float64, 1e-11, marks=pytest.mark.exhaustive)]
)
def test_fused_training_is_that_of_the_plain_formulas(device, dtype, most):
    fused = _results(dtype)
    with plain_formulas():
        plain = _results(dtype)
    assert len(set(fused[0])) == 2, "it moves, and draws new dropout masks"
    for got, expected in zip(fused, plain, strict=True):
        assert relative_error(got, expected) < most


@pytest.mark.skipif(np.__version__.startswith("1."), reason="NumPy 1 promotes arrays without axes by their value")
def test_fused_step_uses_every_kernel_and_neither_waits_nor_makes_a_float64_array(device):
    if device != "cpu":
        pytest.skip("only the stand-in counts")
    training = _training(np.float32)
    xp.launched.clear()
    with measured() as meter:
        _train(training, steps=1)
    assert xp.launched == set(kernels_in(launch.source()))
    assert meter.waits == meter.downloads == []
    assert meter.lines_that_made("float64", "complex128") == []
    assert len(meter.lines_that_made("float32")) > 50, "arrays are counted at all"
