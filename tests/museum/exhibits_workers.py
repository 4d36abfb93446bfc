"""Bugs of several threads that share one batch."""

from minitransformer import core, training
from minitransformer.exercises.planting import Exhibit
from minitransformer.training.parallel import threads

EXHIBITS = (
    Exhibit(
        "every part of a batch counts the same",
        "The mean of two means is the mean only where both parts have as many tokens.",
        threads.part_weights,
        "count / max(sum(counts), 1) for count in counts",
        "1 / len(parts) for count in counts",
    ),
    Exhibit(
        "padding gives its part of the batch more weight",
        "Tokens that the loss leaves out must be left out of its weights, too.",
        training.CrossEntropyLoss.num_terms,
        "int(np.count_nonzero(targets != PAD))",
        "int(targets.size)",
    ),
    Exhibit(
        "the parts' gradients are added without their shares",
        "The loss is a weighted mean, so its gradient is one, too.",
        training.forward_backward,
        "loss_fn, weight, rng",
        "loss_fn, 1.0, rng",
    ),
    Exhibit(
        "the replicas' gradients are never gathered",
        "The model learns from the first part of each batch alone, and learns all the same.",
        threads.DataParallel.map,
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
        threads.DataParallel.__init__,
        "make_generator([*seeds, i] if i else seeds)",
        "make_generator(seeds)",
    ),
    Exhibit(
        "a replica has weights of its own",
        "It computes with the weights of the first step for ever.",
        core.Layer.replica,
        "Parameter(parameter.data)",
        "Parameter(parameter.data.copy())",
    ),
)
