"""Learning from what is better and worse, instead of from the right answer: the losses DPO and GRPO.

Both see a model only through the log-probabilities of the tokens of given answers, so a step is

    z, cache = model.forward(ids)
    log_p, cache_p = token_log_probs(z, targets, counted)
    loss, cache_loss = grpo(log_p, old_log_p, advantages, counted)        or dpo
    model.backward(token_log_probs_backward(grpo_backward(1.0, cache_loss), cache_p), cache)

`targets` are the inputs moved by one token, as in training. `counted` is True where the target is a token of the
answer: not in the prompt, and not in the padding. The log-probabilities by the reference model (dpo, and grpo with a
penalty) and by the model that wrote the answers (grpo) are given numbers, without a gradient.
"""

import math
from typing import Any, NamedTuple

from minitransformer.backend import xp
from minitransformer.checks import check_choice, check_integer, check_numbers, check_rate, check_shape, check_targets
from minitransformer.functional.cross_entropy import cross_entropy, cross_entropy_backward, softmax_and_losses


class LogProbsCache(NamedTuple):
    """What `token_log_probs` remembers."""

    p: xp.ndarray  # (N, V), the predicted distribution
    targets: xp.ndarray  # (N,), 0 where they do not count
    counted: xp.ndarray  # (..., T) booleans


def token_log_probs(z: xp.ndarray, targets: xp.ndarray, counted: xp.ndarray) -> tuple[xp.ndarray, LogProbsCache]:
    """The log-probability of each target, in nats, and 0 where the target does not count.

    z (..., T, V) logits, targets (..., T) ids, counted (..., T) booleans -> log_p (..., T). Targets that do not count
    need not be in the vocabulary. Raises TypeError, ValueError or IndexError for arguments that cannot be used; targets
    on a GPU are not compared with V. The sum over T is the logarithm of the probability of the whole answer.

    With p = softmax(z), for the token in row n whose target is y:

    Forward    log p_y = z_y - log sum_j exp(z_j)
    Jacobian   d(log p_i)/dz_j = 1[i = j] - p_j
    Chain      dz_nj = counted_n dlog_p_n (1[j = y_n] - p_nj)
    Remember   p, the targets and which of them count
    Check      each row of dz sums to 0; rows that do not count are 0; a number added to all logits changes nothing
    """
    check_numbers("z", z)
    _check_counted(counted, z.shape[:-1])
    check_shape("targets", targets, counted.shape)
    targets = targets * counted  # those that do not count may lie outside the vocabulary
    check_targets(targets, counted.shape, z.shape[-1], pad=None)
    p = z.reshape(-1, z.shape[-1]).copy()
    losses = softmax_and_losses(p, targets.reshape(-1), 0.0)
    return xp.where(counted, -losses.reshape(counted.shape), 0), LogProbsCache(p, targets.reshape(-1), counted)


def token_log_probs_backward(dlog_p: xp.ndarray, cache: LogProbsCache) -> xp.ndarray:
    """dz (..., T, V) from dlog_p (..., T); see `token_log_probs` for the derivation."""
    p, targets, counted = cache
    check_shape("dlog_p", dlog_p, counted.shape)
    dz = -p
    dz[xp.arange(len(dz)), targets] += 1.0  # one entry per row: no index occurs twice
    dz *= xp.where(counted, dlog_p, 0).reshape(-1, 1)
    return dz.reshape(*counted.shape, -1)


class DPOCache(NamedTuple):
    """What `dpo` remembers."""

    choice: Any  # the cache of the cross-entropy
    beta: float
    shapes: tuple[tuple[int, ...], tuple[int, ...]]  # of the log-probabilities


def dpo(
    chosen: xp.ndarray, rejected: xp.ndarray, ref_chosen: xp.ndarray, ref_rejected: xp.ndarray, beta: float = 0.1
) -> tuple[xp.ndarray, DPOCache]:
    """Direct preference optimization (Rafailov et al. 2023, equation 7): the mean loss of B pairs of answers, in nats.

    chosen (B, T) and rejected (B, S) are the model's `token_log_probs`; ref_chosen (B, T) and ref_rejected (B, S) those
    by the reference, a model that stays as it is -> loss, a 0-d array. `beta` says how much it costs to leave the
    reference. Raises TypeError or ValueError for arrays that cannot be used.

    Forward    u = beta (sum_t (chosen - ref_chosen) - sum_s (rejected - ref_rejected))     loss = mean -log sigmoid(u)
               which is the cross-entropy of a choice between the answers, whose logits are u and 0
    Jacobian   dloss/du_b = -sigmoid(-u_b) / B
    Chain      dchosen_bt = -beta sigmoid(-u_b) / B dloss      drejected_bs = beta sigmoid(-u_b) / B dloss
    Remember   the probabilities of the choice; sigmoid(-u), that of the wrong answer, is the weight of the gradient
    Check      all tokens of an answer get the same gradient, and the two answers opposite ones; the first loss is log 2

    The sums are the log-probabilities of whole answers; with means over the tokens it is another loss. The first loss
    is log 2 = 0.693147 whatever the pairs are, because u is 0 as long as the model is the reference. Another first loss
    is a bug; often one model has dropout. The loss may fall while both answers become less likely, the rejected faster.
    """
    for name, log_p, ref in (("chosen", chosen, ref_chosen), ("rejected", rejected, ref_rejected)):
        check_numbers(name, log_p)
        check_shape(f"ref_{name}", ref, log_p.shape)
    u = beta * ((chosen - ref_chosen).sum(axis=-1) - (rejected - ref_rejected).sum(axis=-1))
    loss, cache = cross_entropy(xp.stack([u, xp.zeros_like(u)], axis=1), xp.zeros(len(u), int), pad=None)
    return loss, DPOCache(cache, beta, (chosen.shape, rejected.shape))


def dpo_backward(dloss: Any, cache: DPOCache) -> tuple[xp.ndarray, xp.ndarray]:
    """dchosen (B, T) and drejected (B, S) from dloss, 1 for the loss itself; see `dpo` for the derivation."""
    drejected = cache.beta * cross_entropy_backward(dloss, cache.choice)[:, 1:]  # of -u: small ones are exact
    return xp.broadcast_to(-drejected, cache.shapes[0]), xp.broadcast_to(drejected, cache.shapes[1])


def group_advantages(rewards: xp.ndarray, group_size: int, eps: float = 1e-4) -> xp.ndarray:
    """How much better each answer is than the others to the same prompt: (reward - mean) / (deviation + eps).

    rewards (N,), each `group_size` neighbors for one prompt -> advantages (N,) (Shao et al. 2024, section 4.1.2). The
    deviation is the unbiased one. Raises ValueError for groups of one, for rewards that are not whole groups, and for a
    reward that is nan or infinite, which would be in the mean of its whole group.

    Equal rewards are advantages of exactly 0: such a group teaches nothing. Look at the share of these groups when
    training stands still: the task may be too hard for the model, or too easy.
    """
    check_numbers("rewards", rewards)
    if len(rewards) % check_integer("group_size", group_size, least=2):
        raise ValueError(f"{len(rewards)} rewards cannot be divided into groups of {group_size}")
    if not xp.isfinite(rewards).all():
        raise ValueError(f"rewards must be finite, got {rewards[~xp.isfinite(rewards)][0]}")
    groups = rewards.reshape(-1, group_size)
    groups = groups - groups[:, :1]  # equal rewards become 0, and so does their mean: that of 0.1, 0.1, 0.1 is not 0.1
    groups = groups - groups.mean(axis=1, keepdims=True)
    deviation = xp.sqrt((groups * groups).sum(axis=1, keepdims=True) / (group_size - 1))
    return (groups / (deviation + eps)).reshape(-1)


def grpo(
    log_p: xp.ndarray,
    old_log_p: xp.ndarray,
    advantages: xp.ndarray,
    counted: xp.ndarray,
    clip: float = 0.2,
    ref_log_p: xp.ndarray | None = None,
    beta: float = 0.0,
    mean_over: str = "answers",
) -> tuple[xp.ndarray, xp.ndarray]:
    """Group relative policy optimization (Shao et al. 2024, DeepSeekMath, equation 3), as a loss.

    log_p (B, T), the `token_log_probs` of the model, old_log_p (B, T) of the model that wrote the answers, ref_log_p
    (B, T) of a reference, advantages (B,), counted (B, T) booleans -> loss, a 0-d array. With `mean_over` "answers" it
    is the mean over each answer's tokens, and then over the answers, as in the paper: a token of a long answer weighs
    less. With "tokens" all weigh the same (DAPO). Raises TypeError or ValueError for arguments that cannot be used.

    Forward    rho = exp(log_p - old_log_p)      d = ref_log_p - log_p
               loss = mean of -min(rho A, clip(rho, 1 - clip, 1 + clip) A) + beta (exp(d) - d - 1)
    Jacobian   of the min: rho A, or 0 if rho is clipped: A > 0 and rho > 1 + clip, or A < 0 and rho < 1 - clip
               of the penalty: beta (1 - exp(d))
    Chain      dlog_p = share (beta (1 - exp(d)) - rho A) dloss      with the share of the token in the mean
    Remember   dlog_p / dloss, which is made of what the forward pass has computed anyway
    Check      advantages of 0 and no penalty: no gradient; clipped tokens: none; the penalty is never below 0

    The penalty's value estimates KL(model || reference), but over answers that the model has just written the mean of
    its gradient is that of KL(reference || model), which pulls the model over all that the reference may write.

    Why does the model learn although the loss is 0 in the first step? While the model is still the one that wrote
    the answers, rho is 1, so the loss is minus the mean of the advantages, which is 0 by their definition. But rho
    changes as log_p does, and each answer is pulled by its own advantage: dlog_p = -A share, the policy gradient. So
    the loss says nothing about progress (with a penalty it shows beta times the penalty): watch the rewards.
    """
    check_numbers("log_p", log_p)
    _check_counted(counted, log_p.shape)
    check_shape("old_log_p", old_log_p, log_p.shape)
    check_shape("advantages", advantages, log_p.shape[:1])
    A = advantages[:, None]
    low, high = math.log1p(-check_rate("clip", clip)), math.log1p(clip)
    log_rho = xp.where(counted, log_p - old_log_p, 0)
    is_above, is_below = (log_rho.real > high) & (A >= 0), (log_rho.real < low) & (A <= 0)
    gain = xp.exp(xp.where(is_above, high, xp.where(is_below, low, log_rho))) * A
    losses, slope = -gain, xp.where(is_above | is_below, 0, -gain)
    if ref_log_p is not None:
        check_shape("ref_log_p", ref_log_p, log_p.shape)
        d = xp.where(counted, ref_log_p - log_p, 0)
        excess = beta * (xp.exp(d) - 1.0)
        losses, slope = losses + excess - beta * d, slope - excess
    share = counted.astype(log_p.real.dtype)
    if check_choice("mean_over", mean_over, ("answers", "tokens")) == "answers":
        share /= xp.maximum(share.sum(axis=1, keepdims=True), 1.0) * len(share)  # an empty answer has the loss 0
    else:
        share /= xp.maximum(share.sum(), 1.0)
    return (losses * share).sum(), slope * share


def grpo_backward(dloss: Any, slope: xp.ndarray) -> xp.ndarray:
    """dlog_p (B, T) from dloss, 1 for the loss itself; see `grpo` for the derivation."""
    return slope * dloss


def _check_counted(counted: xp.ndarray, shape: tuple[int, ...]) -> None:
    if getattr(counted, "dtype", None) is not xp.dtype(bool):
        raise TypeError("counted must be a boolean array with True = a token of the answer")
    check_shape("counted", counted, shape)
