"""The training loop and its parts. Read loop.py first."""

from minitransformer.layers.losses import CrossEntropyLoss
from minitransformer.training.accumulation import GradientAccumulation
from minitransformer.training.averaging import AverageOfLast, ExponentialAverage
from minitransformer.training.checkpoint import load_checkpoint, save_checkpoint
from minitransformer.training.checkpointer import Checkpointer, Stopped, read_run
from minitransformer.training.clipping import clip_grad_norm
from minitransformer.training.diagnostics import Diagnostics, NotFiniteError
from minitransformer.training.loop import forward_backward, train, training_step
from minitransformer.training.optimizers import Adam
from minitransformer.training.parallel.threads import DataParallel
from minitransformer.training.run import History
from minitransformer.training.schedules import cosine, noam
from minitransformer.training.settings import TrainingSettings

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
    "NotFiniteError",
    "Stopped",
    "TrainingSettings",
    "clip_grad_norm",
    "cosine",
    "forward_backward",
    "load_checkpoint",
    "noam",
    "read_run",
    "save_checkpoint",
    "train",
    "training_step",
]
