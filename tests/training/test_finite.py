"""A step whose loss or gradient is not finite is refused before a weight moves, and the message says where it is."""

import numpy as np
import pytest

from minitransformer.core import Layer
from minitransformer.data import get_task
from minitransformer.layers import Linear
from minitransformer.models import Transformer, named_config
from minitransformer.training import Adam, CrossEntropyLoss, NotFiniteError, noam, training_step
from minitransformer.training.finite import check_finite

pytestmark = pytest.mark.host_only
TASK = get_task("copy")


def setting():
    """A small model, its optimizer after one ordinary step, and a batch."""
    model = Transformer(named_config("tiny", len(TASK.vocabulary), d_model=12, num_heads=2, d_ff=20, num_layers=1))
    optimizer, batch = Adam(model.parameters(), lr=1e-2), TASK.batch(np.random.default_rng(3), 4)
    training_step(model, CrossEntropyLoss(), optimizer, batch)
    return model, optimizer, batch


def state(model, optimizer):
    """All that a step may change, but the gradients."""
    arrays, facts = optimizer.state()
    return {**model.state_dict(), **{name: np.array(array) for name, array in {**arrays, **facts}.items()}}


class Spoiled(CrossEntropyLoss):
    """Cross-entropy, with one number of its loss or of its gradient replaced."""

    def __init__(self, where, number):
        super().__init__()
        self.where, self.number = where, number

    def forward(self, logits, targets):
        loss, cache = super().forward(logits, targets)
        return (loss * 0 + loss.dtype.type(self.number) if self.where == "loss" else loss), cache

    def backward(self, dloss, cache, **options):
        dz = super().backward(dloss, cache, **options)
        if self.where == "gradient":
            dz[0, 0, 1] = self.number
        return dz


@pytest.mark.parametrize("where", ["loss", "gradient"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_step_that_is_not_finite_changes_neither_weights_nor_running_means(where, number):
    model, optimizer, batch = setting()
    before = state(model, optimizer)
    message = f"the loss is {number}" if where == "loss" else "the norm of the gradient is (nan|inf); not finite: the"
    with pytest.raises(NotFiniteError, match=message):
        training_step(model, Spoiled(where, number), optimizer, batch)
    after = state(model, optimizer)
    assert all(np.array_equal(before[name], after[name]) for name in before)
    loss, _ = training_step(model, CrossEntropyLoss(), optimizer, batch)  # it can go on
    assert np.isfinite(loss)


class OneBadGradient(Layer):
    """Two linear maps, of which the gradient of one bias overflows."""

    def __init__(self):
        self.first, self.second = (Linear(3, 3, rng=np.random.default_rng(i)) for i in (1, 2))

    def forward(self, x, rng=None):
        h, cache = self.first.forward(x)
        y, second = self.second.forward(h)
        return y, (cache, second)

    def backward(self, dy, cache):
        dx = self.first.backward(self.second.backward(dy, cache[1]), cache[0])
        self.second.b.grad[1] = np.inf
        return dx


class Squares:
    """Half the sum of squares of the difference."""

    def forward(self, y, target):
        return 0.5 * ((y - target) ** 2).sum(), y - target

    def backward(self, dloss, cache):
        return dloss * cache


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_the_gradient_that_is_not_finite_is_named_alone():
    class Batch:
        inputs, targets = (np.ones((2, 4, 3), np.float32),), np.zeros((2, 4, 3), np.float32)

    model = OneBadGradient()
    with pytest.raises(NotFiniteError, match=r"is inf; not finite: the gradient of second\.b; the weights"):
        training_step(model, Squares(), Adam(model.parameters()), Batch)


def test_more_than_three_gradients_are_counted_and_without_a_model_none_is_named():
    model, *_ = setting()
    for parameter in model.parameters():
        parameter.grad[...] = np.inf
    with pytest.raises(NotFiniteError, match=rf" and {len(model.parameters()) - 3} more; the weights"):
        check_finite(1.0, np.inf, model)
    with pytest.raises(NotFiniteError, match=r"^the norm of the gradient is inf; the weights"):
        check_finite(1.0, np.inf)


def test_noam_without_a_warmup_is_refused_in_words():
    with pytest.raises(ValueError, match="warmup must be at least 1, got 0"):
        noam(1, 64, 0)
