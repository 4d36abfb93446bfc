"""Routing: which experts a token goes to, how much each counts, and what keeps all of them in use.

N tokens, E experts, k of them for each token. The choice is piecewise constant, so it has no gradient. All that the
router learns, it learns through the weights of the chosen experts and through the losses here.
"""

from typing import Any

from minitransformer.backend import xp
from minitransformer.checks import check_mask
from minitransformer.functional.reductions import row_dot, row_max, row_sum


def top_k(scores: xp.ndarray, k: int) -> xp.ndarray:
    """Whether an expert is among the k highest scores (by real parts; of equals, the first): (N, E) -> booleans."""
    order = xp.argsort(-scores.real, axis=-1, kind="stable")
    return xp.argsort(order, axis=-1) < k  # the place of each expert in the order


def expert_weights(p: xp.ndarray, chosen: xp.ndarray, renormalize: bool = True) -> tuple[xp.ndarray, tuple]:
    """How much each chosen expert counts: p (N, E) positive, chosen (N, E) booleans -> w (N, E), 0 if not chosen.

    Forward    w_i = p_i if i is chosen, else 0; renormalized w_i = p_i / t, t = sum of p_j over the chosen j
    Jacobian   dw_i/dp_j = 1[i = j], or (1[i = j] - w_i) / t, for chosen i and j
    Chain      dp_j = dw_j, or (dw_j - sum_i dw_i w_i) / t, if j is chosen, else 0
    Remember   w, chosen and t
    Check      renormalized rows of w sum to 1, and sum_j p_j dp_j = 0; with one chosen expert dp is exactly 0

    Where all chosen p_j have underflowed to 0, w is 0, as after a mask that forbids everything.

    Renormalized softmax probabilities are the softmax of the chosen logits (Mixtral); Switch Transformers leave them
    as they are. If one expert is chosen and renormalized, its weight is 1 whatever the router says, so the router
    gets no gradient at all and stays as it was drawn.
    """
    check_mask(chosen, p.shape)
    w, t = xp.where(chosen, p, 0), None
    if renormalize:
        t = row_sum(w)
        t = xp.where(t == 0, 1, t)
        w /= t
    return w, (w, chosen, t)


def expert_weights_backward(dw: xp.ndarray, cache: tuple) -> xp.ndarray:
    """dp (N, E) from dw (N, E); see `expert_weights` for the derivation."""
    w, chosen, t = cache
    return xp.where(chosen, dw if t is None else (dw - row_dot(dw, w)) / t, 0)


def expert_loads(chosen: xp.ndarray) -> xp.ndarray:
    """f (E,): the share of the N k assignments in chosen (N, E), N at least 1, that each expert got. They sum to 1."""
    return chosen.mean(axis=0) / chosen[0].sum()


def balance_loss(p: xp.ndarray, chosen: xp.ndarray) -> tuple[xp.ndarray, xp.ndarray]:
    """How unequally the experts are used (Fedus et al. 2021, Switch Transformers, equation 4): p, chosen (N, E) -> 0-d.

    Forward    loss = E sum_i f_i P_i      with the loads f_i (see `expert_loads`) and P_i = mean over n of p_ni
    Jacobian   dloss/dp_ni = E f_i / N     because f comes from the choice, it is a constant
    Chain      dp_ni = E f_i / N dloss     and through the softmax E / N p_ni (f_i - sum_j p_nj f_j) dloss
    Remember   dp / dloss, which is the same for all tokens
    Check      equal loads: the loss is 1 if each row of p sums to 1, and no gradient is left after the softmax

    f is what happened, P is what can be changed: an expert with many tokens is made less probable, for all tokens.
    Hugging Face's Mixtral and Qwen3-MoE count assignments per token, so that f sums to k and balance is k instead of 1:
    a weight of theirs is k times as strong as the same number here.
    """
    slope = xp.broadcast_to(expert_loads(chosen) * (p.shape[1] / len(p)), p.shape).astype(p.dtype)
    return (p * slope).sum(), slope


def z_loss(logits: xp.ndarray) -> tuple[xp.ndarray, xp.ndarray]:
    """Keeps the router's logits small (Zoph et al. 2022, ST-MoE, equation 5): logits (N, E) -> loss, a 0-d array.

    Forward    z_n = log sum_j exp(x_nj)      loss = mean over n of z_n^2
    Jacobian   dloss/dx_nj = 2 / N z_n p_nj   with p = softmax(x)
    Chain      dx_nj = 2 / N z_n p_nj dloss
    Remember   dx / dloss
    Check      a row with sum_j exp(x_j) = 1 costs nothing
    """
    largest = row_max(logits)
    p = xp.exp(logits - largest)
    total = row_sum(p)
    z = xp.log(total) + largest
    return (z * z).mean(), p * (z * (2.0 / len(z)) / total)


def auxiliary_backward(dloss: Any, slope: xp.ndarray) -> xp.ndarray:
    """dp of `balance_loss` or dlogits of `z_loss` (N, E) from dloss, 1 for the loss itself; see their derivations."""
    return slope * dloss
