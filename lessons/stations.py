"""The ten stations of one_sitting.py: what each function is given, what it must return, and the known mistakes.

There is no solution here. What is right stands in the numbers of the running example; only mistakes are formulas.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minitransformer.example import load_example, numbers
from minitransformer.example.numbers import _Trace as Trace

EXAMPLE = load_example()
NUMBERS = numbers(EXAMPLE)
SOURCE_IDS, TARGET_IN_IDS, TARGET_OUT_IDS = ([int(i) for i in ids[0]] for ids in EXAMPLE[2:])
C, D, T, S, V = 6, 3, 5, 4, 7


class Mistake(NamedTuple):
    """A wrong formula, of the function's own arguments, for one of its outputs."""

    output: str
    name: str
    question: str
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
    Mistake(
        "dz",
        "the 1 of the right token is not subtracted",
        "A row that gives the right token everything has nothing to learn. Is its gradient 0?",
        lambda p, right: p / len(p),
    ),
    Mistake(
        "dz",
        "it is not divided by the number of rows",
        "L is the mean of five losses. If the loss of one row grows by 1, by how much does L grow?",
        lambda p, right: p - wanted(p, right),
    ),
    Mistake(
        "dz",
        "the sign is wrong",
        "If you raise the logit of the right token, does the loss rise or fall?",
        lambda p, right: (wanted(p, right) - p) / len(p),
    ),
    Mistake(
        "dz",
        "it is divided by the number of tokens in the vocabulary",
        "L is a mean. Over what: the rows, or the tokens of the vocabulary?",
        lambda p, right: (p - wanted(p, right)) / p.shape[-1],
    ),
    Mistake(
        "dz",
        "only the right token's logit gets a gradient",
        "Raise the logit of a wrong token. Its exponential is part of the sum below the fraction. What happens to L?",
        lambda p, right: wanted(p, right) * (p - 1) / len(p),
    ),
    Mistake(
        "dz",
        "the softmax is differentiated entry by entry, with p (1 − p)",
        "Raise one logit. Do the other six probabilities stay as they are?",
        lambda p, right: -wanted(p, right) / p * p * (1 - p) / len(p),
    ),
    Mistake(
        "dz",
        "this is the gradient of p, not of z",
        "You have gone through the logarithm. The softmax is still ahead.",
        lambda p, right: -wanted(p, right) / p / len(p),
    ),
    Mistake(
        "dz",
        "the 1 is subtracted from every token",
        "How many of the seven tokens are right in one row?",
        lambda p, right: (p - 1) / len(p),
    ),
    Mistake(
        "dz",
        "the 1 is subtracted from the columns of all right tokens, in every row",
        "dz[:, right] is five whole columns. Which NumPy index picks one entry of each row?",
        column_of_all_rows,
    ),
    Mistake(
        "dz",
        "these are the probabilities themselves: two things are missing",
        "What should the row have said instead? And by how much does L grow if the loss of one row grows by 1?",
        lambda p, right: p,
    ),
    Mistake(
        "dz",
        "the 1 is subtracted from every token, and it is not divided by the number of rows",
        "How many of the seven tokens are right in one row? And L is the mean of five losses.",
        lambda p, right: p - 1,
    ),
    Mistake(
        "dz",
        "all of it is 0",
        "Row p→o gives the right token 70 %. Has it nothing to learn?",
        lambda p, right: np.zeros_like(p),
    ),
    Mistake(
        "dz",
        "two mistakes: the sign is wrong, and it is not divided by the number of rows",
        "If you raise the logit of the right token, does the loss rise or fall? And L is the mean of five losses.",
        lambda p, right: wanted(p, right) - p,
    ),
)

# --- 2. the output matrix ---

OUTPUT = (
    Mistake(
        "dy",
        "it is divided by the number of rows once more",
        "The mean belongs to the loss. Have you not already divided, at station 1?",
        lambda dz, y, E: dz @ E / len(dz),
    ),
    Mistake(
        "dy",
        "there is a √C in it",
        "Does z = y Eᵀ multiply by √C? That happens at another place of the model.",
        lambda dz, y, E: np.sqrt(C) * dz @ E,
    ),
    Mistake("dy", "the sign is wrong", "z = y Eᵀ has no minus. Where does yours come from?", lambda dz, y, E: -dz @ E),
    Mistake(
        "dy",
        "only the right token's row of E counts",
        "y touches all seven logits. How many rows of E bring something back?",
        lambda dz, y, E: dz[range(T), TARGET_OUT_IDS][:, None] * E[TARGET_OUT_IDS],
    ),
    Mistake(
        "dE",
        "it is the mean over the rows, not the sum",
        "Five rows use the same E. What happens to the gradients of a number that is used five times?",
        lambda dz, y, E: dz.T @ y / len(dz),
    ),
    Mistake(
        "dE", "it is transposed", "dE has the shape of E. Which axis of E counts tokens?", lambda dz, y, E: y.T @ dz
    ),
    Mistake(
        "dE",
        "only row p→o counts",
        "All five rows were multiplied by E. What do the other four say?",
        lambda dz, y, E: np.outer(dz[1], y[1]),
    ),
    Mistake(
        "dE",
        "there is a √C in it",
        "Does z = y Eᵀ multiply by √C? That happens at another place of the model.",
        lambda dz, y, E: np.sqrt(C) * dz.T @ y,
    ),
    Mistake(
        "dE", "the sign is wrong", "z = y Eᵀ has no minus. Where does yours come from?", lambda dz, y, E: -dz.T @ y
    ),
)

# --- 3. the norm ---


def mean(features: np.ndarray) -> np.ndarray:
    """Over the features of each token."""
    return features.mean(axis=-1, keepdims=True)


NORM = (
    Mistake(
        "dx",
        "the road through μ is missing",
        "Add 1 to all six features of a token: y stays. So what must the six entries of dx sum to? And yours?",
        lambda dy, x_hat, sigma, gamma: (dy * gamma - x_hat * mean(dy * gamma * x_hat)) / sigma,
    ),
    Mistake(
        "dx",
        "the road through σ is missing",
        "σ is made of all six features. What happens to each x̂ if σ grows?",
        lambda dy, x_hat, sigma, gamma: (dy * gamma - mean(dy * gamma)) / sigma,
    ),
    Mistake(
        "dx",
        "μ and σ are treated as constants",
        "Move one feature of a token. Do μ and σ stay where they are?",
        lambda dy, x_hat, sigma, gamma: dy * gamma / sigma,
    ),
    Mistake(
        "dx",
        "γ is applied after the means, not before them",
        "Coming from y, what do you meet first: γ, or the means? Can γ be pulled out of a mean over the features?",
        lambda dy, x_hat, sigma, gamma: gamma * (dy - mean(dy) - x_hat * mean(dy * x_hat)) / sigma,
    ),
    Mistake(
        "dx",
        "γ is forgotten",
        "dy is the gradient of y. What is that of x̂, if y = γ x̂ + β?",
        lambda dy, x_hat, sigma, gamma: (dy - mean(dy) - x_hat * mean(dy * x_hat)) / sigma,
    ),
    Mistake(
        "dx",
        "it is not divided by σ",
        "Multiply a token by 10: y stays. How much smaller must its gradient become?",
        lambda dy, x_hat, sigma, gamma: dy * gamma - mean(dy * gamma) - x_hat * mean(dy * gamma * x_hat),
    ),
    Mistake(
        "dx",
        "the means are sums",
        "μ = (1/C) Σ x. Where is the 1/C on the way back?",
        lambda dy, x_hat, sigma, gamma: (
            (dy * gamma - C * mean(dy * gamma) - x_hat * C * mean(dy * gamma * x_hat)) / sigma
        ),
    ),
    Mistake(
        "dx",
        "the means run over the rows, not over the features",
        "Whose μ is it: a token's, or a feature's?",
        lambda dy, x_hat, sigma, gamma: (
            (dy * gamma - (dy * gamma).mean(axis=0) - x_hat * (dy * gamma * x_hat).mean(axis=0)) / sigma
        ),
    ),
    Mistake(
        "dx",
        "the two side roads are not divided by σ",
        "x̂ = (x − μ)/σ. Is there a σ in the slope of x̂ along x_c alone, or also along μ and along σ?",
        lambda dy, x_hat, sigma, gamma: dy * gamma / sigma - mean(dy * gamma) - x_hat * mean(dy * gamma * x_hat),
    ),
    Mistake(
        "dx",
        "the road through σ counts twice",
        "The slope of σ² along x_c has a 2. What is the slope of σ² along σ?",
        lambda dy, x_hat, sigma, gamma: (dy * gamma - mean(dy * gamma) - 2 * x_hat * mean(dy * gamma * x_hat)) / sigma,
    ),
    Mistake(
        "dx",
        "the road through σ counts half",
        "The slope of σ² along σ has a 2. What is the slope of σ² along x_c?",
        lambda dy, x_hat, sigma, gamma: (dy * gamma - mean(dy * gamma) - x_hat * mean(dy * gamma * x_hat) / 2) / sigma,
    ),
    Mistake(
        "dx",
        "on the road through σ, γ is forgotten",
        "dσ is collected from all six x̂. Is dy what arrives at x̂?",
        lambda dy, x_hat, sigma, gamma: (dy * gamma - mean(dy * gamma) - x_hat * mean(dy * x_hat)) / sigma,
    ),
    Mistake(
        "dgamma",
        "x̂ is forgotten",
        "y = γ x̂ + β. If γ moves by 1, by how much does y move?",
        lambda dy, x_hat, sigma, gamma: dy.sum(axis=0),
    ),
    Mistake(
        "dgamma",
        "there is a γ in it",
        "y = γ x̂ + β. Does the slope of y along γ depend on γ?",
        lambda dy, x_hat, sigma, gamma: (dy * gamma * x_hat).sum(axis=0),
    ),
    Mistake(
        "dgamma",
        "it is the mean over the rows, not the sum",
        "All rows share one γ. What happens to the gradients of a number that is used five times?",
        lambda dy, x_hat, sigma, gamma: (dy * x_hat).mean(axis=0),
    ),
    Mistake(
        "dgamma",
        "the rows are not added up",
        "γ has six numbers. Which five uses does each of them have?",
        lambda dy, x_hat, sigma, gamma: dy * x_hat,
    ),
    Mistake(
        "dbeta",
        "it is the mean over the rows, not the sum",
        "All rows share one β. What happens to the gradients of a number that is used five times?",
        lambda dy, x_hat, sigma, gamma: dy.mean(axis=0),
    ),
    Mistake(
        "dbeta",
        "there is a γ in it",
        "β is added after γ has done its work. Is there a γ between β and y?",
        lambda dy, x_hat, sigma, gamma: (dy * gamma).sum(axis=0),
    ),
    Mistake(
        "dbeta",
        "the rows are not added up",
        "β has six numbers. Which five uses does each of them have?",
        lambda dy, x_hat, sigma, gamma: dy,
    ),
    Mistake(
        "dx",
        "both side roads have a plus",
        "If μ grows, do the x̂ grow or shrink? And if σ grows?",
        lambda dy, x_hat, sigma, gamma: (dy * gamma + mean(dy * gamma) + x_hat * mean(dy * gamma * x_hat)) / sigma,
    ),
    Mistake(
        "dx",
        "the road through σ has a plus",
        "If σ grows, does a positive x̂ grow or shrink? Which sign has the slope of 1/σ?",
        lambda dy, x_hat, sigma, gamma: (dy * gamma - mean(dy * gamma) + x_hat * mean(dy * gamma * x_hat)) / sigma,
    ),
    Mistake(
        "dx",
        "the road through μ has a plus",
        "x̂ = (x − μ)/σ. If μ grows, do the x̂ grow or shrink?",
        lambda dy, x_hat, sigma, gamma: (dy * gamma + mean(dy * gamma) - x_hat * mean(dy * gamma * x_hat)) / sigma,
    ),
    Mistake(
        "dx",
        "on the road through σ, the x̂ before the mean is missing",
        "If x_c moves, by how much does σ move? Is that the same for a feature near the mean and for one far from it?",
        lambda dy, x_hat, sigma, gamma: (dy * gamma - mean(dy * gamma) - mean(dy * gamma * x_hat)) / sigma,
    ),
    Mistake(
        "dx",
        "on the road through σ, the x̂ inside the mean is missing",
        "dσ is collected from all six x̂. By how much does each of them move if σ moves?",
        lambda dy, x_hat, sigma, gamma: (dy * gamma - mean(dy * gamma) - x_hat * mean(dy * gamma)) / sigma,
    ),
    Mistake(
        "dx",
        "the road through σ is not divided by σ",
        "x̂ = (x − μ)/σ, so the slope of x̂ along σ is −x̂/σ. Where is its σ?",
        lambda dy, x_hat, sigma, gamma: (dy * gamma - mean(dy * gamma)) / sigma - x_hat * mean(dy * gamma * x_hat),
    ),
    Mistake(
        "dx",
        "the road through σ is divided by σ twice",
        "The slope of x̂ along σ is −(x − μ)/σ². How much of that is x̂ already?",
        lambda dy, x_hat, sigma, gamma: (
            (dy * gamma - mean(dy * gamma) - x_hat * mean(dy * gamma * x_hat) / sigma) / sigma
        ),
    ),
    Mistake(
        "dx",
        "the means run over all rows and features",
        "Each row has a μ and a σ of its own. What must a mean know of the other rows?",
        lambda dy, x_hat, sigma, gamma: (
            (dy * gamma - (dy * gamma).mean() - x_hat * (dy * gamma * x_hat).mean()) / sigma
        ),
    ),
    Mistake(
        "dgamma",
        "it is summed over the features, not over the rows",
        "γ has one number for each feature. Which axis must be gone?",
        lambda dy, x_hat, sigma, gamma: (dy * x_hat).sum(axis=-1),
    ),
    Mistake(
        "dbeta",
        "it is summed over the features, not over the rows",
        "β has one number for each feature. Which axis must be gone?",
        lambda dy, x_hat, sigma, gamma: dy.sum(axis=-1),
    ),
)

# --- 4. the feed-forward network ---

LINEAR = (
    Mistake(
        "dx",
        "it is divided by the number of rows once more",
        "The mean belongs to the loss. Have you not already divided, at station 1?",
        lambda dy, x, W: dy @ W.T / len(dy),
    ),
    Mistake(
        "dx", "the sign is wrong", "y = x W + b has no minus. Where does yours come from?", lambda dy, x, W: -dy @ W.T
    ),
    Mistake(
        "dx",
        "W is reshaped, not transposed",
        "A reshape keeps the numbers in the order of memory. Does your entry (j, i) belong to input i and output j?",
        lambda dy, x, W: dy @ W.reshape(W.shape[::-1]),
    ),
    Mistake(
        "dW",
        "it is transposed",
        "dW has the shape of W: inputs first. Which of x and dy has inputs?",
        lambda dy, x, W: dy.T @ x,
    ),
    Mistake(
        "dW",
        "it is the mean over the rows, not the sum",
        "Five rows use the same W. What happens to the gradients of a number that is used five times?",
        lambda dy, x, W: x.T @ dy / len(dy),
    ),
    Mistake(
        "dW", "the sign is wrong", "y = x W + b has no minus. Where does yours come from?", lambda dy, x, W: -x.T @ dy
    ),
    Mistake(
        "dW",
        "x is reshaped, not transposed",
        "A reshape keeps the numbers in the order of memory. Does your entry (i, n) belong to row n and input i?",
        lambda dy, x, W: x.reshape(x.shape[::-1]) @ dy,
    ),
    Mistake(
        "db",
        "the rows are not added up",
        "b has one number for each output. Which five uses does it have?",
        lambda dy, x, W: dy,
    ),
    Mistake(
        "db",
        "it is the mean over the rows, not the sum",
        "Five rows use the same b. What happens to the gradients of a number that is used five times?",
        lambda dy, x, W: dy.mean(axis=0),
    ),
    Mistake(
        "db",
        "it is summed along the wrong axis",
        "b has one number for each output. Which axis must be gone?",
        lambda dy, x, W: dy.sum(axis=1),
    ),
)
RELU = (
    Mistake(
        "da",
        "the gradient passes units that are off",
        "A unit with a = −1.8 says 0. Nudge its a. What does it say now?",
        lambda dr, a: dr,
    ),
    Mistake(
        "da",
        "ReLU is applied to the gradient",
        "Which sign decides: that of a, or that of the gradient?",
        lambda dr, a: np.maximum(dr, 0),
    ),
    Mistake(
        "da",
        "it is multiplied by r, not by the slope",
        "Where a > 0, r = a. How much does r move if a moves by 1?",
        lambda dr, a: dr * np.maximum(a, 0),
    ),
    Mistake(
        "da",
        "the units that are on and off are mixed up",
        "Whose r moves with its a: that of a unit with a = 0.6, or with a = −1.8?",
        lambda dr, a: dr * (a <= 0),
    ),
    Mistake(
        "da",
        "this is the slope alone, without dr",
        "The chain rule is a product. Where is what arrived from above?",
        lambda dr, a: (a > 0) * 1.0,
    ),
    Mistake(
        "da",
        "it is multiplied by a, not by the slope",
        "Where a > 0, r = a. How much does r move if a moves by 1? And where a < 0?",
        lambda dr, a: dr * a,
    ),
)

# --- 5. the residual ---

RESIDUAL = (
    Mistake(
        "dx",
        "the road through the sub-layer is missing",
        "x reaches the sum twice. By which road does yours not come back?",
        lambda dsum, dsub: dsum,
    ),
    Mistake(
        "dx",
        "the direct road is missing",
        "x reaches the sum twice. By which road does yours not come back?",
        lambda dsum, dsub: dsub,
    ),
    Mistake(
        "dx",
        "it is the mean of the two roads, not the sum",
        "Is x cut in halves, or does all of it take both roads?",
        lambda dsum, dsub: (dsum + dsub) / 2,
    ),
    Mistake(
        "dx",
        "the two roads are multiplied",
        "Slopes are multiplied along one road. What happens where two roads meet?",
        lambda dsum, dsub: dsum * dsub,
    ),
    Mistake(
        "dx",
        "the direct road is counted twice",
        "Is what came through the sub-layer already a sum of both?",
        lambda dsum, dsub: 2 * dsum + dsub,
    ),
    Mistake("dx", "a sign is wrong", "x + f(x) has a plus. Where is your minus from?", lambda dsum, dsub: dsum - dsub),
)

# --- 6. values and weights ---

MIX = (
    Mistake(
        "dp",
        "it is already divided by √D",
        "o = p v has no root in it. Where does the forward divide?",
        lambda do, p, v: do @ v.swapaxes(-1, -2) / np.sqrt(D),
    ),
    Mistake(
        "dp",
        "it is multiplied by p",
        "o = p v. If p moves by 1, by how much does o move? Does that depend on p?",
        lambda do, p, v: p * (do @ v.swapaxes(-1, -2)),
    ),
    Mistake(
        "dp",
        "it is the mean over the features, not the sum",
        "One weight multiplies three numbers of a value. What happens to its three gradients?",
        lambda do, p, v: do @ v.swapaxes(-1, -2) / v.shape[-1],
    ),
    Mistake(
        "dp",
        "v is reshaped, not transposed",
        "A reshape keeps the numbers in the order of memory. Is your column j the value of letter j?",
        lambda do, p, v: do @ v.reshape(len(v), v.shape[2], v.shape[1]),
    ),
    Mistake(
        "dp",
        "the sign is wrong",
        "o = p v has no minus. Where does yours come from?",
        lambda do, p, v: -do @ v.swapaxes(-1, -2),
    ),
    Mistake(
        "dv",
        "p is reshaped, not transposed",
        "A reshape keeps the numbers in the order of memory. Is your row j what all rows gave to letter j?",
        lambda do, p, v: p.reshape(len(p), p.shape[2], p.shape[1]) @ do,
    ),
    Mistake(
        "dv",
        "all rows count alike",
        "A row that did not look at a letter: does it care about its value?",
        lambda do, p, v: np.ones_like(p).swapaxes(-1, -2) @ do,
    ),
    Mistake(
        "dv",
        "it is the mean over the rows, not the sum",
        "Five rows look at the same value. What happens to its five gradients?",
        lambda do, p, v: p.swapaxes(-1, -2) @ do / p.shape[1],
    ),
    Mistake(
        "dv",
        "the sign is wrong",
        "o = p v has no minus. Where does yours come from?",
        lambda do, p, v: -p.swapaxes(-1, -2) @ do,
    ),
    Mistake(
        "dv",
        "it is transposed",
        "dv has the shape of v: letters first. Which axis of p counts letters?",
        lambda do, p, v: do.swapaxes(-1, -2) @ p,
    ),
)

# --- 7. the softmax of the scores ---

SOFTMAX = (
    Mistake(
        "ds",
        "the average price is forgotten",
        "Suppose all four letters had the price 5. Is there any reason to move a score? What does your line say?",
        lambda dp, p: p * dp,
    ),
    Mistake(
        "ds",
        "the average counts all letters alike",
        "A letter that the row does not look at: should its price count in what the row pays?",
        lambda dp, p: p * (dp - mean(dp)),
    ),
    Mistake(
        "ds",
        "the softmax is differentiated entry by entry, with p (1 − p)",
        "Raise one score. Do the other weights of its row stay as they are?",
        lambda dp, p: p * (1 - p) * dp,
    ),
    Mistake(
        "ds",
        "the average runs over the queries",
        "Along which axis do the weights sum to 1?",
        lambda dp, p: p * (dp - (p * dp).sum(axis=-2, keepdims=True)),
    ),
    Mistake(
        "ds",
        "the average runs over everything",
        "One row's weights sum to 1 by themselves. What do other rows have to do with it?",
        lambda dp, p: p * (dp - (p * dp).sum()),
    ),
    Mistake(
        "ds",
        "the factor p in front is missing",
        "A letter with the weight 0: can a small change of its score change anything?",
        lambda dp, p: dp - (p * dp).sum(axis=-1, keepdims=True),
    ),
    Mistake(
        "ds",
        "the sum of p dp is divided by the number of letters",
        "The weights sum to 1 already. Is Σ p dp not an average as it stands?",
        lambda dp, p: p * (dp - mean(p * dp)),
    ),
    Mistake(
        "ds",
        "it is already divided by √D",
        "The root stands before the softmax, so it comes later on the way back. Whose derivative is it?",
        lambda dp, p: p * (dp - (p * dp).sum(axis=-1, keepdims=True)) / np.sqrt(D),
    ),
    Mistake(
        "ds",
        "the sign is wrong",
        "A letter with a high price should lose weight. Which sign must its gradient have, if descent goes against it?",
        lambda dp, p: -p * (dp - (p * dp).sum(axis=-1, keepdims=True)),
    ),
    Mistake(
        "ds",
        "the average is subtracted after p dp, not before the factor p",
        "Pull p_j out of all four terms. Does it stand before the average, too?",
        lambda dp, p: p * dp - (p * dp).sum(axis=-1, keepdims=True),
    ),
    Mistake(
        "ds",
        "the sum of the prices is subtracted, without the weights",
        "A letter that the row does not look at: should its price count in what the row pays?",
        lambda dp, p: p * (dp - dp.sum(axis=-1, keepdims=True)),
    ),
    Mistake(
        "ds",
        "the average has a plus",
        "∂p_i/∂s_j = −p_i p_j for two different letters. Where is the minus?",
        lambda dp, p: p * (dp + (p * dp).sum(axis=-1, keepdims=True)),
    ),
    Mistake(
        "ds",
        "the case i = j is missing",
        "A score moves its own weight, too. Which of the four terms did you leave out?",
        lambda dp, p: p * (p * dp - (p * dp).sum(axis=-1, keepdims=True)),
    ),
    Mistake(
        "ds",
        "the case i = j is counted twice",
        "p_j (1 − p_j) has a −p_j² in it. Which term of your sum over all i has it once more?",
        lambda dp, p: p * (1 - p) * dp - p * (p * dp).sum(axis=-1, keepdims=True),
    ),
)

# --- 8. queries and keys ---


def scores_mistakes(output: str, other: str, product: Callable[..., np.ndarray]) -> tuple[Mistake, ...]:
    """Mistakes that can be made with the queries and with the keys alike; product(ds, q, k) has no scale."""
    return (
        Mistake(
            output,
            "the 1/√D is missing",
            "The forward divides the scores by √D. What does the chain rule say about a constant factor?",
            product,
        ),
        Mistake(
            output,
            "it is divided by D, not by √D",
            "The forward divides once, by √D. How often do you?",
            lambda ds, q, k: product(ds, q, k) / D,
        ),
        Mistake(
            output,
            "it is divided by the root of the number of keys",
            "The forward divides by the root of a number. Which one: the number of keys, or the features of a head?",
            lambda ds, q, k: product(ds, q, k) / np.sqrt(S),
        ),
        Mistake(
            output,
            "it is divided by √C, not by √D",
            "A head has D features, not C. By which root does the forward divide?",
            lambda ds, q, k: product(ds, q, k) / np.sqrt(C),
        ),
        Mistake(
            output,
            "it is multiplied by √D",
            "The forward divides by √D. Does a constant factor turn over on the way back?",
            lambda ds, q, k: product(ds, q, k) * np.sqrt(D),
        ),
        Mistake(
            output,
            "the sign is wrong",
            f"A score grows along the {other}. Which sign must the slope have?",
            lambda ds, q, k: -product(ds, q, k) / np.sqrt(D),
        ),
    )


SCORES = (
    *scores_mistakes("dq", "key", lambda ds, q, k: ds @ k),
    *scores_mistakes("dk", "query", lambda ds, q, k: ds.swapaxes(-1, -2) @ q),
    Mistake(
        "dk",
        "ds is reshaped, not transposed",
        "A reshape keeps the numbers in the order of memory. Is your row j what all queries say to key j?",
        lambda ds, q, k: ds.reshape(len(ds), S, T) @ q / np.sqrt(D),
    ),
    Mistake(
        "dk",
        "it is transposed",
        "dk has the shape of k: letters first. Which axis of ds counts letters?",
        lambda ds, q, k: q.swapaxes(-1, -2) @ ds / np.sqrt(D),
    ),
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
    Mistake(
        "dM",
        "the values are forgotten",
        "The memory is read twice in cross-attention. By which door does your gradient not come back?",
        lambda dM_k, dM_v, *ways: dM_k,
    ),
    Mistake(
        "dM",
        "the keys are forgotten",
        "The memory is read twice in cross-attention. By which door does your gradient not come back?",
        lambda dM_k, dM_v, *ways: dM_v,
    ),
    Mistake(
        "dM",
        "it is the mean of the two, not the sum",
        "Does the memory send half of itself to the keys, or all of it?",
        lambda dM_k, dM_v, *ways: (dM_k + dM_v) / 2,
    ),
    Mistake(
        "dM",
        "keys and values are side by side, not added",
        "dM has the shape of M, which is one matrix with two uses.",
        lambda dM_k, dM_v, *ways: np.concatenate([dM_k, dM_v]),
    ),
    Mistake(
        "dx",
        "the direct road around the attention is missing",
        "x goes through the attention, and around it. What comes back around it?",
        lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, direct=(1, 0)),
    ),
    Mistake(
        "dx",
        "the direct road around the feed-forward network is missing",
        "The network has a road around it, too. What comes back by that?",
        lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, direct=(0, 1)),
    ),
    Mistake(
        "dx",
        "both direct roads are missing",
        "There is a residual around each sub-layer. What comes back around it?",
        lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, direct=(0, 0)),
    ),
    Mistake(
        "dx",
        "only the queries are followed back to x",
        "In self-attention x makes the queries, and what else?",
        lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, ways=(0,)),
    ),
    Mistake(
        "dx",
        "the queries are forgotten",
        "In self-attention x makes keys and values, and what else?",
        lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, ways=(1, 2)),
    ),
    Mistake(
        "dx",
        "the two norms are exchanged",
        "The forward ends with norm2. Which one do you meet first on the way back?",
        lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, names=("norm1", "norm2")),
    ),
    Mistake(
        "dx",
        "the steps come in the order of the forward",
        "What did the forward do last? That is what you meet first.",
        attention_first,
    ),
    Mistake(
        "dx",
        "norm2 is left out",
        "M = norm2(...). What does dM meet first on its way back?",
        lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, names=("", "norm1")),
    ),
    Mistake(
        "dx",
        "norm1 is left out",
        "What did the forward do between the attention and the feed-forward network?",
        lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, names=("norm2", "")),
    ),
    Mistake(
        "dx",
        "norm1 is used in both places",
        "The encoder has two norms, with a γ and a σ each. Which of them made M?",
        lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, names=("norm1", "norm1")),
    ),
    Mistake(
        "dx",
        "norm2 is used in both places",
        "The encoder has two norms, with a γ and a σ each. Which of them comes after the attention?",
        lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, names=("norm2", "norm2")),
    ),
    Mistake(
        "dx",
        "the feed-forward network comes before norm2",
        "M = norm2(x + feed-forward(x)). What did the forward do last?",
        feed_forward_first,
    ),
    Mistake(
        "dx",
        "the feed-forward network is left out",
        "x reaches the sum inside norm2 by two roads. By which one does yours not come back?",
        lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, through=0),
    ),
    Mistake(
        "dx",
        "norm1 stands inside the residual: only one of the two roads goes through it",
        "Both roads of x + feed-forward(x) start from the same x. Which norm made that x?",
        norm_inside,
    ),
    Mistake(
        "dx",
        "the queries count three times, and the keys and the values are forgotten",
        "attention gives three gradients back. Are dx_q, dx_k and dx_v alike?",
        lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, ways=(0, 0, 0)),
    ),
    Mistake(
        "dx",
        "the direct road around the attention counts three times",
        "x makes three things inside the attention. How often does it go around?",
        lambda dM_k, dM_v, *ways: back(dM_k + dM_v, *ways, direct=(1, 3)),
    ),
    Mistake(
        "dx",
        "the three gradients of attention are not added up",
        "attention gives three gradients back. How often does x go around it, and how often through it?",
        lambda dM_k, dM_v, *ways: unsummed(dM_k + dM_v, *ways),
    ),
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
    Mistake(
        "dE",
        "the √C is missing",
        "The forward multiplies the rows of E by √C. What does the chain rule say about a constant factor?",
        added,
    ),
    Mistake(
        "dE",
        "it is divided by √C, not multiplied",
        "The forward multiplies by √C. Does a constant factor turn over on the way back?",
        lambda dE, ids, dx: added(dE, ids, dx / np.sqrt(C)),
    ),
    Mistake(
        "dE",
        "it is multiplied by C, not by √C",
        "The forward multiplies once, by √C. How often do you?",
        lambda dE, ids, dx: added(dE, ids, C * dx),
    ),
    Mistake(
        "dE",
        "of a token that is read twice, only the last use counts",
        "dE[ids] += ... reads first and adds then, once for each row of dE. The o is read by both sides. What happens "
        "to its first gradient?",
        last_wins,
    ),
    Mistake(
        "dE",
        "what was there is overwritten",
        "dE came with what the output matrix had left in it. Where is that now?",
        overwritten,
    ),
    Mistake(
        "dE",
        "the output's share is forgotten",
        "The letters are read by both sides, and written at the end. How many shares should dE have?",
        lambda dE, ids, dx: added(np.zeros_like(dE), ids, np.sqrt(C) * dx),
    ),
    Mistake(
        "dE",
        "the output's share is all there is",
        "What did E do before it wrote? ids has the tokens that were read.",
        lambda dE, ids, dx: dE,
    ),
    Mistake(
        "dE",
        "only the source's letters count",
        "ids has nine tokens: those that the encoder read, and those that the decoder read.",
        lambda dE, ids, dx: added(dE, ids[:S], np.sqrt(C) * dx[:S]),
    ),
    Mistake(
        "dE",
        "it is the mean over the uses, not the sum",
        "The o is read twice. What happens to the gradients of a number that is used twice?",
        each_mean,
    ),
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
