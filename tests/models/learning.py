"""What the tests of several models do: one pass with all its gradients, and one step of Adam."""

import numpy as np

from minitransformer.functional import cross_entropy, cross_entropy_backward
from tests.helpers import Trainer, device, host


def loss_and_gradients(model, inputs, targets, smoothing=0.1):
    """The loss and {name: gradient} of one pass without dropout, on the host."""
    model.zero_grad()
    logits, cache = model.forward(*inputs)
    loss, cache_loss = cross_entropy(logits, device(targets), smoothing)
    model.backward(cross_entropy_backward(1.0, cache_loss), cache)
    return host(loss), {name: host(parameter.grad).copy() for name, parameter in model.named_parameters()}


def check_that_one_step_moves_every_parameter(model, batch, smoothing=0.0, lr=1e-3):
    """AssertionError unless Adam's first step moves each tensor by lr."""
    before, trainer = model.state_dict(), Trainer(model, seed=1, label_smoothing=smoothing)
    trainer.step(batch, lr)
    assert trainer.optimizer.t == 1
    for name, after in model.state_dict().items():
        assert 0.9 * lr < np.abs(after - before[name]).max() <= lr * (1 + 1e-9), name
