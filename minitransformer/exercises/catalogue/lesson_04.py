"""Lesson 04: the backward passes of a lookup, and of one table that is used on the way in and on the way out."""

import numpy as np

from minitransformer.exercises.exercise import Exercise, Invariant, Mistake, Output, Task, backward_problem
from minitransformer.exercises.replacement import Replacement
from minitransformer.functional import embedding_backward

B, T, C, V = 2, 4, 5, 7  # all different, so that no wrong axis goes unseen


def draw_ids(rng):
    """(B, T): a token comes three times, one in both sequences, some once, and two never."""
    often, both, *once = rng.permutation(V)
    rows = [[often, both, often, once[0]], [both, often, once[1], once[2]]]
    return np.array([rng.permutation(row) for row in rows])


def places_of(ids):
    """Rows of the table, by how often their tokens come."""
    count = np.bincount(ids.reshape(-1), minlength=V)[:, None]
    return {
        "at the token that comes twice in one sequence": {"dE": count == 3},
        "at the tokens that come more than once": {"dE": count > 1},
        "at the tokens that never come": {"dE": count == 0},
        "at the tokens that come": {"dE": count > 0},
    }


def make_embed(rng, given):
    """Repeated ids, within a sequence and across."""
    ids, s = draw_ids(rng), rng.uniform(2.2, 2.8)
    inputs = {"ids": ids, "E": rng.standard_normal((V, C)), "s": s}
    return backward_problem(given.embed, inputs, ("E",), rng, ratios={"s": s, "s²": s * s}, places=places_of(ids))


def with_repeats_lost(dx, cache):
    """Reads all rows, adds, and writes all rows back."""
    ids, V, s = cache
    dE = np.zeros((V, dx.shape[-1]))
    dE[ids] += s * dx
    return dE


def with_repeats_in_a_sequence_lost(dx, cache):
    """The same, a sequence at a time."""
    ids, V, s = cache
    dE = np.zeros((V, dx.shape[-1]))
    for row, of_row in zip(ids, dx, strict=True):
        dE[row] += s * of_row
    return dE


def with_repeats_averaged(dx, cache):
    """The mean of all places of a token."""
    ids, V, s = cache
    dE = np.zeros((V, dx.shape[-1]))
    np.add.at(dE, ids, s * dx)
    return dE / np.maximum(np.bincount(ids.reshape(-1), minlength=V), 1)[:, None]


def without_the_scale(dx, cache):
    """As if s were 1."""
    ids, V, _ = cache
    dE = np.zeros((V, dx.shape[-1]))
    np.add.at(dE, ids, dx)
    return dE


def with_a_division_by_the_scale(dx, cache):
    """The inverse of the forward."""
    ids, V, s = cache
    dE = np.zeros((V, dx.shape[-1]))
    np.add.at(dE, ids, dx / s)
    return dE


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


EMBEDDING = Exercise(
    name="04_embedding_backward",
    see="lesson 04, part 2",
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
            linear=True,
            invariants=(
                Invariant("tokens that never come get no gradient", nothing_where_no_token_came),
                Invariant("dE summed over all tokens is s times dx summed over all places", nothing_is_lost),
            ),
            mistakes=(
                Mistake(
                    "a token that comes more than once gets only its last gradient",
                    "`dE[ids] += ...` reads all rows, adds, writes all back. What if two of them are the same row?",
                    with_repeats_lost,
                ),
                Mistake(
                    "a token that comes twice in one sequence gets only one of these gradients",
                    "A loop over the sequences is not enough. What does `dE[row] += ...` do with an id that repeats?",
                    with_repeats_in_a_sequence_lost,
                ),
                Mistake(
                    "the gradients of a token are averaged",
                    "Each place moves the loss on its own. Does a token that comes more often have less effect by it?",
                    with_repeats_averaged,
                ),
                Mistake(
                    "the factor s is missing",
                    "Move E by a little: by how much does x move? What does the chain rule say of a constant factor?",
                    without_the_scale,
                ),
                Mistake(
                    "the gradient is divided by s",
                    "Backward is not the inverse of forward. By how much does x move when E moves by 1?",
                    with_a_division_by_the_scale,
                ),
            ),
        ),
    ),
    replaces={"embed_backward": Replacement(embedding_backward, adapt_embed)},
)


def make_tied(rng, given):
    """A table of order one, and a factor that does not saturate the tanh."""
    ids, s = draw_ids(rng), rng.uniform(1.3, 1.6)
    inputs = {"ids": ids, "E": 0.8 * rng.standard_normal((V, C)), "s": s}
    return backward_problem(given.tied, inputs, ("E",), rng, ratios={"s": s}, places=places_of(ids))


def way_out(dz, h):
    """The part of dE that comes from the scores."""
    return dz.reshape(-1, dz.shape[-1]).T @ h.reshape(-1, h.shape[-1])


def with_the_way_out_alone(dz, cache):
    """The table as if it were the output's only."""
    *_, h = cache
    return way_out(dz, h)


def with_the_way_in_alone(dz, cache):
    """An assignment by the last backward, where += was meant."""
    ids, E, s, h = cache
    dE = np.zeros_like(E)
    np.add.at(dE, ids, s * (dz @ E) * (1 - h * h))
    return dE


def with_the_mean_of_both(dz, cache):
    """Two uses, averaged."""
    return (with_the_way_out_alone(dz, cache) + with_the_way_in_alone(dz, cache)) / 2


def with_tied_repeats_lost(dz, cache):
    """Rows written back more than once."""
    ids, E, s, h = cache
    dE = way_out(dz, h)
    dE[ids] += s * (dz @ E) * (1 - h * h)
    return dE


def without_the_slope(dz, cache):
    """The tanh as if it were not there."""
    ids, E, s, h = cache
    dE = way_out(dz, h)
    np.add.at(dE, ids, s * (dz @ E))
    return dE


def without_the_scale_on_the_way_in(dz, cache):
    """As if s were 1."""
    ids, E, _, h = cache
    dE = way_out(dz, h)
    np.add.at(dE, ids, (dz @ E) * (1 - h * h))
    return dE


TIED = Exercise(
    name="04_tied_backward",
    see="lesson 04, parts 2 and 3",
    hints=(
        "If one entry of E moves, on which two ways does the loss hear of it?",
        "One part comes from z = h Eᵀ with h held fixed. The other one goes on from h: through tanh, s and the lookup.",
        "way out: dE (V, C) = (V, B T) (B T, C);  way in: dh (B T, C) = (B T, V) (V, C), ∘ slope, times s, row by row",
    ),
    tasks=(
        Task(
            function="tied_backward",
            forward="tied",
            outputs=(Output("dE", "VC"),),
            make=make_tied,
            linear=True,
            mistakes=(
                Mistake(
                    "only the way out is there",
                    "The table also made h. What would the gradient be if the output had a table of its own?",
                    with_the_way_out_alone,
                ),
                Mistake(
                    "only the way in is there",
                    "Is there a `dE = ...` after which the other part is gone? How do gradients of two uses combine?",
                    with_the_way_in_alone,
                ),
                Mistake(
                    "the gradients of the two uses are averaged",
                    "If E moves, both of its uses move, each in full. By how much does the loss move, then?",
                    with_the_mean_of_both,
                ),
                Mistake(
                    "on the way in a token that comes more than once gets only its last gradient",
                    "What does `dE[ids] += ...` do with two places that have the same id?",
                    with_tied_repeats_lost,
                ),
                Mistake(
                    "the slope of tanh is missing",
                    "Which step of the forward stands between the lookup and the scores?",
                    without_the_slope,
                ),
                Mistake(
                    "the factor s is missing on the way in",
                    "By how much does s E[ids] move when E moves? On the way out there is no such factor.",
                    without_the_scale_on_the_way_in,
                ),
            ),
        ),
    ),
)

EXERCISES = (EMBEDDING, TIED)
