"""The Transformer of the paper: an encoder that reads the source, a decoder that writes the target (figure 1)."""

from typing import NamedTuple

import numpy as np

from minitransformer.backend import to_device
from minitransformer.checks import check_batch_of_ids, check_dtype
from minitransformer.core import Layer, Parameter
from minitransformer.decoding.incremental import TransformerState
from minitransformer.functional import causal_mask, padding_mask
from minitransformer.layers import Decoder, Encoder, InputEmbedding, OutputProjection
from minitransformer.layers.initializers import normal
from minitransformer.layers.positions import make_input_positions
from minitransformer.models.config import TransformerConfig
from minitransformer.vocabulary import PAD


def t5_config(vocab_size, **changes):
    """T5's choices (Raffel et al. 2020); `changes` replaces.

    Pre-norm with RMSNorm and no biases, a learnt number for each distance, no 1 / sqrt(d_k), embeddings as they are on
    the way in and by 1 / sqrt(d_model) on the way out, no label smoothing, and padding as the target's first token.
    Version 1.1 and Flan-T5 have `activation="geglu_tanh", tie_output=False, scale_output=False`.
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
        "starts_with_padding": True,
        "label_smoothing": 0.0,
    }
    return TransformerConfig(vocab_size, **{**t5, **changes})


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


class AttentionWeights(NamedTuple):
    """Who attends to whom: for each kind of attention a list with one array for each layer, first layer first."""

    encoder: list  # of (B, H, S, S)
    decoder: list  # of (B, H, T, T)
    cross: list  # of (B, H, T, S)


class Transformer(Layer):
    """An encoder-decoder after `config`; with the default switches, the model of the paper.

    `seed` chooses the initial weights (None: zeros, where only shapes matter); `dtype` is float32 to train, float64
    to prove. Sequences are ids with padding = 0 at their end, which nobody attends to.
    """

    config_class = TransformerConfig

    def __init__(self, config, *, seed=0, dtype=np.float32):
        dtype = check_dtype(dtype)
        self.config = config
        rng = None if seed is None else np.random.default_rng(seed)
        source_E, target_E, output_E = self._embedding_matrices(rng, dtype)
        scale = None if config.scale_embeddings else 1.0
        source_positions = target_positions = self._positions(rng, dtype)
        if config.positions == "learned":  # each stack learns its own
            target_positions = self._positions(rng, dtype)
        self.source_embedding = InputEmbedding(source_E, source_positions, config.dropout, scale)
        self.target_embedding = InputEmbedding(target_E, target_positions, config.dropout, scale)
        self.encoder = Encoder(config, rng=rng, dtype=dtype)
        self.decoder = Decoder(config, rng=rng, dtype=dtype)
        self.output = OutputProjection(output_E, config.d_model**-0.5 if config.scale_output else 1.0)

    def _positions(self, rng, dtype):
        """What is added to the token vectors, in the size of those."""
        config = self.config
        std = 1.0 if config.scale_embeddings else config.d_model**-0.5
        return make_input_positions(config.positions, config.max_len, config.d_model, std=std, rng=rng, dtype=dtype)

    def _embedding_matrices(self, rng, dtype):
        """E (V, C) for source, target and output: one shared Parameter (section 3.4), two, or three of their own.

        Standard deviation 1 / sqrt(C): times sqrt(C) it is 1, like the sinusoids' size, and the first logits are of
        order 1.
        """
        V, C = self.config.vocab_size, self.config.d_model

        def draw():
            return Parameter(normal(rng, (V, C), C**-0.5, dtype))

        source = draw()
        target = source if self.config.tie_embeddings else draw()
        output = source if self.config.has_tied_output else draw()
        return source, target, output

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
        allowed = causal_mask(target.shape[1]) & self.target_allowed(target)  # (B, 1, T, T)
        z, cache_decoder = self.decoder.forward(y, memory, allowed, self._source_allowed(source), rng)
        logits, cache_output = self.output.forward(z)
        return logits, DecodeCache(cache_embedding, cache_decoder, cache_output)

    def decode_backward(self, dlogits, cache):
        """dlogits (B, T, V) -> dmemory (B, S, C)."""
        dz = self.output.backward(dlogits, cache.output)
        dy, dmemory = self.decoder.backward(dz, cache.decoder)
        self.target_embedding.backward(dy, cache.embedding)
        return dmemory

    def attention_weights(self, source, target):
        """source (B, S) and target (B, T) ids -> AttentionWeights."""
        _, (encode, decode) = self.forward(source, target)
        return AttentionWeights(
            encode.encoder.attention_weights(),
            decode.decoder.attention_weights(),
            decode.decoder.attention_weights("cross_attention"),
        )

    def decoding_state(self, source, max_new_tokens):
        """Encode source (B, S), to decode at most `max_new_tokens` -> TransformerState (decoding/incremental.py)."""
        return TransformerState(self, source, max_new_tokens)

    def target_allowed(self, ids, start=0):
        """Which of the target's ids (B, T), the first at position `start`, are seen -> (B, 1, 1, T)."""
        seen = padding_mask(to_device(ids), PAD)
        if self.config.starts_with_padding and start == 0:
            seen[..., 0] = True
        return seen

    @staticmethod
    def _source_allowed(source):
        return padding_mask(to_device(source), PAD)  # (B, 1, 1, S)
