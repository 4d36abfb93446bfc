"""How good a model is: one function per metric."""

from minitransformer.evaluation.exact_match import decode_and_score, exact_match
from minitransformer.evaluation.loss import mean_loss
from minitransformer.evaluation.perplexity import strided_windows, windowed_loss

__all__ = ["decode_and_score", "exact_match", "mean_loss", "strided_windows", "windowed_loss"]
