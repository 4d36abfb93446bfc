"""The paper's Transformer with PyTorch's own layers, to be timed against ours. Needs PyTorch."""

import math

import torch
from torch import nn

from minitransformer.functional import sinusoidal_positions
from minitransformer.models import TransformerConfig
from minitransformer.vocabulary import PAD


class PyTorchTransformer(nn.Module):
    """Shared embeddings times sqrt(C), sinusoids, `nn.TransformerEncoder` and `nn.TransformerDecoder`, tied output.

    PyTorch's layers also apply dropout to attention weights and inside the feed-forward network. The paper's text does
    not, so these two are turned off here, as in our configurations.
    """

    positions: torch.Tensor

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        C = config.d_model
        self.embedding = nn.Embedding(config.vocab_size, C)
        nn.init.normal_(self.embedding.weight, std=C**-0.5)
        self.register_buffer("positions", torch.from_numpy(sinusoidal_positions(config.max_len, C)))
        self.dropout = nn.Dropout(config.dropout)
        sizes = (C, config.num_heads, config.d_ff, config.dropout)
        encoder = nn.TransformerEncoderLayer(*sizes, batch_first=True)
        decoder = nn.TransformerDecoderLayer(*sizes, batch_first=True)
        for attention in (encoder.self_attn, decoder.self_attn, decoder.multihead_attn):
            attention.dropout = 0.0
        encoder.dropout.p = decoder.dropout.p = 0.0
        self.encoder = nn.TransformerEncoder(encoder, config.num_layers, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(decoder, config.num_layers)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Ids (B, S) and (B, T) -> logits (B, T, V)."""
        padded = source == PAD  # PyTorch's masks are True where attention is forbidden
        future = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool, device=target.device).triu(1)
        memory = self.encoder(self._embed(source), src_key_padding_mask=padded)
        y = self.decoder(
            self._embed(target),
            memory,
            tgt_mask=future,
            tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=padded,
        )
        return y @ self.embedding.weight.T

    def _embed(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(x + self.positions[: ids.shape[1]])
