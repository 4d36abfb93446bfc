"""Bugs of several threads that share one batch."""

from minitransformer import core
from minitransformer.exercises.planting import Exhibit
from minitransformer.training import parallel as data_parallel

EXHIBITS = (
    Exhibit(
        "every part of a batch counts the same",
        "The mean of two means is the mean only where both parts have as many tokens.",
        data_parallel.DataParallel.forward_backward,
        "count / max(sum(tokens), 1) for count in tokens",
        "1 / len(parts) for count in tokens",
    ),
    Exhibit(
        "padding gives its part of the batch more weight",
        "Tokens that the loss leaves out must be left out of its weights, too.",
        data_parallel.DataParallel.forward_backward,
        "np.count_nonzero(part.targets != PAD)",
        "part.targets.size",
    ),
    Exhibit(
        "the parts' gradients are added without their shares",
        "The loss is a weighted mean, so its gradient is one, too.",
        data_parallel.forward_backward,
        "cross_entropy_backward(share, cache_loss)",
        "cross_entropy_backward(1.0, cache_loss)",
    ),
    Exhibit(
        "the replicas' gradients are never gathered",
        "The model learns from the first part of each batch alone, and learns all the same.",
        data_parallel.DataParallel.forward_backward,
        "self._gather_gradients()",
        "pass",
    ),
    Exhibit(
        "the replicas keep the gradients that were gathered",
        "What was added once is added again with the next step.",
        core.Parameter.take_grad,
        "self._grad = None",
        "pass",
    ),
    Exhibit(
        "all threads draw the same dropout masks",
        "One seed for all: sequence 1 and sequence 33 of a batch lose the same units.",
        data_parallel.DataParallel.__init__,
        "make_generator([*seed, i] if i else seed)",
        "make_generator(seed)",
    ),
    Exhibit(
        "a replica has weights of its own",
        "It computes with the weights of the first step for ever.",
        core.Layer.replica,
        "Parameter(parameter.data)",
        "Parameter(parameter.data.copy())",
    ),
)
