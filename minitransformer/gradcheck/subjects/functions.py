"""The rows for the pure functions."""

import math
from typing import Any

import numpy as np

from minitransformer import functional as F
from minitransformer.backend import to_device
from minitransformer.core import Parameter
from minitransformer.functional.since_2017 import routing
from minitransformer.functional.since_2017.activations import ACTIVATIONS
from minitransformer.functional.since_2017.patterns import Pattern
from minitransformer.gradcheck.subjects.table import MASKS, ODD_MASKS, Draw, Problem, register
from minitransformer.system.generators import make_generator

DROPOUT = 0.3
SHARED = {"B": 2, "H": 6}  # with grouped queries: more heads, in fewer sequences


def activation(d: Draw, function: str) -> Problem:
    """A function of single entries, or of pairs of entries if it is gated; the inputs reach into its tails."""
    x = d.array(d.n.B, d.n.T, 2 * d.n.D, std=2.0)
    return Problem(getattr(F, function), getattr(F, f"{function}_backward"), {"x": x}, {}, {})


def linear(d: Draw) -> Problem:
    """x W + b."""
    return Problem(F.linear, F.linear_backward, {"x": d("BTC"), "W": d("CF"), "b": d("F")}, {}, {})


def layer_norm(d: Draw) -> Problem:
    """Over the last axis, with gamma around 1."""
    inputs = {"x": d("BTC"), "gamma": d("C", mean=1.0, std=0.5), "beta": d("C")}
    return Problem(F.layer_norm, F.layer_norm_backward, inputs, {}, {})


def rms_norm(d: Draw) -> Problem:
    """Over the last axis, with gamma around 1."""
    inputs = {"x": d("BTC"), "gamma": d("C", mean=1.0, std=0.5)}
    return Problem(F.rms_norm, F.rms_norm_backward, inputs, {}, {})


def softmax(d: Draw, mask: str) -> Problem:
    """Softmax of scores under a mask."""
    inputs = {"scores": d("BHTS")}
    return Problem(F.softmax, F.softmax_backward, inputs, {"allowed": d.mask(mask, d.n.T, d.n.S)}, {})


def dropout(d: Draw, dropout: float) -> Problem:
    """Each forward drops the same entries."""

    def function(x):
        return F.dropout(x, dropout, make_generator(1))

    return Problem(function, F.dropout_backward, {"x": d("BTC")}, {}, {})


def attention(
    d: Draw, mask: str = "none", dropout: float = 0.0, groups: int | None = None, scale: float | None = None
) -> Problem:
    """Attention under a mask; each forward drops the same weights. With a scale it has a bias too, as in T5."""
    inputs = _queries_and_keys(d, groups)
    if scale is not None:
        inputs["bias"] = d("HTS")

    def function(q, k, v, *rest):
        *bias, allowed = rest
        options = {"bias": bias[0] if bias else None, "scale": scale}
        return F.scaled_dot_product_attention(q, k, v, allowed, dropout, make_generator(1), **options)

    def backward(dy, cache):
        return F.scaled_dot_product_attention_backward(dy, cache)[: len(inputs)]  # without a bias, the fourth is None

    return Problem(function, backward, inputs, {"allowed": d.mask(mask, d.n.T, d.n.S)}, {})


def tiled_attention(
    d: Draw, mask: str = "none", dropout: float = 0.0, bias: str = "none", groups: int | None = None, **pattern: Any
) -> Problem:
    """Attention in tiles of 2 x 3, under a mask and a pattern, with a bias of "pairs", of "distances", or none."""
    inputs = _queries_and_keys(d, groups)
    if bias != "none":
        inputs["bias"] = d("HTS") if bias == "pairs" else d.array(d.n.H, 1, d.n.T + d.n.S - 1)

    def function(q, k, v, *rest):
        *bias, allowed = rest
        options = {"bias": bias[0] if bias else None, "pattern": Pattern(**pattern), "tile": (2, 3)}
        return F.tiled_attention(q, k, v, allowed, dropout, make_generator(1), **options)

    def backward(dy, cache):
        return F.tiled_attention_backward(dy, cache)[: len(inputs)]

    return Problem(function, backward, inputs, {"allowed": d.mask(mask, d.n.T, d.n.S)}, {})


def linear_attention(
    d: Draw, mask: str = "none", causal: bool = False, chunk: int = 3, groups: int | None = None
) -> Problem:
    """Linear attention; in the causal form there are as many queries as keys."""
    d = d.resized(S=d.n.T) if causal else d
    inputs = _queries_and_keys(d, groups)

    def function(q, k, v, allowed):
        return F.linear_attention(q, k, v, allowed, causal, chunk)

    allowed = d.mask(mask, d.n.T, d.n.S)
    return Problem(function, F.linear_attention_backward, inputs, {"allowed": allowed}, {})


def repeat_heads(d: Draw) -> Problem:
    """One head of keys for all heads of queries, (B, 1, T, D) -> (B, H, T, D)."""
    q = d("BHSD")

    def function(x):
        return F.repeat_heads(x, q), (1,)

    return Problem(function, F.repeat_heads_backward, {"x": d.array(d.n.B, 1, d.n.T, d.n.D)}, {}, {})


def _queries_and_keys(d: Draw, groups: int | None) -> dict[str, Any]:
    """q (B, H, T, D), and k and v (B, groups, S, D), with fewer groups where H is not divisible."""
    q, heads = d("BHTD"), math.gcd(groups or d.n.H, d.n.H)
    k, v = (d.array(d.n.B, heads, d.n.S, d.n.D) for _ in range(2))
    return {"q": q, "k": k, "v": v}


def cross_entropy(d: Draw, smoothing: float, padding: bool) -> Problem:
    """The loss. Its upstream gradient is random like all others."""

    def function(logits, targets):
        return F.cross_entropy(logits, to_device(targets), smoothing)

    constants = {"targets": d.ids(d.n.T, padding)}
    return Problem(function, F.cross_entropy_backward, {"logits": d("BTV")}, constants, {})


def token_log_probs(d: Draw) -> Problem:
    """The log-probabilities of the targets that are not padding."""
    targets, z = d.ids(d.n.T, padded=True), d("BTV")

    def function(z, targets, counted):
        return F.token_log_probs(z, to_device(targets), counted)

    return Problem(function, F.token_log_probs_backward, {"z": z}, {"targets": targets, "counted": targets != 0}, {})


def dpo(d: Draw) -> Problem:
    """Pairs of answers of different lengths."""
    inputs = {"chosen": d("BT"), "rejected": d("BS")}
    constants = {f"ref_{name}": d.array(*log_p.shape) for name, log_p in inputs.items()}
    return Problem(F.dpo, F.dpo_backward, inputs, constants, {})


def grpo(d: Draw, mean_over: str, penalty: bool) -> Problem:
    """Ratios on both sides of both bounds, and away from them: there the loss has a kink."""
    old, ref = d("BT"), d("BT")
    log_p = old + d.rng.choice(np.array([-0.5, -0.1, 0.1, 0.5], d.dtype), old.shape)
    constants = {"old": old, "A": d("B"), "counted": d.ids(d.n.T, padded=True) != 0, "ref": ref if penalty else None}

    def function(log_p, old, A, counted, ref):
        return F.grpo(log_p, old, A, counted, 0.2, ref, 0.3, mean_over)

    return Problem(function, F.grpo_backward, {"log_p": log_p}, constants, {})


def chosen_experts(d: Draw, function: str, **options: Any) -> Problem:
    """A function of the scores of S + 1 experts, of which two are chosen for each of T tokens."""
    scores = d.array(d.n.T, d.n.S + 1, mean=3.0, std=0.5)  # positive, as sums of them divide

    def forward(scores, chosen):
        return getattr(routing, function)(scores, *([] if function == "z_loss" else [chosen]), **options)

    backward = getattr(routing, f"{function}_backward", routing.auxiliary_backward)
    chosen = np.tile(np.arange(d.n.S + 1) < 2, (d.n.T, 1))
    return Problem(forward, backward, {"scores": scores}, {"chosen": d.rng.permuted(chosen, axis=1)}, {})


def embedding(d: Draw) -> Problem:
    """The matrix is a Parameter here, because backward adds to its gradient in place."""
    E = Parameter(d("VC"))

    def function(ids):
        return F.embedding(ids, E.data, 1.5)

    def backward(dy, cache):
        F.embedding_backward(dy, cache, E.grad)

    return Problem(function, backward, {}, {"ids": d.ids(d.n.T, padded=True)}, {"E": E})


def split_heads(d: Draw) -> Problem:
    """(B, T, C) -> (B, H, T, D)."""
    H = d.n.H
    return Problem(lambda x: (F.split_heads(x, H), None), lambda dy, _: F.merge_heads(dy), {"x": d("BTC")}, {}, {})


def merge_heads(d: Draw) -> Problem:
    """(B, H, T, D) -> (B, T, C)."""
    H = d.n.H
    return Problem(lambda x: (F.merge_heads(x), None), lambda dy, _: F.split_heads(dy, H), {"x": d("BHTD")}, {}, {})


for name in (*ACTIVATIONS, "tanh"):
    register(name, getattr(F, name), activation, function=name)
register("linear", F.linear, linear)
for mask in (*MASKS, *ODD_MASKS):
    register(f"softmax mask={mask}", F.softmax, softmax, mask=mask)
register("layer_norm", F.layer_norm, layer_norm)
register("rms_norm", F.rms_norm, rms_norm)
for rate in (0.0, DROPOUT):
    register(f"dropout rate={rate}", F.dropout, dropout, dropout=rate)
register("embedding", F.embedding, embedding)
register("split_heads", F.split_heads, split_heads)
register("merge_heads", F.merge_heads, merge_heads)
register("repeat_heads", F.repeat_heads, repeat_heads)
for mask in (*MASKS, *ODD_MASKS):
    register(f"attention mask={mask}", F.scaled_dot_product_attention, attention, mask=mask)
register(f"attention dropout={DROPOUT}", F.scaled_dot_product_attention, attention, mask="both", dropout=DROPOUT)
for scale in (1.0, 0.5):
    row = f"attention bias=True scale={scale}"
    register(row, F.scaled_dot_product_attention, attention, mask="both", scale=scale)
register("attention T=1", F.scaled_dot_product_attention, attention, lengths={"T": 1})
register("attention B=1", F.scaled_dot_product_attention, attention, lengths={"B": 1})
for groups in (1, 3):
    switches: dict[str, Any] = {"lengths": SHARED, "mask": "both", "groups": groups}
    register(f"attention groups={groups}", F.scaled_dot_product_attention, attention, **switches)

PATTERNS: dict[str, dict[str, Any]] = {
    "everything": {},
    "causal": {"causal": True},
    "window": {"causal": True, "window": 2},
    "two_sided": {"window": 3, "num_global": 1},
    "strided": {"causal": True, "window": 2, "stride": 3},
}
for mask in (*MASKS, *ODD_MASKS):
    register(f"tiled_attention mask={mask}", F.tiled_attention, tiled_attention, mask=mask)
for name, pattern in PATTERNS.items():
    for bias in ("pairs", "distances"):
        row = f"tiled_attention pattern={name} bias={bias} dropout={DROPOUT}"
        switches = {"mask": "padding", "dropout": DROPOUT, "bias": bias, **pattern}
        register(row, F.tiled_attention, tiled_attention, **switches)
    row = f"tiled_attention pattern={name} groups=3"
    switches = {"mask": "empty_row", "groups": 3, **pattern}
    register(row, F.tiled_attention, tiled_attention, lengths=SHARED, **switches)
register("tiled_attention pattern=causal", F.tiled_attention, tiled_attention, causal=True)
switches = {"mask": "empty_row", "bias": "distances", "groups": 3, "causal": True}
row = "tiled_attention pattern=causal bias=distances groups=3"
register(row, F.tiled_attention, tiled_attention, lengths=SHARED, **switches)
register("tiled_attention T=1", F.tiled_attention, tiled_attention, lengths={"T": 1})
register("elu_plus_one", F.elu_plus_one, activation, function="elu_plus_one")
for causal in (False, True):
    for mask in ("none", "padding"):
        row = f"linear_attention causal={causal} mask={mask}"
        register(row, F.linear_attention, linear_attention, causal=causal, mask=mask)
    row = f"linear_attention causal={causal} groups=3"
    switches = {"lengths": SHARED, "mask": "padding", "groups": 3, "causal": causal}
    register(row, F.linear_attention, linear_attention, **switches)
for chunk in (1, 64):
    row = f"linear_attention causal=True chunk={chunk}"
    register(row, F.linear_attention, linear_attention, causal=True, mask="padding", chunk=chunk)
for eps in (0.0, 0.1):
    for padding in (False, True):
        row = f"cross_entropy smoothing={eps} padding={padding}"
        register(row, F.cross_entropy, cross_entropy, smoothing=eps, padding=padding)
for name in ("balance_loss", "z_loss"):
    register(name, getattr(routing, name), chosen_experts, function=name)
for renormalize in (True, False):
    switches = {"function": "expert_weights", "renormalize": renormalize}
    register(f"expert_weights renormalize={renormalize}", routing.expert_weights, chosen_experts, **switches)
register("token_log_probs", F.token_log_probs, token_log_probs)
register("dpo", F.dpo, dpo)
for mean_over in ("answers", "tokens"):
    for penalty in (False, True):
        row = f"grpo mean_over={mean_over} penalty={penalty}"
        register(row, F.grpo, grpo, mean_over=mean_over, penalty=penalty)
