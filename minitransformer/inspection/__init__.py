"""Summaries of a model: its layers, parameters and activation memory, and what its training needs: memory and FLOPs.

And interventions in it: what changes without a head?
"""

from minitransformer.inspection.activation_memory import count_parameters, kept_activations
from minitransformer.inspection.interventions import Change, Rows, heads, intervene
from minitransformer.inspection.memory_estimate import training_memory
from minitransformer.inspection.summary import summarize
from minitransformer.inspection.training_flops import flops_by_parameters, training_flops

__all__ = [
    "Change",
    "Rows",
    "count_parameters",
    "flops_by_parameters",
    "heads",
    "intervene",
    "kept_activations",
    "summarize",
    "training_flops",
    "training_memory",
]
