"""Mistakes that NumPy does not mind and a GPU does, each planted in the package and run in a real training step.

Real CuPy forgives half of them silently, at the price of a wrong number or a lost second. `strict` catches each one.
"""

import contextlib

import numpy as np
import pytest

from minitransformer.backend import use_backend
from minitransformer.exercises.planting import planted
from minitransformer.functional import cross_entropy, embedding_backward, relu
from minitransformer.functional.cross_entropy import _cross_entropy, _softmax_and_losses
from minitransformer.functional.layer_norm import _layer_norm
from minitransformer.functional.reductions import column_sum, row_dot, row_max
from minitransformer.layers import PositionalEncoding
from minitransformer.training.clipping import clip_factor
from minitransformer.training.gradients import ChunkedGradients
from tests.strict.strict import strict
from tests.strict.training import SmallTraining, train_steps

# what the mistake is: where, the right text, the wrong one, and how strict complains
REFUSED = {
    "a function of NumPy on a device array": (
        relu,
        "xp.maximum(x, 0)",
        "__import__('numpy').maximum(x, 0)",
        (TypeError, "does not support ufuncs"),
    ),
    "a function of NumPy that is no ufunc": (
        row_max,
        "return x.max(",
        "return __import__('numpy').ascontiguousarray(x).max(",
        (TypeError, "does not become a NumPy array"),
    ),
    "device + host": (
        PositionalEncoding.forward,
        "x + rows_from(self.table, start, x.shape[1])",
        "x + sinusoidal_positions(x.shape[1], x.shape[-1], x.dtype)",
        (TypeError, "numpy.ndarray"),
    ),
    "host + device": (
        PositionalEncoding.forward,
        "x + rows_from(self.table, start, x.shape[1])",
        "sinusoidal_positions(x.shape[1], x.shape[-1], x.dtype) + x",
        (TypeError, "numpy.ndarray"),
    ),
    "an index of the host": (
        _softmax_and_losses,
        "xp.arange(len(z))",
        "__import__('numpy').arange(len(z))",
        (TypeError, "NumPy array"),
    ),
    "a keyword that CuPy's clip does not have": (
        relu,
        "xp.maximum(x, 0)",
        "xp.clip(x, min=0, max=None)",
        (TypeError, r"clip\(a, a_min, a_max, out=\)"),
    ),
    "a keyword that CuPy's max does not have": (
        row_max,
        "return x.max(axis=-1, keepdims=True)",
        "return x.max(axis=-1, keepdims=True, initial=-xp.inf)",
        (TypeError, "initial"),
    ),
    "a function that CuPy does not have": (
        row_dot,
        'xp.einsum("...c,...c->...", x, y)',
        "xp.vecdot(x, y)",
        (AttributeError, "vecdot"),
    ),
    "an assignment to a row that comes twice": (
        embedding_backward,
        "scatter_add(dE, ids.reshape(-1), dy.reshape(-1, dy.shape[-1]) * scale)",
        "dE[to_device(ids).reshape(-1)] += dy.reshape(-1, dy.shape[-1]) * scale",
        (ValueError, "comes twice"),
    ),
    "an index below 0": (
        cross_entropy,
        "targets.reshape(-1)",
        "targets.reshape(-1) - 3",  # the end of a sentence, 2, becomes -1: the last token of the vocabulary
        (IndexError, "-1"),
    ),
    "a NumPy number that makes float64 of float32": (
        _layer_norm,
        "x_hat *= rstd",
        "x_hat *= rstd * __import__('numpy').sqrt(1.0)",
        (TypeError, "float64"),
    ),
}
WAITS = {
    "the host decides whether to clip": (
        clip_factor,
        "xp.minimum(max_norm / (norm + 1e-6), 1.0)",
        "max_norm / norm if norm > max_norm else 1.0",
        "bool()",
    ),
    "Python's own min": (
        clip_factor,
        "xp.minimum(max_norm / (norm + 1e-6), 1.0)",
        "min(max_norm / (norm + 1e-6), 1.0)",
        "bool()",
    ),
    "the loss is logged at once": (
        ChunkedGradients.__call__,
        "return Measured(loss, accuracy)",
        "return Measured(float(loss), accuracy)",
        "float()",
    ),
    "a result whose length depends on values": (
        _cross_entropy,
        "return xp.where(counts, losses, 0) @ share,",
        "return losses[counts].mean(),",
        "array[mask]",
    ),
    "somebody looks at it": (
        _cross_entropy,
        "losses = xp.empty(",
        "f'{share.sum():.3f}'\n    losses = xp.empty(",
        "format()",
    ),
}
FLOAT64 = {
    "ones without a dtype": (column_sum, "xp.ones(len(x), x.dtype) @ x", "(xp.ones(len(x)) @ x).astype(x.dtype)"),
    "a quotient of integers": (
        _cross_entropy,
        "share /= xp.maximum(share.sum(), 1)",
        "share = (counts / xp.maximum(counts.sum(), 1)).astype(p.dtype)",
    ),
}
SILENT = {name: mistake[:3] for mistakes in (REFUSED, WAITS, FLOAT64) for name, mistake in mistakes.items()}


def _two_steps(module, mistake=None):
    """The meters of two training steps."""
    with use_backend(module), planted(*mistake) if mistake else contextlib.nullcontext():
        return train_steps(SmallTraining(), 2)[1]


def test_without_a_mistake_nothing_is_found():
    meters = _two_steps(strict)
    assert [(meter.waits, meter.lines_that_made("float64")) for meter in meters] == [([], [])] * 2


@pytest.mark.parametrize("name", REFUSED)
def test_strict_refuses(name):
    *mistake, (error, words) = REFUSED[name]
    with pytest.raises(error, match=words):
        _two_steps(strict, mistake)


@pytest.mark.parametrize("name", WAITS)
def test_strict_counts_the_hidden_wait(name):
    *mistake, how = WAITS[name]
    meters = _two_steps(strict, mistake)
    assert all(wait.startswith(how) for meter in meters for wait in meter.waits)
    assert all(meter.waits for meter in meters)


@pytest.mark.parametrize("name", FLOAT64)
def test_strict_names_the_line_that_makes_float64(name):
    for meter in _two_steps(strict, FLOAT64[name]):
        lines = meter.lines_that_made("float64")
        assert lines
        assert all(line.startswith("<planted") for line in lines), "the line that was planted, and no other"


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="clip(min=) and vecdot are newer than this")
@pytest.mark.parametrize("name", SILENT)
def test_numpy_itself_says_nothing(name):
    """Which is why a test on NumPy alone, however good, proves nothing for a GPU."""
    _two_steps(np, SILENT[name])
