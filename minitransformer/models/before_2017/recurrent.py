"""What the Transformer replaced: a recurrent encoder and decoder, with one fixed vector between them or attention."""

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_batch_of_ids, check_dtype
from minitransformer.config import OWN_IDS, ModelConfig, Seq2SeqConfig
from minitransformer.core import Parameter
from minitransformer.functional.dropout import DropoutCache
from minitransformer.layers import Dropout, InputEmbedding, OutputProjection
from minitransformer.layers.before_2017.recurrent import GRU, LSTM, RecurrentCache, RecurrentStack, State
from minitransformer.layers.embedding import InputEmbeddingCache
from minitransformer.layers.initializers import normal
from minitransformer.layers.since_2017.memory_attention import MemoryAttention, MemoryAttentionCache
from minitransformer.models.base import EncoderDecoder, describe


class Encoded(NamedTuple):
    """What the encoder gives to the decoder."""

    memory: xp.ndarray  # (B, S, R), one vector for each token of the source, in the order in which they were read
    state: State  # the encoder's final state, the decoder's first: "one fixed vector", (L, B, R) each


class Seq2SeqEncodeCache(NamedTuple):
    """What `Seq2Seq.encode` remembers."""

    embedding: InputEmbeddingCache
    encoder: RecurrentCache


class Seq2SeqDecodeCache(NamedTuple):
    """What `Seq2Seq.decode` remembers."""

    memory: xp.ndarray  # (B, S, R)
    embedding: InputEmbeddingCache
    decoder: RecurrentCache
    attention: MemoryAttentionCache | None
    dropout: DropoutCache | None


class Seq2SeqAttentionWeights(NamedTuple):
    """Who attends to whom; `cross` has one array, or none for a model without attention."""

    cross: list[xp.ndarray]  # of (B, 1, T, S)


class Seq2Seq(EncoderDecoder):
    """A recurrent encoder-decoder in four forms of the same code, chosen by `config.attention`.

    The encoder's final state is the decoder's first one, layer by layer. Without attention it is all that the decoder
    knows of the source (Sutskever et al. 2014). With attention (Bahdanau et al. 2015; Luong et al. 2015) the decoder
    also looks at all of the encoder's outputs; see `MemoryAttention` for the order, which is Luong's in all forms.
    Sequences are ids with `config.padding` at their end, which no step reads and no query attends to.
    """

    config_class = Seq2SeqConfig

    def __init__(self, config: Seq2SeqConfig, *, seed: int | None = 0, dtype: DTypeLike = np.float32) -> None:
        """Make a model with new weights: token vectors are standard normal, matrices Xavier uniform.

        `seed` chooses the initial weights; None makes them zero, for uses where only shapes matter. `dtype` is float32
        for training, float64 or complex128 for proofs; ValueError for any other.
        """
        dtype = check_dtype(dtype)
        self.config = config
        rng = None if seed is None else np.random.default_rng(seed)
        V, C, R = config.vocab_size, config.d_model, config.hidden_size
        self.source_embedding, self.target_embedding = (
            InputEmbedding(Parameter(normal(rng, (V, C), 1.0, dtype)), None, config.dropout, 1.0) for _ in range(2)
        )
        self.encoder = make_recurrent(config, config.bidirectional, rng, dtype)
        self.decoder = make_recurrent(config, False, rng, dtype)
        self.attention: MemoryAttention | None = None
        if config.attention != "none":
            self.attention = MemoryAttention(config.attention, R, rng=rng, dtype=dtype)
        self.dropout = Dropout(config.dropout)
        self.output = OutputProjection(Parameter(normal(rng, (V, R), R**-0.5, dtype)))
        self.as_built = describe(self)

    def encode(self, source: np.ndarray, rng: np.random.Generator | None = None) -> tuple[Encoded, Seq2SeqEncodeCache]:
        """source (B, S) ids -> Encoded."""
        check_batch_of_ids("source", source, self.config.vocab_size, self.config.max_len)
        if self.config.reverse_source:
            source = np.take_along_axis(source, reversed_order(source, self.config), axis=1)
        x, cache_embedding = self.source_embedding.forward(source, rng)
        (memory, state), cache_encoder = self.encoder.forward(x, None, tokens_of(source, self.config), rng)
        return Encoded(memory, state), Seq2SeqEncodeCache(cache_embedding, cache_encoder)

    def encode_backward(self, dencoded: Encoded, cache: Seq2SeqEncodeCache) -> None:
        """The gradients of the memory and of the state -> None."""
        dx, _ = self.encoder.backward(dencoded.memory, cache.encoder, dencoded.state)
        self.source_embedding.backward(dx, cache.embedding)

    def decode(
        self,
        target: np.ndarray,
        encoded: Encoded,
        source: np.ndarray,
        rng: np.random.Generator | None = None,
    ) -> tuple[xp.ndarray, Seq2SeqDecodeCache]:
        """target (B, T) ids, Encoded of source (B, S) ids -> y (B, T, R), the input of `head`."""
        check_batch_of_ids("target", target, self.config.vocab_size, self.config.max_len)
        memory, state = encoded
        if not len(target) == len(source) == len(memory):
            raise ValueError(
                "source, target and memory must have the same batch size, "
                f"got {len(source)}, {len(target)} and {len(memory)} sequences"
            )
        x, cache_embedding = self.target_embedding.forward(target, rng)
        (y, _), cache_decoder = self.decoder.forward(x, state, tokens_of(target, self.config), rng)
        cache_attention = None
        if self.attention is not None:
            y, cache_attention = self.attention.forward(y, memory, to_device(self.config.tokens(source))[:, None])
        y, cache_dropout = self.dropout.forward(y, rng)
        return y, Seq2SeqDecodeCache(memory, cache_embedding, cache_decoder, cache_attention, cache_dropout)

    def decode_backward(self, dy: xp.ndarray, cache: Seq2SeqDecodeCache) -> Encoded:
        """dy (B, T, R) -> the gradients of the memory and of the state.

        Two ways lead back to the encoder: through its final state, and with attention through all of its outputs.
        """
        dy = self.dropout.backward(dy, cache.dropout)
        if self.attention is None or cache.attention is None:
            dmemory = xp.zeros_like(cache.memory)
        else:
            dy, dmemory = self.attention.backward(dy, cache.attention)
        dx, dstate = self.decoder.backward(dy, cache.decoder)
        self.target_embedding.backward(dx, cache.embedding)
        return Encoded(dmemory, dstate)

    def attention_weights(self, source: np.ndarray, target: np.ndarray) -> Seq2SeqAttentionWeights:
        """source (B, S) and target (B, T) ids -> Seq2SeqAttentionWeights, with the source in its own order."""
        cache = self.features(source, target)[1].decode.attention
        if cache is None:
            return Seq2SeqAttentionWeights([])
        weights = cache.attention.weights[:, None]  # (B, 1, T, S)
        if self.config.reverse_source:
            order = to_device(reversed_order(source, self.config))  # its own inverse
            weights = xp.take_along_axis(weights, order[:, None, None], axis=-1)
        return Seq2SeqAttentionWeights([weights])


def make_recurrent(
    config: Seq2SeqConfig, bidirectional: bool, rng: np.random.Generator | None, dtype: DTypeLike
) -> RecurrentStack:
    """The encoder or the decoder of a Seq2Seq: C to R features."""
    sizes = (config.d_model, config.hidden_size // (2 if bidirectional else 1))
    if config.cell == "gru":
        return GRU(
            *sizes,
            num_layers=config.num_layers,
            bidirectional=bidirectional,
            dropout_rate=config.dropout,
            rng=rng,
            dtype=dtype,
        )
    return LSTM(
        *sizes,
        num_layers=config.num_layers,
        bidirectional=bidirectional,
        dropout_rate=config.dropout,
        forget_bias=config.forget_bias,
        rng=rng,
        dtype=dtype,
    )


def reversed_order(ids: np.ndarray, config: ModelConfig = OWN_IDS) -> np.ndarray:
    """Where each token of ids (B, S) comes from in the reversed sequence -> (B, S). Padding stays at the end."""
    lengths, places = config.lengths(ids)[:, None], np.arange(ids.shape[1])
    return np.where(places < lengths, lengths - 1 - places, places)


def tokens_of(ids: np.ndarray, config: ModelConfig = OWN_IDS) -> xp.ndarray | None:
    """Which of the ids (B, T) on the host are tokens and not padding -> boolean (B, T) on the device; None if all."""
    tokens = config.tokens(ids)
    return None if tokens.all() else to_device(tokens)
