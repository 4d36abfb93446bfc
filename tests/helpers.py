"""What several tests need: order-one random values, transfers to and from the device, and the measure of error."""

import contextlib

import numpy as np

from minitransformer import backend
from minitransformer.backend import to_device as device
from minitransformer.backend import to_host as host
from minitransformer.data import Batch
from minitransformer.gradcheck import relative_error
from minitransformer.training import (
    Adam,
    CrossEntropyLoss,
    DataParallel,
    Diagnostics,
    GradientAccumulation,
    step_with,
)
from minitransformer.training.parallel.micro_batches import ByLength

__all__ = [
    "Trainer",
    "complex_step",
    "device",
    "host",
    "protected",
    "ragged",
    "random_array",
    "random_host_array",
    "randomize",
    "relative_error",
    "same",
]


def same(a, b):
    """Whether two arrays, wherever they are, are equal to the last bit."""
    return np.array_equal(host(a), host(b))


def no_ids(batch):
    """ids (batch, 0) on the host: the prompt of a decoding state that reads everything in the test."""
    return np.empty((batch, 0), dtype=np.int64)


def ragged(vocab_size, source_shape, target_shape):
    """A batch of sequences of very different lengths, so that its parts have different numbers of tokens."""
    rng = np.random.default_rng(5)
    batch = Batch(*(rng.integers(3, vocab_size, shape) for shape in (source_shape, target_shape, target_shape)))
    for ids in batch:
        for row in range(len(ids)):
            ids[row, 1 + row % (ids.shape[1] - 1) :] = 0
    return batch


def randomize(layer, seed=0, scale=0.6):
    """Give every parameter of `layer` order-one random values, gamma, beta and biases included; return the layer.

    Initial weights are too kind a test: at gamma = 1 and b = 0 several wrong backward passes are exact.
    """
    rng = np.random.default_rng(seed)
    for name, parameter in layer.named_parameters():
        shift = 1.0 if name.endswith("gamma") else 0.0
        parameter.data[...] = device(shift + scale * rng.standard_normal(parameter.data.shape))
    return layer


def random_array(rng, *shape, dtype=np.float64):
    """Normal values on the device that nobody may overwrite."""
    return protected(device(random_host_array(rng, *shape, dtype=dtype)))


def random_host_array(rng, *shape, dtype=np.float64):
    """The same values on the host, whatever the backend."""
    return protected(rng.standard_normal(shape).astype(dtype))


def protected(array):
    """The array, which from now on raises when it is written to: an array of NumPy, as others cannot do that."""
    if isinstance(array, np.ndarray):
        array.setflags(write=False)
    return array


def complex_step(loss, array, h=1e-30):
    """dloss/darray, one entry at a time, for a complex `array` that loss() reads: f'(x) = Im f(x + ih) / h.

    Nothing is subtracted, so the derivative is exact to rounding, and it knows no formula but the forward one.
    """
    derivative = np.empty(array.shape)
    for index in np.ndindex(array.shape):
        array[index] += 1j * h
        derivative[index] = host(loss()).imag / h
        array[index] -= 1j * h  # exact: the entry is real again
    return derivative


class Trainer:
    """The steps of `train`, one call each, at any learning rate and on any batch."""

    def __init__(
        self,
        model,
        seed=0,
        threads=None,
        label_smoothing=0.1,
        max_norm=1.0,
        grad_accumulation_steps=1,
        detect_anomaly=False,
    ):
        self.model, self.max_norm = model, max_norm
        self.optimizer = Adam(model.parameters())
        self.workers = DataParallel(model, CrossEntropyLoss(label_smoothing), threads, [seed, 2])
        self.optimizer.team = self.workers.team
        gradients = ByLength(self.workers, self.workers.loss_fn)
        if grad_accumulation_steps > 1:
            gradients = GradientAccumulation(gradients, self.workers.loss_fn, grad_accumulation_steps)
        self.diagnostics = Diagnostics(gradients, self.workers, self.optimizer, detect_anomaly)

    def step(self, batch, lr, measure=False):
        """-> the loss, and the accuracy if measured or None."""
        self.optimizer.lr = lr
        watched = self.diagnostics
        return step_with(watched, self.optimizer, batch, self.max_norm, measure, watched.check)[0]


@contextlib.contextmanager
def plain_formulas():
    """Inside a `with` block the plain formulas run on a GPU too, so that the kernels can be compared with them.

    As with `use_backend`, the block holds in the thread that enters it and in its ThreadTeam.
    """
    before = backend._use_kernels.get()
    backend._use_kernels.set(False)
    try:
        yield
    finally:
        backend._use_kernels.set(before)
