"""T5: a Transformer with other choices (Raffel et al. 2020)."""

from typing import Any

from minitransformer.config import TransformerConfig


def t5_config(vocab_size: int, **changes: Any) -> TransformerConfig:
    """T5's choices (Raffel et al. 2020); `changes` replaces fields of the TransformerConfig.

    Pre-norm with RMSNorm and no biases, a learned number for each distance, scores without 1 / sqrt(d_k), embeddings
    not scaled in the input and scaled by 1 / sqrt(d_model) in the output, and padding as the target's first token.
    Version 1.1 and Flan-T5 have `activation="geglu_tanh", tie_embeddings="inputs", scale_output=False`.
    """
    t5 = {
        "norm": "pre",
        "normalization": "rms",
        "norm_eps": 1e-6,
        "bias": False,
        "positions": "relative",
        "scale_embeddings": False,
        "scale_scores": False,
        "scale_output": True,
        "start": 0,
    }
    return TransformerConfig(vocab_size, **{**t5, **changes})
