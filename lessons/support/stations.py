"""The ten stations of one_sitting.py: what each function is given, what it must return, and the known mistakes.

There is no solution here. What is right stands in the numbers of the running example; only mistakes are formulas.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from support.example_numbers import Trace, numbers

import numpy as np

from minitransformer.example import load_example
from minitransformer.exercises.known import Listed

EXAMPLE = load_example()
NUMBERS = numbers(EXAMPLE)
SOURCE_IDS, TARGET_IN_IDS, TARGET_OUT_IDS = ([int(i) for i in ids[0]] for ids in EXAMPLE[2:])
C, D, T, S, V = 6, 3, 5, 4, 7


@dataclass(frozen=True)
class Mistake(Listed):
    """A wrong formula, of the function's own arguments, for one of its outputs."""

    output: str
    id: str  # in the list of known mistakes, which has its name and its question
    formula: Callable[..., Any]


class Task(NamedTuple):
    """One function that the reader writes."""

    arguments: tuple[Any, ...]
    right: dict[str, np.ndarray]  # output -> array, in the order of the return statement
    axes: dict[str, str]  # output -> its axes
    mistakes: tuple[Mistake, ...]
    hints: tuple[str, ...]
    in_turn: bool = False  # whether an output is computed from the one before it


class Station(NamedTuple):
    """A stop on the way from the loss to the embedding."""

    title: str
    tasks: dict[str, Task]  # name of the function -> task
    pencil: Callable[[], str]  # what the pencil should have found, said once all is right
    remember: str


def of(place: str, *names: str) -> tuple[np.ndarray, ...]:
    """Numbers of one place of the model."""
    return tuple(NUMBERS[f"{place}.{name}"] for name in names)


def merged(heads: np.ndarray) -> np.ndarray:
    """(H, n, D) -> (n, C)"""
    return heads.swapaxes(0, 1).reshape(-1, C)


def of_output() -> np.ndarray:
    """What the output matrix alone leaves in dE."""
    dE = NUMBERS["dE"].copy()
    for token, de in zip(IDS, np.concatenate([NUMBERS["source.de"], NUMBERS["target.de"]]), strict=True):
        dE[token] -= de
    return dE


IDS = [*SOURCE_IDS, *TARGET_IN_IDS]
DX = np.concatenate([NUMBERS["source.dx"], NUMBERS["target.dx"]])


class Ways:
    """The three ways back that encoder_backward is given: each takes a place and the gradient that arrives there."""

    def __init__(self) -> None:
        self.trace = Trace(EXAMPLE, 0.0, {})
        self.trace.forward()

    def norm(self, at: str, dy: np.ndarray) -> np.ndarray:
        """Back through a norm."""
        return self.trace.norm_backward(at, dy)

    def feed_forward(self, at: str, dy: np.ndarray) -> np.ndarray:
        """Back through a feed-forward network."""
        return self.trace.feed_forward_backward(at, dy)

    def attention(self, at: str, dy: np.ndarray) -> tuple[np.ndarray, ...]:
        """Back through an attention: by the queries, the keys and the values."""
        self.trace.attend_backward(at, dy)
        values = self.trace.values
        return tuple(merged(values[f"{at}.d{letter}"]) @ values[f"{at}.W_{letter}"].T for letter in "qkv")


WAYS = Ways()


# --- 1. the loss ---


def wanted(p: np.ndarray, right: Sequence[int]) -> np.ndarray:
    """1 for the right token of each row, 0 elsewhere."""
    return np.eye(p.shape[-1])[right]


def column_of_all_rows(p, right):
    """The 1 is subtracted in every row from all columns that are right somewhere."""
    dz = p.copy()
    dz[:, right] -= 1
    return dz / len(p)


LOSS = (
    Mistake("dz", "1-right-token-not-subtracted", lambda p, right: p / len(p)),
    Mistake("dz", "mean-and-sum", lambda p, right: p - wanted(p, right)),
    Mistake("dz", "sign-wrong", lambda p, right: (wanted(p, right) - p) / len(p)),
    Mistake("dz", "divided-number-tokens-vocabulary", lambda p, right: (p - wanted(p, right)) / p.shape[-1]),
    Mistake("dz", "only-right-tokens-logit-gets", lambda p, right: wanted(p, right) * (p - 1) / len(p)),
    Mistake("dz", "softmax-entry-by-entry", lambda p, right: -wanted(p, right) / p * p * (1 - p) / len(p)),
    Mistake("dz", "gradient-p-not-z", lambda p, right: -wanted(p, right) / p / len(p)),
    Mistake("dz", "1-subtracted-every-token", lambda p, right: (p - 1) / len(p)),
    Mistake("dz", "1-subtracted-columns-all-right", column_of_all_rows),
    Mistake("dz", "these-probabilities-themselves-two-things", lambda p, right: p),
    Mistake("dz", "loss-1-subtracted-every-token", lambda p, right: p - 1),
    Mistake("dz", "all-0", lambda p, right: np.zeros_like(p)),
    Mistake("dz", "two-mistakes-sign-wrong", lambda p, right: wanted(p, right) - p),
)

# --- 2. the output matrix ---

OUTPUT = (
    Mistake("dy", "divided-by-rows-again", lambda dz, y, E: dz @ E / len(dz)),
    Mistake("dy", "root-C-in-output", lambda dz, y, E: np.sqrt(C) * dz @ E),
    Mistake("dy", "minus-from-nowhere", lambda dz, y, E: -dz @ E),
    Mistake(
        "dy", "only-right-tokens-row-e", lambda dz, y, E: dz[range(T), TARGET_OUT_IDS][:, None] * E[TARGET_OUT_IDS]
    ),
    Mistake("dE", "mean-over-rows", lambda dz, y, E: dz.T @ y / len(dz)),
    Mistake("dE", "transposed", lambda dz, y, E: y.T @ dz),
    Mistake("dE", "only-row-p-o-counts", lambda dz, y, E: np.outer(dz[1], y[1])),
    Mistake("dE", "root-C-in-output", lambda dz, y, E: np.sqrt(C) * dz.T @ y),
    Mistake("dE", "minus-from-nowhere", lambda dz, y, E: -dz.T @ y),
)

# --- 3. the norm ---


def mean(features: np.ndarray) -> np.ndarray:
    """Over the features of each token."""
    return features.mean(axis=-1, keepdims=True)


NORM = (
    Mistake(
        "dx", "path-mu-missing", lambda dy, x_hat, sigma, gamma: (dy * gamma - x_hat * mean(dy * gamma * x_hat)) / sigma
    ),
    Mistake("dx", "path-sigma-missing", lambda dy, x_hat, sigma, gamma: (dy * gamma - mean(dy * gamma)) / sigma),
    Mistake("dx", "norm-constants", lambda dy, x_hat, sigma, gamma: dy * gamma / sigma),
    Mistake(
        "dx",
        "gamma-outside-sums",
        lambda dy, x_hat, sigma, gamma: gamma * (dy - mean(dy) - x_hat * mean(dy * x_hat)) / sigma,
    ),
    Mistake(
        "dx", "gamma-forgotten", lambda dy, x_hat, sigma, gamma: (dy - mean(dy) - x_hat * mean(dy * x_hat)) / sigma
    ),
    Mistake(
        "dx",
        "not-divided-sigma",
        lambda dy, x_hat, sigma, gamma: dy * gamma - mean(dy * gamma) - x_hat * mean(dy * gamma * x_hat),
    ),
    Mistake(
        "dx",
        "means-sums",
        lambda dy, x_hat, sigma, gamma: (
            (dy * gamma - C * mean(dy * gamma) - x_hat * C * mean(dy * gamma * x_hat)) / sigma
        ),
    ),
    Mistake(
        "dx",
        "means-run-over-rows",
        lambda dy, x_hat, sigma, gamma: (
            (dy * gamma - (dy * gamma).mean(axis=0) - x_hat * (dy * gamma * x_hat).mean(axis=0)) / sigma
        ),
    ),
    Mistake(
        "dx",
        "two-side-roads-not-divided",
        lambda dy, x_hat, sigma, gamma: dy * gamma / sigma - mean(dy * gamma) - x_hat * mean(dy * gamma * x_hat),
    ),
    Mistake(
        "dx",
        "road-through-sigma-counts-twice",
        lambda dy, x_hat, sigma, gamma: (dy * gamma - mean(dy * gamma) - 2 * x_hat * mean(dy * gamma * x_hat)) / sigma,
    ),
    Mistake(
        "dx",
        "road-through-sigma-counts-half",
        lambda dy, x_hat, sigma, gamma: (dy * gamma - mean(dy * gamma) - x_hat * mean(dy * gamma * x_hat) / 2) / sigma,
    ),
    Mistake(
        "dx",
        "road-through-sigma-gamma-forgotten",
        lambda dy, x_hat, sigma, gamma: (dy * gamma - mean(dy * gamma) - x_hat * mean(dy * x_hat)) / sigma,
    ),
    Mistake("dgamma", "x-hat-forgotten", lambda dy, x_hat, sigma, gamma: dy.sum(axis=0)),
    Mistake("dgamma", "gamma-in-dgamma", lambda dy, x_hat, sigma, gamma: (dy * gamma * x_hat).sum(axis=0)),
    Mistake("dgamma", "mean-over-rows", lambda dy, x_hat, sigma, gamma: (dy * x_hat).mean(axis=0)),
    Mistake("dgamma", "rows-not-added", lambda dy, x_hat, sigma, gamma: dy * x_hat),
    Mistake("dbeta", "mean-over-rows", lambda dy, x_hat, sigma, gamma: dy.mean(axis=0)),
    Mistake("dbeta", "gamma-in-dbeta", lambda dy, x_hat, sigma, gamma: (dy * gamma).sum(axis=0)),
    Mistake("dbeta", "rows-not-added", lambda dy, x_hat, sigma, gamma: dy),
    Mistake(
        "dx",
        "both-side-roads-plus",
        lambda dy, x_hat, sigma, gamma: (dy * gamma + mean(dy * gamma) + x_hat * mean(dy * gamma * x_hat)) / sigma,
    ),
    Mistake(
        "dx",
        "road-through-sigma-plus",
        lambda dy, x_hat, sigma, gamma: (dy * gamma - mean(dy * gamma) + x_hat * mean(dy * gamma * x_hat)) / sigma,
    ),
    Mistake(
        "dx",
        "road-through-mu-plus",
        lambda dy, x_hat, sigma, gamma: (dy * gamma + mean(dy * gamma) - x_hat * mean(dy * gamma * x_hat)) / sigma,
    ),
    Mistake(
        "dx",
        "road-through-sigma-x-hat",
        lambda dy, x_hat, sigma, gamma: (dy * gamma - mean(dy * gamma) - mean(dy * gamma * x_hat)) / sigma,
    ),
    Mistake(
        "dx",
        "norm-road-through-sigma-x-hat",
        lambda dy, x_hat, sigma, gamma: (dy * gamma - mean(dy * gamma) - x_hat * mean(dy * gamma)) / sigma,
    ),
    Mistake(
        "dx",
        "road-through-sigma-not-divided",
        lambda dy, x_hat, sigma, gamma: (dy * gamma - mean(dy * gamma)) / sigma - x_hat * mean(dy * gamma * x_hat),
    ),
    Mistake(
        "dx",
        "road-through-sigma-divided-sigma",
        lambda dy, x_hat, sigma, gamma: (
            (dy * gamma - mean(dy * gamma) - x_hat * mean(dy * gamma * x_hat) / sigma) / sigma
        ),
    ),
    Mistake(
        "dx",
        "means-run-over-all-rows",
        lambda dy, x_hat, sigma, gamma: (
            (dy * gamma - (dy * gamma).mean() - x_hat * (dy * gamma * x_hat).mean()) / sigma
        ),
    ),
    Mistake("dgamma", "summed-over-features", lambda dy, x_hat, sigma, gamma: (dy * x_hat).sum(axis=-1)),
    Mistake("dbeta", "summed-over-features", lambda dy, x_hat, sigma, gamma: dy.sum(axis=-1)),
)

# --- 4. the feed-forward network ---

LINEAR = (
    Mistake("dx", "divided-by-rows-again", lambda dy, x, W: dy @ W.T / len(dy)),
    Mistake("dx", "minus-from-nowhere", lambda dy, x, W: -dy @ W.T),
    Mistake("dx", "weight-reshaped", lambda dy, x, W: dy @ W.reshape(W.shape[::-1])),
    Mistake("dW", "transposed", lambda dy, x, W: dy.T @ x),
    Mistake("dW", "mean-over-rows", lambda dy, x, W: x.T @ dy / len(dy)),
    Mistake("dW", "minus-from-nowhere", lambda dy, x, W: -x.T @ dy),
    Mistake("dW", "input-reshaped", lambda dy, x, W: x.reshape(x.shape[::-1]) @ dy),
    Mistake("db", "rows-not-added", lambda dy, x, W: dy),
    Mistake("db", "mean-over-rows", lambda dy, x, W: dy.mean(axis=0)),
    Mistake("db", "summed-over-features", lambda dy, x, W: dy.sum(axis=1)),
)
RELU = (
    Mistake("da", "relu-gate-open", lambda dr, a: dr),
    Mistake("da", "relu-gated-by-gradient", lambda dr, a: np.maximum(dr, 0)),
    Mistake("da", "relu-times-output", lambda dr, a: dr * np.maximum(a, 0)),
    Mistake("da", "relu-gate-inverted", lambda dr, a: dr * (a <= 0)),
    Mistake("da", "relu-slope-alone", lambda dr, a: (a > 0) * 1.0),
    Mistake("da", "multiplied-not-slope", lambda dr, a: dr * a),
)

# --- 5. the residual ---

RESIDUAL = (
    Mistake("dx", "road-through-sub-layer-missing", lambda dsum, dsub: dsum),
    Mistake("dx", "direct-road-missing", lambda dsum, dsub: dsub),
    Mistake("dx", "mean-two-roads-not-sum", lambda dsum, dsub: (dsum + dsub) / 2),
    Mistake("dx", "two-roads-multiplied", lambda dsum, dsub: dsum * dsub),
    Mistake("dx", "direct-road-counted-twice", lambda dsum, dsub: 2 * dsum + dsub),
    Mistake("dx", "residual-sign-wrong", lambda dsum, dsub: dsum - dsub),
)

# --- 6. values and weights ---

MIX = (
    Mistake("dp", "already-divided-root-d", lambda do, p, v: do @ v.swapaxes(-1, -2) / np.sqrt(D)),
    Mistake("dp", "dp-times-p", lambda do, p, v: p * (do @ v.swapaxes(-1, -2))),
    Mistake("dp", "mean-over-features-not-sum", lambda do, p, v: do @ v.swapaxes(-1, -2) / v.shape[-1]),
    Mistake("dp", "v-reshaped-not-transposed", lambda do, p, v: do @ v.reshape(len(v), v.shape[2], v.shape[1])),
    Mistake("dp", "minus-from-nowhere", lambda do, p, v: -do @ v.swapaxes(-1, -2)),
    Mistake("dv", "p-reshaped", lambda do, p, v: p.reshape(len(p), p.shape[2], p.shape[1]) @ do),
    Mistake("dv", "every-query-counts-fully", lambda do, p, v: np.ones_like(p).swapaxes(-1, -2) @ do),
    Mistake("dv", "mean-over-rows", lambda do, p, v: p.swapaxes(-1, -2) @ do / p.shape[1]),
    Mistake("dv", "minus-from-nowhere", lambda do, p, v: -p.swapaxes(-1, -2) @ do),
    Mistake("dv", "transposed", lambda do, p, v: do.swapaxes(-1, -2) @ p),
)

# --- 7. the softmax of the scores ---

SOFTMAX = (
    Mistake("ds", "average-forgotten", lambda dp, p: p * dp),
    Mistake("ds", "average-unweighted", lambda dp, p: p * (dp - mean(dp))),
    Mistake("ds", "softmax-entry-by-entry", lambda dp, p: p * (1 - p) * dp),
    Mistake("ds", "average-over-rows", lambda dp, p: p * (dp - (p * dp).sum(axis=-2, keepdims=True))),
    Mistake("ds", "one-average-for-all", lambda dp, p: p * (dp - (p * dp).sum())),
    Mistake("ds", "softmax-factor-missing", lambda dp, p: dp - (p * dp).sum(axis=-1, keepdims=True)),
    Mistake("ds", "average-divided-again", lambda dp, p: p * (dp - mean(p * dp))),
    Mistake(
        "ds",
        "softmax-already-divided-root-d",
        lambda dp, p: p * (dp - (p * dp).sum(axis=-1, keepdims=True)) / np.sqrt(D),
    ),
    Mistake("ds", "softmax-sign-wrong", lambda dp, p: -p * (dp - (p * dp).sum(axis=-1, keepdims=True))),
    Mistake("ds", "average-without-factor", lambda dp, p: p * dp - (p * dp).sum(axis=-1, keepdims=True)),
    Mistake("ds", "prices-summed-unweighted", lambda dp, p: p * (dp - dp.sum(axis=-1, keepdims=True))),
    Mistake("ds", "average-plus", lambda dp, p: p * (dp + (p * dp).sum(axis=-1, keepdims=True))),
    Mistake("ds", "case-i-j-missing", lambda dp, p: p * (p * dp - (p * dp).sum(axis=-1, keepdims=True))),
    Mistake("ds", "case-i-j-counted-twice", lambda dp, p: p * (1 - p) * dp - p * (p * dp).sum(axis=-1, keepdims=True)),
)

# --- 8. queries and keys ---


def scores_mistakes(output: str, product: Callable[..., np.ndarray]) -> tuple[Mistake, ...]:
    """Mistakes that can be made with the queries and with the keys alike; product(ds, q, k) has no scale."""
    return (
        Mistake(output, "no-scale-backward", product),
        Mistake(output, "divided-by-D", lambda ds, q, k: product(ds, q, k) / D),
        Mistake(output, "divided-by-root-of-keys", lambda ds, q, k: product(ds, q, k) / np.sqrt(S)),
        Mistake(output, "divided-root-c-not-root", lambda ds, q, k: product(ds, q, k) / np.sqrt(C)),
        Mistake(output, "multiplied-root-d", lambda ds, q, k: product(ds, q, k) * np.sqrt(D)),
        Mistake(output, "score-downhill", lambda ds, q, k: -product(ds, q, k) / np.sqrt(D)),
    )


SCORES = (
    *scores_mistakes("dq", lambda ds, q, k: ds @ k),
    *scores_mistakes("dk", lambda ds, q, k: ds.swapaxes(-1, -2) @ q),
    Mistake("dk", "keys-reshaped", lambda ds, q, k: ds.reshape(len(ds), S, T) @ q / np.sqrt(D)),
    Mistake("dk", "transposed", lambda ds, q, k: q.swapaxes(-1, -2) @ ds / np.sqrt(D)),
)

# --- 9. the encoder ---


def unsummed(dM, norm, feed_forward, attention):
    """The encoder's backward with the three gradients of attention still apart: (3, S, C)."""
    dsum = norm("encoder.norm2", dM)
    dsum = norm("encoder.norm1", dsum + feed_forward("encoder.ffn", dsum))
    return dsum + np.stack(attention("encoder.self", dsum))


def back(dM, norm, feed_forward, attention, names=("norm2", "norm1"), direct=(1, 1), ways=(0, 1, 2), through=1):
    """The encoder's backward with something left out or counted too often: a norm (""), a road, a sub-layer."""

    def undo(name, dy):
        return norm(f"encoder.{name}", dy) if name else dy

    dsum = undo(names[0], dM)
    dsum = undo(names[1], direct[0] * dsum + through * feed_forward("encoder.ffn", dsum))
    found = attention("encoder.self", dsum)
    return direct[1] * dsum + sum(found[i] for i in ways)


def attention_first(dM_k, dM_v, norm, feed_forward, attention):
    """The encoder's steps in the order of the forward."""
    dsum = norm("encoder.norm1", dM_k + dM_v)
    dsum = norm("encoder.norm2", dsum + sum(attention("encoder.self", dsum)))
    return dsum + feed_forward("encoder.ffn", dsum)


def feed_forward_first(dM_k, dM_v, norm, feed_forward, attention):
    """The feed-forward network is undone before the norm that came after it."""
    dM = dM_k + dM_v
    dsum = norm("encoder.norm1", norm("encoder.norm2", dM + feed_forward("encoder.ffn", dM)))
    return dsum + sum(attention("encoder.self", dsum))


def norm_inside(dM_k, dM_v, norm, feed_forward, attention):
    """norm1 is undone on the road through the feed-forward network alone."""
    dsum = norm("encoder.norm2", dM_k + dM_v)
    dsum = dsum + norm("encoder.norm1", feed_forward("encoder.ffn", dsum))
    return dsum + sum(attention("encoder.self", dsum))


ENCODER = (
    Mistake("dM", "memory-through-keys", lambda dM_k, dM_v, *ways: dM_k),
    Mistake("dM", "memory-through-values", lambda dM_k, dM_v, *ways: dM_v),
    Mistake("dM", "mean-two-not-sum", lambda dM_k, dM_v, *ways: (dM_k + dM_v) / 2),
    Mistake("dM", "keys-values-side-side", lambda dM_k, dM_v, *ways: np.concatenate([dM_k, dM_v])),
    Mistake("dx", "path-around-attention-forgotten", lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, direct=(1, 0))),
    Mistake(
        "dx", "path-around-feed-forward-forgotten", lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, direct=(0, 1))
    ),
    Mistake("dx", "both-direct-roads-missing", lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, direct=(0, 0))),
    Mistake("dx", "queries-only", lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, ways=(0,))),
    Mistake("dx", "queries-forgotten", lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, ways=(1, 2))),
    Mistake("dx", "two-norms-exchanged", lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, names=("norm1", "norm2"))),
    Mistake("dx", "steps-come-order-forward", attention_first),
    Mistake("dx", "norm2-left-out", lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, names=("", "norm1"))),
    Mistake("dx", "norm1-left-out", lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, names=("norm2", ""))),
    Mistake(
        "dx", "norm1-used-both-places", lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, names=("norm1", "norm1"))
    ),
    Mistake(
        "dx", "norm2-used-both-places", lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, names=("norm2", "norm2"))
    ),
    Mistake("dx", "feed-forward-network-comes", feed_forward_first),
    Mistake("dx", "feed-forward-network-left-out", lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, through=0)),
    Mistake("dx", "norm1-stands-inside-residual-only", norm_inside),
    Mistake("dx", "queries-count-three-times-keys", lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, ways=(0, 0, 0))),
    Mistake(
        "dx", "direct-road-around-attention-counts", lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, direct=(1, 3))
    ),
    Mistake("dx", "three-gradients-attention-not-added", lambda dM_k, dM_v, *ways: unsummed(dM_k + dM_v, *ways)),
)

# --- 10. the embedding ---


def added(dE: np.ndarray, ids: Sequence[int], de: np.ndarray) -> np.ndarray:
    """dE with de added, one use after another."""
    total = dE.copy()
    for token, change in zip(ids, de, strict=True):
        total[token] += change
    return total


def overwritten(dE, ids, dx):
    """The rows of the tokens that were read, replaced."""
    total = dE.copy()
    total[ids] = np.sqrt(C) * dx
    return total


def last_wins(dE, ids, dx):
    """What NumPy's += does with a token that comes twice."""
    total = dE.copy()
    total[ids] += np.sqrt(C) * dx
    return total


def each_mean(dE, ids, dx):
    """The mean over the uses of each token."""
    counts = np.bincount(ids, minlength=len(dE))[ids]
    return added(dE, ids, np.sqrt(C) * dx / counts[:, None])


EMBEDDING = (
    Mistake("dE", "embedding-scale-missing", added),
    Mistake("dE", "embedding-scale-divides", lambda dE, ids, dx: added(dE, ids, dx / np.sqrt(C))),
    Mistake("dE", "multiplied-c-not-root-c", lambda dE, ids, dx: added(dE, ids, C * dx)),
    Mistake("dE", "token-twice", last_wins),
    Mistake("dE", "overwritten", overwritten),
    Mistake("dE", "tied-in-only", lambda dE, ids, dx: added(np.zeros_like(dE), ids, np.sqrt(C) * dx)),
    Mistake("dE", "tied-out-only", lambda dE, ids, dx: dE),
    Mistake("dE", "only-sources-letters-count", lambda dE, ids, dx: added(dE, ids[:S], np.sqrt(C) * dx[:S])),
    Mistake("dE", "uses-averaged", each_mean),
)


def row(name: str, *index: int) -> str:
    """Some numbers of the example, in one line."""
    values = np.round(NUMBERS[name][index], 3) + 0.0  # no −0
    return ", ".join(f"{value:.3f}".replace("-", "−") for value in np.atleast_1d(values))


STATIONS = (
    Station(
        "softmax and cross-entropy",
        {
            "loss_backward": Task(
                (NUMBERS["output.p"], TARGET_OUT_IDS),
                {"dz": NUMBERS["output.dz"]},
                {"dz": "TV"},
                LOSS,
                (
                    "Write the loss of one row in logits alone: −z_right + ln Σ_w exp(z_w). Two terms, two slopes.",
                    "The slope of ln Σ exp(z) along one logit is exp(z_w) divided by the sum. Do you have a name for "
                    "that? And the other term has a slope in one place only.",
                ),
            )
        },
        lambda: f"dz of row p→o is {row('output.dz', 1)}",
        "What the model said, minus what it should have said. It sums to 0: nobody gains unless somebody loses.",
    ),
    Station(
        "the output matrix",
        {
            "output_backward": Task(
                (NUMBERS["output.dz"], NUMBERS["output.y"], NUMBERS["E"]),
                {"dy": NUMBERS["output.dy"], "dE": of_output()},
                {"dy": "TC", "dE": "VC"},
                OUTPUT,
                (
                    "dy_tc sums over what z_t has seven of; dE_wc sums over the five rows.",
                    "Let the shapes decide: (T, C) from (T, V) and (V, C); and (V, C) from (T, V) and (T, C).",
                ),
            )
        },
        lambda: f"dy of row p→o is {row('output.dy', 1)}",
        "A matrix product goes back as two matrix products, and the shapes all but write them.",
    ),
    Station(
        "the norm",
        {
            "norm_backward": Task(
                of("decoder.norm3", "dy", "x_hat", "sigma", "gamma"),
                dict(zip(("dx", "dgamma", "dbeta"), of("decoder.norm3", "dx", "dgamma", "dbeta"), strict=True)),
                {"dx": "TC", "dgamma": "C", "dbeta": "C"},
                NORM,
                (
                    "Begin with dx̂ = γ ∘ dy. Through μ: it stands in all six x̂, each time with the slope −1/σ. Add up: "
                    "that is dμ. Which share of μ belongs to one x?",
                    "Through σ: what is the slope of x̂ = (x − μ)/σ along σ, written with x̂? Add up over the six x̂: "
                    "that is dσ. And from σ² = mean((x − μ)²) + ε, how much does σ move when x_c moves?",
                    "Each side road is a sum over six features, divided by C = 6. Do you have a name for that? Both "
                    "have a minus, and all three terms have the same factor 1/σ.",
                ),
            )
        },
        lambda: f"dx of row p→o is {row('decoder.norm3.dx', 1)}",
        "What the norm takes out of x, its mean and its length, it also takes out of the gradient.",
    ),
    Station(
        "the feed-forward network",
        {
            "linear_backward": Task(
                (*of("decoder.ffn", "dy", "r"), NUMBERS["decoder.ffn.W_2"]),
                dict(zip(("dx", "dW", "db"), of("decoder.ffn", "dr", "dW_2", "db_2"), strict=True)),
                {"dx": "TF", "dW": "FC", "db": "C"},
                LINEAR,
                (
                    "Station 2 again, with one difference: there the *forward* had a transpose (y Eᵀ), here it has "
                    "none (x W). So where does the transpose go on the way back? And b is added to every row.",
                    "dx (T, in) from dy (T, out) and W (in, out); dW (in, out) from x (T, in) and dy (T, out); db "
                    "(out,) from dy.",
                ),
            ),
            "relu_backward": Task(
                of("decoder.ffn", "dr", "a"),
                {"da": NUMBERS["decoder.ffn.da"]},
                {"da": "TF"},
                RELU,
                ("What is the slope of ReLU at a = 0.6, and at a = −1.8?", "a > 0 is an array of booleans: 1s and 0s."),
            ),
        },
        lambda: f"da of row p→o is {row('decoder.ffn.da', 1)}",
        "A unit that is off learns nothing from this row. If it is off for every word, only the layers before it can "
        "wake it.",
    ),
    Station(
        "the residual",
        {
            "residual_backward": Task(
                (NUMBERS["decoder.norm3.dx"], NUMBERS["decoder.ffn.dx"]),
                {"dx": NUMBERS["decoder.norm2.dy"]},
                {"dx": "TC"},
                RESIDUAL,
                ("x takes two roads into the sum.", "The second rule of the road: where roads meet, gradients add."),
            )
        },
        lambda: f"dx of row p→o is {row('decoder.norm2.dy', 1)}",
        "A plus sign copies the gradient to both sides. So there is a road without a single weight on it.",
    ),
    Station(
        "what attention fetched: weights and values",
        {
            "mix_backward": Task(
                of("cross", "do", "p", "v"),
                {"dp": NUMBERS["cross.dp"], "dv": NUMBERS["cross.dv"]},
                {"dp": "HTS", "dv": "HSD"},
                MIX,
                (
                    "o = p v is a matrix product, once for each head: station 2 in other letters.",
                    "x.swapaxes(-1, -2) transposes each head's matrix: (H, S, D) becomes (H, D, S).",
                ),
            )
        },
        lambda: f"the prices of s, t, o, p for head 0 of row p→o are {row('cross.dp', 0, 1)}",
        "A weight's gradient is the price of looking there; a value hears from everyone who looked at it.",
    ),
    Station(
        "the softmax of the scores",
        {
            "softmax_backward": Task(
                of("cross", "dp", "p"),
                {"ds": NUMBERS["cross.ds"]},
                {"ds": "HTS"},
                SOFTMAX,
                (
                    "s_j reaches all four weights of its row. Add four terms: dp_i times the slope of p_i along s_j.",
                    "Pull p_j out of all terms. What remains in the bracket is dp_j and a sum that is the same for the "
                    "whole row. axis=-1, keepdims=True keeps that sum as a column.",
                ),
            )
        },
        lambda: f"ds of s, t, o, p for head 0 of row p→o is {row('cross.ds', 0, 1)}",
        "Is it better than the average of what I look at? Then look there more. (A small weight has little to move "
        "with.)",
    ),
    Station(
        "queries and keys",
        {
            "scores_backward": Task(
                of("cross", "ds", "q", "k"),
                {"dq": NUMBERS["cross.dq"], "dk": NUMBERS["cross.dk"]},
                {"dq": "HTD", "dk": "HSD"},
                SCORES,
                (
                    "s = q kᵀ / √D is a matrix product with a constant. What does a constant do on the way back?",
                    "(H, T, D) from (H, T, S) and (H, S, D); (H, S, D) from (H, S, T) and (H, T, D).",
                ),
            )
        },
        lambda: f"dq of head 0 of row p→o is {row('cross.dq', 0, 1)}",
        "Query and key pull at each other: each moves along the other, by the gradient of their score.",
    ),
    Station(
        "the encoder",
        {
            "encoder_backward": Task(
                (
                    *(merged(NUMBERS[f"cross.d{letter}"]) @ NUMBERS[f"cross.W_{letter}"].T for letter in "kv"),
                    *(WAYS.norm, WAYS.feed_forward, WAYS.attention),
                ),
                {"dM": NUMBERS["dM"], "dx": NUMBERS["source.dx"]},
                {"dM": "SC", "dx": "SC"},
                ENCODER,
                (
                    "Read the encoder's two lines of the forward from right to left, and from bottom to top.",
                    "norm2, then the residual around the feed-forward network, then norm1, then the residual around "
                    "the attention. sum(attention(...)) adds its three roads.",
                ),
                in_turn=True,
            )
        },
        lambda: f"dM of the letter o is {row('dM', 2)}",
        "The encoder never sees the loss. All it learns comes back through what the decoder looked at.",
    ),
    Station(
        "the embedding",
        {
            "embedding_backward": Task(
                (of_output(), IDS, DX),
                {"dE": NUMBERS["dE"]},
                {"dE": "VC"},
                EMBEDDING,
                (
                    "Start from a copy of dE. Then go through the nine tokens, one after another.",
                    "A loop: for token, change in zip(ids, dx). Or look up np.add.at, which does not lose repetitions.",
                ),
            )
        },
        lambda: f"dE of the letter o is {row('dE', 3)}",
        "One matrix, three jobs: the gradients of all its uses add, and none may overwrite another.",
    ),
)
