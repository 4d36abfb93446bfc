"""Learning: the optimiser, its schedule, the training loop and checkpoints."""

from minitransformer.evaluation.loss import mean_loss
from minitransformer.training.checkpoint import load_checkpoint, save_checkpoint
from minitransformer.training.clipping import clip_grad_norm
from minitransformer.training.diagnostics import NotFiniteError
from minitransformer.training.loop import TrainingSettings, train
from minitransformer.training.optimizers import Adam
from minitransformer.training.recipes import RECIPES
from minitransformer.training.schedules import noam
from minitransformer.training.session import History, Session
from minitransformer.training.trainer import Trainer

__all__ = [
    "RECIPES",
    "Adam",
    "History",
    "NotFiniteError",
    "Session",
    "Trainer",
    "TrainingSettings",
    "clip_grad_norm",
    "load_checkpoint",
    "mean_loss",
    "noam",
    "save_checkpoint",
    "train",
]
