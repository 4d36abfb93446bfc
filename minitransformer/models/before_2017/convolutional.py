"""A language model of causal convolutions: what the paper's table 1 compares self-attention with in its third row."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.checks import (
    check_batch_of_ids,
    check_dtype,
)
from minitransformer.config import ConvConfig
from minitransformer.core import Layer, Parameter
from minitransformer.functional.layer_norm import LayerNormCache
from minitransformer.layers import InputEmbedding, LayerNorm, OutputProjection, Residual
from minitransformer.layers.before_2017.convolution import ActivatedConv1d
from minitransformer.layers.embedding import InputEmbeddingCache
from minitransformer.layers.initializers import normal
from minitransformer.layers.residual import ResidualCache
from minitransformer.models.base import LanguageModel, describe


class ConvLMFeaturesCache(NamedTuple):
    """What `ConvLM.features` remembers."""

    embedding: InputEmbeddingCache
    blocks: list[ResidualCache]
    norm: LayerNormCache | None


class ConvLM(LanguageModel):
    """A language model for `config`: logits (B, T, V) of the token after each of ids (B, T).

    It does what GPT does, with a causal convolution where GPT has self-attention and a feed-forward network. There are
    no positions: the weights of a kernel already depend on the distance between two tokens. So there is no longest
    sequence either. A token sees the last `config.receptive_field` tokens, itself included. Padding at the end of a
    sequence needs no mask, because no earlier token sees it.
    """

    config_class = ConvConfig
    config: ConvConfig
    embedding: InputEmbedding
    blocks: list[Residual]
    norm: Layer | None
    output: OutputProjection

    def __init__(self, config: ConvConfig, *, seed: int | None = 0, dtype: DTypeLike = np.float32) -> None:
        """Make a model with new weights: token vectors E (V, C), `config.num_layers` blocks, the output projection.

        `seed` chooses the initial weights: normal with standard deviation 1 / sqrt(C) for E, which is multiplied by
        sqrt(C) as in the paper (section 3.4), and Xavier uniform for the kernels. None makes them zero, for uses where
        only shapes matter. `dtype` is float32 for training, float64 or complex128 for proofs; ValueError for any other.
        """
        dtype = check_dtype(dtype)
        self.config = config
        rng = None if seed is None else np.random.default_rng(seed)
        V, C = config.vocab_size, config.d_model
        E = Parameter(normal(rng, (V, C), C**-0.5, dtype))
        self.embedding = InputEmbedding(E, None, config.dropout)
        self.blocks = [self._make_block(dilation, rng, dtype) for dilation in config.dilations]
        self.norm = LayerNorm(C, eps=config.norm_eps, dtype=dtype) if config.norm != "post" else None
        self.output = OutputProjection(E if config.tie_embeddings else Parameter(normal(rng, (V, C), C**-0.5, dtype)))
        self.as_built = describe(self)

    def _make_block(self, dilation: int, rng: np.random.Generator | None, dtype: DTypeLike) -> Residual:
        config = self.config
        conv = ActivatedConv1d(
            config.d_model, config.kernel_size, dilation=dilation, activation=config.activation, rng=rng, dtype=dtype
        )
        norm, second = (LayerNorm(config.d_model, eps=config.norm_eps, dtype=dtype) for _ in range(2))
        norm_after = second if config.norm == "sandwich" else None
        return Residual(conv, norm, dropout_rate=config.dropout, placement=config.norm, norm_after=norm_after)

    def features(
        self, ids: np.ndarray, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, ConvLMFeaturesCache]:
        """ids (B, T) -> y (B, T, C), the input of `head`. Raises what `forward` raises."""
        check_batch_of_ids("ids", ids, self.config.vocab_size, math.inf)
        x, cache_embedding = self.embedding.forward(ids, rng)
        caches, cache_norm = [], None
        for block in self.blocks:
            x, cache = block.forward(x, rng=rng)
            caches.append(cache)
        if self.norm is not None:
            x, cache_norm = self.norm.forward(x)
        return x, ConvLMFeaturesCache(cache_embedding, caches, cache_norm)

    def features_backward(self, dy: xp.ndarray, cache: ConvLMFeaturesCache) -> None:
        """dy (B, T, C) -> None."""
        if self.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        for block, cache_block in zip(reversed(self.blocks), reversed(cache.blocks), strict=True):
            dy = block.backward(dy, cache_block)
        self.embedding.backward(dy, cache.embedding)
