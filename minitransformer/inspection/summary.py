"""A model as a table: its layers, the shape of each output, and the number of parameters."""

from typing import NamedTuple

from minitransformer.core import Layer, Parameter
from minitransformer.layers import (
    CrossAttention,
    Embedding,
    FeedForward,
    LayerNorm,
    LearnedPositions,
    OutputProjection,
    PositionalEncoding,
    SelfAttention,
)
from minitransformer.layers.before_2017.convolution import Conv1d
from minitransformer.layers.before_2017.recurrent import GRU, LSTM
from minitransformer.layers.since_2017.experts import MixtureOfExperts
from minitransformer.layers.since_2017.memory_attention import MemoryAttention
from minitransformer.layers.since_2017.rms_norm import RMSNorm
from minitransformer.models.changed import is_library
from minitransformer.models.since_2017.bert import ClassifierHead, MaskedHead
from minitransformer.models.since_2017.vision import Patches

# the layers that the table does not open any further
POSITIONS = (LearnedPositions, PositionalEncoding)
RECURRENT = (LSTM, GRU, MemoryAttention)
HEADS = {OutputProjection: "(B, T, V)", MaskedHead: "(B, T, V)", ClassifierHead: "(B, K)"}
LEAVES = (
    *(Conv1d, CrossAttention, Embedding, FeedForward, LayerNorm, MixtureOfExperts, Patches, RMSNorm, SelfAttention),
    *HEADS,
    *POSITIONS,
    *RECURRENT,
)


class Row(NamedTuple):
    """One row of the table."""

    name: str  # its place in the model, as in the names of parameters
    kind: str  # its class
    output: str  # the shape of its output, in letters
    parameters: int  # the learned numbers of this layer, without those counted in a row above
    shared: bool  # whether it uses parameters of a row above


def summarize(model: Layer) -> list[Row]:
    """The layers of a model, from the input to the output -> list of Row.

    A layer that is not the library's is one row, with "?" for the shape of its output if its class says nothing of it.
    Shared parameters count in the first row that has them, so the rows add up to the model's number of parameters.
    """
    rows: list[Row] = []
    seen: set[int] = set()  # ids of parameters
    for name, layer, parameters in _leaves(model):
        new = [parameter for parameter in parameters if id(parameter) not in seen]
        seen.update(id(parameter) for parameter in new)
        size, shared = sum(parameter.data.size for parameter in new), len(new) < len(parameters)
        length = "S" if name.startswith(("source", "encoder")) and hasattr(model, "source_embedding") else "T"
        rows.append(Row(name, type(layer).__name__, _output_shape(layer, length), size, shared))
    return rows


def _leaves(layer, name=""):
    """(name, layer, its parameters) of each row. A layer that is opened has a row too if it has parameters itself."""
    own = [value for value in vars(layer).values() if isinstance(value, Parameter)]
    if isinstance(layer, LEAVES) or (name and not is_library(type(layer))) or (own and not [*layer.children()]):
        yield name, layer, layer.parameters()
        return
    if own:
        yield name, layer, own
    for inner, child in layer.children():
        yield from _leaves(child, f"{name}.{inner}" if name else inner)


def _output_shape(layer, length):
    width = "R" if isinstance(layer, RECURRENT) else "C"
    return HEADS.get(type(layer), f"(B, {length}, {width})") if isinstance(layer, LEAVES) else "?"
