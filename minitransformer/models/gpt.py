"""Decoder-only: the encoder's layers under a causal mask, to predict each next token (Radford et al. 2018, 2019)."""

from typing import NamedTuple

import numpy as np

from minitransformer.checks import check_batch_of_ids, check_dtype
from minitransformer.core import Layer, Parameter
from minitransformer.decoding.incremental import GPTState
from minitransformer.functional import causal_mask
from minitransformer.layers import EncoderLayer, InputEmbedding, OutputProjection
from minitransformer.layers.initializers import normal
from minitransformer.layers.positions import make_input_positions
from minitransformer.layers.stack import LayerStack
from minitransformer.models.config import TransformerConfig

STD = 0.02  # of initial token vectors that are not multiplied by sqrt(C), as in GPT-2 and BERT


class GPTCache(NamedTuple):
    """What `GPT` remembers."""

    embedding: object
    blocks: object
    output: object


def gpt_config(vocab_size, **changes):
    """GPT-2's choices: pre-norm, learned positions, GELU in its tanh form, no label smoothing; `changes` replaces."""
    gpt2 = {
        "norm": "pre",
        "positions": "learned",
        "activation": "gelu_tanh",
        "scale_embeddings": False,
        "label_smoothing": 0.0,
    }
    return TransformerConfig(vocab_size, **{**gpt2, **changes})


class GPT(Layer):
    """A language model after `config` (see `gpt_config`): logits (B, T, V) of the token after each of ids (B, T).

    Beside the Transformer only the mask changes: there is no source, and no token sees a later one. Padding at the end
    of a sequence needs no mask of its own, as nothing before it sees it.
    """

    config_class = TransformerConfig

    def __init__(self, config, *, seed=0, dtype=np.float32):
        dtype = check_dtype(dtype)
        self.config = config
        rng = None if seed is None else np.random.default_rng(seed)
        V, C = config.vocab_size, config.d_model
        scale, std, std_positions = (None, C**-0.5, 1.0) if config.scale_embeddings else (1.0, STD, STD)
        E = Parameter(normal(rng, (V, C), std, dtype))
        positions = make_input_positions(config.positions, config.max_len, C, std=std_positions, rng=rng, dtype=dtype)
        self.embedding = InputEmbedding(E, positions, config.dropout, scale)
        self.blocks = LayerStack(config, EncoderLayer, bidirectional=False, rng=rng, dtype=dtype)
        output_E = E if config.has_tied_output else Parameter(normal(rng, (V, C), std, dtype))
        self.output = OutputProjection(output_E, C**-0.5 if config.scale_output else 1.0)

    def forward(self, ids, rng=None):
        """ids (B, T) on the host -> logits (B, T, V)."""
        check_batch_of_ids("ids", ids, self.config.vocab_size, self.config.max_len)
        x, cache_embedding = self.embedding.forward(ids, rng)
        y, cache_blocks = self.blocks.forward(x, causal_mask(ids.shape[1]), rng=rng)
        logits, cache_output = self.output.forward(y)
        return logits, GPTCache(cache_embedding, cache_blocks, cache_output)

    def backward(self, dlogits, cache):
        """dlogits (B, T, V) -> None, as ids have no gradient."""
        dy = self.output.backward(dlogits, cache.output)
        dx = self.blocks.backward(dy, cache.blocks)
        self.embedding.backward(dx, cache.embedding)

    def attention_weights(self, ids):
        """ids (B, T) -> the attention weights (B, H, T, T) of every layer, first layer first -> list."""
        return self.forward(ids)[1].blocks.attention_weights()

    def decoding_state(self, prompts, max_new_tokens):
        """Continue prompts (B, T), padded at the end, by at most `max_new_tokens` -> GPTState (incremental.py)."""
        return GPTState.for_prompts(self, prompts, max_new_tokens)
