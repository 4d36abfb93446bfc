"""Ten steps of training, three times: step by step with our parts, with our loop, and with PyTorch's parts.

Each step is forward, smoothed loss, backward, clipping by the norm of all gradients, and Adam at Noam's learning rate.
PyTorch's Adam and clipping work on the leaves of autograd, which are our parameters by our names.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from minitransformer.data import Batch
from minitransformer.gradcheck.subjects import SUBJECTS
from minitransformer.models import Transformer
from minitransformer.training import Adam, CrossEntropyLoss, TrainingSettings, clip_grad_norm, noam, train
from tests.helpers import relative_error
from tests.oracle.cases import PARITY, REFERENCE_SIZES
from tests.oracle.problems import build, draw, draw_ids, leaves, load
from tests.oracle.theirs import configuration

NAME = "Transformer norm=post tied=True smoothing=0.1 dropout=0.0"
SWITCHES = SUBJECTS[NAME].switches
SIZES = REFERENCE_SIZES
# The learning rate both rises and falls, and only some of the steps are clipped.
WARMUP, FACTOR = 4, 0.1
SETTINGS = TrainingSettings(steps=10, batch_size=SIZES.B, max_norm=3.0)
SCHEDULE = partial(noam, d_model=SIZES.C, warmup=WARMUP, factor=FACTOR)
BETAS, EPS = (0.9, 0.98), 1e-9  # paper section 5.3


class Start(NamedTuple):
    """Where all three begin."""

    weights: dict  # by our names
    batches: dict  # {name: ids (steps, B, length)}

    def batch(self, step):
        """The ids of one step, counted from 0."""
        return {name: ids[step] for name, ids in self.batches.items()}


class Run(NamedTuple):
    """What training leaves behind."""

    losses: np.ndarray  # (steps,)
    norms: np.ndarray  # (steps,), of the gradient before it is clipped
    weights: dict  # by our names, after the last step


def draw_start(seed):
    """Random weights and batches."""
    rng = np.random.default_rng(seed)
    lengths = {"source": SIZES.S, "target": SIZES.T, "targets": SIZES.T}
    batches = {
        name: np.stack([draw_ids(rng, SIZES.B, length, SIZES.V) for _ in range(SETTINGS.steps)])
        for name, length in lengths.items()
    }
    return Start(draw(NAME, SIZES, seed).weights, batches)


def train_ours(start):
    """With our layers, clipping, Adam and schedule -> Run."""
    problem = load(NAME, SIZES, start.weights)
    parameters = list(problem.parameters.values())
    optimizer = Adam(parameters, betas=BETAS, eps=EPS)
    losses, norms = [], []
    for step in range(SETTINGS.steps):
        loss, cache = problem._replace(constants=start.batch(step)).forward()
        problem.gradients(1.0, cache)
        losses.append(float(loss))
        norms.append(float(clip_grad_norm(parameters, SETTINGS.max_norm)))
        optimizer.lr = SCHEDULE(step + 1)
        optimizer.step()
    return Run(np.array(losses), np.array(norms), {name: p.data for name, p in problem.parameters.items()})


class FixedBatches:
    """A task for our training loop that hands out the batches of `start` in turn."""

    def __init__(self, start):
        self.coming = iter(range(SETTINGS.steps))
        self.start = start

    def batch(self, rng, size):
        """The next batch."""
        ids = self.start.batch(next(self.coming))
        return Batch(ids["source"], ids["target"], ids["targets"])


def train_with_our_loop(start):
    """With `minitransformer.training.train` -> Run."""
    model = Transformer(configuration(SIZES, SWITCHES), seed=None, dtype=np.float64)
    model.load_state_dict(start.weights)
    loss = CrossEntropyLoss(SWITCHES["label_smoothing"])
    history = train(model, FixedBatches(start), schedule=SCHEDULE, loss_fn=loss, settings=SETTINGS)
    return Run(np.array(history.losses), np.array(history.norms), model.state_dict())


def train_theirs(start):
    """With torch.nn.Transformer, torch.optim.Adam and clip_grad_norm_, all by autograd -> Run."""
    import torch

    weights = leaves(torch, start.weights)
    variables = list(weights.values())
    optimizer = torch.optim.Adam(variables, lr=1.0, betas=BETAS, eps=EPS)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda steps_done: their_learning_rate(steps_done + 1))
    losses, norms = [], []
    for step in range(SETTINGS.steps):
        batch = {name: torch.tensor(ids) for name, ids in start.batch(step).items()}
        optimizer.zero_grad()
        loss = PARITY[NAME](torch, SIZES, SWITCHES, weights, **batch)
        loss.backward()
        losses.append(loss.item())
        norms.append(torch.nn.utils.clip_grad_norm_(variables, SETTINGS.max_norm).item())
        optimizer.step()
        schedule.step()
    return Run(np.array(losses), np.array(norms), {name: leaf.detach().numpy() for name, leaf in weights.items()})


def their_learning_rate(step):
    """Equation 3 of the paper, as printed there, times the factor."""
    return FACTOR * SIZES.C**-0.5 * min(step**-0.5, step * WARMUP**-1.5)


def run_errors(got, expected):
    """{name: relative error} of the losses, the norms, and every weight after the last step except the key biases."""
    numbers = {name: relative_error(getattr(got, name), getattr(expected, name)) for name in ("losses", "norms")}
    return numbers | weight_errors(got.weights, expected.weights)


def weight_errors(got, expected):
    """{name: relative error} of every weight except the key biases, after proof that none is missing."""
    got, expected = without_key_biases(got), without_key_biases(expected)
    names = build(NAME, SIZES).parameters.keys()
    assert set(got) == names
    assert set(expected) == names
    return {name: relative_error(got[name], expected[name]) for name in names}


def without_key_biases(weights):
    """The weights with the keys' part cut out of every bias that has one.

    A key bias adds the same number to all scores of a query, which the softmax does not see: its gradient is 0. What
    either side computes is rounding noise of about 1e-16, which Adam divides by its own size plus 1e-9, and so makes
    1e7 times as large. No two machines agree on it, and the model's output does not depend on it.
    """
    return {
        name: np.delete(weight, key_entries(name, weight)) if name.endswith("kv.b") else weight
        for name, weight in weights.items()
    }


def key_biases(weights):
    """Only what `without_key_biases` cuts out."""
    return {name: weight[key_entries(name, weight)] for name, weight in weights.items() if name.endswith("kv.b")}


def key_entries(name, bias):
    """The keys' entries of a bias: the middle third of q | k | v, the first half of k | v."""
    C = SIZES.C
    return slice(C, 2 * C) if name.endswith("qkv.b") else slice(0, C)
