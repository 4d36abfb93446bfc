"""What a model is made of and what it costs: layers, parameters, activation memory, the memory estimate."""

from minitransformer.inspection.activation_memory import count_parameters, kept_activations
from minitransformer.inspection.memory_estimate import training_memory
from minitransformer.inspection.summary import summarize

__all__ = ["count_parameters", "kept_activations", "summarize", "training_memory"]
