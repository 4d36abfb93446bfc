"""Choosing the next token from its logits: the most likely one, or a random one."""

import math

import numpy as np

TEMPERATURE, TOP_P = 0.8, 0.9  # for text that is read: what is less likely is more often a mistake than an idea


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """log p, where p = softmax(logits): logits (..., V) on the host -> (..., V).

    Raises ArithmeticError for a row whose largest logit is nan or infinite: it has no probabilities.
    """
    largest = logits.max(axis=-1, keepdims=True)
    if not np.isfinite(largest).all():
        bad = largest[~np.isfinite(largest)]
        raise ArithmeticError(f"{bad.size} of {largest.size} rows of logits are not finite: their maximum is {bad[0]}")
    shifted = logits - largest
    shifted -= np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted


class Greedy:
    """Always the most likely token."""

    def __call__(self, log_p: np.ndarray) -> np.ndarray:
        """log p (B, V) -> ids (B,)."""
        return log_p.argmax(axis=-1)

    def probabilities(self, log_p: np.ndarray) -> np.ndarray:
        """log p (B, V) -> the limit of low temperatures (B, V): 1 for the most likely token of each row, else 0."""
        return (np.arange(log_p.shape[-1]) == self(log_p)[:, None]).astype(np.float64)

    def draw(self, p: np.ndarray) -> np.ndarray:
        """p (B, V) -> ids (B,)."""
        return p.argmax(axis=-1)


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


def forbid_repeats(log_p: np.ndarray, ids: np.ndarray, length: int) -> np.ndarray:
    """Forbid every next token that would repeat a sequence of `length` tokens of `ids` (B, T) -> log p (B, V).

    In each row, all tokens that have already followed its last length - 1 tokens get probability 0. A row without an
    allowed token is -inf everywhere.
    """
    log_p = log_p.copy()
    runs = ids.shape[1] - length + 1
    if runs <= 0:
        return log_p
    matches = np.ones((len(ids), runs), dtype=bool)  # whether the last length - 1 tokens also occur here
    for i in range(length - 1):
        matches &= ids[:, i : i + runs] == ids[:, runs + i, None]
    rows, starts = matches.nonzero()
    log_p[rows, ids[rows, starts + length - 1]] = -np.inf
    return log_p
