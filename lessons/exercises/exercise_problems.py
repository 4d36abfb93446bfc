"""Helpers for the exercises' problems: gradients by complex step, repeated ids, weights of a layer, laws."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minitransformer.exercises.exercise import Invariant, Problem
from minitransformer.gradcheck import complex_step

NEAR = 0.02  # an attention weight this near to 0 or 1 counts as 0 or 1, because a softmax never reaches them


def sizes(letters: str, *rows: Sequence[int]) -> tuple[dict[str, int], ...]:
    """The sizes of a task: `letters` such as "B T C", and for each problem a row of their lengths."""
    return tuple(dict(zip(letters.split(), row, strict=True)) for row in rows)


def backward_problem(
    forward: Callable[..., Any],
    inputs: dict[str, Any],
    wrt: Sequence[str],
    rng: np.random.Generator,
    ratios: dict[str, float] | None = None,
    places: dict[str, dict[str, np.ndarray]] | None = None,
) -> Problem:
    """A problem for the backward of `forward(**inputs) -> (y, cache)`: the gradients of sum(dy y), by complex step.

    `wrt` names the inputs whose gradients are asked for, in order; dy is random. `ratios` and `places` are those of
    Problem.
    """
    y, cache = forward(**inputs)
    dy = rng.standard_normal(np.shape(y))

    def gradient(name: str) -> np.ndarray:
        return complex_step(lambda value: np.sum(dy * forward(**{**inputs, name: value})[0]), inputs[name])

    return Problem((dy, cache), tuple(gradient(name) for name in wrt), dict(inputs), y, ratios or {}, places or {})


def flat(array: np.ndarray) -> np.ndarray:
    """(..., T, X) -> (B, T, X), the shape that the exercises use."""
    return array.reshape(-1, *array.shape[-2:])


def each_row_sums_to_zero(outputs: Sequence[np.ndarray], problem: Problem) -> bool:
    """Whether the gradient of each row's logits sums to 0."""
    return bool(np.abs(outputs[0].sum(axis=-1)).max() < 1e-9)


def orthogonal(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether each row of a is orthogonal to the same row of b, up to a hundredth."""
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return bool((np.abs((a * b).sum(axis=-1)) <= 0.01 * lengths).all())


def draw_ids(rng: np.random.Generator, B: int, T: int, V: int) -> np.ndarray:
    """ids (B, T). If T > 1 and B > 1, one token occurs twice in the first sequence and once in each other one.

    Another token occurs in the first two sequences. If V > 1, at least one token never occurs.
    """
    often, both, *others = rng.permutation(V)[: max(V - 1, 2)] if V > 1 else (0, 0)
    ids = rng.choice(others or [often], size=(B, T))
    ids[:, 0], ids[:1, 1:2] = often, often
    ids[:2, 2:3] = both
    return rng.permuted(ids, axis=1)


def make_weights(
    rng: np.random.Generator, widths: tuple[int, int, int], attentions: Sequence[str]
) -> dict[str, tuple[np.ndarray, ...]]:
    """The weights of one layer, of order one, for C, D and F = `widths`: one norm for each sub-layer."""
    C, D, F = widths

    def draw(rows: int, columns: int) -> np.ndarray:
        return rng.standard_normal((rows, columns)) * rows**-0.5

    weights: dict[str, tuple[np.ndarray, ...]]
    weights = {name: (draw(C, D), draw(C, D), draw(C, D), draw(D, C)) for name in attentions}
    weights["feed_forward"] = (draw(C, F), draw(F, C))
    for number in range(1, len(attentions) + 2):
        weights[f"norm_{number}"] = (rng.uniform(0.5, 2.0, C), rng.standard_normal(C))
    return weights


def not_padding(B: int, length: int) -> np.ndarray:
    """Who may be attended to, (B, 1, length): everything except the last token of the second sequence, if any."""
    allowed = np.ones((B, 1, length), dtype=bool)
    if length > 1:
        allowed[1:2, 0, -1] = False
    return allowed


def draw_word(
    rng: np.random.Generator, given: Any, letters: int, T: int, looks_at: Callable[[int], list[int]]
) -> Problem:
    """A word of T random letters; `looks_at(T)` says for each position where it must look."""
    x = given.tokens(rng.integers(0, letters, size=T), letters)
    expected = np.eye(T)[looks_at(T)]
    return Problem((letters, T), (expected,), {"x": x, "attention_map": given.attention_map})


def observe_any(outputs: Sequence[Any], problem: Problem) -> np.ndarray:
    """The attention map (T, T) of two matrices (C, any width), or 0 everywhere if they do not fit x."""
    (both,), x = outputs, problem.inputs["x"]
    if np.ndim(both) != 3 or np.shape(both)[:2] != (2, x.shape[1]):
        return np.zeros((len(x), len(x)))
    with np.errstate(all="ignore"):
        weights = problem.inputs["attention_map"](x, *np.asarray(both, dtype=float))
    return np.where(np.abs(weights - weights.round()) <= NEAR, weights.round(), weights)


def decided(outputs: Sequence[Any], problem: Problem) -> bool:
    """Whether every row of the attention map has one weight near 1."""
    weights = observe_any(outputs, problem)
    return not weights.any() or bool((weights.max(axis=-1) >= 1 - NEAR).all())


DECIDED = Invariant("each row has one weight near 1, because its best score is far above the others", decided)
