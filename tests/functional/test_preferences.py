"""DPO and GRPO: the formulas in loops, their gradients in the logits, and what users ask about their first step."""

import math

import numpy as np
import pytest

from minitransformer.functional import (
    dpo,
    dpo_backward,
    group_advantages,
    grpo,
    grpo_backward,
    token_log_probs,
    token_log_probs_backward,
)
from tests.helpers import device, host, random_array, relative_error, same

B, T, V = 4, 5, 7
TARGETS = np.random.default_rng(1).integers(0, V, (B, T))
COUNTED = np.array([[0, 1, 1, 1, 0], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1], [0, 1, 1, 1, 1]], bool)
EMPTY = COUNTED & (np.arange(B) != 1)[:, None]
ADVANTAGES = np.array([1.5, -0.5, -2.0, 1.0])


def logits(seed=0, *shape, scale=1.0):
    return device(scale * host(random_array(np.random.default_rng(seed), *(shape or (B, T, V)))))


def log_probs(z, targets=TARGETS, counted=COUNTED):
    return token_log_probs(z, device(targets), device(counted))


def naive_log_prob(z, target):
    return math.log(math.exp(z[target]) / sum(math.exp(score) for score in z))


def naive_dpo(chosen, rejected, ref_chosen, ref_rejected, beta):
    """-1/B sum log sigmoid(beta (log-ratio of the chosen answer - that of the rejected one))."""
    total = 0.0
    for w, lose, ref_w, ref_lose in zip(chosen, rejected, ref_chosen, ref_rejected, strict=True):
        ratio_w = sum(w[t] - ref_w[t] for t in range(len(w)))
        ratio_l = sum(lose[t] - ref_lose[t] for t in range(len(lose)))
        total -= math.log(1 / (1 + math.exp(-beta * (ratio_w - ratio_l))))
    return total / len(chosen)


def naive_grpo(log_p, old, advantages, counted, clip, ref=None, beta=0.0, mean_over="answers"):
    """The mean over the tokens that count of -min(rho A, clip(rho) A) + beta k3."""
    answers = []
    for i, A in enumerate(advantages):
        losses = []
        for t in range(len(log_p[i])):
            if not counted[i][t]:
                continue
            rho = math.exp(log_p[i][t] - old[i][t])
            loss = -min(rho * A, max(1 - clip, min(1 + clip, rho)) * A)
            if ref is not None:
                d = ref[i][t] - log_p[i][t]
                loss += beta * (math.exp(d) - d - 1)
            losses.append(loss)
        answers.append(losses)
    if mean_over == "tokens":
        return sum(map(sum, answers)) / sum(map(len, answers))
    return sum(sum(losses) / max(1, len(losses)) for losses in answers) / len(answers)


def probabilities(z):
    p = np.exp(host(z) - host(z).max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def pull(z):
    """V(y) - p: the direction in the logits that makes a target more likely."""
    return np.eye(V)[TARGETS] - probabilities(z)


def grpo_dlogits(z, old, advantages=ADVANTAGES, counted=COUNTED, **options):
    """The loss, and its gradient in the logits."""
    log_p, cache_p = log_probs(z, counted=counted)
    loss, cache = grpo(log_p, old, device(np.asarray(advantages)), device(counted), **options)
    return float(loss), host(token_log_probs_backward(grpo_backward(1.0, cache), cache_p))


def test_log_probs_equal_the_formula_in_loops_and_are_0_where_they_do_not_count():
    log_p = host(log_probs(logits())[0])
    for index in np.ndindex(B, T):
        expected = naive_log_prob(host(logits())[index], TARGETS[index]) if COUNTED[index] else 0.0
        assert log_p[index] == pytest.approx(expected, rel=1e-14)


def test_each_row_of_the_logit_gradient_sums_to_0_and_rows_that_do_not_count_are_0():
    _, cache = log_probs(logits())
    dz = host(token_log_probs_backward(random_array(np.random.default_rng(2), B, T), cache))
    assert np.abs(dz.sum(axis=-1)).max() <= 1e-15
    assert (dz[~COUNTED] == 0).all()
    assert (np.abs(dz[COUNTED]).max(axis=-1) > 0).all()


def test_a_number_added_to_all_logits_of_a_position_changes_nothing():
    shift = 100 * host(random_array(np.random.default_rng(3), B, T, 1))
    assert relative_error(log_probs(logits() + device(shift))[0], log_probs(logits())[0]) <= 1e-13


@pytest.mark.parametrize("outside", [-100, -1, V, 9999])
def test_targets_that_do_not_count_may_lie_outside_the_vocabulary(outside):
    log_p, cache = log_probs(logits())
    other, other_cache = log_probs(logits(), np.where(COUNTED, TARGETS, outside))
    assert same(log_p, other)
    dlog_p = random_array(np.random.default_rng(2), B, T)
    assert same(token_log_probs_backward(dlog_p, cache), token_log_probs_backward(dlog_p, other_cache))


def losses_and_gradients(z, targets, counted):
    """The losses of DPO and GRPO against half the log-probabilities, and their gradients in the logits."""
    log_p, cache_p = log_probs(z, targets, counted)
    old, half = 0.5 * log_p, B // 2
    loss, cache = dpo(log_p[:half], log_p[half:], old[:half], old[half:])
    dlog_p = device(np.concatenate([host(part) for part in dpo_backward(1.0, cache)]))
    other_loss, slope = grpo(log_p, old, device(ADVANTAGES), device(counted), ref_log_p=old, beta=0.1)
    gradients = (token_log_probs_backward(part, cache_p) for part in (dlog_p, grpo_backward(1.0, slope)))
    return float(loss), float(other_loss), *map(host, gradients)


def test_padding_changes_neither_the_losses_nor_the_gradients():
    wide = device(np.concatenate([host(logits()), host(logits(5, B, 3, V))], axis=1))
    padded = losses_and_gradients(wide, *(np.pad(array, ((0, 0), (0, 3))) for array in (TARGETS, COUNTED)))
    for ours, expected in zip(padded, losses_and_gradients(logits(), TARGETS, COUNTED), strict=True):
        assert relative_error(ours[:, :T] if np.ndim(ours) else ours, expected) <= 1e-15
        assert np.ndim(ours) == 0 or (ours[:, T:] == 0).all()


@pytest.mark.parametrize("beta", [0.1, 2.0])
def test_dpo_equals_the_formula_in_loops(beta):
    arrays = [logits(seed, 3, length) for seed, length in enumerate((4, 6, 4, 6))]
    loss, _ = dpo(*arrays, beta)
    assert relative_error(loss, naive_dpo(*map(host, arrays), beta)) <= 1e-14


def test_the_first_loss_of_dpo_is_log_2_whatever_the_pairs_are():
    chosen, rejected = log_probs(logits(1, scale=9.0))[0], log_probs(logits(2, scale=9.0))[0]
    loss, cache = dpo(chosen, rejected, chosen, rejected, 0.1)
    assert float(loss) == math.log(2)
    dchosen, drejected = dpo_backward(1.0, cache)
    assert relative_error(dchosen, np.full((B, T), -0.1 / 2 / B)) <= 1e-15
    assert same(drejected, -host(dchosen))


@pytest.mark.parametrize("margin", [-1e4, -800.0, 30.0, 800.0, 1e4])
def test_dpo_is_exact_for_pairs_that_are_surely_right_or_wrong(margin):
    chosen, zeros = device(np.array([[margin]])), device(np.zeros((1, 1)))
    loss, cache = dpo(chosen, zeros, zeros, zeros, 1.0)
    assert float(loss) == pytest.approx(math.log1p(math.exp(-margin)) if margin > 0 else -margin, rel=1e-15)
    dchosen, _ = dpo_backward(1.0, cache)
    assert float(host(dchosen)[0, 0]) == pytest.approx(-math.exp(-max(margin, 0.0)), rel=1e-12)


@pytest.mark.parametrize("mean_over", ["answers", "tokens"])
@pytest.mark.parametrize("has_reference", [False, True])
@pytest.mark.parametrize("counted", [COUNTED, EMPTY], ids=["", "an empty answer"])
def test_grpo_equals_the_formula_in_loops(mean_over, has_reference, counted):
    log_p, old, ref = (logits(seed, B, T, scale=0.4) for seed in range(3))
    options = {"clip": 0.2, "beta": 0.3, "mean_over": mean_over}
    loss, _ = grpo(log_p, old, device(ADVANTAGES), device(counted), ref_log_p=ref if has_reference else None, **options)
    expected = naive_grpo(
        *map(host, (log_p, old)), ADVANTAGES, counted, ref=host(ref) if has_reference else None, **options
    )
    assert relative_error(loss, expected) <= 1e-14


def test_on_policy_the_loss_of_grpo_is_0_and_its_gradient_is_that_of_the_policy():
    z = logits()
    advantages = host(group_advantages(device(np.array([1.0, 0.0, 0.0, 3.0])), 4))
    loss, dz = grpo_dlogits(z, log_probs(z)[0], advantages)
    assert abs(loss) <= 1e-16
    share = COUNTED / COUNTED.sum(axis=1, keepdims=True) / B
    assert relative_error(dz, -(advantages[:, None] * share)[..., None] * pull(z)) <= 1e-14
    assert np.abs(dz).max() > 0.01


def test_equal_rewards_give_no_gradient_at_all():
    for reward in (0.1, 1 / 3, 1e6):  # the mean of three times 0.1 is not 0.1
        advantages = host(group_advantages(device(np.full(6, reward)), 3))
        assert (advantages == 0).all()
        z = logits()
        assert (grpo_dlogits(z, log_probs(logits(4))[0], np.zeros(B))[1] == 0).all()


def test_advantages_are_the_rewards_of_each_group_in_units_of_its_deviation():
    rewards = np.array([1.0, 2.0, 6.0, 5.0, 5.0, 8.0])
    expected = [(r - group.mean()) / (group.std(ddof=1) + 1e-4) for group in (rewards[:3], rewards[3:]) for r in group]
    assert relative_error(group_advantages(device(rewards), 3), expected) <= 1e-14


def test_clipped_tokens_get_no_gradient_and_the_others_get_theirs():
    ratios = np.array([[0.5, 0.79, 0.81, 1.19, 1.21, 9.0]] * 2)
    log_p, zeros = device(np.log(ratios)), device(np.zeros((2, 6)))
    _, slope = grpo(log_p, zeros, device(np.array([1.0, -1.0])), device(np.ones((2, 6), bool)))
    dlog_p = host(grpo_backward(1.0, slope))
    assert (dlog_p != 0).tolist() == [[True] * 4 + [False] * 2, [False] * 2 + [True] * 4]
    kept = dlog_p != 0
    assert relative_error(dlog_p[kept], (ratios * [[-1.0], [1.0]] / 12)[kept]) <= 1e-14


def test_an_answer_without_tokens_has_no_loss_and_no_gradient():
    z = logits()
    for mean_over in ("answers", "tokens"):
        for counted in (EMPTY, np.zeros_like(COUNTED)):
            old = log_probs(logits(4), counted=counted)[0]
            loss, dz = grpo_dlogits(z, old, counted=counted, ref_log_p=old, beta=0.1, mean_over=mean_over)
            assert np.isfinite(loss)
            assert (dz[~counted.any(axis=1)] == 0).all()
            assert np.isfinite(dz).all()
    empty, other = log_probs(z, counted=np.zeros_like(COUNTED))[0], log_probs(z)[0]
    assert float(dpo(empty, other, empty, other)[0]) == math.log(2)


def test_the_penalty_is_0_at_the_reference_and_positive_elsewhere():
    ref = log_probs(logits())[0]
    zero = np.zeros(B)
    loss, dz = grpo_dlogits(logits(), ref, zero, ref_log_p=ref, beta=1.0)
    assert loss == 0
    assert (dz == 0).all()
    for seed in range(1, 5):
        assert grpo_dlogits(logits(seed), ref, zero, ref_log_p=ref, beta=1.0)[0] > 0


def test_garbage_where_nothing_counts_does_not_reach_the_loss():
    z = logits()
    old = log_probs(logits(4))[0]
    garbage = device(np.where(COUNTED, host(old), np.nan))
    assert grpo_dlogits(z, garbage, ref_log_p=garbage, beta=0.1)[0] == grpo_dlogits(z, old, ref_log_p=old, beta=0.1)[0]


def test_the_penalty_follows_the_divergence_of_the_reference_from_the_model():
    """All V answers of one token, each with its probability: a mean over samples without the samples."""
    z, ref = (host(random_array(np.random.default_rng(seed), 1, 1, V)) for seed in (4, 5))
    answers, every = np.arange(V)[:, None], np.ones((V, 1), bool)
    log_p, cache_p = log_probs(device(z.repeat(V, axis=0)), answers, every)
    ref_log_p, _ = log_probs(device(ref.repeat(V, axis=0)), answers, every)
    loss, cache = grpo(log_p, log_p, device(np.zeros(V)), device(every), ref_log_p=ref_log_p, beta=1.0)
    pi, q = probabilities(z)[0, 0], probabilities(ref)[0, 0]
    dlog_p = host(grpo_backward(1.0, cache)) * V * pi[:, None]  # each answer's share is its probability, not 1 / V
    dz = host(token_log_probs_backward(device(dlog_p), cache_p)).sum(axis=(0, 1))
    toward_reference = pi - q  # d KL(ref || pi) / dz, as that is -sum q log softmax(z) and a constant
    log_ratio = np.log(pi / q)
    from_model = pi * (log_ratio - (pi * log_ratio).sum())  # d KL(pi || ref) / dz
    assert relative_error(dz, toward_reference) <= 1e-13
    assert relative_error(dz, from_model) >= 0.05
    values = np.exp(-log_ratio) + log_ratio - 1
    assert (pi * values).sum() == pytest.approx((pi * log_ratio).sum(), rel=1e-13)  # its value is KL(pi || ref)
    assert float(loss) == pytest.approx(values.mean(), rel=1e-13)
