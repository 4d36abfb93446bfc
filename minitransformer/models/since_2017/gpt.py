"""Decoder-only: the encoder's layers under a causal mask, to predict each next token (Radford et al. 2018, 2019)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_batch_of_ids, check_dtype
from minitransformer.config import TransformerConfig
from minitransformer.core import Parameter
from minitransformer.functional import causal_mask, padding_mask
from minitransformer.layers import InputEmbedding, OutputProjection
from minitransformer.layers.embedding import InputEmbeddingCache
from minitransformer.layers.initializers import normal
from minitransformer.layers.stack import LayerStack, StackCache
from minitransformer.models.base import LanguageModel, describe
from minitransformer.models.since_2017.build import LaterBuilder

STD = 0.02  # of initial token vectors that are not multiplied by sqrt(C), as in GPT-2 and BERT


class GPTFeaturesCache(NamedTuple):
    """What `GPT.features` remembers."""

    embedding: InputEmbeddingCache
    blocks: StackCache


def gpt_config(vocab_size: int, **changes: Any) -> TransformerConfig:
    """GPT-2's choices (Radford et al. 2019): pre-norm, learned positions, the tanh form of GELU.

    `changes` replaces fields of the TransformerConfig, such as d_model. Raises ValueError or TypeError as that does.
    """
    gpt2 = {"norm": "pre", "positions": "learned", "activation": "gelu_tanh", "scale_embeddings": False}
    return TransformerConfig(vocab_size, **{**gpt2, **changes})


class GPT(LanguageModel):
    """A language model for `config` (see `gpt_config`): logits (B, T, V) of the token after each of ids (B, T).

    Compared with the Transformer only the mask changes: there is no source, and no token sees a later one. Padding at
    the end of a sequence needs no mask of its own, because no earlier token sees it.
    """

    config: TransformerConfig
    embedding: InputEmbedding
    blocks: LayerStack
    output: OutputProjection

    def __init__(self, config: TransformerConfig, *, seed: int | None = 0, dtype: DTypeLike = np.float32) -> None:
        """Make a model with new weights: token vectors E (V, C), `config.num_layers` blocks, the output projection.

        `seed` chooses the initial weights: normal with standard deviation 0.02 for E and learned positions, as in GPT-2
        (with `config.scale_embeddings`, 1 / sqrt(C) and 1), and Xavier uniform for the matrices. None makes them zero,
        for uses where only shapes matter. `dtype` is float32 for training, float64 or complex128 for proofs;
        ValueError for any other.
        """
        dtype = check_dtype(dtype)
        self.config = config
        rng = None if seed is None else np.random.default_rng(seed)
        V, C = config.vocab_size, config.d_model
        scale, std, std_positions = (None, C**-0.5, 1.0) if config.scale_embeddings else (1.0, STD, STD)
        E = Parameter(normal(rng, (V, C), std, dtype))
        build = LaterBuilder(config, rng, dtype)
        self.embedding = InputEmbedding(E, build.input_positions(std_positions), config.dropout, scale)
        self.blocks = build.decoder_only()
        output_E = E if config.has_tied_output else Parameter(normal(rng, (V, C), std, dtype))
        self.output = build.output(output_E)
        self.as_built = describe(self)

    def features(self, ids: np.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, GPTFeaturesCache]:
        """ids (B, T) -> y (B, T, C), the input of `head`. Raises what `forward` raises."""
        check_batch_of_ids("ids", ids, self.config.vocab_size, self.config.max_len)
        x, cache_embedding = self.embedding.forward(ids, rng)
        mask = causal_mask(ids.shape[1]) if self.config.needs_causal_mask else None
        context = [mask]
        if self.config.experts is not None:  # which count the tokens, while attention needs no mask for padding
            context.append(padding_mask(to_device(ids), self.config.padding))
        y, cache_blocks = self.blocks.forward(x, *context, rng=rng)
        return y, GPTFeaturesCache(cache_embedding, cache_blocks)

    def features_backward(self, dy: xp.ndarray, cache: GPTFeaturesCache) -> None:
        """dy (B, T, C) -> None."""
        if self.embedding.is_trained:
            self.embedding.backward(self.blocks.backward(dy, cache.blocks), cache.embedding)
        else:
            self.blocks.backward(dy, cache.blocks, needs_dx=False)

    def attention_weights(self, ids: np.ndarray) -> list[xp.ndarray]:
        """ids (B, T) -> the attention weights (B, H, T, T) of every layer, first layer first -> list."""
        return self.features(ids)[1].blocks.attention_weights()
