"""Weights from and to PyTorch and Hugging Face."""

from minitransformer.interop.huggingface import (
    from_huggingface,
    load_huggingface,
    model_from_huggingface,
    outline_huggingface,
)
from minitransformer.interop.huggingface_adapters import load_adapters, save_adapters
from minitransformer.interop.huggingface_configs import config_from_huggingface
from minitransformer.interop.huggingface_export import save_huggingface
from minitransformer.interop.huggingface_files import minilm_folder
from minitransformer.interop.huggingface_text import Piece, TextModel, is_huggingface_folder, load_text_model
from minitransformer.interop.huggingface_tokenizers import load_huggingface_tokenizer
from minitransformer.interop.pytorch import from_pytorch, to_pytorch
from minitransformer.interop.pytorch_recurrent import recurrent_from_pytorch, recurrent_to_pytorch

__all__ = [
    "Piece",
    "TextModel",
    "config_from_huggingface",
    "from_huggingface",
    "from_pytorch",
    "is_huggingface_folder",
    "load_adapters",
    "load_huggingface",
    "load_huggingface_tokenizer",
    "load_text_model",
    "minilm_folder",
    "model_from_huggingface",
    "outline_huggingface",
    "recurrent_from_pytorch",
    "recurrent_to_pytorch",
    "save_adapters",
    "save_huggingface",
    "to_pytorch",
]
