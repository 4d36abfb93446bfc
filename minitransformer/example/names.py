"""The names that the lessons use for the weights of a model, such as "cross.W_q"."""

import re
from collections.abc import Mapping

import numpy as np

from minitransformer.models import Transformer
from minitransformer.models.since_2017.gpt import GPT

Numbers = dict[str, np.ndarray]
STACKS = {  # the library's names of stacks and sub-layers: the lessons' name, and the sub-layers in their order
    "encoder": ("encoder", {"self_attention": "self", "feed_forward": "ffn"}),
    "decoder": ("decoder", {"self_attention": "self", "cross_attention": "cross", "feed_forward": "ffn"}),
    "blocks": ("decoder", {"self_attention": "self", "feed_forward": "ffn"}),  # of a GPT
}
LAYER = re.compile(r"(\w+)\.layers\.(\d+)\.(\w+)\.(sublayer|norm)\.(?:(\w+)\.)?(\w+)")
SYMBOLS = {
    "q": ("q",),
    "kv": ("k", "v"),
    "qkv": ("q", "k", "v"),
    "output": ("o",),
    "expand": ("1",),
    "contract": ("2",),
}


def named_weights(model: Transformer | GPT) -> Numbers:
    """All weights of `model` by the names of the lessons: "E", "cross.W_q", "encoder.ffn.W_1" and so on.

    The library keeps the matrices of q, k and v side by side in one; here they are apart. In a model of more than one
    layer the layer's number follows the stack, as in "encoder2.self.W_q" and "decoder1.cross.W_q". The layers of a GPT
    are those of a decoder, "decoder.norm.gamma" is of the norm after a stack, and "target.P" are learned positions.
    """
    return by_lesson_names(model.state_dict(), model.config.num_layers)


def by_lesson_names(state: Mapping[str, np.ndarray], layers: int) -> Numbers:
    """Arrays by the names of the lessons, from those by the names of the library."""
    found: Numbers = {}
    for name, value in state.items():
        names = _lesson_names(name, layers)
        found.update(zip(names, np.split(value, len(names), axis=-1), strict=True))
    return found


def _lesson_names(name, layers):
    """blocks.layers.1.self_attention.sublayer.output.W of two layers -> [decoder2.self.W_o]"""
    if match := LAYER.fullmatch(name):
        stack, layer, part, kind, matrix, symbol = match.groups()
        lesson, parts = STACKS[stack]
        number = str(int(layer) + 1) if layers > 1 else ""
        here = f"norm{[*parts].index(part) + 1}" if kind == "norm" else parts[part]
        place = here if here + number == "cross" else f"{lesson}{number}.{here}"
        return [f"{place}.{symbol}_{each}" if matrix else f"{place}.{symbol}" for each in SYMBOLS.get(matrix, "-")]
    place, _, symbol = name.rpartition(".")
    if symbol == "E":
        return ["E"]
    if symbol == "P":
        return [f"{'source' if place.startswith('source') else 'target'}.P"]
    return [f"{STACKS[place.partition('.')[0]][0]}.norm.{symbol}"]
