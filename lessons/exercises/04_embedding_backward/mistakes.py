"""The problems, the hints and the known mistakes of 04_embedding_backward."""

import numpy as np
from exercise_problems import backward_problem, draw_ids, sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Replacement, Task
from minitransformer.functional import embedding_backward
from minitransformer.gradcheck.judge.clues import places_of_ids

SIZES = sizes("B T C V", (2, 4, 5, 7), (3, 5, 2, 6), (1, 1, 1, 1))


def make_embed(rng, given, B, T, C, V):
    """Ids that are repeated, within a sequence and across sequences."""
    ids, scale = draw_ids(rng, B, T, V), rng.uniform(2.2, 2.8)
    inputs = {"ids": ids, "E": rng.standard_normal((V, C)), "scale": scale}
    ratios = {"scale": scale, "scale²": scale**2}
    return backward_problem(given.embed, inputs, ("E",), rng, ratios=ratios, places=places_of_ids(ids, V, "dE"))


def nothing_where_no_token_came(outputs, problem):
    """Whether the rows of tokens that never come are 0."""
    return not np.delete(outputs[0], problem.inputs["ids"].reshape(-1), axis=0).any()


def nothing_is_lost(outputs, problem):
    """Whether dE, summed over the table, is `scale` times dx, summed over the positions."""
    return np.allclose(outputs[0].sum(axis=0), problem.inputs["scale"] * problem.args[0].sum(axis=(0, 1)))


def adapt_embed(mine):
    """The learner's embed_backward(dx, (ids, V, scale)) as the library calls its own, which adds to dE in place."""

    def backward(dy, cache, dE):
        dx = dy.reshape(-1, *dy.shape[-2:])  # (B, T, C)
        dE += np.asarray(mine(dx, (cache.ids.reshape(dx.shape[:2]), len(dE), cache.scale)), dE.dtype)

    return backward


EXERCISE = Exercise(
    name="04_embedding_backward",
    hints=(
        "Take a token that comes three times. Move its row of E a little. Which rows of x move, and how much?",
        "Each row of dx goes to the row of its token in dE. If several rows go to the same place, they add up.",
        "x = scale · one_hot E with one_hot (B T, V), so dE (V, C) = scale · (V, B T) (B T, C);  or add row by "
        "row, without one_hot",
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
                Invariant("dE summed over all tokens is `scale` times dx summed over all positions", nothing_is_lost),
            ),
            mistakes=(
                Mistake("token-twice", {"np.add.at(dE, ids, scale * dx)": "dE[ids] += scale * dx"}),
                Mistake(
                    "token-comes-twice-one-sequence",
                    {
                        "np.add.at(dE, ids, scale * dx)": (
                            "for row, ids in enumerate(ids):\n        dE[ids] += scale * dx[row]"
                        )
                    },
                ),
                Mistake(
                    "uses-averaged",
                    {"return dE": "return dE / np.maximum(np.bincount(ids.reshape(-1), minlength=V), 1)[:, None]"},
                ),
                Mistake("embedding-scale-missing", {"scale * dx": "dx"}),
                Mistake("embedding-scale-divides", {"scale * dx": "dx / scale"}),
            ),
        ),
    ),
    replaces={"embed_backward": Replacement(embedding_backward, adapt_embed)},
)
