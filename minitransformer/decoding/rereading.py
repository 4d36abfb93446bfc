"""What decoding needs of a model, and how any model decodes: all tokens so far are read again for each new one."""

import importlib
import inspect
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_integer
from minitransformer.config import ModelConfig, special_ids

End = int | tuple[int, ...] | Literal["model"] | None  # what ends a text: ids, nothing, or what the model's config says


class DecodingState(Protocol):
    """A batch of B sequences that a model reads token by token. Any object with these methods will do."""

    def extend(self, ids: np.ndarray) -> xp.ndarray:
        """Read ids (B, n) on the host, the next n tokens -> logits (B, V) of the token after them."""

    def select(self, rows: Sequence[int] | np.ndarray) -> None:
        """Keep the sequences `rows` (integers on the host, repeats allowed), in this order, as beam search does."""


class PromptedState(DecodingState, Protocol):
    """A decoding state that knows what to read first."""

    prompt: np.ndarray  # ids (B, n) on the host


class RereadingState:
    """A model of which nothing is known but that it maps ids (B, T) to logits (B, T, V), or source and target ids.

    The logits are those of the whole model's `forward`, whatever its layers do: they may mix tokens, so what they
    computed for earlier tokens cannot be kept. A text of T tokens costs T forward passes.

    The first `padding` (B,) ids of each text are not read. `source` (B, S) is given for an encoder-decoder alone. There
    is no limit on the tokens except for the model's: `max_len` is for states that set memory aside.
    """

    def __init__(
        self,
        model: Any,
        prompt: np.ndarray,
        max_len: int | None = None,
        padding: np.ndarray | None = None,
        source: np.ndarray | None = None,
    ) -> None:
        self.model, self.prompt, self.source = model, prompt, source
        self.padding = np.zeros(len(prompt), dtype=np.int64) if padding is None else padding
        self.read = np.empty((len(prompt), 0), dtype=np.int64)  # the tokens so far, padding included

    def extend(self, ids: np.ndarray) -> xp.ndarray:
        """Read ids (B, n) on the host -> logits (B, V)."""
        return self.extend_last(ids, 1)[:, 0]

    def extend_last(self, ids: np.ndarray, count: int) -> xp.ndarray:
        """Read ids (B, n) on the host -> logits (B, count, V) after each of the last `count` tokens; 0 for padding."""
        check_rows(ids, len(self.read))
        read = np.concatenate([self.read, ids], axis=1)
        logits = self._logits(read, count)
        self.read = read  # only now: the model may have refused it
        return logits

    def _logits(self, read, count):
        if self.source is not None:
            return self.model(self.source, read)[:, -count:]
        logits: Any = None
        starts = np.minimum(self.padding, read.shape[1] - 1)  # of a text that has not begun, padding is read
        for start in np.unique(starts):  # texts of one length at a time
            rows = np.flatnonzero(starts == start)
            found = self.model(read[rows, start:])[:, -count:]
            logits = xp.zeros((len(read), count, found.shape[-1]), found.dtype) if logits is None else logits
            logits[to_device(rows), count - found.shape[1] :] = found
        return logits

    def cut_back(self, count: int) -> None:
        """Forget the last `count` tokens of each sequence. Raises ValueError for more than all."""
        if not 0 <= count <= self.read.shape[1]:
            raise ValueError(f"of {self.read.shape[1]} tokens the last {count} cannot be forgotten")
        self.read = self.read[:, : self.read.shape[1] - count]

    def select(self, rows: Sequence[int] | np.ndarray) -> None:
        """Keep the sequences `rows`, in this order."""
        self.read, self.padding = self.read[rows], self.padding[rows]
        self.source = None if self.source is None else self.source[rows]


def decoding_state(
    model: Any, source: np.ndarray, max_new_tokens: int, lengths: Sequence[int] | None = None
) -> PromptedState:
    """A state that answers `source` (B, S), padded at the end, with at most `max_new_tokens` tokens.

    These are sources if the model's forward needs two inputs; otherwise they are prompts, which are continued.
    `lengths` (B,) are those of prompts, by default without the padding of the model's configuration at their ends. A
    model that is as the library built it has a faster state (decoding/faster), and any other a RereadingState. Raises
    ValueError if `max_new_tokens` is less than 1, and for lengths that do not fit.
    """
    check_integer("max_new_tokens", max_new_tokens, least=1)
    make = importlib.import_module(f"{__package__}.faster").faster_state(model) or RereadingState
    if reads_sources(model):
        if lengths is not None:
            raise ValueError("lengths are those of prompts, and this model reads sources, padded at their ends")
        return make(model, first_tokens(model, source), max_new_tokens, source=source)
    prompt, padding = left_padded(source, model, lengths)
    return make(model, prompt, prompt.shape[1] + max_new_tokens, padding=padding)


def reads_sources(model: Any) -> bool:
    """Whether the model is an encoder-decoder: its forward needs a source and a target."""
    inputs = inspect.signature(model.forward).parameters.values()
    return sum(one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD for one in inputs) > 1


def check_rows(ids: np.ndarray, batch: int) -> None:
    """TypeError or ValueError unless `ids` is (batch, n): a single row would be broadcast to all sequences."""
    if not hasattr(ids, "ndim"):
        raise TypeError(f"the next tokens must be an array of ids, got {type(ids).__name__}")
    if ids.ndim != 2 or len(ids) != batch:
        raise ValueError(f"the next tokens must be ids of shape ({batch}, n), got {tuple(ids.shape)}")


def first_tokens(model: Any, source: np.ndarray) -> np.ndarray:
    """What the targets of source (B, S) begin with (B, 1). Raises ValueError if the model's configuration has none."""
    start = special_ids(model).start
    if start is None:
        raise ValueError("the model's configuration has no start, the id that a target begins with")
    return np.full((len(source), 1), start, dtype=source.dtype)


def ends_and_filler(model: Any, end: End = "model") -> tuple[tuple[int, ...], int]:
    """The ids that end a text, and the id that follows them in the rows of a batch."""
    config = special_ids(model)
    config = config if end == "model" else ModelConfig(padding=config.padding, end=end)
    return config.ends, config.filler


def left_padded(
    ids: np.ndarray, model: Any = None, lengths: Sequence[int] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """ids (B, T) padded at the end -> the same padded on the left, and each row's number of padding tokens (B,).

    Without `lengths`, a row ends where the padding of the model's configuration begins. Raises ValueError unless there
    is a length from 1 to T for each row.
    """
    found = special_ids(model).lengths(ids) if lengths is None else np.asarray(lengths)
    if lengths is not None and (found.shape != ids.shape[:1] or not np.isin(found, range(1, ids.shape[1] + 1)).all()):
        raise ValueError(f"lengths must be {len(ids)} whole numbers from 1 to {ids.shape[1]}, got {found.tolist()}")
    padding = ids.shape[1] - found
    where = (np.arange(ids.shape[1]) - padding[:, None]) % ids.shape[1]
    return np.take_along_axis(ids, where, axis=1), padding
