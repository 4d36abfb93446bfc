"""Choosing the next token from its logits: the likeliest, or one drawn at random from the likelier ones."""

import math

import numpy as np


def log_softmax(logits):
    """log p, with p = softmax(logits) -> as logits (..., V); on the host."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted


class Greedy:
    """Always the likeliest token."""

    def __call__(self, log_p):
        """log p (B, V) -> ids (B,)."""
        return log_p.argmax(axis=-1)


class Sampling:
    """A token drawn from p, sharpened and cut.

    p is proportional to exp(log p / temperature): below 1 the likely become likelier, and towards 0 it is greedy.
    `top_k` keeps the k likeliest tokens (Fan et al. 2018); `top_p` then keeps the fewest likeliest ones whose shares
    add up to at least p (the nucleus of Holtzman et al. 2020), always at least one. Raises ValueError for values that
    mean nothing.
    """

    def __init__(self, rng, temperature=1.0, top_k=None, top_p=None):
        if not 0 < temperature < math.inf:
            raise ValueError(f"temperature must be greater than 0 and finite, got {temperature}")
        if top_k is not None and top_k < 1:
            raise ValueError(f"top_k must be at least 1, got {top_k}")
        if top_p is not None and not 0 < top_p <= 1:
            raise ValueError(f"top_p must be greater than 0 and at most 1, got {top_p}")
        self.rng, self.temperature, self.top_k, self.top_p = rng, temperature, top_k, top_p

    def __call__(self, log_p):
        """log p (B, V) -> ids (B,)."""
        cumulative = self.probabilities(log_p).cumsum(axis=-1)
        drawn = self.rng.random(len(log_p)) * cumulative[:, -1]  # less than the last, whatever rounding did to the sum
        return np.count_nonzero(cumulative <= drawn[:, None], axis=-1)

    def probabilities(self, log_p):
        """log p (B, V) -> what a token is drawn from (B, V); rows sum to 1."""
        p = log_p - log_p.max(axis=-1, keepdims=True).astype(np.float64)  # a small temperature wants float64
        p /= self.temperature
        np.exp(p, out=p)
        if self.top_k is not None or self.top_p is not None:
            p *= self._kept(p)
        p /= p.sum(axis=-1, keepdims=True)
        return p

    def _kept(self, p):
        """Which tokens top_k and top_p leave, for p (B, V) times any number -> boolean (B, V)."""
        likeliest = -np.sort(-p, axis=-1)[:, : self.top_k]
        count = np.full((len(p), 1), likeliest.shape[1])
        if self.top_p is not None:
            cumulative = likeliest.cumsum(axis=-1)
            short = cumulative < self.top_p * cumulative[:, -1:]  # the token that crosses p is kept
            count = np.minimum(short.sum(axis=-1, keepdims=True) + 1, count)
        least = np.take_along_axis(likeliest, count - 1, axis=-1)
        likelier, equal = p > least, p == least
        count -= likelier.sum(axis=-1, keepdims=True)
        return likelier | (equal & (equal.cumsum(axis=-1) <= count))  # of equal ones the first


def forbid_repeats(log_p, ids, length):
    """Make it impossible to say any run of `length` tokens of `ids` (B, T) a second time -> log p (B, V).

    For each row, the tokens that followed its last length - 1 tokens before get probability 0. A row in which nothing
    is left is all -inf.
    """
    log_p = log_p.copy()
    runs = ids.shape[1] - length + 1
    if runs <= 0:
        return log_p
    begun = np.ones((len(ids), runs), dtype=bool)  # does the run from here begin with the last length - 1 tokens?
    for i in range(length - 1):
        begun &= ids[:, i : i + runs] == ids[:, runs + i, None]
    rows, starts = begun.nonzero()
    log_p[rows, ids[rows, starts + length - 1]] = -np.inf
    return log_p
