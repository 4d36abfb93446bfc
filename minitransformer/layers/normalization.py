"""The normalisations a model can have: one choice for all of its layers."""

from numpy.typing import DTypeLike

from minitransformer.checks import check_choice
from minitransformer.core import Layer
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.since_2017.rms_norm import RMSNorm

NORMALIZATIONS = {"layer": LayerNorm, "rms": RMSNorm}


def make_norm(normalization: str, d_model: int, eps: float, dtype: DTypeLike) -> Layer:
    """A new layer of the kind `normalization`; ValueError for one that is not among NORMALIZATIONS."""
    return NORMALIZATIONS[check_choice("normalization", normalization, NORMALIZATIONS)](d_model, eps=eps, dtype=dtype)
