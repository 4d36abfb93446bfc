"""Every number of the running example, forward and backward, under the names that the lessons use.

This is a second implementation of the model, for one pair of sequences and one layer in each stack, in the order of the
paper's figure 1. A test holds its loss and all of its gradients equal to those of `Transformer`.
"""

from collections.abc import Mapping

import numpy as np

from minitransformer.backend import to_host
from minitransformer.example import Example
from minitransformer.example.names import Numbers, named_weights
from minitransformer.functional import (
    causal_mask,
    cross_entropy,
    cross_entropy_backward,
    layer_norm,
    layer_norm_backward,
    linear,
    linear_backward,
    merge_heads,
    relu,
    relu_backward,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    sinusoidal_positions,
    softmax_backward,
    split_heads,
)


def numbers(example: Example, smoothing: float = 0.0, allowed: Mapping[str, np.ndarray] | None = None) -> Numbers:
    """All values and gradients of `example`: name -> array without a batch axis.

    Its sequences may end in padding. `smoothing` is that of the labels, and `allowed` replaces the masks of some
    places: place of attention -> (T, S) booleans.

    A name is a place, a dot and a symbol. `d` before the symbol makes it the gradient of the loss with respect to it,
    an array of the same shape. The places, in the order of the forward pass:

        source          e (S, C) rows of E, x (S, C) = sqrt(C) e + PE
        encoder.self    attention within the source
        encoder.norm1   Add & Norm after it
        encoder.ffn     feed-forward network
        encoder.norm2   Add & Norm after it; its y is the memory M (S, C)
        target          e, x (T, C), as in source
        decoder.self    masked attention within the target
        decoder.norm1
        cross           attention from the target to the memory
        decoder.norm2
        decoder.ffn
        decoder.norm3   its y goes to the output
        output          y (T, C) in, z (T, V) logits, p (T, V) probabilities, L the loss: the mean cross-entropy, 0-d

    and what each kind of place has, for n rows:

        attention       x (T, C) in, M (S, C) in (cross alone), allowed (T, S), q (H, T, D), k and v (H, S, D),
                        s and p (H, T, S), o (H, T, D), y (T, C) out; W_q, W_k, W_v, W_o (C, C),
                        b_q, b_k, b_v, b_o (C,)
        norm            x (n, C) in: a sub-layer's input plus its output; mu, sigma (n, 1), x_hat, y (n, C);
                        gamma, beta (C,)
        ffn             x (n, C) in, a (n, F) before ReLU, r (n, F) after it, y (n, C) out; W_1 (C, F), b_1 (F,),
                        W_2 (F, C), b_2 (C,)

    and `E` (V, C), `PE` (T, C), or (S, C) if S > T, `dE`, `M`, `dM`. mu and sigma have no gradient here: lesson 10
    splits theirs. The dx of a sub-layer is what goes back through the sub-layer, without its residual path.
    """
    trace = Trace(example, smoothing, allowed or {})
    trace.forward()
    trace.backward()
    return {name: to_host(value) for name, value in trace.values.items()}


class Trace:
    """Computes the numbers, one place after another."""

    def __init__(self, example, smoothing, allowed):
        self.example, self.smoothing = example, smoothing
        source, target = (example.model.config.tokens(ids[0]) for ids in (example.source, example.target_in))
        self.allowed = {
            "encoder.self": np.tile(source, (len(source), 1)),
            "decoder.self": causal_mask(len(target)) & target,
            "cross": np.tile(source, (len(target), 1)),
            **allowed,
        }
        self.heads = example.model.config.num_heads
        length = max(example.source.shape[1], example.target_in.shape[1])
        self.values = named_weights(example.model)
        self.values["PE"] = sinusoidal_positions(length, example.model.config.d_model, np.float64)
        self.caches = {}

    def forward(self):
        get, (source, target_in, target_out) = self.values, (ids[0] for ids in self.example[2:])
        x = self.embed("source", source)
        x = self.norm("encoder.norm1", x + self.attend("encoder.self", x))
        get["M"] = self.norm("encoder.norm2", x + self.feed_forward("encoder.ffn", x))
        y = self.embed("target", target_in)
        y = self.norm("decoder.norm1", y + self.attend("decoder.self", y))
        y = self.norm("decoder.norm2", y + self.attend("cross", y, get["M"]))
        y = self.norm("decoder.norm3", y + self.feed_forward("decoder.ffn", y))
        get["output.y"] = y
        get["output.z"] = y @ get["E"].T
        get["output.L"], self.caches["output"] = cross_entropy(get["output.z"], target_out, self.smoothing)
        get["output.p"] = self.caches["output"].p

    def backward(self):
        get, (source, target_in, _) = self.values, (ids[0] for ids in self.example[2:])
        dz = get["output.dz"] = cross_entropy_backward(1.0, self.caches["output"])
        get["dE"] = dz.T @ get["decoder.norm3.y"]
        get["output.dy"] = dz @ get["E"]
        dsum = self.norm_backward("decoder.norm3", get["output.dy"])
        dsum = self.norm_backward("decoder.norm2", dsum + self.feed_forward_backward("decoder.ffn", dsum))
        dx, get["dM"] = self.attend_backward("cross", dsum)
        dsum = self.norm_backward("decoder.norm1", dsum + dx)
        self.embed_backward("target", target_in, dsum + self.attend_backward("decoder.self", dsum))
        dsum = self.norm_backward("encoder.norm2", get["dM"])
        dsum = self.norm_backward("encoder.norm1", dsum + self.feed_forward_backward("encoder.ffn", dsum))
        self.embed_backward("source", source, dsum + self.attend_backward("encoder.self", dsum))

    def embed(self, at, ids):
        get = self.values
        C = get["E"].shape[-1]
        get[f"{at}.e"] = get["E"][ids]
        get[f"{at}.x"] = get[f"{at}.e"] * C**0.5 + get["PE"][: len(ids)]
        return get[f"{at}.x"]

    def embed_backward(self, at, ids, dx):
        get = self.values
        get[f"{at}.dx"], get[f"{at}.de"] = dx, dx * dx.shape[-1] ** 0.5
        for token, de in zip(ids, get[f"{at}.de"], strict=True):
            get["dE"][token] += de

    def attend(self, at, x, memory=None):
        """queries from x (T, C), keys and values from memory (S, C), or from x in self-attention -> y (T, C)"""
        get, caches = self.values, self.caches
        get[f"{at}.x"], get[f"{at}.allowed"] = x, self.allowed[at]
        if memory is not None:
            get[f"{at}.M"] = memory
        projected = {}
        for name in "qkv":
            of = x if name == "q" or memory is None else memory
            projected[name], caches[f"{at}.{name}"] = linear(of, get[f"{at}.W_{name}"], get[f"{at}.b_{name}"])
            get[f"{at}.{name}"] = split_heads(projected[name][None], self.heads)[0]
        q, k, v = (get[f"{at}.{name}"][None] for name in "qkv")
        o, caches[at] = scaled_dot_product_attention(q, k, v, self.allowed[at])
        get[f"{at}.s"] = (q @ k.swapaxes(-1, -2))[0] * q.shape[-1] ** -0.5
        get[f"{at}.p"], get[f"{at}.o"] = caches[at].weights[0], o[0]
        merged = merge_heads(o)[0]
        y, caches[f"{at}.o"] = linear(merged, get[f"{at}.W_o"], get[f"{at}.b_o"])
        get[f"{at}.y"] = y
        return y

    def attend_backward(self, at, dy):
        """dy (T, C) -> dx (T, C); in cross-attention -> dx through the queries, and dM through keys and values"""
        get, caches = self.values, self.caches
        get[f"{at}.dy"] = dy
        dmerged, get[f"{at}.dW_o"], get[f"{at}.db_o"] = linear_backward(dy, caches[f"{at}.o"])
        do = split_heads(dmerged[None], self.heads)
        get[f"{at}.do"] = do[0]
        get[f"{at}.dp"] = (do @ get[f"{at}.v"][None].swapaxes(-1, -2))[0]
        get[f"{at}.ds"] = softmax_backward(get[f"{at}.dp"], get[f"{at}.p"])
        *dqkv, _ = scaled_dot_product_attention_backward(do, caches[at])
        back = {}
        for name, gradient in zip("qkv", dqkv, strict=True):
            get[f"{at}.d{name}"] = gradient[0]
            merged = merge_heads(gradient)[0]
            back[name], get[f"{at}.dW_{name}"], get[f"{at}.db_{name}"] = linear_backward(merged, caches[f"{at}.{name}"])
        if f"{at}.M" not in get:
            get[f"{at}.dx"] = back["q"] + (back["k"] + back["v"])
            return get[f"{at}.dx"]
        get[f"{at}.dx"], get[f"{at}.dM"] = back["q"], back["k"] + back["v"]
        return get[f"{at}.dx"], get[f"{at}.dM"]

    def feed_forward(self, at, x):
        get, caches = self.values, self.caches
        get[f"{at}.x"] = x
        get[f"{at}.a"], caches[f"{at}.1"] = linear(x, get[f"{at}.W_1"], get[f"{at}.b_1"])
        get[f"{at}.r"], caches[f"{at}.r"] = relu(get[f"{at}.a"])
        get[f"{at}.y"], caches[f"{at}.2"] = linear(get[f"{at}.r"], get[f"{at}.W_2"], get[f"{at}.b_2"])
        return get[f"{at}.y"]

    def feed_forward_backward(self, at, dy):
        get, caches = self.values, self.caches
        get[f"{at}.dy"] = dy
        get[f"{at}.dr"], get[f"{at}.dW_2"], get[f"{at}.db_2"] = linear_backward(dy, caches[f"{at}.2"])
        get[f"{at}.da"] = relu_backward(get[f"{at}.dr"], caches[f"{at}.r"])
        dx, get[f"{at}.dW_1"], get[f"{at}.db_1"] = linear_backward(get[f"{at}.da"], caches[f"{at}.1"])
        get[f"{at}.dx"] = dx
        return dx

    def norm(self, at, x):
        get = self.values
        get[f"{at}.x"] = x
        y, cache = layer_norm(x, get[f"{at}.gamma"], get[f"{at}.beta"], self.example.model.config.norm_eps)
        get[f"{at}.mu"], get[f"{at}.sigma"] = x.mean(axis=-1, keepdims=True), 1.0 / cache.rstd
        get[f"{at}.x_hat"], get[f"{at}.y"], self.caches[at] = cache.x_hat, y, cache
        return y

    def norm_backward(self, at, dy):
        get = self.values
        get[f"{at}.dy"] = dy
        get[f"{at}.dx_hat"] = dy * get[f"{at}.gamma"]
        get[f"{at}.dx"], get[f"{at}.dgamma"], get[f"{at}.dbeta"] = layer_norm_backward(dy, self.caches[at])
        return get[f"{at}.dx"]
