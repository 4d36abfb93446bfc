"""The loss as an object: cross-entropy with label smoothing, over the tokens that are not padding."""

import math

import numpy as np
import pytest

from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.training import CrossEntropyLoss
from minitransformer.vocabulary import PAD
from tests.helpers import device, host, random_host_array, relative_error, same

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


def test_by_default_nothing_is_smoothed():
    value, _ = CrossEntropyLoss().forward(logits().copy(), TARGETS)
    z = host(logits())
    log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    expected = -(log_p[0, 0, 3] + log_p[0, 1, 4] + log_p[1, 0, 1]) / 3
    assert relative_error(value, np.array(expected)) < 1e-14


def test_terms_are_the_tokens_that_are_not_padding():
    assert CrossEntropyLoss.num_terms(TARGETS) == 3
    assert CrossEntropyLoss.num_terms(np.zeros_like(TARGETS)) == 0


@pytest.mark.parametrize("target", [5, -1])
def test_targets_outside_the_vocabulary_are_refused_before_the_device_sees_them(target):
    with pytest.raises(IndexError, match="targets"):
        CrossEntropyLoss().forward(logits().copy(), np.full((2, 3), target))


@pytest.mark.parametrize("label_smoothing", [-0.1, 1.0, math.nan])
def test_smoothing_outside_its_range_is_refused(label_smoothing):
    with pytest.raises(ValueError, match="label_smoothing must be at least 0 and less than 1"):
        CrossEntropyLoss(label_smoothing)
