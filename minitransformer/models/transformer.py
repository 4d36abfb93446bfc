"""The Transformer of the paper: an encoder that reads the source, a decoder that writes the target (figure 1)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_batch_of_ids, check_dtype
from minitransformer.config import PaperConfig
from minitransformer.core import Parameter
from minitransformer.functional import causal_mask, padding_mask
from minitransformer.layers import Decoder, Encoder, InputEmbedding, OutputProjection
from minitransformer.layers.embedding import InputEmbeddingCache
from minitransformer.layers.initializers import normal
from minitransformer.layers.stack import StackCache
from minitransformer.models.base import EncoderDecoder, describe
from minitransformer.models.build import builder


class EncodeCache(NamedTuple):
    """What `Transformer.encode` remembers."""

    embedding: InputEmbeddingCache
    encoder: StackCache


class DecodeCache(NamedTuple):
    """What `Transformer.decode` remembers."""

    embedding: InputEmbeddingCache
    decoder: StackCache


class AttentionWeights(NamedTuple):
    """Who attends to whom: for each kind of attention a list with one array for each layer, first layer first."""

    encoder: list[xp.ndarray]  # of (B, H, S, S)
    decoder: list[xp.ndarray]  # of (B, H, T, T)
    cross: list[xp.ndarray]  # of (B, H, T, S)


class Transformer(EncoderDecoder):
    """An encoder-decoder for `config`: the model of the paper, unless a `TransformerConfig` asks for something else.

    Sequences are ids with `config.padding` at their end, which no token attends to.
    """

    config: Any  # a PaperConfig, or a TransformerConfig
    source_embedding: InputEmbedding
    target_embedding: InputEmbedding
    encoder: Encoder
    decoder: Decoder
    output: OutputProjection

    def __init__(self, config: PaperConfig, *, seed: int | None = 0, dtype: DTypeLike = np.float32) -> None:
        """Make a model with new weights: E (V, C), shared three times if tied, and two stacks (sections 3.1 and 3.4).

        `seed` chooses the initial weights; None makes them zero, for uses where only shapes matter. The paper does not
        say how it initializes: here E has standard deviation 1 / sqrt(C), and the matrices are Xavier uniform. `dtype`
        is float32 for training, float64 or complex128 for proofs; ValueError for any other.
        """
        dtype = check_dtype(dtype)
        self.config = config
        rng = None if seed is None else np.random.default_rng(seed)
        source_E, target_E, output_E = self._embedding_matrices(rng, dtype)
        build = builder(config, rng, dtype)
        self.source_embedding, self.target_embedding = build.input_embeddings(source_E, target_E)
        self.encoder = build.encoder()
        self.decoder = build.decoder()
        self.output = build.output(output_E)
        self.as_built = describe(self)

    def _embedding_matrices(self, rng, dtype):
        """E (V, C) for source, target and output: one shared Parameter (section 3.4), two, or three.

        The standard deviation is 1 / sqrt(C): times sqrt(C) it is 1, about the size of the sinusoids, and the initial
        logits are of order 1.
        """
        V, C = self.config.vocab_size, self.config.d_model

        def draw():
            return Parameter(normal(rng, (V, C), C**-0.5, dtype))

        source = draw()
        target = source if self.config.tie_embeddings else draw()
        output = source if self.config.has_tied_output else draw()
        return source, target, output

    def encode(self, source: np.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, EncodeCache]:
        """source (B, S) ids -> memory (B, S, C)."""
        check_batch_of_ids("source", source, self.config.vocab_size, self.config.max_len)
        x, cache_embedding = self.source_embedding.forward(source, rng)
        memory, cache_encoder = self.encoder.forward(x, self.source_allowed(source), rng)
        return memory, EncodeCache(cache_embedding, cache_encoder)

    def encode_backward(self, dmemory: xp.ndarray, cache: EncodeCache) -> None:
        """dmemory (B, S, C) -> None."""
        if self.source_embedding.is_trained:
            self.source_embedding.backward(self.encoder.backward(dmemory, cache.encoder), cache.embedding)
        elif self.encoder.is_trained:
            self.encoder.backward(dmemory, cache.encoder, needs_dx=False)

    def decode(
        self,
        target: np.ndarray,
        memory: xp.ndarray,
        source: np.ndarray,
        rng: np.random.Generator | None = None,
    ) -> tuple[xp.ndarray, DecodeCache]:
        """target (B, T) ids, memory (B, S, C) of source (B, S) ids -> z (B, T, C), the input of `head`."""
        check_batch_of_ids("target", target, self.config.vocab_size, self.config.max_len)
        if not len(target) == len(source) == len(memory):
            raise ValueError(
                "source, target and memory must have the same batch size, "
                f"got {len(source)}, {len(target)} and {len(memory)} sequences"
            )
        y, cache_embedding = self.target_embedding.forward(target, rng)
        allowed = self.target_allowed(target)  # (B, 1, 1, T)
        if self.config.needs_causal_mask:
            allowed = allowed & causal_mask(target.shape[1])  # (B, 1, T, T)
        z, cache_decoder = self.decoder.forward(y, memory, allowed, self.source_allowed(source), rng)
        return z, DecodeCache(cache_embedding, cache_decoder)

    def decode_backward(self, dz: xp.ndarray, cache: DecodeCache) -> xp.ndarray:
        """dz (B, T, C) -> dmemory (B, S, C)."""
        if self.target_embedding.is_trained or self.source_embedding.is_trained or self.encoder.is_trained:
            dy, dmemory = self.decoder.backward(dz, cache.decoder)
            self.target_embedding.backward(dy, cache.embedding)
            return dmemory
        return self.decoder.backward(dz, cache.decoder, needs_dx=False)[1]  # unused, of the upper layers alone

    def attention_weights(self, source: np.ndarray, target: np.ndarray) -> AttentionWeights:
        """source (B, S) and target (B, T) ids -> AttentionWeights."""
        _, (encode, decode) = self.features(source, target)
        return AttentionWeights(
            encode.encoder.attention_weights(),
            decode.decoder.attention_weights(),
            decode.decoder.attention_weights("cross_attention"),
        )

    def target_allowed(self, ids: np.ndarray, start: int = 0) -> xp.ndarray:
        """Which of the target's ids (B, T), the first at position `start`, may be attended to -> (B, 1, 1, T)."""
        seen = padding_mask(to_device(ids), self.config.padding)
        if self.config.start == self.config.padding and start == 0:  # as in T5
            seen[..., 0] = True
        return seen

    def source_allowed(self, source: np.ndarray) -> xp.ndarray:
        """Which of the source's ids (B, S) may be attended to -> (B, 1, 1, S)."""
        return padding_mask(to_device(source), self.config.padding)
