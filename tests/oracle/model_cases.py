"""The whole model: torch.nn.Transformer with embeddings, positions and output built around it by hand."""

import math

import numpy as np

from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.models import Transformer
from minitransformer.vocabulary import PAD
from tests.oracle import torch_modules
from tests.oracle.function_cases import their_loss
from tests.oracle.layer_cases import ConfiguredCase
from tests.oracle.problems import draw_ids


def their_positions(torch, length, C):
    """The sinusoids (length, C), entry by entry from the formula of paper section 3.5."""
    rows = [
        [(math.cos if c % 2 else math.sin)(t / 10000 ** ((c - c % 2) / C)) for c in range(C)] for t in range(length)
    ]
    return torch.tensor(rows, dtype=torch.float64)


def their_embedding(torch, ids, E):
    """Token vectors times sqrt(C), plus positions -> (B, T, C)."""
    C = E.shape[1]
    return torch.nn.functional.embedding(ids, E) * math.sqrt(C) + their_positions(torch, ids.shape[1], C)


class TransformerCase(ConfiguredCase):
    """From ids to logits. With tied embeddings one leaf of autograd is used three times, under our first name."""

    output = "BTV"

    def layer(self, z):
        return Transformer(self.config(z), seed=None, dtype=np.float64)

    def theirs(self, torch, z, p, source, target):
        config = self.config(z)
        source_E = p["source_embedding.tokens.E"]
        x = their_embedding(torch, source, source_E)
        y = their_embedding(torch, target, p.get("target_embedding.tokens.E", source_E))
        module = torch_modules.transformer_module(torch, config)
        weights = torch_modules.transformer_weights(torch, config, p)
        decoded = torch_modules.call(torch, module, weights, x, y, **torch_modules.stack_masks(torch, source, target))
        return decoded @ p.get("output.E", source_E).T


class TransformerLossCase(TransformerCase):
    """From ids to the smoothed loss, the way training uses the model."""

    output = ""

    def constants(self, rng, z):
        return super().constants(rng, z) | {"target_out": draw_ids(rng, z.B, z.T, z.V)}

    def ours(self, layer, source, target, target_out):
        logits, cache = layer.forward(source, target)
        loss, cache_loss = cross_entropy(logits, target_out, layer.config.label_smoothing, PAD)
        return loss, (cache, cache_loss)

    def ours_backward(self, layer, dy, cache):
        cache, cache_loss = cache
        layer.backward(cross_entropy_backward(dy, cache_loss), cache)

    def theirs(self, torch, z, p, source, target, target_out):
        logits = super().theirs(torch, z, p, source, target)
        return their_loss(torch, logits, target_out, self.config(z).label_smoothing)
