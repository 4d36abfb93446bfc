"""The training step, the loop around it, and what can be put around both. Read step.py first, then loop.py."""

from typing import TYPE_CHECKING

from minitransformer.layers.losses import CrossEntropyLoss
from minitransformer.lazy import importer
from minitransformer.training.clipping import clip_grad_norm
from minitransformer.training.finite import NotFiniteError, check_finite
from minitransformer.training.optimizers import Adam, noam
from minitransformer.training.step import Measured, PlainGradients, step_with, training_step

if TYPE_CHECKING:
    from minitransformer.training.muon import Muon
    from minitransformer.training.parallel.micro_batches import GradientAccumulation
    from minitransformer.training.parallel.parts import gradients_of
    from minitransformer.training.parallel.strategy import Strategy
    from minitransformer.training.parallel.threads import DataParallel
    from minitransformer.training.run import History, train
    from minitransformer.training.saving.averaging import AverageOfLast, ExponentialAverage
    from minitransformer.training.saving.checkpoint import load_checkpoint, save_checkpoint
    from minitransformer.training.saving.checkpointer import Checkpointer, Stopped, read_run
    from minitransformer.training.schedules import cosine
    from minitransformer.training.settings import TrainingSettings
    from minitransformer.training.watching.diagnostics import Diagnostics

__all__ = [
    "Adam",
    "AverageOfLast",
    "Checkpointer",
    "CrossEntropyLoss",
    "DataParallel",
    "Diagnostics",
    "ExponentialAverage",
    "GradientAccumulation",
    "History",
    "Measured",
    "Muon",
    "NotFiniteError",
    "PlainGradients",
    "Stopped",
    "Strategy",
    "TrainingSettings",
    "check_finite",
    "clip_grad_norm",
    "cosine",
    "gradients_of",
    "load_checkpoint",
    "noam",
    "read_run",
    "save_checkpoint",
    "step_with",
    "train",
    "training_step",
]

__getattr__ = importer(
    __name__,
    __all__,
    (
        "muon",
        "run",
        "schedules",
        "settings",
        "saving.averaging",
        "saving.checkpoint",
        "saving.checkpointer",
        "watching.diagnostics",
        "parallel.micro_batches",
        "parallel.parts",
        "parallel.strategy",
        "parallel.threads",
    ),
)
