"""Comparisons with PyTorch of the other activations and normalisation, alone and inside the feed-forward network."""

from typing import ClassVar

import numpy as np

from minitransformer import functional
from minitransformer.layers import EncoderLayer, FeedForward, RMSNorm
from minitransformer.models import TransformerConfig
from tests.oracle import torch_modules
from tests.oracle.problems import Case

THEIRS = {
    "relu": ("relu", {}),
    "gelu": ("gelu", {}),
    "gelu_tanh": ("gelu", {"approximate": "tanh"}),
    "silu": ("silu", {}),
}
GATES = {"geglu": "gelu", "geglu_tanh": "gelu_tanh", "swiglu": "silu"}


def their_activation(torch, name, h):
    """What PyTorch makes of h (..., F), or of its two halves if the activation is gated."""
    if name in GATES:
        gate, up = h.chunk(2, dim=-1)
        return their_activation(torch, GATES[name], gate) * up
    function, options = THEIRS[name]
    return getattr(torch.nn.functional, function)(h, **options)


class ActivationCase(Case):
    inputs: ClassVar = {"x": "BTF"}
    output = "BTF"

    def __init__(self, name):
        super().__init__(name)
        self.activation, self.backward = getattr(functional, name), getattr(functional, f"{name}_backward")

    def ours(self, layer, x):
        return self.activation(x)

    def ours_backward(self, layer, dy, cache):
        return self.backward(dy, cache)

    def theirs(self, torch, z, p, x):
        return their_activation(torch, self.name, x)


class RMSNormCase(Case):
    inputs: ClassVar = {"x": "BTC"}

    def __init__(self, name, eps):
        super().__init__(name)
        self.eps = eps

    def layer(self, z):
        return RMSNorm(z.C, eps=self.eps, dtype=np.float64)

    def theirs(self, torch, z, p, x):
        module = torch.nn.RMSNorm(z.C, eps=self.eps, dtype=torch.float64)
        return torch_modules.call(torch, module, {"weight": p["gamma"]}, x)


class ActivatedFeedForwardCase(Case):
    inputs: ClassVar = {"x": "BTC"}

    def __init__(self, activation, bias):
        super().__init__(f"feed-forward network, {activation}, {'with' if bias else 'without'} biases")
        self.activation, self.bias = activation, bias

    def layer(self, z):
        return FeedForward(z.C, z.F, activation=self.activation, bias=self.bias, dtype=np.float64)

    def theirs(self, torch, z, p, x):
        linear = torch.nn.functional.linear
        h = their_activation(torch, self.activation, linear(x, p["expand.W"].T, p.get("expand.b")))
        return linear(h, p["contract.W"].T, p.get("contract.b"))


class GeluEncoderLayerCase(Case):
    """PyTorch's own block, with GELU and another eps."""

    inputs: ClassVar = {"x": "BSC"}
    output = "BSC"

    def config(self, z):
        sizes = {"vocab_size": z.V, "d_model": z.C, "num_heads": z.H, "d_ff": z.F, "max_len": z.S, "dropout": 0.0}
        return TransformerConfig(**sizes, activation="gelu", norm_eps=0.1)

    def layer(self, z):
        return EncoderLayer(self.config(z), dtype=np.float64)

    def theirs(self, torch, z, p, x):
        options = torch_modules.block_options(torch, self.config(z))
        module = torch.nn.TransformerEncoderLayer(**options, activation="gelu", layer_norm_eps=0.1)
        return torch_modules.call(torch, module, torch_modules.encoder_layer_weights(torch, p), x)


def _cases():
    yield from (ActivationCase(name) for name in THEIRS)
    yield from (RMSNormCase(f"RMSNorm, eps {eps}", eps) for eps in (0.0, 1e-5, 0.3))
    for activation in (*THEIRS, *GATES):
        yield from (ActivatedFeedForwardCase(activation, bias) for bias in (True, False))
    yield GeluEncoderLayerCase("encoder layer with GELU and another eps")


FAMILY_CASES = {case.name: case for case in _cases()}
