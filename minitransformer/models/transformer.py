"""The Transformer of the paper: an encoder that reads the source, a decoder that writes the target (figure 1)."""

from typing import NamedTuple

import numpy as np

from minitransformer.backend import to_device
from minitransformer.checks import check_batch_of_ids, check_dtype
from minitransformer.core import Layer, Parameter
from minitransformer.functional import causal_mask, padding_mask
from minitransformer.layers import Decoder, Encoder, InputEmbedding, OutputProjection, PositionalEncoding
from minitransformer.layers.initializers import normal
from minitransformer.models.config import PAD


class EncodeCache(NamedTuple):
    """What `Transformer.encode` remembers."""

    embedding: object
    encoder: object


class DecodeCache(NamedTuple):
    """What `Transformer.decode` remembers."""

    embedding: object
    decoder: object
    output: object


class TransformerCache(NamedTuple):
    """What `Transformer` remembers."""

    encode: EncodeCache
    decode: DecodeCache


class Transformer(Layer):
    """An encoder-decoder after `config`; with the default switches, the model of the paper.

    `seed` chooses the initial weights (None: zeros, where only shapes matter); `dtype` is float32 to train, float64
    to prove. Sequences are ids with padding = 0 at their end, which nobody attends to.
    """

    def __init__(self, config, *, seed=0, dtype=np.float32):
        dtype = check_dtype(dtype)
        self.config = config
        rng = None if seed is None else np.random.default_rng(seed)
        source_E, target_E, output_E = self._embedding_matrices(rng, dtype)
        positions = PositionalEncoding(config.max_len, config.d_model, dtype=dtype)
        self.source_embedding = InputEmbedding(source_E, positions, config.dropout)
        self.target_embedding = InputEmbedding(target_E, positions, config.dropout)
        self.encoder = Encoder(config, rng=rng, dtype=dtype)
        self.decoder = Decoder(config, rng=rng, dtype=dtype)
        self.output = OutputProjection(output_E)

    def _embedding_matrices(self, rng, dtype):
        """E (V, C) for source, target and output: one shared Parameter (section 3.4), or three of their own.

        Standard deviation 1 / sqrt(C): times sqrt(C) it is 1, like the sinusoids' size, and the first logits are of
        order 1.
        """
        V, C = self.config.vocab_size, self.config.d_model
        distinct = 1 if self.config.tie_embeddings else 3
        matrices = [Parameter(normal(rng, (V, C), C**-0.5, dtype)) for _ in range(distinct)]
        return matrices * 3 if self.config.tie_embeddings else matrices

    def forward(self, source, target, rng=None):
        """source (B, S) and target (B, T) ids on the host -> logits (B, T, V) of the token after each target token.

        Raises TypeError, ValueError or IndexError for ids of a wrong kind, shape or range, or too many.
        """
        memory, cache_encode = self.encode(source, rng)
        logits, cache_decode = self.decode(target, memory, source, rng)
        return logits, TransformerCache(cache_encode, cache_decode)

    def backward(self, dlogits, cache):
        """dlogits (B, T, V) -> None, as ids have no gradient."""
        dmemory = self.decode_backward(dlogits, cache.decode)
        self.encode_backward(dmemory, cache.encode)

    def encode(self, source, rng=None):
        """source (B, S) ids -> memory (B, S, C)."""
        check_batch_of_ids("source", source, self.config.vocab_size, self.config.max_len)
        x, cache_embedding = self.source_embedding.forward(source, rng)
        memory, cache_encoder = self.encoder.forward(x, self._source_allowed(source), rng)
        return memory, EncodeCache(cache_embedding, cache_encoder)

    def encode_backward(self, dmemory, cache):
        """dmemory (B, S, C) -> None."""
        dx = self.encoder.backward(dmemory, cache.encoder)
        self.source_embedding.backward(dx, cache.embedding)

    def decode(self, target, memory, source, rng=None):
        """target (B, T) ids, memory (B, S, C) of source (B, S) ids -> logits (B, T, V)."""
        check_batch_of_ids("target", target, self.config.vocab_size, self.config.max_len)
        if not len(target) == len(source) == len(memory):
            raise ValueError(
                "source, target and memory must be of one batch, "
                f"got {len(source)}, {len(target)} and {len(memory)} sequences"
            )
        y, cache_embedding = self.target_embedding.forward(target, rng)
        allowed = causal_mask(target.shape[1]) & padding_mask(to_device(target), PAD)  # (B, 1, T, T)
        z, cache_decoder = self.decoder.forward(y, memory, allowed, self._source_allowed(source), rng)
        logits, cache_output = self.output.forward(z)
        return logits, DecodeCache(cache_embedding, cache_decoder, cache_output)

    def decode_backward(self, dlogits, cache):
        """dlogits (B, T, V) -> dmemory (B, S, C)."""
        dz = self.output.backward(dlogits, cache.output)
        dy, dmemory = self.decoder.backward(dz, cache.decoder)
        self.target_embedding.backward(dy, cache.embedding)
        return dmemory

    @staticmethod
    def _source_allowed(source):
        return padding_mask(to_device(source), PAD)  # (B, 1, 1, S)
