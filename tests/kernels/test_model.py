"""A whole training step, fused: the kernels meet each other, and the shapes and masks that a model really has."""

import numpy as np
import pytest

from minitransformer.backend import to_host, xp
from minitransformer.functional import layer_norm, layer_norm_backward, softmax, softmax_backward
from minitransformer.kernels import launch
from tests.helpers import plain_formulas, random_host_array, relative_error
from tests.kernels.comparing import assert_same, fused, plain
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
    ours = _results(dtype)
    with plain_formulas():
        plainly = _results(dtype)
    assert len(set(ours[0])) == 2, "it moves, and draws new dropout masks"
    for got, expected in zip(ours, plainly, strict=True):
        assert relative_error(got, expected) < most


def test_the_last_row_and_the_last_column_count(device):
    """In the step above the last row is padding."""
    rng = np.random.default_rng(0)
    x, dy = (random_host_array(rng, 5, 33, dtype=np.float32) for _ in range(2))
    expected = plain(layer_norm, x, x[0], x[1])
    got = fused("layer_norm", x, x[0], x[1])
    assert_same(got, expected, np.float32)
    assert_same(fused("layer_norm_backward", dy, got[1]), plain(layer_norm_backward, dy, expected[1]), np.float32)
    p, _ = plain(softmax, x)
    assert_same(fused("softmax", x)[0], p, np.float32)
    assert_same(fused("softmax_backward", dy, p.astype(np.float32)), plain(softmax_backward, dy, p), np.float32)


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
