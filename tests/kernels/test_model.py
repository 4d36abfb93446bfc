"""A whole training step, fused: the kernels meet each other, and the shapes and masks that a model really has."""

import numpy as np
import pytest

from minitransformer.backend import to_host, xp
from minitransformer.data.tasks import get_task
from minitransformer.kernels import launch
from minitransformer.kernels.dispatch import plain_formulas
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import Trainer
from tests.helpers import relative_error
from tests.kernels.cuda_on_cpu import kernels_in
from tests.strict.meter import measured

TASK = get_task("reverse")
SIZES = {"d_model": 12, "num_heads": 3, "d_ff": 20, "num_layers": 1, "max_len": 16}
RATES = {"dropout": 0.1, "attention_dropout": 0.1, "ffn_dropout": 0.2, "label_smoothing": 0.1}


def _trainer(dtype):
    config = TransformerConfig(vocab_size=len(TASK.vocabulary), **SIZES, **RATES)
    trainer = Trainer(Transformer(config, seed=1, dtype=dtype), seed=2, max_norm=0.5, threads=1)
    trainer.optimizer.eps = 1e-3  # else Adam makes full steps of gradients that are 0 but for rounding
    return trainer


def _train(trainer, steps=2):
    """Some steps -> the losses, on the device."""
    rng = np.random.default_rng(3)
    return [trainer.step(TASK.batch(rng, 3), lr=0.01)[0] for _ in range(steps)]


def _results(dtype):
    """The losses, and the last gradient and the weights after some steps, on the host."""
    trainer = _trainer(dtype)
    losses = np.array([float(loss) for loss in _train(trainer)])
    return losses, to_host(trainer.parameters[0].grad), to_host(trainer.parameters[0].data)


def test_fused_training_is_that_of_the_plain_formulas(device):
    fused = _results(np.float64)
    with plain_formulas():
        plain = _results(np.float64)
    assert len(set(fused[0])) == 2, "it moves, and draws new dropout masks"
    for got, expected in zip(fused, plain, strict=True):
        assert relative_error(got, expected) < 1e-11


@pytest.fixture
def counted(device):
    """What a fused step in float32 does, where it can be counted -> its Meter; `xp.launched` has the kernels' names."""
    if device != "cpu":
        pytest.skip("only the stand-in counts")
    trainer = _trainer(np.float32)
    xp.launched.clear()
    with measured() as meter:
        _train(trainer, steps=1)
    return meter


def test_fused_step_uses_every_kernel(counted):
    assert xp.launched == set(kernels_in(launch.source()))


@pytest.mark.skipif(np.__version__.startswith("1."), reason="NumPy 1 promotes arrays without axes by their value")
def test_fused_step_neither_waits_nor_makes_a_float64_array(counted):
    assert counted.waits == counted.downloads == []
    assert counted.lines_that_made("float64", "complex128") == []
    assert len(counted.lines_that_made("float32")) > 50, "arrays are counted at all"
