"""Weights from and to PyTorch and Hugging Face."""

from minitransformer.interop.huggingface import from_huggingface, load_huggingface, model_from_huggingface
from minitransformer.interop.huggingface_configs import config_from_huggingface
from minitransformer.interop.pytorch import from_pytorch, to_pytorch

__all__ = [
    "config_from_huggingface",
    "from_huggingface",
    "from_pytorch",
    "load_huggingface",
    "model_from_huggingface",
    "to_pytorch",
]
