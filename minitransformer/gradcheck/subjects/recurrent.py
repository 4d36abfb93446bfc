"""The rows for the recurrent functions, layers and models, and for the attention between them."""

from typing import Any

import numpy as np

from minitransformer import functional as F
from minitransformer import layers as L
from minitransformer.backend import xp
from minitransformer.config import CELLS, MEMORY_ATTENTION, SEQ2SEQ_ATTENTION
from minitransformer.gradcheck.check import randomize_parameters
from minitransformer.gradcheck.subjects.models import draw_sentences, loss_problem
from minitransformer.gradcheck.subjects.table import MASKS, Draw, Problem, layer_problem, register
from minitransformer.models import Seq2SeqConfig
from minitransformer.models.before_2017.recurrent import Seq2Seq
from minitransformer.system.generators import make_generator

DROPOUT, LAYERS = 0.3, 3
BLOCKS = {"lstm": 4, "gru": 3}
STATES = {"lstm": "hc", "gru": "h"}  # the letters of the state's arrays


def rows_of(y: xp.ndarray, state: tuple[xp.ndarray, ...]) -> xp.ndarray:
    """The output (B, T, R) and the state, of arrays (B, R) or (L, B, R), as one array (B, N): all has a gradient."""
    parts = [part if part.ndim == 2 else part.swapaxes(0, 1).reshape(len(y), -1) for part in state]
    return xp.concatenate([y.reshape(len(y), -1), *parts], axis=1)


def from_rows(
    dy: xp.ndarray, y: tuple[int, ...], state: list[tuple[int, ...]]
) -> tuple[xp.ndarray, tuple[xp.ndarray, ...]]:
    """Undo `rows_of` for a gradient: the arrays of the shapes `y` and `state`."""
    parts, start = [], y[1] * y[2]
    for shape in state:
        width = shape[-1] * (shape[0] if len(shape) == 3 else 1)
        part = dy[:, start : start + width]
        parts.append(part if len(shape) == 2 else part.reshape(len(dy), shape[0], shape[2]).swapaxes(0, 1))
        start += width
    return dy[:, : y[1] * y[2]].reshape(y), tuple(parts)


def steps(d: Draw, function: str, padding: bool = True, reverse: bool = False) -> Problem:
    """`lstm` or `gru`, C to D features, from a given state to the output and the final state."""
    B, T, C, D = d.n.B, d.n.T, d.n.C, d.n.D
    width, letters = BLOCKS[function] * D, STATES[function]
    inputs = {"x": d("BTC"), "W": d.array(C, width, std=0.5), "U": d.array(D, width, std=0.5), "b": d.array(width)}
    if function == "gru":
        inputs["d"] = d("D")
    inputs |= {letter: d("BD") for letter in letters}

    def forward(*arrays):
        *weights, mask = arrays
        state = tuple(weights[-len(letters) :])
        (y, final), cache = getattr(F, function)(*weights[: -len(letters)], state, mask, reverse)
        return rows_of(y, final), cache

    def backward(dy, cache):
        dy, dstate = from_rows(dy, (B, T, D), [(B, D)] * len(letters))
        *gradients, dstate = getattr(F, f"{function}_backward")(dy, cache, dstate)
        return *gradients, *dstate

    return Problem(forward, backward, inputs, {"mask": d.tokens(padding)}, {})


def layer(
    d: Draw,
    kind: type[Any],
    padding: bool = True,
    dropout: float = 0.0,
    initial_state: bool = True,
    **switches: Any,
) -> Problem:
    """A stack of three layers, from an initial state to the output and the final state."""
    B, T = d.n.B, d.n.T
    stack = kind(d.n.C, d.n.D, num_layers=LAYERS, dropout_rate=dropout, dtype=d.dtype, **switches)
    randomize_parameters(stack, d.rng)
    inputs = {"x": d("BTC")}
    if initial_state:  # first axis B, as everywhere
        inputs |= {letter: d.array(B, LAYERS, stack.width) for letter in stack.letters}

    def forward(x, *rest):
        *state, mask = rest
        state = tuple(array.swapaxes(0, 1) for array in state) or None
        (y, final), cache = stack.forward(x, state, mask, rng=make_generator(1))
        return rows_of(y, final), cache

    def backward(dy, cache):
        dy, dstate = from_rows(dy, (B, T, stack.width), [(LAYERS, B, stack.width)] * len(stack.letters))
        dx, dstate = stack.backward(dy, cache, dstate)
        return (dx, *(array.swapaxes(0, 1) for array in dstate)) if initial_state else dx

    constants = {"mask": d.tokens(padding)}
    return Problem(forward, backward, inputs, constants, dict(stack.named_parameters()))


def additive_attention(d: Draw, mask: str) -> Problem:
    """T queries and S keys of D features, and values of F features."""
    inputs = {"q": d("BTD"), "k": d("BSD"), "v": d("BSF"), "w": d("D")}
    constants = {"allowed": memory_mask(d, mask)}
    return Problem(F.additive_attention, F.additive_attention_backward, inputs, constants, {})


def memory_attention(d: Draw, kind: str, mask: str) -> Problem:
    """The attention of T states to a memory of S vectors."""
    inputs = {"h": d("BTC"), "memory": d("BSC")}
    constants = {"allowed": memory_mask(d, mask)}
    return layer_problem(L.MemoryAttention(kind, d.n.C, dtype=d.dtype), d, inputs, constants)


def memory_mask(d: Draw, kind: str) -> np.ndarray | None:
    """As `Draw.mask`, for scores (B, T, S)."""
    mask = d.mask(kind, d.n.T, d.n.S)
    return None if mask is None else mask[:, 0]


def seq2seq(
    d: Draw, dropout: float = DROPOUT, padding: bool = True, tokens_per_block: int | None = None, **fields: Any
) -> Problem:
    """A recurrent encoder-decoder, from ids to the loss; `fields` are those of the configuration."""
    config = Seq2SeqConfig(d.n.V, d.n.C, 2 * d.n.D, max_len=d.n.max_len, dropout=dropout, **fields)
    model = Seq2Seq(config, dtype=d.dtype)
    randomize_parameters(model, d.rng)
    return loss_problem(model, *draw_sentences(d, padding), tokens_per_block=tokens_per_block)


for name in BLOCKS:
    for reverse in (False, True):
        for padding in (False, True):
            row = f"{name} reverse={reverse} padding={padding}"
            register(row, getattr(F, name), steps, function=name, reverse=reverse, padding=padding)
    register(f"{name} T=1", getattr(F, name), steps, lengths={"T": 1}, function=name, padding=False)
    register(f"{name} B=1", getattr(F, name), steps, lengths={"B": 1}, function=name)
for kind in (L.LSTM, L.GRU):
    for bidirectional in (False, True):
        for rate in (0.0, DROPOUT):
            row = f"{kind.__name__} bidirectional={bidirectional} dropout={rate}"
            register(row, kind, layer, stack=True, kind=kind, bidirectional=bidirectional, dropout=rate)
        row = f"{kind.__name__} bidirectional={bidirectional} padding=False initial_state=False"
        register(
            row, kind, layer, stack=True, kind=kind, bidirectional=bidirectional, padding=False, initial_state=False
        )
for mask in MASKS:
    register(f"additive_attention mask={mask}", F.additive_attention, additive_attention, mask=mask)
for attention in MEMORY_ATTENTION:
    for mask in ("none", "padding", "empty_row"):
        row = f"MemoryAttention kind={attention} mask={mask}"
        register(row, L.MemoryAttention, memory_attention, kind=attention, mask=mask)
for attention in SEQ2SEQ_ATTENTION:
    for cell in CELLS:
        row = f"Seq2Seq attention={attention} cell={cell}"
        register(row, Seq2Seq, seq2seq, stack=True, attention=attention, cell=cell)
    for changes in ({"bidirectional": True}, {"reverse_source": True}, {"padding": False, "dropout": 0.0}):
        row = f"Seq2Seq attention={attention} " + " ".join(f"{name}={value}" for name, value in changes.items())
        register(row, Seq2Seq, seq2seq, attention=attention, stack=True, **changes)
register("Seq2Seq tokens_per_block=3", Seq2Seq, seq2seq, stack=True, tokens_per_block=3)
