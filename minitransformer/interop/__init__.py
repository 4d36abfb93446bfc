"""Weights from and to PyTorch and Hugging Face."""

from minitransformer.interop.huggingface import from_huggingface, load_huggingface, model_from_huggingface
from minitransformer.interop.huggingface_configs import config_from_huggingface
from minitransformer.interop.huggingface_text import Piece, continue_text, is_huggingface_folder
from minitransformer.interop.huggingface_tokenizers import load_huggingface_tokenizer
from minitransformer.interop.pytorch import from_pytorch, to_pytorch

__all__ = [
    "Piece",
    "config_from_huggingface",
    "continue_text",
    "from_huggingface",
    "from_pytorch",
    "is_huggingface_folder",
    "load_huggingface",
    "load_huggingface_tokenizer",
    "model_from_huggingface",
    "to_pytorch",
]
