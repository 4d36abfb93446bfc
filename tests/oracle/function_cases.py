"""Comparisons with PyTorch of the pure functions, and of the layers that are little more than one function."""

import math
from typing import ClassVar

import numpy as np

from minitransformer.core import Parameter
from minitransformer.functional import (
    cross_entropy,
    cross_entropy_backward,
    relu,
    relu_backward,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    softmax,
    softmax_backward,
)
from minitransformer.layers import Embedding, FeedForward, LayerNorm, Linear
from minitransformer.vocabulary import PAD
from tests.oracle.problems import Case, draw_ids


def draw_mask(rng, z):
    """A mask (B, H, T, S) without any structure, in which each query may look somewhere."""
    allowed = rng.random(z.shape("BHTS")) < 0.6
    allowed[..., 0] |= ~allowed.any(axis=-1)
    return allowed


class ReluCase(Case):
    inputs: ClassVar = {"x": "BTF"}
    output = "BTF"

    def ours(self, layer, x):
        return relu(x)

    def ours_backward(self, layer, dy, cache):
        return relu_backward(dy, cache)

    def theirs(self, torch, z, p, x):
        return torch.relu(x)


class SoftmaxCase(Case):
    inputs: ClassVar = {"scores": "BHTS"}
    output = "BHTS"

    def __init__(self, name, masked):
        super().__init__(name)
        self.masked = masked

    def constants(self, rng, z):
        return {"allowed": draw_mask(rng, z)} if self.masked else {}

    def ours(self, layer, scores, allowed=None):
        return softmax(scores, allowed)

    def ours_backward(self, layer, dy, cache):
        return softmax_backward(dy, cache)

    def theirs(self, torch, z, p, scores, allowed=None):
        scores = scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
        return torch.softmax(scores, dim=-1)


class DotProductAttentionCase(Case):
    """With "empty" a few queries may look nowhere: PyTorch's function gives 0 there too."""

    inputs: ClassVar = {"q": "BHTD", "k": "BHSD", "v": "BHSD"}
    output = "BHTD"

    def __init__(self, name, mask):
        super().__init__(name)
        self.mask = mask

    def constants(self, rng, z):
        if self.mask == "none":
            return {}
        allowed = draw_mask(rng, z)
        if self.mask == "empty":
            allowed[:, 0, 1] = False
        return {"allowed": allowed}

    def ours(self, layer, q, k, v, allowed=None):
        return scaled_dot_product_attention(q, k, v, allowed)

    def ours_backward(self, layer, dy, cache):
        return scaled_dot_product_attention_backward(dy, cache)[:3]

    def theirs(self, torch, z, p, q, k, v, allowed=None):
        # the one place in PyTorch where a boolean mask means what it means here: True = may attend
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=allowed)


class CrossEntropyCase(Case):
    inputs: ClassVar = {"logits": "BTV"}
    output = ""

    def __init__(self, name, smoothing):
        super().__init__(name)
        self.smoothing = smoothing

    def constants(self, rng, z):
        return {"targets": draw_ids(rng, z.B, z.T, z.V)}

    def ours(self, layer, logits, targets):
        return cross_entropy(logits, targets, self.smoothing, PAD)

    def ours_backward(self, layer, dy, cache):
        return cross_entropy_backward(dy, cache)

    def theirs(self, torch, z, p, logits, targets):
        return their_loss(torch, logits, targets, self.smoothing)


def their_loss(torch, logits, targets, smoothing):
    """The mean smoothed cross-entropy over all targets that are not padding."""
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, -2), targets.flatten(), ignore_index=PAD, label_smoothing=smoothing
    )


class LinearCase(Case):
    inputs: ClassVar = {"x": "BTC"}
    output = "BTF"

    def __init__(self, name, bias):
        super().__init__(name)
        self.bias = bias

    def layer(self, z):
        return Linear(z.C, z.F, bias=self.bias, dtype=np.float64)

    def theirs(self, torch, z, p, x):
        return torch.nn.functional.linear(x, p["W"].T, p.get("b"))


class LayerNormCase(Case):
    inputs: ClassVar = {"x": "BTC"}

    def layer(self, z):
        return LayerNorm(z.C, dtype=np.float64)

    def theirs(self, torch, z, p, x):
        return torch.nn.functional.layer_norm(x, (z.C,), p["gamma"], p["beta"], eps=1e-5)


class FeedForwardCase(Case):
    inputs: ClassVar = {"x": "BTC"}

    def layer(self, z):
        return FeedForward(z.C, z.F, dtype=np.float64)

    def theirs(self, torch, z, p, x):
        linear = torch.nn.functional.linear
        return linear(torch.relu(linear(x, p["expand.W"].T, p["expand.b"])), p["contract.W"].T, p["contract.b"])


class EmbeddingCase(Case):
    def constants(self, rng, z):
        ids = rng.integers(0, z.V, size=(z.B, z.T))
        ids[1, :2] = ids[0, 0]  # one token three times, twice in one row
        return {"ids": ids}

    def layer(self, z):
        return Embedding(Parameter(np.zeros((z.V, z.C))))

    def theirs(self, torch, z, p, ids):
        return torch.nn.functional.embedding(ids, p["E"]) * math.sqrt(z.C)
