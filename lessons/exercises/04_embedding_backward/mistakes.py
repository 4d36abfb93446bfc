"""The problems that 04_embedding_backward is tried on, its hints, and the mistakes that are known."""

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Replacement, Task
from minitransformer.exercises.problems import backward_problem, draw_ids, places_of, sizes
from minitransformer.functional import embedding_backward

SIZES = sizes("B T C V", (2, 4, 5, 7), (3, 5, 2, 6), (1, 1, 1, 1))


def make_embed(rng, given, B, T, C, V):
    """Repeated ids, within a sequence and across."""
    ids, s = draw_ids(rng, B, T, V), rng.uniform(2.2, 2.8)
    inputs = {"ids": ids, "E": rng.standard_normal((V, C)), "s": s}
    return backward_problem(given.embed, inputs, ("E",), rng, ratios={"s": s, "s²": s * s}, places=places_of(ids, V))


def nothing_where_no_token_came(outputs, problem):
    """Whether the rows of tokens that never come are 0."""
    return not np.delete(outputs[0], problem.inputs["ids"].reshape(-1), axis=0).any()


def nothing_is_lost(outputs, problem):
    """Whether dE, summed over the table, is s times dx, summed over the tokens."""
    return np.allclose(outputs[0].sum(axis=0), problem.inputs["s"] * problem.args[0].sum(axis=(0, 1)))


def adapt_embed(mine):
    """The learner's embed_backward(dx, (ids, V, s)) as the library calls its own, which adds to dE in place."""

    def backward(dy, cache, dE):
        dx = dy.reshape(-1, *dy.shape[-2:])  # (B, T, C)
        dE += np.asarray(mine(dx, (cache.ids.reshape(dx.shape[:2]), len(dE), cache.scale)), dE.dtype)

    return backward


EXERCISE = Exercise(
    name="04_embedding_backward",
    see='lesson 04, "The way back: every use adds"',
    hints=(
        "Take a token that comes three times. Move its row of E a little: which places of x move, and by how much?",
        "Every place sends its gradient to the row of its token, and rows that several places send to have to add up.",
        "x = s O E with O (B T, V) one-hot, so dE (V, C) = s (V, B T) (B T, C); or add row by row, without O",
    ),
    tasks=(
        Task(
            function="embed_backward",
            forward="embed",
            outputs=(Output("dE", "VC"),),
            make=make_embed,
            sizes=SIZES,
            linear=True,
            invariants=(
                Invariant("tokens that never come get no gradient", nothing_where_no_token_came),
                Invariant("dE summed over all tokens is s times dx summed over all places", nothing_is_lost),
            ),
            mistakes=(
                Mistake(
                    "a token that comes more than once gets only its last gradient",
                    "`dE[ids] += ...` reads all rows, adds, writes all back. What if two of them are the same row?",
                    {"np.add.at(dE, ids, s * dx)": "dE[ids] += s * dx"},
                ),
                Mistake(
                    "a token that comes twice in one sequence gets only one of these gradients",
                    "A loop over the sequences is not enough. What does `dE[row] += ...` do with an id that repeats?",
                    {"np.add.at(dE, ids, s * dx)": "for row, ids in enumerate(ids):\n        dE[ids] += s * dx[row]"},
                ),
                Mistake(
                    "the gradients of a token are averaged",
                    "Each place moves the loss on its own. Does a token that comes more often have less effect by it?",
                    {"return dE": "return dE / np.maximum(np.bincount(ids.reshape(-1), minlength=V), 1)[:, None]"},
                ),
                Mistake(
                    "the factor s is missing",
                    "Move E by a little: by how much does x move? What does the chain rule say of a constant factor?",
                    {"s * dx": "dx"},
                ),
                Mistake(
                    "the gradient is divided by s",
                    "Backward is not the inverse of forward. By how much does x move when E moves by 1?",
                    {"s * dx": "dx / s"},
                ),
            ),
        ),
    ),
    replaces={"embed_backward": Replacement(embedding_backward, adapt_embed)},
)
