"""Random letters, and small language models with an attention of one's own: what lesson 07 trains.

model = NoiseModel(attention, attention_backward, allowed)
losses = fit(model, steps=2000)
model.attention.cache  # what the attention of the first layer has remembered
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minitransformer.core import Layer
from minitransformer.data.text import TextBatch
from minitransformer.functional import softmax, softmax_backward
from minitransformer.layers import Linear
from minitransformer.models import GPT, gpt_config
from minitransformer.training import TrainingSettings, cosine, train

LETTERS, LENGTH, WIDTH = 16, 8, 32


class Noise:
    """Sequences of random letters 1 to 16 (0 is padding): LENGTH of them to read, and for each the next one to say."""

    def batch(self, rng: np.random.Generator, size: int) -> TextBatch:
        """`size` sequences that were never there before."""
        letters = rng.integers(1, LETTERS + 1, (size, LENGTH + 1))
        return TextBatch(letters[:, :-1], letters[:, 1:])


class OwnAttention(Layer):
    """Self-attention with one head: q, k, v from a linear layer, `attend(q, k, v, allowed)`, and a linear layer."""

    def __init__(self, attend: Callable[..., Any], backward: Callable[..., Any], allowed: np.ndarray, seed: int):
        rng = np.random.default_rng(seed)
        self.qkv, self.output = Linear(WIDTH, 3 * WIDTH, rng=rng), Linear(WIDTH, WIDTH, rng=rng)
        self.attend, self.attend_backward, self.allowed = attend, backward, allowed
        self.cache: Any = None

    def forward(self, x: np.ndarray, usual_mask: Any = None, rng: Any = None) -> tuple[np.ndarray, Any]:
        """x (B, T, C) -> y (B, T, C). It uses its own mask instead of the usual one."""
        qkv, cache_qkv = self.qkv.forward(x)
        o, self.cache = self.attend(*np.split(qkv, 3, axis=-1), self.allowed)
        y, cache_output = self.output.forward(o)
        return y, (cache_qkv, self.cache, cache_output)

    def backward(self, dy: np.ndarray, cache: Any) -> np.ndarray:
        """dy (B, T, C) -> dx (B, T, C)."""
        cache_qkv, cache_attention, cache_output = cache
        gradients = self.attend_backward(self.output.backward(dy, cache_output), cache_attention)
        return self.qkv.backward(np.concatenate(gradients, axis=-1), cache_qkv)


class NoiseModel(GPT):
    """The library's GPT, a decoder without cross-attention, with `OwnAttention` in its layers."""

    def __init__(self, attend: Callable[..., Any], backward: Callable[..., Any], allowed: np.ndarray, layers: int = 1):
        sizes = {"d_model": WIDTH, "num_heads": 1, "d_ff": 4 * WIDTH, "num_layers": layers, "max_len": LENGTH}
        super().__init__(gpt_config(LETTERS + 1, dropout=0.0, **sizes))
        for seed, layer in enumerate(self.blocks.layers):
            layer.self_attention.sublayer = OwnAttention(attend, backward, allowed, seed)

    @property
    def attention(self) -> OwnAttention:
        """The attention of the first layer."""
        return self.blocks.layers[0].self_attention.sublayer


def fit(model: NoiseModel, steps: int) -> list[float]:
    """Train the model on random letters -> the loss of each step."""
    schedule = partial(cosine, steps=steps, peak=1e-2, warmup=50)
    return train(model, Noise(), schedule=schedule, settings=TrainingSettings(steps, batch_size=64)).losses


def multiplied_after(q: np.ndarray, k: np.ndarray, v: np.ndarray, allowed: np.ndarray) -> tuple[np.ndarray, Any]:
    """Attention with a mistake: the mask is multiplied onto the weights, after the softmax -> o, cache."""
    p, _ = softmax(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5)
    return (p * allowed) @ v, (q, k, v, p, allowed)


def multiplied_after_backward(do: np.ndarray, cache: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The right gradients (dq, dk, dv) of the wrong attention."""
    q, k, v, p, allowed = cache
    dp = (do @ v.swapaxes(-1, -2)) * allowed
    ds = softmax_backward(dp, p) / q.shape[-1] ** 0.5
    return ds @ k, ds.swapaxes(-1, -2) @ q, (p * allowed).swapaxes(-1, -2) @ do
