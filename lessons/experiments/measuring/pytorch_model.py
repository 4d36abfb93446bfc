"""The paper's Transformer with PyTorch's own layers, to be timed against ours and trained next to it. Needs PyTorch."""

import math

import numpy as np
import torch
from torch import nn

from minitransformer import Transformer, TransformerConfig
from minitransformer.functional import sinusoidal_positions
from minitransformer.interop import to_pytorch


class PyTorchTransformer(nn.Module):
    """Shared embeddings times sqrt(C), sinusoids, `nn.TransformerEncoder` and `nn.TransformerDecoder`, tied output.

    PyTorch's layers also apply dropout to attention weights and inside the feed-forward network. The paper's text does
    not, so these two are turned off here, as in our configurations. With `config.norm` "pre" the layers normalize their
    input, and another normalization follows each stack.
    """

    positions: torch.Tensor

    def __init__(self, config: TransformerConfig, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        C, self.padding = config.d_model, config.padding
        self.embedding = nn.Embedding(config.vocab_size, C)
        nn.init.normal_(self.embedding.weight, std=C**-0.5)
        positions = torch.from_numpy(sinusoidal_positions(config.max_len, C, np.float64))
        self.register_buffer("positions", positions, persistent=False)
        self.dropout = nn.Dropout(config.dropout)
        sizes, pre = (C, config.num_heads, config.d_ff, config.dropout), config.norm == "pre"
        encoder = nn.TransformerEncoderLayer(*sizes, config.activation, batch_first=True, norm_first=pre)
        decoder = nn.TransformerDecoderLayer(*sizes, config.activation, batch_first=True, norm_first=pre)
        for attention in (encoder.self_attn, decoder.self_attn, decoder.multihead_attn):
            attention.dropout = 0.0
        encoder.dropout.p = decoder.dropout.p = 0.0
        norms = [nn.LayerNorm(C) if config.has_final_norm else None for _ in range(2)]
        self.encoder = nn.TransformerEncoder(encoder, config.num_layers, norms[0], enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(decoder, config.num_layers, norms[1])
        self.to(dtype)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Ids (B, S) and (B, T) -> logits (B, T, V)."""
        padded = source == self.padding  # PyTorch's masks are True where attention is forbidden
        future = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool, device=target.device).triu(1)
        memory = self.encoder(self._embed(source), src_key_padding_mask=padded)
        y = self.decoder(
            self._embed(target),
            memory,
            tgt_mask=future,
            tgt_key_padding_mask=target == self.padding,
            memory_key_padding_mask=padded,
        )
        return y @ self.embedding.weight.T

    def _embed(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(x + self.positions[: ids.shape[1]])


def load_ours(theirs: PyTorchTransformer, ours: Transformer) -> None:
    """Copy the weights of our model into PyTorch's, so that both compute the same. The embeddings must be tied."""
    state = ours.state_dict()
    weights = {"embedding.weight": state["source_embedding.tokens.E"], **to_pytorch(state, ours.config)}
    theirs.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
