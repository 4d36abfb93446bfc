"""A decoder-only model in PyTorch, to be timed against ours and trained next to it. Needs PyTorch."""

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional as F

if TYPE_CHECKING:
    from minitransformer.models import TransformerConfig
    from minitransformer.models.since_2017.gpt import GPT


class Block(nn.Module):
    """Pre-norm self-attention and feed-forward network, for whole texts or for new tokens after those in k and v.

    The buffers k and v (batch, H, max_len, D) are the KV cache.
    """

    k: torch.Tensor
    v: torch.Tensor

    def __init__(self, config: "TransformerConfig", batch: int, max_len: int) -> None:
        super().__init__()
        C, self.H = config.d_model, config.num_heads
        self.norm1, self.norm2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.qkv, self.output = nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.expand, self.contract = nn.Linear(C, config.d_ff), nn.Linear(config.d_ff, C)
        for name in ("k", "v"):
            self.register_buffer(name, torch.zeros(batch, self.H, max_len, C // self.H), persistent=False)

    def forward(self, x: torch.Tensor, start: int | None = None) -> torch.Tensor:
        """x (B, T, C): whole texts, or with `start` one new token each at that position -> y (B, T, C)."""
        B, n, C = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(B, n, 3, self.H, C // self.H).permute(2, 0, 3, 1, 4)
        if start is not None:
            self.k[:, :, start : start + n], self.v[:, :, start : start + n] = k, v
            k, v = self.k[:, :, : start + n], self.v[:, :, : start + n]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=start is None)
        x = x + self.output(y.transpose(1, 2).reshape(B, n, C))
        return x + self.contract(F.gelu(self.expand(self.norm2(x)), approximate="tanh"))


class PyTorchGPT(nn.Module):
    """Tied embeddings, learned positions, pre-norm blocks, a final norm."""

    def __init__(self, config: "TransformerConfig", batch: int = 0, max_len: int = 0) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.positions = nn.Embedding(config.max_len, config.d_model)
        self.blocks = nn.ModuleList(Block(config, batch, max_len) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.d_model)

    def forward(self, ids: torch.Tensor, start: int | None = None) -> torch.Tensor:
        """ids (B, T): whole texts, or with `start` one new token each at that position -> logits (B, T, V)."""
        where = slice(ids.shape[1]) if start is None else start
        x = self.tokens(ids) + self.positions.weight[where]
        for block in self.blocks:
            x = block(x, start)
        return self.norm(x) @ self.tokens.weight.T

    @torch.inference_mode()
    def decode(self, ids: torch.Tensor, count: int) -> torch.Tensor:
        """Greedily decode `count` tokens after ids (B, 1) -> (B, count)."""
        decoded = []
        for start in range(count):
            ids = self(ids, start)[:, -1].argmax(dim=-1, keepdim=True)
            decoded.append(ids)
        return torch.cat(decoded, dim=1)


def load_ours(theirs: PyTorchGPT, ours: "GPT") -> None:
    """Copy the weights of our GPT into the PyTorch model, so that both compute the same."""
    state = ours.state_dict()
    names = {"tokens.weight": "embedding.tokens.E", "positions.weight": "embedding.positions.P"}
    parts = {
        "norm1": "self_attention.norm",
        "qkv": "self_attention.sublayer.qkv",
        "output": "self_attention.sublayer.output",
        "norm2": "feed_forward.norm",
        "expand": "feed_forward.sublayer.expand",
        "contract": "feed_forward.sublayer.contract",
    }
    for i in range(ours.config.num_layers):
        names |= names_of(parts, f"blocks.{i}.", f"blocks.layers.{i}.")
    names |= names_of({"norm": "norm"}, "", "blocks.")
    weights = {their_name: torch.from_numpy(state[name].T.copy()) for their_name, name in names.items()}
    for name in ("tokens.weight", "positions.weight"):
        weights[name] = weights[name].T
    theirs.load_state_dict(weights)


def names_of(parts: dict[str, str], their_prefix: str, our_prefix: str) -> dict[str, str]:
    """{their name: our name} for weight and bias of each part."""
    table = {}
    for their_part, part in parts.items():
        weight, bias = ("gamma", "beta") if "norm" in their_part else ("W", "b")
        table[f"{their_prefix}{their_part}.weight"] = f"{our_prefix}{part}.{weight}"
        table[f"{their_prefix}{their_part}.bias"] = f"{our_prefix}{part}.{bias}"
    return table
