"""The rows for the pure functions."""

from minitransformer import functional as F
from minitransformer.backend import to_device
from minitransformer.core import Parameter
from minitransformer.generators import make_generator
from minitransformer.gradcheck.cases.registry import (
    D_FF,
    MASKS,
    B,
    C,
    D,
    H,
    S,
    T,
    V,
    draw,
    draw_ids,
    mask,
    pair,
    register,
)
from minitransformer.gradcheck.check import check_gradients

DROPOUT = 0.3


def on_device(allowed):
    """A mask, or None, where the functions want it."""
    return None if allowed is None else to_device(allowed)


def softmax(kind):
    """Softmax of scores under one mask."""
    allowed = mask(kind, T, S)
    return pair(lambda s: F.softmax(s, on_device(allowed)), F.softmax_backward, scores=draw(B, H, T, S))


def attention(kind="none", b=B, t=T, s=S, rate=0.0):
    """Attention under one mask, with dropout on the weights if `rate`; each forward draws the same dropout."""
    allowed = mask(kind, t, s)

    def forward(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, on_device(allowed), rate, make_generator(1))

    inputs = {"q": draw(b, H, t, D), "k": draw(b, H, s, D, seed=1), "v": draw(b, H, s, D, seed=2)}
    return pair(forward, lambda dy, cache: F.scaled_dot_product_attention_backward(dy, cache)[:3], **inputs)


def cross_entropy(smoothing, padded):
    """The loss; its upstream gradient is random like all others."""
    targets = draw_ids(B, T, padded)
    loss = lambda z: F.cross_entropy(z, to_device(targets), smoothing)  # noqa: E731 - one line a row
    return pair(loss, F.cross_entropy_backward, logits=draw(B, T, V))


def embedding(name, **options):
    """The table, here a Parameter, because the function adds to its gradient in place."""
    E, ids = Parameter(draw(V, C)), draw_ids(B, T)

    def forward():
        return F.embedding(ids, E.data, C**0.5)

    def backward(dy, cache):
        F.embedding_backward(dy, cache, E.grad)

    return check_gradients(forward, backward, {}, {"E": E}, name=name, **options)


x, gamma, beta = draw(B, T, C), 1.0 + draw(C) / 2, draw(C, seed=1)
register("relu", F.relu, pair(F.relu, F.relu_backward, x=x))
for name in ("gelu", "gelu_tanh", "silu", "tanh"):
    activation = getattr(F, name)
    register(name, activation, pair(activation, getattr(F, f"{name}_backward"), x=2.0 * x))  # also into the tails
for name in ("geglu", "geglu_tanh", "swiglu"):
    activation = getattr(F, name)
    register(name, activation, pair(activation, getattr(F, f"{name}_backward"), x=draw(B, T, 2 * D)))
register("linear", F.linear, pair(F.linear, F.linear_backward, x=x, W=draw(C, D_FF), b=draw(D_FF)))
for kind in MASKS:
    register(f"softmax mask={kind}", F.softmax, softmax(kind))
register("layer_norm", F.layer_norm, pair(F.layer_norm, F.layer_norm_backward, x=x, gamma=gamma, beta=beta))
register("rms_norm", F.rms_norm, pair(F.rms_norm, F.rms_norm_backward, x=x, gamma=gamma))
for rate in (0.0, DROPOUT):
    forward = lambda x, rate=rate: F.dropout(x, rate, make_generator(1))  # noqa: E731 - one line a row
    register(f"dropout rate={rate}", F.dropout, pair(forward, F.dropout_backward, x=x))
register("embedding", F.embedding, embedding)
split, merge = F.split_heads, F.merge_heads
register("split_heads", split, pair(lambda x: (split(x, H), None), lambda dy, _: merge(dy), x=x))
register("merge_heads", merge, pair(lambda x: (merge(x), None), lambda dy, _: split(dy, H), x=draw(B, H, T, D)))
for kind in MASKS:
    register(f"attention mask={kind}", F.scaled_dot_product_attention, attention(kind))
register(f"attention dropout={DROPOUT}", F.scaled_dot_product_attention, attention("both", rate=DROPOUT))
register("attention T=1", F.scaled_dot_product_attention, attention(t=1))
register("attention B=1", F.scaled_dot_product_attention, attention(b=1))
for eps in (0.0, 0.1):
    for padded in (False, True):
        register(f"cross_entropy smoothing={eps} padding={padded}", F.cross_entropy, cross_entropy(eps, padded))
