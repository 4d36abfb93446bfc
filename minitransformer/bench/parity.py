"""Whether two devices agree: every layer, and fifty training steps, on NumPy and on the backend in use."""

from functools import partial
from typing import Any

import numpy as np

from minitransformer import layers as L
from minitransformer.backend import to_device, to_host, use_backend, xp
from minitransformer.bench.training import make_training_step
from minitransformer.core import Parameter
from minitransformer.data import get_task
from minitransformer.gradcheck.check import randomize_parameters
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import noam

B, T, S, H, C, D_FF, V = 5, 9, 11, 3, 48, 80, 29
STEPS = 50
CONFIG = TransformerConfig(V, d_model=C, num_heads=H, d_ff=D_FF, num_layers=2, max_len=24, dropout=0.0)


def causal() -> xp.ndarray:
    """The mask of self-attention (B, 1, T, T), with some padding."""
    allowed = np.repeat(np.tril(np.ones((T, T), bool))[None, None], B, axis=0)
    allowed[0, :, :, T // 2 :] = False
    return to_device(allowed)


def padding() -> xp.ndarray:
    """The mask of cross-attention (B, 1, 1, S), in which one sequence is all padding."""
    allowed = np.ones((B, 1, 1, S), bool)
    allowed[1] = False
    return to_device(allowed)


# name: (dtype -> layer, shapes of its inputs, () -> the other arguments of forward)
LAYERS: dict[str, tuple[Any, list[tuple[int, ...]], Any]] = {
    "Linear": (partial(L.Linear, C, D_FF), [(B, T, C)], None),
    "LayerNorm": (partial(L.LayerNorm, C), [(B, T, C)], None),
    "PositionalEncoding": (partial(L.PositionalEncoding, T, C), [(B, T, C)], None),
    "Embedding": (
        lambda dtype: L.Embedding(Parameter(np.zeros((V, C), dtype))),
        [],
        lambda: [np.random.default_rng(1).integers(0, V, (B, T))],
    ),
    "OutputProjection": (lambda dtype: L.OutputProjection(Parameter(np.zeros((V, C), dtype))), [(B, T, C)], None),
    "FeedForward": (partial(L.FeedForward, C, D_FF), [(B, T, C)], None),
    "SelfAttention": (partial(L.SelfAttention, C, H), [(B, T, C)], lambda: [causal()]),
    "CrossAttention": (partial(L.CrossAttention, C, H), [(B, T, C), (B, S, C)], lambda: [padding()]),
    "EncoderLayer": (partial(L.EncoderLayer, CONFIG), [(B, T, C)], lambda: [causal()]),
    "Encoder": (partial(L.Encoder, CONFIG), [(B, T, C)], lambda: [causal()]),
    "DecoderLayer": (partial(L.DecoderLayer, CONFIG), [(B, T, C), (B, S, C)], lambda: [causal(), padding()]),
    "Decoder": (partial(L.Decoder, CONFIG), [(B, T, C), (B, S, C)], lambda: [causal(), padding()]),
}


def compare_layers(dtype: str) -> dict[str, float]:
    """{layer: the largest relative error of its output and all its gradients, against NumPy}."""
    errors = {}
    for name in LAYERS:
        here = run_layer(name, dtype)
        with use_backend("numpy"):
            there = run_layer(name, dtype)
        errors[name] = max(relative_error(here[key], there[key]) for key in there)
    return errors


def run_layer(name: str, dtype: str) -> dict[str, np.ndarray]:
    """{"y": output, "dx 0": input gradient, ..., parameter: gradient} on the host, from the same random numbers."""
    build, shapes, other_arguments = LAYERS[name]
    rng = np.random.default_rng(0)
    layer = build(dtype=dtype)
    randomize_parameters(layer)
    inputs = [to_device(rng.standard_normal(shape).astype(dtype)) for shape in shapes]
    y, cache = layer.forward(*inputs, *(other_arguments() if other_arguments else ()))
    returned = layer.backward(to_device(rng.standard_normal(y.shape).astype(dtype)), cache)
    returned = returned if isinstance(returned, tuple) else (returned,)
    results = {"y": y, **{f"dx {i}": dx for i, dx in enumerate(returned) if dx is not None}}
    results |= {key: parameter.grad for key, parameter in layer.named_parameters()}
    return {key: to_host(value) for key, value in results.items()}


def compare_training(dtype: str) -> dict[str, float]:
    """Train on both devices, without dropout -> relative errors of the weights after one step, and of all losses."""
    weights, losses = train_for_comparison(dtype)
    with use_backend("numpy"):
        weights_numpy, losses_numpy = train_for_comparison(dtype)
    after_one_step = max(relative_error(weights[name], weights_numpy[name]) for name in weights_numpy)
    return {"after_one_step": after_one_step, "losses": relative_error(losses, losses_numpy)}


def train_for_comparison(dtype: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The weights after one step, with the keys' biases set to 0, and the losses of all steps (STEPS,).

    The gradient of a key's bias is exactly 0 (see `SelfAttention`), up to rounding. Adam turns that rounding error into
    a step of full size, whose sign differs between devices. Nothing depends on it.
    """
    model = Transformer(CONFIG, dtype=dtype)
    train_step = make_training_step(model, threads=1)
    rng = np.random.default_rng(2)
    losses = []
    for step in range(1, STEPS + 1):
        losses.append(train_step(get_task("copy").batch(rng, 16), noam(step, C, warmup=4000)))
        if step == 1:
            weights = model.state_dict()
    for name, value in weights.items():
        if name.endswith(("qkv.b", "kv.b")):
            key = value.size // 3 if name.endswith("qkv.b") else 0
            value[key : key + C] = 0
    return weights, np.array([float(loss) for loss in losses])


def relative_error(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the largest entry expected."""
    return float(np.abs(got - expected).max() / np.abs(expected).max())
