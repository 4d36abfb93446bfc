"""The loss as an object, and its logits a block at a time."""

import tracemalloc

import numpy as np
import pytest

from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.layers import CrossEntropyLoss, embedding
from minitransformer.layers.since_2017.blockwise import blockwise_loss, features_and_head
from minitransformer.models import BERT, GPT, bert_config, gpt_config
from minitransformer.vocabulary import PAD
from tests.helpers import device, host, random_host_array, randomize, relative_error, same

V = 13

TARGETS = np.array([[3, 4, PAD], [1, PAD, PAD]])


def logits():
    return device(random_host_array(np.random.default_rng(0), 2, 3, 5))


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_forward_and_backward_are_those_of_cross_entropy(label_smoothing):
    loss = CrossEntropyLoss(label_smoothing)
    value, cache = loss.forward(logits().copy(), TARGETS)
    expected, expected_cache = cross_entropy(logits(), device(TARGETS), label_smoothing, PAD)
    assert float(value) == float(expected)
    assert same(loss.backward(0.3, cache), cross_entropy_backward(0.3, expected_cache))


def test_terms_are_the_tokens_that_are_not_padding():
    assert CrossEntropyLoss().num_terms(TARGETS) == 3
    assert CrossEntropyLoss().num_terms(np.zeros_like(TARGETS)) == 0


def build(kind=GPT, config=gpt_config, seed=0, **options):
    sizes = {"d_model": 12, "num_heads": 3, "d_ff": 20, "num_layers": 1, "max_len": 9, "norm_eps": 0.1}
    return randomize(kind(config(V, **sizes), dtype=np.float64, **options), seed)


def ragged_targets(rng, *shape):
    """Targets of which a third are padding, at the end of a row and elsewhere."""
    targets = rng.integers(1, V, shape)
    targets[rng.random(shape) < 0.3] = PAD
    return targets


def whole_loss(model, y, targets, smoothing, weight):
    """The loss, dy and the head's gradients, with all logits in one array."""
    model.zero_grad()
    logits, cache = model.head.forward(y)
    loss, cache_loss = cross_entropy(logits, device(targets), smoothing, PAD)
    dy = model.head.backward(cross_entropy_backward(weight, cache_loss), cache)
    return float(loss), host(dy), {name: host(p.grad).copy() for name, p in model.head.named_parameters()}


def example_features(rng, *shape):
    return device(rng.standard_normal(shape))


@pytest.mark.parametrize(("kind", "config"), [(GPT, gpt_config), (BERT, bert_config)], ids=["GPT", "BERT"])
@pytest.mark.parametrize("tokens", [1, 2, 5, 1000])
@pytest.mark.parametrize("padded", [False, True])
def test_loss_in_blocks_is_the_loss_of_all_logits(kind, config, tokens, padded):
    rng, model = np.random.default_rng(tokens), build(kind, config)
    y = example_features(rng, 3, 5, 12)
    targets = ragged_targets(rng, 3, 5) if padded else rng.integers(1, V, (3, 5))
    expected_loss, expected_dy, expected = whole_loss(model, y, targets, 0.1, 0.7)
    model.zero_grad()
    loss, dy, accuracy = blockwise_loss(model, y, targets, CrossEntropyLoss(0.1), 0.7, max_logits=tokens * V + 1)
    assert accuracy is None
    assert abs(float(loss) - expected_loss) <= 1e-14 * expected_loss
    assert relative_error(dy, expected_dy) <= 1e-13
    for name, parameter in model.head.named_parameters():
        assert relative_error(parameter.grad, expected[name]) <= 1e-13, name


@pytest.mark.parametrize("tokens", [2, 1000])
def test_blocks_add_to_a_gradient_that_is_there(tokens, monkeypatch):
    monkeypatch.setattr(embedding, "ROWS", 3)
    monkeypatch.setattr(embedding, "SLICE", 3 * 12)  # of the 13 rows of dE, three at a time
    rng, model = np.random.default_rng(3), build()
    y, targets = example_features(rng, 2, 5, 12), ragged_targets(rng, 2, 5)
    logits = device(host(y) @ host(model.head.E.data).T)
    dz = host(cross_entropy_backward(1.0, cross_entropy(logits, device(targets), 0.0, PAD)[1]))
    expected = dz.reshape(-1, V).T @ host(y).reshape(-1, 12)
    before = rng.standard_normal((V, 12))
    model.head.E.grad[...] = device(before)
    blockwise_loss(model, y, targets, CrossEntropyLoss(), 1.0, max_logits=tokens * V)
    assert relative_error(model.head.E.grad, before + expected) <= 1e-13


@pytest.mark.parametrize("tokens", [2, 1000])
def test_accuracy_is_the_share_of_targets_with_the_largest_logit(tokens):
    rng, model = np.random.default_rng(4), build()
    y = example_features(rng, 2, 4, 12)
    largest = host(y) @ host(model.head.E.data).T
    targets = largest.argmax(axis=-1)
    targets[targets == PAD] = 1
    right = int((targets == largest.argmax(axis=-1)).sum())
    targets[0, 1] = targets[0, 1] % (V - 1) + 1  # another, and not padding
    right -= int(largest[0, 1].argmax() != PAD)
    targets[1, 2:] = PAD
    right -= int((largest[1, 2:].argmax(axis=-1) != PAD).sum())
    measured = blockwise_loss(model, y, targets, CrossEntropyLoss(), measure=True, max_logits=tokens * V)
    assert float(measured.accuracy) == right / 6


@pytest.mark.parametrize("sequences", [1, 2, 1000])
def test_classifier_is_cut_into_blocks_of_sequences(sequences):
    rng, model = np.random.default_rng(7), build(BERT, bert_config, num_classes=4)
    y, targets = example_features(rng, 5, 3, 12), np.array([1, 3, PAD, 2, 2])
    expected_loss, expected_dy, expected = whole_loss(model, y, targets, 0.1, 0.5)
    model.zero_grad()
    loss, dy, _ = blockwise_loss(model, y, targets, CrossEntropyLoss(0.1), 0.5, max_logits=sequences * V)
    assert abs(float(loss) - expected_loss) <= 1e-14 * expected_loss
    assert relative_error(dy, expected_dy) <= 1e-13
    for name, parameter in model.head.named_parameters():
        assert relative_error(parameter.grad, expected[name]) <= 1e-13, name


@pytest.mark.host_only
def test_only_one_block_of_logits_is_held():
    rng, model = np.random.default_rng(8), GPT(gpt_config(2000, d_model=8, num_heads=2, d_ff=8, num_layers=1))
    y, targets = rng.standard_normal((4, 64, 8)).astype(np.float32), rng.integers(1, 2000, (4, 64))
    blockwise_loss(
        model, y, targets, CrossEntropyLoss(0.1), 1.0, max_logits=16 * 2000
    )  # imports, and the gradient's own array
    tracemalloc.start()
    blockwise_loss(model, y, targets, CrossEntropyLoss(0.1), 1.0, max_logits=16 * 2000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    block, dE = 4 * 16 * 2000, 4 * 2000 * 8
    assert block < peak < 2 * block + dE  # the loss needs a copy of so small a block; all logits are 16 blocks


class Logits:
    """A model of someone else: its forward makes the logits, and there is no head."""

    config = gpt_config(V)

    def forward(self, x):
        return x, None

    def backward(self, dy, cache):
        return dy


def test_the_features_of_any_other_model_are_its_logits():
    rng, model = np.random.default_rng(9), Logits()
    features, head = features_and_head(model)
    assert features == model.forward
    z, targets = random_host_array(rng, 2, 5, V), ragged_targets(rng, 2, 5)
    assert same(head(z), z)
    expected, cache = cross_entropy(device(z), device(targets), 0.1, PAD)
    loss, dz, _ = blockwise_loss(model, device(z), targets, CrossEntropyLoss(0.1), 0.7, max_logits=3 * V)
    assert relative_error(loss, expected) <= 1e-14
    assert relative_error(dz, cross_entropy_backward(0.7, cache)) <= 1e-13


class Counting(CrossEntropyLoss):
    """The loss, which keeps how many logits it is given at a time."""

    def __init__(self):
        super().__init__()
        self.sizes = []

    def forward(self, logits, targets):
        self.sizes.append(logits.size)
        return super().forward(logits, targets)


@pytest.mark.parametrize(("max_logits", "tokens"), [(1, 1), (V, 1), (2 * V - 1, 1), (2 * V, 2), (4 * V, 4), (1000, 7)])
def test_a_block_has_at_most_max_logits_or_those_of_one_token(max_logits, tokens):
    rng, model, loss_fn = np.random.default_rng(10), build(), Counting()
    blockwise_loss(model, example_features(rng, 1, 7, 12), rng.integers(1, V, (1, 7)), loss_fn, max_logits=max_logits)
    assert loss_fn.sizes == [tokens * V] * (7 // tokens) + [7 % tokens * V] * (7 % tokens > 0)


def test_models_of_the_package_say_what_comes_before_their_head():
    model = build()
    assert features_and_head(model) == (model.features, model.head)
