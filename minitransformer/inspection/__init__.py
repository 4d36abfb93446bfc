"""Summaries of a model: its layers, parameters and activation memory, and an estimate of the memory for training."""

from minitransformer.inspection.activation_memory import count_parameters, kept_activations
from minitransformer.inspection.memory_estimate import training_memory
from minitransformer.inspection.summary import summarize

__all__ = ["count_parameters", "kept_activations", "summarize", "training_memory"]
