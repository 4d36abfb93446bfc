"""The same numbers on two devices: every layer, and fifty training steps, on NumPy and on the backend in use."""

from functools import partial

import numpy as np

from minitransformer import layers as L
from minitransformer.backend import to_device, to_host, use_backend
from minitransformer.core import Parameter
from minitransformer.data import get_task
from minitransformer.gradcheck.check import randomize_parameters
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import Adam, CrossEntropyLoss, DataParallel, noam, training_step

B, T, S, H, C, D_FF, V = 5, 9, 11, 3, 48, 80, 29
STEPS = 50
CONFIG = TransformerConfig(V, d_model=C, num_heads=H, d_ff=D_FF, num_layers=2, max_len=24, dropout=0.0)


def causal():
    """The mask of self-attention, with some padding."""
    allowed = np.repeat(np.tril(np.ones((T, T), bool))[None, None], B, axis=0)
    allowed[0, :, :, T // 2 :] = False
    return to_device(allowed)


def padding():
    """The mask of cross-attention, with a sequence that is nothing but padding."""
    allowed = np.ones((B, 1, 1, S), bool)
    allowed[1] = False
    return to_device(allowed)


# name: (dtype -> layer, shapes of its inputs, () -> what forward takes besides)
LAYERS = {
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


def compare_layers(dtype):
    """{layer: the largest relative error of its output and all its gradients, against NumPy}."""
    errors = {}
    for name in LAYERS:
        here = run_layer(name, dtype)
        with use_backend("numpy"):
            there = run_layer(name, dtype)
        errors[name] = max(relative_error(here[key], there[key]) for key in there)
    return errors


def run_layer(name, dtype):
    """{"y": output, "dx 0": input gradient, ..., parameter: gradient} on the host, from the same random numbers."""
    build, shapes, more = LAYERS[name]
    rng = np.random.default_rng(0)
    layer = build(dtype=dtype)
    randomize_parameters(layer)
    inputs = [to_device(rng.standard_normal(shape).astype(dtype)) for shape in shapes]
    y, cache = layer.forward(*inputs, *(more() if more else ()))
    returned = layer.backward(to_device(rng.standard_normal(y.shape).astype(dtype)), cache)
    returned = returned if isinstance(returned, tuple) else (returned,)
    results = {"y": y, **{f"dx {i}": dx for i, dx in enumerate(returned) if dx is not None}}
    results |= {key: parameter.grad for key, parameter in layer.named_parameters()}
    return {key: to_host(value) for key, value in results.items()}


def compare_training(dtype):
    """Train twice for STEPS steps, without dropout -> dict of relative errors: after one step, and of all losses."""
    weights, losses = train_for_comparison(dtype)
    with use_backend("numpy"):
        weights_numpy, losses_numpy = train_for_comparison(dtype)
    after_one_step = max(relative_error(weights[name], weights_numpy[name]) for name in weights_numpy)
    return {"after_one_step": after_one_step, "losses": relative_error(losses, losses_numpy)}


def train_for_comparison(dtype):
    """The weights after one step, without the keys' biases, and the losses of all steps.

    A key's bias has gradient exactly 0 (see `SelfAttention`), of which Adam makes a step of full size out of what
    rounding left: its sign is chance on any device, and nothing depends on it.
    """
    model = Transformer(CONFIG, dtype=dtype)
    optimizer = Adam(model.parameters())
    workers = DataParallel(model, CrossEntropyLoss(CONFIG.label_smoothing), threads=1)
    rng = np.random.default_rng(2)
    losses, weights = [], None
    for step in range(1, STEPS + 1):
        optimizer.lr = noam(step, C, warmup=4000)
        losses.append(training_step(get_task("copy").batch(rng, 16), optimizer, workers)[0])
        if weights is None:
            weights = model.state_dict()
    for name, value in weights.items():
        if name.endswith(("qkv.b", "kv.b")):
            key = value.size // 3 if name.endswith("qkv.b") else 0
            value[key : key + C] = 0
    return weights, np.array([float(loss) for loss in losses])


def relative_error(got, expected):
    """The largest difference, relative to the largest entry."""
    return float(np.abs(got - expected).max() / np.abs(expected).max())
