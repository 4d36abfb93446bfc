"""Tensor parallelism over processes: the whole weights from their shards, and a demonstration.

    mpiexec -n 2 python -m tests.training.tensor

One step of Adam on one encoder layer, computed by this process alone, and by all processes with a shard each: the
output, the gradient of the input and the new weights are the same, except for rounding. The layers are in
`lessons/support/tensor_parallel.py`. They are not an option of `minitransformer train`, because the sums are on the
way of every layer: this pays only on processors that are connected as fast as the GPUs of one machine
(docs/scaling.md).
"""

import copy
from typing import Any, NamedTuple

from support.tensor_parallel import cuts_of, join_states, shard

import numpy as np

from minitransformer.core import Layer
from minitransformer.models import TransformerConfig
from minitransformer.models.build import builder
from minitransformer.training.optimizers import Adam
from minitransformer.training.parallel.communicator import Communicator
from minitransformer.training.parallel.connect import connect

CONFIG = TransformerConfig(vocab_size=1, d_model=64, num_heads=4, d_ff=256, num_layers=1, dropout=0.0)
LR = 0.01
# the third of this bias that belongs to the keys has a gradient of 0, and Adam turns the rounding of 0 into a full step
NO_GRADIENT = "self_attention.sublayer.qkv.b"


def gather_state(layer: Layer, communicator: Communicator) -> dict[str, np.ndarray]:
    """The `state_dict` of the whole layer, in each process, from the shards of all. All must call it."""
    return join_states(communicator.collect(layer.state_dict()), cuts_of(layer))


class Step(NamedTuple):
    """What a step of training has computed."""

    loss: float
    y: np.ndarray  # (B, T, C), the output
    dx: np.ndarray  # (B, T, C), the gradient of the input


def train_one_step(layer: Layer, x: np.ndarray, target: np.ndarray) -> Step:
    """One step of Adam for the loss sum (y - target)^2 / 2, the same code for a whole layer and for a shard."""
    layer.zero_grad()
    y, cache = layer.forward(x)
    dx = layer.backward(y - target, cache)
    Adam(layer.parameters(), lr=LR).step()
    return Step(float(((y - target) ** 2).sum() / 2), y, dx)


def compare(communicator: Communicator) -> dict[str, Any]:
    """Train one encoder layer for a step in this process, and in all together -> {what: number}.

    Raises ValueError for more processes than the layer has heads.
    """
    rng = np.random.default_rng(0)
    whole = builder(CONFIG, rng, np.float64).encoder_layer()
    part = shard(copy.deepcopy(whole), communicator)
    x, target = rng.standard_normal((2, 4, 10, CONFIG.d_model))
    alone, together = train_one_step(whole, x, target), train_one_step(part, x, target)
    joined = gather_state(part, communicator)
    weights = [abs(joined[name] - array).max() for name, array in whole.state_dict().items() if name != NO_GRADIENT]
    return {
        "weights of this rank": part.num_parameters(),
        "weights of the whole layer": whole.num_parameters(),
        "loss of this rank": together.loss,
        "loss of one process": alone.loss,
        "largest difference of the output": float(abs(together.y - alone.y).max()),
        "largest difference of the input's gradient": float(abs(together.dx - alone.dx).max()),
        "largest difference of the new weights": float(max(weights)),
    }


def main() -> None:
    """Print what `compare` finds, one column for each process."""
    communicator = connect()
    if communicator.size > CONFIG.num_heads:  # once, instead of the same error in each process
        raise SystemExit(f"at most {CONFIG.num_heads} processes, one for each head" if communicator.is_root else 1)
    everyones = communicator.collect(compare(communicator))
    if communicator.is_root:
        print(f"{'':<45}", *(f"{f'rank {rank}':>12}" for rank in range(communicator.size)))
        for what in everyones[0]:
            print(f"{what:<45}", *(f"{found[what]:>12.6g}" for found in everyones))


if __name__ == "__main__":
    main()
