"""Bugs of large batches that are computed in micro batches, and of several threads in one process."""

from minitransformer import backend, training
from minitransformer.exercises.planting import Exhibit
from minitransformer.system import process
from minitransformer.training.parallel import threads

EXHIBITS = (
    Exhibit(
        "the sequences that do not fill a part are forgotten",
        "Seven sequences in three parts of two: the seventh is drawn, paid for, and never learnt from.",
        threads.split_batch,
        "np.array_split(ids, parts)",
        "np.split(ids[: len(ids) - len(ids) % parts], parts)",
    ),
    Exhibit(
        "the gradient is divided by the number of parts once more",
        "The weights add up to 1 over all parts. Adam hides the factor, as it divides by the gradient's size.",
        training.GradientAccumulation.map,
        "count / max(num_terms or own_terms, 1)",
        "count / max(num_terms or own_terms, 1) / self.steps",
    ),
    Exhibit(
        "each part clears the gradient of the one before",
        "zero_grad stands inside the loop, and the model learns from the last part of every batch.",
        training.forward_backward,
        "    y, cache = features(",
        "    model.zero_grad()\n    y, cache = features(",
    ),
    Exhibit(
        "a switch in one thread is seen in all",
        "A `with` block that keeps its word in one thread alone: whoever ends last decides for both.",
        backend.use_backend.__init__,
        "_in_use.set(module)",
        'globals()["_at_start"] = module',
        also=(
            (backend.use_backend.__exit__, "_in_use.set(self._before)", 'globals()["_at_start"] = self._before'),
            (backend.backend_name, "_in_use.get()", "_at_start"),
        ),
    ),
    Exhibit(
        "whoever ends first gives the threads back for all",
        "The number of threads belongs to the process: two blocks that overlap must not each restore what they found.",
        process._Limit.__exit__,
        "self.change(tuple(limit for limit in _Limit.active if limit is not self))",
        "self.change(())",
    ),
)
