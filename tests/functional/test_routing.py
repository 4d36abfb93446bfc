"""Choosing experts, weighting them, and the two losses that keep all of them in use, by their definitions in loops."""

import math

import numpy as np
import pytest

from minitransformer.functional import softmax, softmax_backward
from minitransformer.functional.since_2017.routing import (
    auxiliary_backward,
    balance_loss,
    expert_loads,
    expert_weights,
    expert_weights_backward,
    top_k,
    z_loss,
)
from tests.helpers import device, host, random_array, relative_error

N, E, K = 5, 4, 2


def example():
    """Logits, their softmax, and the K largest."""
    logits = random_array(np.random.default_rng(7), N, E)
    return logits, softmax(logits)[0], top_k(logits, K)


def test_the_k_largest_are_chosen_by_real_parts_and_the_first_of_equals():
    scores = np.array([[1.0, 3.0, 2.0, 3.0], [5.0, 5.0, 5.0, 5.0], [-1.0, -2.0, -3.0, 0.0]])
    one, two = (
        ([[False, True, False, False], [True, False, False, False], [False, False, False, True]]),
        ([[False, True, False, True], [True, True, False, False], [True, False, False, True]]),
    )
    for given in (scores, scores + 1j * scores[:, ::-1] * 1e-3):
        assert host(top_k(device(given), 1)).tolist() == one
        assert host(top_k(device(given), 2)).tolist() == two
    assert host(top_k(device(scores), 4)).all()


@pytest.mark.parametrize("renormalize", [True, False])
def test_the_weights_are_the_probabilities_of_the_chosen_or_their_softmax(renormalize):
    logits, p, chosen = example()
    w, _ = expert_weights(p, chosen, renormalize)
    for row_w, row_p, row_x, row in zip(*map(host, (w, p, logits, chosen)), strict=True):
        total = sum(math.exp(x) for x, is_chosen in zip(row_x, row, strict=True) if is_chosen)
        expected = [math.exp(x) / total if renormalize else p for x, p in zip(row_x, row_p, strict=True)]
        assert relative_error(row_w, np.where(row, expected, 0.0)) <= 1e-14
    assert np.abs(host(w).sum(axis=1) - 1).max() <= 1e-15 or not renormalize


def test_the_weights_sum_to_1_unless_another_is_asked_for():
    _, p, chosen = example()
    assert relative_error(expert_weights(p, chosen)[0], expert_weights(p, chosen, True)[0]) == 0.0


def test_renormalized_weights_do_not_change_with_the_scale_of_p_and_one_alone_gets_a_gradient_of_exactly_0():
    _, p, chosen = example()
    dw = random_array(np.random.default_rng(8), N, E)
    dp = expert_weights_backward(dw, expert_weights(p, chosen)[1])
    assert np.abs((host(p) * host(dp)).sum(axis=1)).max() <= 1e-15
    assert not host(dp)[~host(chosen)].any()
    alone = expert_weights_backward(dw, expert_weights(p, top_k(p, 1))[1])
    assert not host(alone).any()
    assert host(expert_weights_backward(dw, expert_weights(p, top_k(p, 1), False)[1])).any()


def test_the_balance_loss_is_its_double_sum_and_treats_the_loads_as_constants():
    _, p, chosen = example()
    loads = [sum(bool(row[e]) for row in host(chosen)) / (N * K) for e in range(E)]
    assert relative_error(expert_loads(chosen), loads) <= 1e-15
    loss, slope = balance_loss(p, chosen)
    assert float(loss) == pytest.approx(E * sum(loads[e] * sum(host(p)[:, e]) / N for e in range(E)), rel=1e-14)
    dlogits = host(softmax_backward(auxiliary_backward(1.5, slope), p))
    for n in range(N):
        mean = sum(host(p)[n, e] * loads[e] for e in range(E))
        expected = [1.5 * E / N * host(p)[n, e] * (loads[e] - mean) for e in range(E)]
        assert relative_error(dlogits[n], expected) <= 1e-13


def test_with_equal_loads_the_balance_loss_is_1_and_no_gradient_is_left_after_the_softmax():
    p, _ = softmax(random_array(np.random.default_rng(9), E, E))
    chosen = device(np.eye(E, dtype=bool) | np.eye(E, k=1, dtype=bool) | np.eye(E, k=1 - E, dtype=bool))
    loss, slope = balance_loss(p, chosen)
    assert float(loss) == pytest.approx(1.0, abs=1e-15)
    assert np.abs(host(softmax_backward(auxiliary_backward(1.0, slope), p))).max() <= 1e-16


def test_the_z_loss_is_the_mean_square_of_the_log_of_the_sum_and_costs_nothing_where_that_is_0():
    logits, p, _ = example()
    z = [math.log(sum(math.exp(x) for x in row)) for row in host(logits)]
    loss, slope = z_loss(logits)
    assert float(loss) == pytest.approx(sum(value**2 for value in z) / N, rel=1e-14)
    assert relative_error(auxiliary_backward(0.5, slope), np.array(z)[:, None] * host(p) / N) <= 1e-13
    free = device(host(logits) - np.array(z)[:, None])
    assert float(z_loss(free)[0]) <= 1e-30
    far = z_loss(device(np.array([[800.0, 800.0]])))[0]  # exp(800) overflows
    assert float(far) == pytest.approx((800 + math.log(2)) ** 2)
