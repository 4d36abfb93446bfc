"""Sampling: what a language model writes after a prompt, one random token after another, however long the text is."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minitransformer.backend import xp
from minitransformer.decoding.generate import generate_from
from minitransformer.decoding.rereading import decoding_state, reads_sources

TEMPERATURE, TOP_P = 0.8, 0.9  # for text that is read: what is less likely is more often a mistake than an idea


class Sampling:
    """A random token, with temperature, top-k and top-p.

    The token is drawn in proportion to exp(log p / temperature): a temperature below 1 makes likely tokens more likely,
    and towards 0 the choice becomes greedy. `top_k` keeps the k most likely tokens (Fan et al. 2018); `top_p` then
    keeps the smallest set of most likely tokens whose probabilities sum to at least top_p (the nucleus of Holtzman et
    al. 2020), always at least one. Raises ValueError unless temperature is positive and finite, top_k at least 1 and
    0 < top_p <= 1.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
    ) -> None:
        if not 0 < temperature < math.inf:
            raise ValueError(f"temperature must be greater than 0 and finite, got {temperature}")
        if top_k is not None and top_k < 1:
            raise ValueError(f"top_k must be at least 1, got {top_k}")
        if top_p is not None and not 0 < top_p <= 1:
            raise ValueError(f"top_p must be greater than 0 and at most 1, got {top_p}")
        self.rng, self.temperature, self.top_k, self.top_p = rng, temperature, top_k, top_p

    def __call__(self, log_p: np.ndarray) -> np.ndarray:
        """log p (B, V) -> ids (B,)."""
        return self.draw(self.probabilities(log_p))

    def draw(self, p: np.ndarray) -> np.ndarray:
        """A random token of each row, in proportion to p (B, V) -> ids (B,)."""
        cumulative = p.cumsum(axis=-1)
        drawn = self.rng.random(len(p)) * cumulative[:, -1]  # less than the last entry, even if it is not exactly 1
        return np.count_nonzero(cumulative <= drawn[:, None], axis=-1)

    def probabilities(self, log_p: np.ndarray) -> np.ndarray:
        """log p (B, V) -> the probabilities that a token is drawn with (B, V); rows sum to 1."""
        p = log_p - log_p.max(axis=-1, keepdims=True).astype(np.float64)  # a small temperature needs float64
        with np.errstate(over="ignore"):  # -inf, so that the most likely token is chosen
            p /= self.temperature
        np.exp(p, out=p)
        if self.top_k is not None or self.top_p is not None:
            p *= self._kept(p)
        p /= p.sum(axis=-1, keepdims=True)
        return p

    def _kept(self, p):
        """Which tokens top_k and top_p keep, for p (B, V) up to a constant factor -> boolean (B, V)."""
        likeliest = -np.sort(-p, axis=-1)[:, : self.top_k]
        count = np.full((len(p), 1), likeliest.shape[1])
        if self.top_p is not None:
            cumulative = likeliest.cumsum(axis=-1)
            short = cumulative < self.top_p * cumulative[:, -1:]  # the token that crosses top_p is kept
            count = np.minimum(short.sum(axis=-1, keepdims=True) + 1, count)
        least = np.take_along_axis(likeliest, count - 1, axis=-1)
        likelier, equal = p > least, p == least
        count -= likelier.sum(axis=-1, keepdims=True)
        return likelier | (equal & (equal.cumsum(axis=-1) <= count))  # among equal ones, the first


def generate(
    model: Any,
    prompt: np.ndarray,
    max_new_tokens: int,
    choose: Callable[[np.ndarray], np.ndarray] | None = None,
    lengths: Sequence[int] | None = None,
) -> np.ndarray:
    """Sample the ids that `model` writes after the ids of `prompt`: (T,) -> (N,), or (B, T) -> (B, N).

    N = max_new_tokens, also beyond the length that a model was trained on (see SlidingState). `choose` maps
    log p (B, V) to ids (B,); the default draws with temperature 0.8 and top-p 0.9, always the same, and Greedy() takes
    the most likely one. Shorter rows are padded at their end: with the padding of the model's configuration, or with
    any id if `lengths` (B,) are given. Raises ValueError for a prompt without tokens or of another shape, for padding
    in a text beyond the length of training, and if max_new_tokens is less than 1.
    """
    rows = np.atleast_2d(prompt)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"prompt must be ids (T,) or (B, T), at least one in each row, got shape {np.shape(prompt)}")
    state: Any = decoding_state(model, rows, max_new_tokens, lengths)
    first, max_len = state.prompt, getattr(getattr(model, "config", None), "max_len", math.inf)
    if rows.shape[1] + max_new_tokens > max_len and not reads_sources(model):
        if np.any(state.padding):
            raise ValueError(f"prompts of several lengths can be continued up to max_len = {max_len}")
        state = SlidingState(model, len(rows))
    choose = choose or Sampling(np.random.default_rng(0), TEMPERATURE, top_p=TOP_P)
    ids = generate_from(state, first, max_new_tokens, choose, eos=None).ids
    return ids if np.ndim(prompt) == 2 else ids[0]


class SlidingState:
    """A language model that reads beyond its window: when the window is full, it starts again with the later half.

    A model trained on windows of T tokens has never seen position T + 1. `window` is T, by default the model's
    `max_len`. With a KV cache each token costs one row of attention, except for those at which half a window is read
    again.
    """

    def __init__(self, model: Any, batch: int, window: int | None = None) -> None:
        self.model, self.window = model, window or model.config.max_len
        self.read = np.empty((batch, 0), dtype=np.int64)  # the tokens that the current state has read
        self.state: Any = decoding_state(model, self.read, self.window)

    @property
    def remaining(self) -> int:
        """How many more tokens it can read before it starts again."""
        return self.window - self.read.shape[1]

    def extend(self, ids: np.ndarray) -> xp.ndarray:
        """Read ids (B, n) on the host -> logits (B, V)."""
        return self.extend_last(ids, 1)[:, 0]

    def extend_last(self, ids: np.ndarray, count: int) -> xp.ndarray:
        """Read ids (B, n) on the host -> logits (B, count, V) after each of the last `count` tokens."""
        self.read = np.concatenate([self.read, ids], axis=1)
        if self.read.shape[1] > self.window:
            self.read = ids = self.read[:, -max(1, self.window // 2) :]
            self.state = decoding_state(self.model, ids[:, :0], self.window)
        return self.state.extend_last(ids, count)

    def cut_back(self, count: int) -> None:
        """Forget the last `count` tokens. Raises ValueError for a kind of attention that cannot."""
        self.read = self.read[:, : self.read.shape[1] - count]
        self.state.cut_back(count)

    def select(self, rows: Sequence[int] | np.ndarray) -> None:
        """Keep the sequences `rows` (integers on the host), in this order."""
        self.read = self.read[rows]
        self.state.select(rows)
