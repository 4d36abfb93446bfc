"""What the tests of several models do: one pass with all its gradients, and one step of Adam."""

from minitransformer.functional import cross_entropy, cross_entropy_backward
from tests.helpers import device, host


def loss_and_gradients(model, inputs, targets, smoothing=0.1):
    """The loss and {name: gradient} of one pass without dropout, on the host."""
    model.zero_grad()
    logits, cache = model.forward(*inputs)
    loss, cache_loss = cross_entropy(logits, device(targets), smoothing)
    model.backward(cross_entropy_backward(1.0, cache_loss), cache)
    return host(loss), {name: host(parameter.grad).copy() for name, parameter in model.named_parameters()}
