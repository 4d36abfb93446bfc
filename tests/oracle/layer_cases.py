"""Comparisons with PyTorch of multi-head attention and of the two blocks, each with its masks on and off."""

from typing import ClassVar

import numpy as np

from minitransformer.functional import causal_mask, padding_mask
from minitransformer.layers import CrossAttention, DecoderLayer, EncoderLayer, SelfAttention
from minitransformer.models import TransformerConfig
from minitransformer.vocabulary import PAD
from tests.oracle import torch_modules
from tests.oracle.problems import Case, draw_ids

F64 = {"dtype": np.float64}


class AttentionCase(Case):
    """Multi-head attention from T queries to `keys` keys, T for self-attention and S for cross-attention."""

    keys = "T"

    def __init__(self, name, padding, causal):
        super().__init__(name)
        self.padding, self.causal = padding, causal

    def constants(self, rng, z):
        (S,) = z.shape(self.keys)
        return {"ids": draw_ids(rng, z.B, S, z.V)} if self.padding else {}

    def allowed(self, T, S, ids):
        """Our mask: both in one, True = may attend."""
        causal = causal_mask(max(T, S))[..., :T, :S] if self.causal else True
        padding = True if ids is None else padding_mask(ids, PAD)
        return causal & padding if self.causal or self.padding else None

    def attend(self, torch, z, weights, q, kv, ids):
        """PyTorch's attention with its two masks apart, True = ignore."""
        module = torch.nn.MultiheadAttention(z.C, z.H, batch_first=True, dtype=torch.float64)
        padding = None if ids is None else ids == PAD
        order = torch_modules.ignored_by_order(torch, q.shape[1], kv.shape[1]) if self.causal else None
        masks = {"key_padding_mask": padding, "attn_mask": order}
        return torch_modules.call(torch, module, weights, q, kv, kv, need_weights=False, **masks)[0]


class SelfAttentionCase(AttentionCase):
    inputs: ClassVar = {"x": "BTC"}

    def layer(self, z):
        return SelfAttention(z.C, z.H, **F64)

    def ours(self, layer, x, ids=None):
        return layer.forward(x, self.allowed(x.shape[1], x.shape[1], ids))

    def theirs(self, torch, z, p, x, ids=None):
        return self.attend(torch, z, torch_modules.self_attention_weights(torch, p), x, x, ids)


class CrossAttentionCase(AttentionCase):
    inputs: ClassVar = {"x": "BTC", "memory": "BSC"}
    keys = "S"

    def layer(self, z):
        return CrossAttention(z.C, z.H, **F64)

    def ours(self, layer, x, memory, ids=None):
        return layer.forward(x, memory, self.allowed(x.shape[1], memory.shape[1], ids))

    def theirs(self, torch, z, p, x, memory, ids=None):
        return self.attend(torch, z, torch_modules.cross_attention_weights(torch, p), x, memory, ids)


class ConfiguredCase(Case):
    """A case whose layer is built after a TransformerConfig; `switches` are its fields other than sizes."""

    def __init__(self, name, masked=True, **switches):
        super().__init__(name)
        self.masked, self.switches = masked, switches

    def config(self, z):
        sizes = {"vocab_size": z.V, "d_model": z.C, "num_heads": z.H, "d_ff": z.F, "max_len": z.T + z.S}
        return TransformerConfig(**{"num_layers": 2, "dropout": 0.0, **sizes, **self.switches})

    def constants(self, rng, z):
        drawn = {"source": draw_ids(rng, z.B, z.S, z.V), "target": draw_ids(rng, z.B, z.T, z.V)}
        return drawn if self.masked else {}


class EncoderLayerCase(ConfiguredCase):
    inputs: ClassVar = {"x": "BSC"}
    output = "BSC"

    def layer(self, z):
        return EncoderLayer(self.config(z), **F64)

    def ours(self, layer, x, source=None, target=None):
        return layer.forward(x, padding_mask(source) if self.masked else None)

    def theirs(self, torch, z, p, x, source=None, target=None):
        module = torch.nn.TransformerEncoderLayer(**torch_modules.block_options(torch, self.config(z)))
        weights = torch_modules.encoder_layer_weights(torch, p)
        ignored = source == PAD if self.masked else None
        return torch_modules.call(torch, module, weights, x, src_key_padding_mask=ignored)


class DecoderLayerCase(ConfiguredCase):
    inputs: ClassVar = {"x": "BTC", "memory": "BSC"}

    def layer(self, z):
        return DecoderLayer(self.config(z), **F64)

    def ours(self, layer, x, memory, source=None, target=None):
        if not self.masked:
            return layer.forward(x, memory)
        return layer.forward(x, memory, causal_mask(x.shape[1]) & padding_mask(target), padding_mask(source))

    def theirs(self, torch, z, p, x, memory, source=None, target=None):
        module = torch.nn.TransformerDecoderLayer(**torch_modules.block_options(torch, self.config(z)))
        masks = torch_modules.stack_masks(torch, source, target) if self.masked else {}
        masks.pop("src_key_padding_mask", None)
        return torch_modules.call(torch, module, torch_modules.decoder_layer_weights(torch, p), x, memory, **masks)
