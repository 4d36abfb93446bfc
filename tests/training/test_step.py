"""The plain training step is what every training computes, with any model and any loss that follow the protocol."""

import copy
import math
from functools import partial
from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest

from minitransformer.core import Layer
from minitransformer.data import TextBatch, get_task
from minitransformer.layers import Linear
from minitransformer.models import GPT, Transformer, TransformerConfig
from minitransformer.system.generators import make_generator
from minitransformer.training import (
    Adam,
    CrossEntropyLoss,
    DataParallel,
    Diagnostics,
    GradientAccumulation,
    PlainGradients,
    Strategy,
    TrainingSettings,
    noam,
    train,
    training_step,
)
from minitransformer.training.parallel import threads
from minitransformer.training.parallel.micro_batches import ByLength
from minitransformer.training.parallel.parts import ChunkedGradients
from tests.helpers import device, host, ragged, randomize, relative_error, same

V = 29
SIZES = {"vocab_size": V, "d_model": 12, "num_heads": 2, "d_ff": 20, "num_layers": 1, "max_len": 16, "dropout": 0.0}
SCHEDULE = partial(noam, d_model=12, warmup=4000)  # the paper's: steps so small that rounding does not grow
SETTINGS = TrainingSettings(steps=15, batch_size=60, seed=3)  # 60 sequences are cut by length


def make_model(dtype="float64", **changes):
    return Transformer(TransformerConfig(**{**SIZES, **changes}), dtype=dtype)


def loop_on_a_whiteboard(model, loss_fn, settings=SETTINGS, data=None, rng=None):
    """The losses of `training_step`, again and again, on the batches that `train` draws."""
    data, optimizer, draw = data or get_task("addition"), Adam(model.parameters()), np.random.default_rng([3, 1])
    losses = []
    for step in range(1, settings.steps + 1):
        optimizer.lr = SCHEDULE(step)
        loss, _ = training_step(
            model, loss_fn, optimizer, data.batch(draw, settings.batch_size), rng, settings.max_norm
        )
        losses.append(float(loss))
    return losses


@pytest.mark.parametrize(("dtype", "bound"), [("float32", 1e-6), ("float64", 1e-12)])
def test_plain_steps_have_the_losses_of_train(dtype, bound):
    expected = loop_on_a_whiteboard(make_model(dtype), CrossEntropyLoss(0.1))
    found = train(
        make_model(dtype), get_task("addition"), None, SCHEDULE, CrossEntropyLoss(0.1), SETTINGS, num_threads=1
    ).losses
    assert relative_error(found, expected) <= bound
    assert len(set(expected)) == SETTINGS.steps


class Wrapped(Layer):
    """A model of one's own: no configuration, no features, no head."""

    def __init__(self, model):
        self.inner = model

    def forward(self, *inputs, rng=None):
        return self.inner.forward(*inputs, rng=rng)

    def backward(self, dy, cache):
        return self.inner.backward(dy, cache)


class OwnLoss:
    """A loss of one's own: the sum of all squares of the logits, divided by their number. It counts no terms."""

    def forward(self, y, targets):
        return (y * y).mean(), y

    def backward(self, dloss, y):
        return (2.0 * dloss / y.size) * y


def test_plain_steps_have_the_bits_of_train_where_it_neither_cuts_nor_clips():
    settings = TrainingSettings(steps=8, batch_size=7, seed=3, max_norm=math.inf)
    plain, trained = (Wrapped(make_model("float32", dropout=0.3)) for _ in range(2))
    losses = loop_on_a_whiteboard(plain, OwnLoss(), settings, get_task("copy"), make_generator([3, 2]))
    assert train(trained, get_task("copy"), None, SCHEDULE, OwnLoss(), settings).losses == losses
    states = plain.state_dict(), trained.state_dict()
    assert all(same(states[1][name], array) for name, array in states[0].items())


class Points(NamedTuple):
    """A batch that is no text."""

    x: np.ndarray  # (B, 3)
    targets: np.ndarray  # (B, 2)

    @property
    def inputs(self):
        return (self.x,)


class Plane:
    """Points whose targets are a linear map of them."""

    def batch(self, rng, size):
        x = rng.standard_normal((size, 3))
        return Points(x, x @ np.array([[1.0, -2.0], [0.5, 3.0], [-1.5, 0.25]]))


class SquaredError:
    """The mean of the squares over a batch."""

    def forward(self, y, targets):
        difference = y - device(targets)
        return (difference**2).mean(), difference

    def backward(self, dloss, difference):
        return (2.0 * dloss / difference.size) * difference

    def num_terms(self, targets):
        return len(targets)


@pytest.mark.parametrize(("num_threads", "micro_batches"), [(1, 1), (3, 1), (1, 3), (2, 2)])
@pytest.mark.host_only
def test_a_model_a_loss_and_data_of_ones_own_are_trained_and_shared(num_threads, micro_batches):
    layer, settings = Linear(3, 2, dtype="float64"), TrainingSettings(25, 7, grad_accumulation_steps=micro_batches)
    history = train(
        layer, Plane(), Adam(layer.parameters(), 0.2), None, SquaredError(), settings, num_threads=num_threads
    )
    expected = Linear(3, 2, dtype="float64")
    alone = TrainingSettings(25, 7)
    assert (
        relative_error(
            history.losses,
            train(expected, Plane(), Adam(expected.parameters(), 0.2), None, SquaredError(), alone).losses,
        )
        < 1e-10
    )
    assert history.losses[-1] < 0.05 * history.losses[0]
    assert history.accuracies == []
    assert history.latest().startswith(f"loss {history.losses[-1]:.3f}, lr 2.0e-01, ")


@pytest.mark.parametrize(
    "options", [{"settings": TrainingSettings(4, 4, grad_accumulation_steps=2)}, {"num_threads": 2}]
)
@mock.patch.object(threads, "MIN_NUMBERS", 1)
def test_a_loss_that_counts_no_terms_is_not_shared(options):
    with pytest.raises(TypeError, match=r"OwnLoss needs a method num_terms\(targets\)"):
        train(make_model(), get_task("copy"), loss_fn=OwnLoss(), **{"settings": TrainingSettings(4, 4), **options})


BATCH = ragged(V, (9, 6), (9, 5))


def gradients_by(wrap, weight=1.0, kind=Transformer):
    """What `wrap(model, loss_fn)` measures on a batch, and the gradients that it adds to those of an earlier batch."""
    model, loss_fn = randomize(make_model(), scale=0.3), CrossEntropyLoss(0.1)
    PlainGradients(model, loss_fn)(ragged(V, (2, 3), (2, 4)))
    measured = wrap(model, loss_fn)(BATCH, weight, measure=True)
    return [float(number) for number in measured], {name: host(p.grad).copy() for name, p in model.named_parameters()}


def watched(model, loss_fn):
    workers = DataParallel(model, loss_fn, 1)
    return Diagnostics(workers, workers, Adam(model.parameters()), detect_anomaly=True)


def everything(model, loss_fn):
    settings = TrainingSettings(grad_accumulation_steps=2, detect_anomaly=True)
    strategy = Strategy(2)
    strategy.compose(model, loss_fn, Adam(model.parameters()), settings)
    return strategy.watch


WAYS = {
    "chunk by chunk": ChunkedGradients,
    "in threads": lambda model, loss_fn: DataParallel(model, loss_fn, 3),
    "in parts of one length": lambda model, loss_fn: ByLength(PlainGradients(model, loss_fn), loss_fn),
    "in micro batches": lambda model, loss_fn: GradientAccumulation(PlainGradients(model, loss_fn), loss_fn, 4),
    "watched": watched,
    "all together": everything,
}


@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize("wrap", WAYS.values(), ids=WAYS)
@pytest.mark.host_only
@mock.patch.object(threads, "MIN_NUMBERS", 1)
@mock.patch("minitransformer.data.by_length.LEAST_SAVED", 2)
@mock.patch("minitransformer.layers.since_2017.blockwise.LOGITS", 5 * V)
def test_every_way_to_compute_a_batch_adds_the_gradient_of_the_plain_one(wrap, weight):
    (measured, gradients), (expected, plain) = gradients_by(wrap, weight), gradients_by(PlainGradients, weight)
    assert relative_error(measured, expected) < 1e-12
    for name, gradient in plain.items():
        if not name.endswith("kv.b"):  # half of it is rounding noise
            assert relative_error(gradients[name], gradient) < 1e-11, name


@pytest.mark.host_only
def test_optimizers_that_take_turns_move_as_if_each_had_vectors_of_its_own():
    model, batch = make_model(), ragged(V, (4, 6), (4, 5))
    encoder, whole = (Adam(part.parameters(), lr=0.01) for part in (model.encoder, model))
    other = copy.deepcopy(make_model())
    apart = {name: [np.zeros_like(p.data), np.zeros_like(p.data), 0] for name, p in other.named_parameters()}
    halves = {name: [np.zeros_like(p.data), np.zeros_like(p.data), 0] for name, p in other.named_parameters()}
    for optimizer, moments in ((encoder, halves), (whole, apart), (encoder, halves), (whole, apart)):
        training_step(model, CrossEntropyLoss(), optimizer, batch, max_norm=math.inf)
        other.zero_grad()
        PlainGradients(other, CrossEntropyLoss())(batch)
        for name, parameter in other.named_parameters():
            if moments is halves and not name.startswith("encoder."):
                continue
            m, v, t = moments[name]
            moments[name] = [0.9 * m + 0.1 * host(parameter.grad), 0.98 * v + 0.02 * host(parameter.grad) ** 2, t + 1]
            m, v, t = moments[name]
            move = 0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.98**t)) + 1e-9)
            parameter.data = parameter.data - device(move)
    for (name, ours), theirs in zip(model.named_parameters(), other.parameters(), strict=True):
        if not name.endswith(".b"):  # Adam turns the rounding noise of the keys' biases into steps
            assert relative_error(ours.data, host(theirs.data)) < 1e-6, name


def test_training_again_with_the_same_optimizer_trains_again():
    model, settings = make_model("float32"), TrainingSettings(6, 8)
    optimizer = Adam(model.parameters(), lr=1e-3)
    histories = [train(model, get_task("copy"), optimizer, settings=settings) for _ in range(2)]
    assert [len(history.losses) for history in histories] == [6, 6]
    assert optimizer.t == 12
    assert histories[1].losses[-1] < histories[0].losses[0]


def test_a_subclass_with_a_forward_of_its_own_is_trained_through_it():
    class Louder(GPT):
        def forward(self, ids, rng=None):
            logits, cache = super().forward(ids, rng)
            return 3.0 * logits, cache

        def backward(self, dlogits, cache):
            super().backward(3.0 * dlogits, cache)

    pairs = ragged(V, (4, 6), (4, 6))
    batch = TextBatch(pairs.source, pairs.target_out)
    model = Louder(TransformerConfig(**SIZES), dtype="float64")
    logits = host(model(batch.ids))
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    counted = batch.targets != 0
    expected = -np.log(np.take_along_axis(p, batch.targets[..., None], axis=-1)[..., 0][counted]).mean()
    measured = DataParallel(model, CrossEntropyLoss(), 1)(batch)
    assert float(measured.loss) == pytest.approx(expected, rel=1e-12)
