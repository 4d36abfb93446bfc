"""Lesson 02: the backward passes of the linear layer and of ReLU."""

import numpy as np

from minitransformer.exercises.exercise import Exercise, Mistake, Output, Task, backward_problem
from minitransformer.exercises.replacement import Replacement
from minitransformer.functional import linear_backward, relu_backward

B, T, I, O = 2, 3, 4, 5  # all different, so that no wrong axis goes unseen
C = 4  # of the square matrix, where the shapes cannot help
F = 5


def make_linear(rng, given):
    """A layer with a matrix that is not square."""
    inputs = {
        "x": rng.standard_normal((B, T, I)),
        "W": rng.standard_normal((I, O)),
        "b": rng.standard_normal(O),
    }
    ratios = {"the number of tokens": B * T, "B": B, "T": T}
    return backward_problem(given.linear, inputs, ("x", "W", "b"), rng, ratios=ratios)


def with_the_mean_for_b(dy, cache):
    """db as a mean."""
    x, W = cache
    rows, dy_rows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    return dy @ W.T, rows.T @ dy_rows, dy_rows.mean(axis=0)


def with_the_last_token_for_b(dy, cache):
    """An assignment in a loop, where += was meant."""
    x, W = cache
    rows, dy_rows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    return dy @ W.T, rows.T @ dy_rows, dy_rows[-1]


def with_b_summed_over_the_sequences(dy, cache):
    """db (T, O)."""
    x, W = cache
    rows, dy_rows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    return dy @ W.T, rows.T @ dy_rows, dy.sum(axis=0)


def with_a_dw_for_each_sequence(dy, cache):
    """dW (B, I, O)."""
    x, W = cache
    return dy @ W.T, x.swapaxes(-1, -2) @ dy, dy.sum(axis=(0, 1))


def with_w_reshaped(dy, cache):
    """The product that fits, with the numbers in the wrong places."""
    x, W = cache
    rows, dy_rows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    return dy @ W.reshape(W.shape[1], W.shape[0]), rows.T @ dy_rows, dy_rows.sum(axis=0)


def with_x_reshaped(dy, cache):
    """The same in dW."""
    x, W = cache
    dy_rows = dy.reshape(-1, dy.shape[-1])
    return dy @ W.T, x.reshape(x.shape[-1], -1) @ dy_rows, dy_rows.sum(axis=0)


def make_mix(rng, given):
    """A square matrix without any symmetry."""
    inputs = {"x": rng.standard_normal((B, T, C)), "W": rng.standard_normal((C, C))}
    ratios = {"the number of tokens": B * T, "B": B, "T": T}
    return backward_problem(given.mix, inputs, ("x", "W"), rng, ratios=ratios)


def with_w_as_it_is(dy, cache):
    """dx by the forward's own matrix."""
    x, W = cache
    return dy @ W, x.reshape(-1, x.shape[-1]).T @ dy.reshape(-1, dy.shape[-1])


def with_dw_transposed(dy, cache):
    """The product of dy and x in the other order."""
    x, W = cache
    return dy @ W.T, dy.reshape(-1, dy.shape[-1]).T @ x.reshape(-1, x.shape[-1])


def with_the_mean_for_w(dy, cache):
    """dW as a mean over the tokens."""
    x, W = cache
    rows, dy_rows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    return dy @ W.T, rows.T @ dy_rows / len(rows)


def flat(array):
    """(..., T, X) -> (B, T, X), as the exercises have it."""
    return array.reshape(-1, *array.shape[-2:])


def adapt_linear(mine):
    """The learner's linear_backward(dy, (x, W)) as the library calls its own."""

    def backward(dy, cache, out=None):
        dx, dW, db = mine(flat(dy), (flat(cache.x), cache.W))
        dW = np.array(dW, dy.dtype, order="C")  # a copy, as the parameter will keep it
        if out is not None:
            out[...] = dW
            dW = out
        return np.asarray(dx, dy.dtype).reshape(cache.x.shape), dW, np.asarray(db, dy.dtype)

    return backward


LINEAR = Exercise(
    name="02_linear_backward",
    see="lesson 02, parts 1 to 4",
    hints=(
        "yₙₒ = Σᵢ xₙᵢ Wᵢₒ + bₒ for token n. In how many of the y does one entry of x occur? One of W? One of b?",
        "W and b are used by every token of every sequence: each token adds its share to dW and db.",
        "N = B T rows of tokens:  dx (N, I) = (N, O) (O, I);  dW (I, O) = (I, N) (N, O);  db (O,) = a sum of N rows",
    ),
    tasks=(
        Task(
            function="linear_backward",
            forward="linear",
            outputs=(Output("dx", "BTI"), Output("dW", "IO"), Output("db", "O")),
            make=make_linear,
            linear=True,
            mistakes=(
                Mistake(
                    "db is a mean over the tokens",
                    "Raise b by a little: how many tokens move, and does each of them move by less for it?",
                    with_the_mean_for_b,
                ),
                Mistake(
                    "db comes from the last token alone",
                    "Is there a loop with = where += is meant? What do all the other tokens say about b?",
                    with_the_last_token_for_b,
                ),
                Mistake(
                    "db is summed over the sequences, and not over their tokens",
                    "It would broadcast against b without a word. Which axes of y does b not have?",
                    with_b_summed_over_the_sequences,
                ),
                Mistake(
                    "there is a dW for each sequence",
                    "There is one W. What becomes of the gradients of those who share it?",
                    with_a_dw_for_each_sequence,
                ),
                Mistake(
                    "W is reshaped where it should be turned",
                    "The shape fits; where is the entry of row 0 and column 1 now, and where should it be?",
                    with_w_reshaped,
                ),
                Mistake(
                    "x is reshaped where it should be turned",
                    "Make the rows tokens first. Does a reshape to (I, N) put the features of one token in a column?",
                    with_x_reshaped,
                ),
            ),
        ),
        Task(
            function="mix_backward",
            forward="mix",
            outputs=(Output("dx", "BTC"), Output("dW", "CC")),
            make=make_mix,
            linear=True,
            mistakes=(
                Mistake(
                    "dx goes back through W as it is",
                    "Forward, the sum runs over the rows of W. Feature i reaches the loss through which entries of W?",
                    with_w_as_it_is,
                ),
                Mistake(
                    "dW is transposed",
                    "Wᵢₒ leads from feature i of x to feature o of y: which of the two should number the rows of dW?",
                    with_dw_transposed,
                ),
                Mistake(
                    "dW is a mean over the tokens",
                    "If the loss wants a mean, it has taken it already. How many tokens use W?",
                    with_the_mean_for_w,
                ),
            ),
        ),
    ),
    replaces={"linear_backward": Replacement(linear_backward, adapt_linear)},
)


def make_relu(rng, given):
    """Entries of both signs."""
    x = rng.standard_normal((B, T, F))
    places = {"where y is 0": {"dx": x <= 0}, "where y is not 0": {"dx": x > 0}}
    return backward_problem(given.relu, {"x": x}, ("x",), rng, places=places)


def with_the_gate_open(dy, y):
    """y is never negative."""
    return dy * (y >= 0)


def with_the_sign_of_the_gradient(dy, y):
    """The forward's formula, applied to dy."""
    return np.maximum(dy, 0)


def with_the_value_for_the_slope(dy, y):
    """y in the place of its derivative."""
    return dy * y


def with_the_slope_alone(dy, y):
    """The derivative of y, and not of the loss."""
    return np.where(y > 0, 1.0, 0.0)


def with_the_gate_reversed(dy, y):
    """Cleared where it was on."""
    dx = dy.copy()
    dx[y > 0] = 0
    return dx


def adapt_relu(mine):
    """The learner's relu_backward(dy, y) as the library calls its own."""
    return lambda dy, y: np.asarray(mine(flat(dy), flat(y)), dy.dtype).reshape(dy.shape)


RELU = Exercise(
    name="02_relu_backward",
    see="lesson 02, part 5",
    hints=(
        "Draw y = max(0, x). What is the slope left of 0, and what is it right of 0?",
        "y is positive just where x is, so y is enough to know on which side each entry stood.",
        "dx, dy and y have one shape, and no sum runs over anything: dx = dy ∘ (0 or 1, by y)",
    ),
    tasks=(
        Task(
            function="relu_backward",
            forward="relu",
            outputs=(Output("dx", "BTF"),),
            make=make_relu,
            linear=True,
            mistakes=(
                Mistake(
                    "the gate is open everywhere",
                    "What is remembered is y, and not x. Can y ever be below 0?",
                    with_the_gate_open,
                ),
                Mistake(
                    "the gate goes by the sign of the gradient",
                    "Who decided in the forward which entries pass: x, or what came back later?",
                    with_the_sign_of_the_gradient,
                ),
                Mistake(
                    "dy is multiplied by y",
                    "That is how high the graph is. How steep is it there?",
                    with_the_value_for_the_slope,
                ),
                Mistake(
                    "dy is missing",
                    "This is how y moves with x. How does the loss move with y?",
                    with_the_slope_alone,
                ),
                Mistake(
                    "the gate is the wrong way round",
                    "Where y is positive, y = x. What does a gradient do on its way through y = x?",
                    with_the_gate_reversed,
                ),
            ),
        ),
    ),
    replaces={"relu_backward": Replacement(relu_backward, adapt_relu)},
)

EXERCISES = (LINEAR, RELU)
