"""The loss is the mean smoothed cross-entropy over the tokens that count, and padding takes no part in it."""

import math

import numpy as np
import pytest

from minitransformer.backend import xp
from minitransformer.functional import cross_entropy, cross_entropy_backward, reductions
from tests.helpers import device, host, random_array, relative_error, same

B, T, V = 2, 4, 7
TARGETS = np.array([[3, 6, 3, 0], [1, 0, 0, 0]])  # 0 is padding; 3 comes twice
SMOOTHINGS = [0.0, 0.1]


def example(dtype=np.float64):
    return random_array(np.random.default_rng(13), B, T, V, dtype=dtype)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_each_row_of_the_logit_gradient_sums_to_zero_and_padding_has_none(smoothing):
    _, cache = cross_entropy(example(), device(TARGETS), smoothing)
    dlogits = host(cross_entropy_backward(1.0, cache))
    assert np.abs(dlogits.sum(axis=-1)).max() <= 1e-14 * np.abs(dlogits).max()
    assert (dlogits[TARGETS == 0] == 0).all()
    assert (np.abs(dlogits[TARGETS != 0]).max(axis=-1) > 0).all()


def test_the_smoothed_loss_has_its_floor_at_the_smoothed_targets():
    V, eps = 37000, 0.1  # the paper's vocabulary and smoothing
    targets = np.array([[5, 36999]])
    wanted = np.full((1, 2, V), eps / V)
    wanted[0, [0, 1], targets[0]] += 1.0 - eps
    logits, targets = device(np.log(wanted)), device(targets)
    at_floor, cache = cross_entropy(logits, targets, eps)
    entropy = -math.fsum(wanted[0, 0] * np.log(wanted[0, 0]))
    assert relative_error(at_floor, entropy) <= 1e-12
    assert round(float(at_floor), 3) == 1.377
    assert np.abs(host(cross_entropy_backward(1.0, cache))).max() <= 1e-15
    nearby = logits + 0.1 * random_array(np.random.default_rng(14), 1, 2, V)
    assert cross_entropy(nearby, targets, eps)[0] > at_floor


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_blocks_of_any_size_give_the_same_loss_and_gradient(monkeypatch, rows):
    logits, targets = example(), device(TARGETS)
    loss, cache = cross_entropy(logits, targets, 0.1)
    dlogits = cross_entropy_backward(1.0, cache)
    monkeypatch.setattr(reductions, "BLOCK", rows * V)
    loss_in_blocks, cache = cross_entropy(logits, targets, 0.1)
    assert relative_error(loss_in_blocks, loss) <= 1e-14
    assert relative_error(cross_entropy_backward(1.0, cache), dlogits) <= 1e-14


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_a_batch_of_padding_alone_has_loss_zero_and_no_gradient(smoothing):
    loss, cache = cross_entropy(example(), device(np.zeros((B, T), dtype=np.int64)), smoothing)
    assert loss == 0
    assert (cross_entropy_backward(1.0, cache) == 0).all()


def test_the_loss_stays_right_where_the_probability_underflows_to_zero():
    logits = device(np.array([[[-1e4, 1e4, 0.0]]]))
    loss, cache = cross_entropy(logits, device(np.array([[2]])))
    assert relative_error(loss, 1e4) <= 1e-15
    assert same(cross_entropy_backward(1.0, cache), [[[0.0, 1.0, -1.0]]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lead", [5.0, 12.0, 20.0, 60.0])
def test_the_loss_of_a_nearly_sure_word_has_all_its_digits(lead, dtype):
    logits = np.array([[[0.0, lead, 0.0, -1.0]]], dtype)
    loss, _ = cross_entropy(device(logits), device(np.array([[1]])))
    right = math.log1p((2 + math.exp(-1)) * math.exp(-lead))
    assert math.isclose(loss, right, rel_tol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_with_overwrite_the_array_of_the_logits_holds_p_and_then_their_gradient(smoothing):
    logits, targets = example(), device(TARGETS)
    expected, cache = cross_entropy(logits, targets, smoothing)
    own = logits.copy()
    loss, own_cache = cross_entropy(own, targets, smoothing, overwrite=True)
    assert same(loss, expected)
    assert same(own.reshape(-1, V), cache.p)
    gradient = cross_entropy_backward(0.5, own_cache)
    assert xp.shares_memory(gradient, own)
    assert same(gradient, cross_entropy_backward(0.5, cache))


def test_a_word_whose_logit_is_minus_infinity_takes_no_part_in_the_loss():
    logits, targets = host(example()), device(np.minimum(TARGETS, V - 2))
    expected, cache = cross_entropy(device(logits[..., :-1]), targets)
    expected_gradient = cross_entropy_backward(1.0, cache)
    loss, cache = cross_entropy(device(np.where(np.arange(V) < V - 1, logits, -np.inf)), targets)
    dlogits = host(cross_entropy_backward(1.0, cache))
    assert relative_error(loss, expected) <= 1e-15
    assert relative_error(dlogits[..., :-1], expected_gradient) <= 1e-14
    assert (dlogits[..., -1] == 0).all()


@pytest.mark.parametrize("pad", [-100, -1, V, 9999])
def test_padding_may_have_a_number_outside_the_vocabulary(pad):
    loss, cache = cross_entropy(example(), device(TARGETS), 0.1)
    targets = device(np.where(TARGETS == 0, pad, TARGETS))
    padded_loss, padded_cache = cross_entropy(example(), targets, 0.1, pad)
    assert same(padded_loss, loss)
    assert same(cross_entropy_backward(1.0, padded_cache), cross_entropy_backward(1.0, cache))


def test_padding_has_no_loss_also_where_its_own_logit_is_minus_infinity():
    logits = np.where(np.arange(V) == 0, -np.inf, host(example()))
    loss, cache = cross_entropy(device(logits), device(TARGETS))
    expected, _ = cross_entropy(device(logits[..., 1:]), device(TARGETS - 1), pad=-1)
    assert relative_error(loss, expected) <= 1e-15
    assert np.isfinite(host(cross_entropy_backward(1.0, cache))).all()
