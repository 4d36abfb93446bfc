"""A float32 training step makes no float64 array, none beyond the logits in size, and no more bytes than it should."""

import tracemalloc

import numpy as np
import pytest

from experiments.measuring.steps import Size
from minitransformer.inspection.activation_memory import kept_activations
from minitransformer.models import Transformer
from tests.helpers import Trainer

pytestmark = pytest.mark.host_only  # it watches NumPy's arrays, by a subclass, and the memory of the host

SIZE = Size("test", vocab_size=600, d_model=32, num_heads=4, d_ff=64, num_layers=2, batch=8, length=20)


class Watched(np.ndarray):
    """An array that notes, with all that is computed from it, every array that comes into being."""

    seen: list = None

    def __array_finalize__(self, parent):
        if Watched.seen is not None:
            Watched.seen.append((self.dtype, self.nbytes))


def prepare(watched=False):
    model = Transformer(SIZE.config(dropout=0.1))
    trainer = Trainer(model, threads=1)
    if watched:
        flat = trainer.optimizer.flat
        flat._views = [(data.view(Watched), gradient) for data, gradient in flat._views]
    batch = SIZE.make_batch()
    return lambda: trainer.step(batch, lr=1e-4), model


@pytest.fixture
def seen(monkeypatch):
    step, _ = prepare(watched=True)
    step()
    monkeypatch.setattr(Watched, "seen", [])
    step()
    return Watched.seen


def test_no_array_of_a_step_is_float64(seen):
    assert len(seen) > 500  # the net is cast wide: every operation of the step is in it
    assert {dtype for dtype, _ in seen} <= {np.dtype(np.float32), np.dtype(bool), np.dtype(np.int64)}


def test_no_array_of_a_step_is_larger_than_the_logits(seen):
    logits = 4 * np.count_nonzero(SIZE.make_batch().targets) * SIZE.vocab_size  # those of padding are not computed
    assert max(nbytes for _, nbytes in seen) == logits


def test_a_step_needs_what_it_keeps_and_little_more():
    """Beside what is kept there is one layer's work, as large as the inner activation, or the loss with its logits."""
    step, model = prepare()
    step()
    tracemalloc.start()
    step()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kept = sum(row.bytes * row.count for row in kept_activations(model.config, SIZE.batch, SIZE.length, SIZE.length))
    tokens = SIZE.batch * SIZE.length
    logits = 4 * tokens * SIZE.vocab_size
    assert kept < peak < kept + 2 * logits + 2 * 4 * tokens * SIZE.d_ff
