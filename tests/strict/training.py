"""A small model on a small task, trained for some steps on whichever array module is in use."""

import numpy as np

from minitransformer.data.tasks import get_task
from minitransformer.models.config import TransformerConfig
from minitransformer.models.transformer import Transformer
from minitransformer.training.schedules import noam
from minitransformer.training.trainer import Trainer
from tests.strict.meter import measured

SIZES = {"d_model": 24, "num_heads": 3, "d_ff": 40, "num_layers": 2, "max_len": 16}
DROPOUT = {"dropout": 0.1, "attention_dropout": 0.1, "ffn_dropout": 0.2, "label_smoothing": 0.1}


def new_trainer(**changes):
    """A trainer of a new model, on one thread; always the same weights and the same dropout."""
    vocab_size = len(get_task("reverse").vocabulary)
    config = TransformerConfig(vocab_size=vocab_size, **{**SIZES, **DROPOUT, **changes})
    return Trainer(Transformer(config, seed=1), seed=2, threads=1)


def batches(count):
    """`count` batches on the host, always the same, of 7 pairs."""
    rng = np.random.default_rng(3)
    return [get_task("reverse").batch(rng, 7) for _ in range(count)]


def train_steps(trainer, count):
    """`count` steps -> the losses, still on the device, and what was measured inside each step."""
    losses, meters = [], []
    for step, batch in enumerate(batches(count), start=1):
        with measured() as meter:
            loss, _ = trainer.step(batch, noam(step, SIZES["d_model"], warmup=10))
        losses.append(loss)
        meters.append(meter)
    return losses, meters
