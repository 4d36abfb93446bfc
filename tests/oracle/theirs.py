"""PyTorch's side of every comparison: what it makes of our parameters and inputs.

Each function takes `torch` itself, so that this file can be imported without it; the sizes `n` and the `switches` of
the subject; and `p`, our parameters as tensors by our names. The rest are the subject's inputs and constants by name.
"""

import dataclasses
import math
import warnings

from minitransformer.gradcheck.subjects.layers import config
from minitransformer.gradcheck.subjects.models import SMOOTHING
from minitransformer.models import TransformerConfig
from minitransformer.vocabulary import PAD
from tests.oracle import torch_modules

GATES = {"geglu": "gelu", "geglu_tanh": "gelu_tanh", "swiglu": "silu", "glu": "sigmoid"}
FIELDS = {field.name for field in dataclasses.fields(TransformerConfig)} - {"padding"}  # a switch of the inputs here


def configuration(n, switches):
    """The configuration of a subject's layer or model, without dropout."""
    return config(n, **{name: value for name, value in switches.items() if name in FIELDS} | {"dropout": 0.0})


def apply_activation(torch, name, h):
    """What PyTorch makes of h (..., F), or of its two halves if the activation is gated."""
    if name in GATES:
        gate, up = h.chunk(2, dim=-1)
        return apply_activation(torch, GATES[name], gate) * up
    if name == "gelu_tanh":
        return torch.nn.functional.gelu(h, approximate="tanh")
    return getattr(torch.nn.functional, name)(h)


def activation(torch, n, switches, p, x):
    return apply_activation(torch, switches["function"], x)


def linear_function(torch, n, switches, p, x, W, b):
    return torch.nn.functional.linear(x, W.T, b)


def layer_norm_function(torch, n, switches, p, x, gamma, beta):
    return torch.nn.functional.layer_norm(x, gamma.shape, gamma, beta)


def softmax(torch, n, switches, p, scores, allowed=None):
    scores = scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
    return torch.softmax(scores, dim=-1)


def attention(torch, n, switches, p, q, k, v, allowed=None):
    # the one place in PyTorch where a boolean mask means what it means here: True = may attend
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=allowed)


def biased_attention(torch, n, switches, p, q, k, v, bias, allowed):
    bias = bias.expand(n.B, -1, -1, -1).masked_fill(~allowed, -torch.inf)
    scale = switches["scale"]
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale)


def grouped_attention(torch, n, switches, p, q, k, v, allowed=None):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=allowed, enable_gqa=True)


def tiled_attention(torch, n, switches, p, q, k, v, bias=None, allowed=None):
    """Attention under the mask of a pattern, pair by pair; a bias by distance is looked up for every pair."""
    T, S = q.shape[2], k.shape[2]
    if switches == {"causal": True}:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    mask = torch.tensor([[_sees(t, s, switches) for s in range(S)] for t in range(T)])
    if allowed is not None:
        mask = mask & allowed
    if bias is not None:
        if switches["bias"] == "distances":
            bias = bias[:, 0, [[s - t + T - 1 for s in range(S)] for t in range(T)]]
        mask = bias.expand(len(q), -1, -1, -1).masked_fill(~mask, -torch.inf)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


def _sees(t, s, switches):
    """Whether query t may attend to key s, by the definition of the pattern."""
    if switches.get("causal") and s > t:
        return False
    window, stride, first = (switches.get(name) for name in ("window", "stride", "num_global"))
    if window is None and stride is None:
        return True
    near = window is not None and t - window < s < t + window
    return near or (stride is not None and s % stride == t % stride) or min(t, s) < (first or 0)


def cross_entropy(torch, n, switches, p, logits, targets):
    return mean_loss(torch, logits, targets, switches["smoothing"])


def token_log_probs(torch, n, switches, p, z, targets, counted):
    log_p = torch.log_softmax(z, dim=-1).gather(-1, targets.long()[..., None])[..., 0]
    return log_p.masked_fill(~counted, 0)


def dpo(torch, n, switches, p, chosen, rejected, ref_chosen, ref_rejected):
    margins = (chosen - ref_chosen).sum(-1) - (rejected - ref_rejected).sum(-1)
    return -torch.nn.functional.logsigmoid(0.1 * margins).mean()


def grpo(torch, n, switches, p, log_p, old, A, counted, ref=None):
    rho, A = torch.exp(log_p - old), A[:, None]
    losses = -torch.minimum(rho * A, rho.clamp(0.8, 1.2) * A)
    if ref is not None:
        losses = losses + 0.3 * (torch.exp(ref - log_p) - (ref - log_p) - 1)
    losses = losses * counted
    if switches["mean_over"] == "tokens":
        return losses.sum() / counted.sum()
    return (losses.sum(1) / counted.sum(1)).mean()


def mean_loss(torch, logits, targets, smoothing):
    """The mean smoothed cross-entropy over all targets that are not padding."""
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, -2), targets.flatten(), ignore_index=PAD, label_smoothing=smoothing
    )


def linear(torch, n, switches, p, x):
    return torch.nn.functional.linear(x, p["W"].T, p.get("b"))


def conv1d_function(torch, n, switches, p, x, W, b, mask=None):
    return _convolve(torch, x, W, b, switches.get("dilation", 1), switches.get("causal", True), mask)


def conv1d(torch, n, switches, p, x, mask=None):
    return _convolve(torch, x, p["W"], p.get("b"), switches.get("dilation", 1), switches.get("causal", True), mask)


def activated_conv1d(torch, n, switches, p, x, mask):
    h = _convolve(torch, x, p["conv.W"], p["conv.b"], 2, True, mask)
    if switches["activation"] == "relu":
        return torch.relu(h)
    gate, up = h.chunk(2, dim=-1)
    return torch.nn.functional.glu(torch.cat([up, gate], dim=-1), dim=-1)  # there the gate is the second half


def _convolve(torch, x, W, b, dilation, causal, mask):
    """torch.nn.Conv1d on (B, T, C); a causal one gets all of its zeros before the first token."""
    K, I, O = W.shape
    padding = 0 if causal else "same"
    conv = torch.nn.Conv1d(I, O, K, dilation=dilation, padding=padding, bias=b is not None, dtype=torch.float64)
    weights = {"weight": W.permute(2, 1, 0)} | ({} if b is None else {"bias": b})
    x = x if mask is None else x.masked_fill(~mask[..., None], 0.0)
    if causal:
        x = torch.nn.functional.pad(x, (0, 0, (K - 1) * dilation, 0))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Using padding='same' with even kernel lengths")  # it makes a copy
        return torch_modules.call(torch, conv, weights, x.transpose(1, 2)).transpose(1, 2)


def layer_norm(torch, n, switches, p, x):
    return torch.nn.functional.layer_norm(x, (n.C,), p["gamma"], p["beta"], switches.get("eps", 1e-5))


def rms_norm(torch, n, switches, p, x):
    module = torch.nn.RMSNorm(n.C, eps=switches.get("eps", 1e-5), dtype=torch.float64)
    return torch_modules.call(torch, module, {"weight": p["gamma"]}, x)


def embedding(torch, n, switches, p, ids):
    return torch.nn.functional.embedding(ids, p["E"]) * math.sqrt(n.C)


def output_projection(torch, n, switches, p, x):
    return torch.nn.functional.linear(x, p["E"])


def feed_forward(torch, n, switches, p, x):
    h = torch.nn.functional.linear(x, p["expand.W"].T, p.get("expand.b"))
    h = apply_activation(torch, switches.get("activation", "relu"), h)
    return torch.nn.functional.linear(h, p["contract.W"].T, p.get("contract.b"))


def self_attention(torch, n, switches, p, x, allowed=None):
    return _attend(torch, n, torch_modules.self_attention_weights(torch, p), x, x, allowed)


def cross_attention(torch, n, switches, p, x, memory, allowed=None):
    return _attend(torch, n, torch_modules.cross_attention_weights(torch, p), x, memory, allowed)


def _attend(torch, n, weights, q, kv, allowed):
    module = torch.nn.MultiheadAttention(n.C, n.H, batch_first=True, dtype=torch.float64)
    ignored = torch_modules.ignored(n, q.shape[1], kv.shape[1], allowed)
    return torch_modules.call(torch, module, weights, q, kv, kv, need_weights=False, attn_mask=ignored)[0]


def encoder_layer(torch, n, switches, p, x, allowed=None):
    options = torch_modules.block_options(torch, configuration(n, switches))
    weights = torch_modules.encoder_layer_weights(torch, p)
    ignored = torch_modules.ignored(n, n.T, n.T, allowed)
    return torch_modules.call(torch, torch.nn.TransformerEncoderLayer(**options), weights, x, src_mask=ignored)


def decoder_layer(torch, n, switches, p, x, memory, allowed=None, memory_allowed=None):
    options = torch_modules.block_options(torch, configuration(n, switches))
    weights = torch_modules.decoder_layer_weights(torch, p)
    masks = {
        "tgt_mask": torch_modules.ignored(n, n.T, n.T, allowed),
        "memory_mask": torch_modules.ignored(n, n.T, n.S, memory_allowed),
    }
    return torch_modules.call(torch, torch.nn.TransformerDecoderLayer(**options), weights, x, memory, **masks)


def transformer(torch, n, switches, p, source, target, targets=None):
    """From ids to logits, or to the smoothed loss. Tied embeddings are one leaf of autograd that is used three times.

    torch.nn.Transformer has no embeddings, positions and output; they are built around it by hand.
    """
    paper = configuration(n, switches)
    source_E = p["source_embedding.tokens.E"]
    x = _embed(torch, source, source_E)
    y = _embed(torch, target, p.get("target_embedding.tokens.E", source_E))
    module, weights = torch_modules.transformer_module(torch, paper), torch_modules.transformer_weights(torch, paper, p)
    decoded = torch_modules.call(torch, module, weights, x, y, **torch_modules.stack_masks(torch, source, target))
    logits = decoded @ p.get("output.E", source_E).T
    return logits if targets is None else mean_loss(torch, logits, targets, switches.get("label_smoothing", SMOOTHING))


def _embed(torch, ids, E):
    """Token vectors times sqrt(C), plus the sinusoids of paper section 3.5, entry by entry -> (B, T, C)."""
    C = E.shape[1]
    rows = [
        [(math.cos if c % 2 else math.sin)(t / 10000 ** ((c - c % 2) / C)) for c in range(C)]
        for t in range(ids.shape[1])
    ]
    return torch.nn.functional.embedding(ids, E) * math.sqrt(C) + torch.tensor(rows, dtype=torch.float64)
