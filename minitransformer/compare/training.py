"""Training models of different kinds for an equal number of parameters and an equal time."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from minitransformer.bench.training import make_training_step
from minitransformer.core import Layer
from minitransformer.data import Task
from minitransformer.models import Seq2Seq, Seq2SeqConfig, Transformer, TransformerConfig
from minitransformer.process import limit_threads

PARAMETERS = 150_000  # of each model, or as many fewer as the next smaller even width has
WARM_UP = 100  # steps
BATCH = 64
PEAK = 6e-3  # of the learning rate: of 1e-3, 3e-3 and 6e-3 the best for each of these models on reverse, after 12 s
MODELS = {"fixed vector": "none", "additive": "additive", "dot": "dot", "Transformer": None}  # {name: attention}


def make_model(name: str, vocab_size: int, seed: int, parameters: int = PARAMETERS, max_len: int = 64) -> Any:
    """A new model: a Seq2Seq of one layer on each side, or a Transformer of two, with at most so many parameters."""
    attention = MODELS[name]

    def make(width: int, seed: int | None) -> Any:
        if attention is None:
            heads: dict[str, Any] = {"d_model": width, "num_heads": 4, "d_ff": 4 * width, "num_layers": 2}
            return Transformer(TransformerConfig(vocab_size, **heads, max_len=max_len, dropout=0.0), seed=seed)
        sizes: dict[str, Any] = {"d_model": width, "hidden_size": width, "num_layers": 1, "attention": attention}
        return Seq2Seq(Seq2SeqConfig(vocab_size, **sizes, max_len=max_len, dropout=0.0), seed=seed)

    return make(widest(lambda width: make(width, None), parameters), seed)


def widest(make: Callable[[int], Layer], parameters: int) -> int:
    """The largest multiple of 4 for which make(width) has at most so many parameters."""
    width = 4
    while make(width + 4).num_parameters() <= parameters:
        width += 4
    return width


def train_for(model: Any, task: Task, seconds: float, seed: int, peak: float = PEAK) -> dict[str, Any]:
    """Train on one thread for so many seconds of this process's CPU time -> {"steps", "loss"}, the mean of the last 50.

    The learning rate rises to `peak` in WARM_UP steps, and falls in a straight line to 0 as the time runs out. CPU time
    is what the model itself uses: other work on the machine takes none of it.
    """
    rng = np.random.default_rng([seed, 1])
    losses: list[float] = []
    with limit_threads(1):
        step = make_training_step(model, label_smoothing=0.0, threads=1)
        start = time.process_time()
        while (used := (time.process_time() - start) / seconds) < 1.0:
            rate = peak * min(1.0, (len(losses) + 1) / WARM_UP) * (1.0 - used)
            losses.append(float(step(task.batch(rng, BATCH), rate)))
    return {"steps": len(losses), "loss": float(np.mean(losses[-50:]))}
