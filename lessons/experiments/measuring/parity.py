"""Whether two devices agree: every layer, and fifty training steps, on NumPy and on the backend in use."""

import numpy as np

from experiments.measuring.steps import make_training_step
from minitransformer import Transformer, get_task, noam, to_device, to_host, use_backend
from minitransformer.gradcheck import relative_error
from minitransformer.gradcheck.subjects import SUBJECTS, Sizes
from minitransformer.gradcheck.subjects.layers import config

SIZES = Sizes(B=5, T=9, S=11, H=3, D=16, F=80, V=29)
STEPS = 50
CONFIG = config(SIZES)
# subjects of the gradient checks, without their dropout
LAYERS = (
    "Linear",
    "LayerNorm",
    "PositionalEncoding",
    "Embedding",
    "OutputProjection",
    "FeedForward dropout=0.0",
    "SelfAttention mask=empty_row",
    "CrossAttention mask=empty_row",
    "EncoderLayer norm=post dropout=0.3 mask=empty_row",
    "Encoder norm=post dropout=0.3 mask=empty_row",
    "DecoderLayer norm=post dropout=0.3 mask=empty_row",
    "Decoder norm=post dropout=0.3 mask=empty_row",
)


def compare_layers(dtype: str) -> dict[str, float]:
    """{subject: the largest relative error of its output and all its gradients, against NumPy}."""
    errors = {}
    for name in LAYERS:
        here = run_layer(name, dtype)
        with use_backend("numpy"):
            there = run_layer(name, dtype)
        errors[name] = max(relative_error(here[key], there[key]) for key in there)
    return errors


def run_layer(name: str, dtype: str) -> dict[str, np.ndarray]:
    """{"y": output, input or parameter: its gradient} on the host, from the same random numbers."""
    rng = np.random.default_rng(0)
    problem = SUBJECTS[name].without_dropout().build(SIZES, rng, dtype)
    y, cache = problem.forward(*map(to_device, problem.inputs.values()))
    gradients = problem.gradients(to_device(rng.standard_normal(y.shape).astype(dtype)), cache)
    return {key: to_host(value) for key, value in {"y": y, **gradients}.items()}


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
        losses.append(train_step(get_task("copy").batch(rng, 16), noam(step, SIZES.C, warmup=4000)))
        if step == 1:
            weights = model.state_dict()
    for name, value in weights.items():
        if name.endswith(("qkv.b", "kv.b")):
            key = value.size // 3 if name.endswith("qkv.b") else 0
            value[key : key + SIZES.C] = 0
    return weights, np.array([float(loss) for loss in losses])
