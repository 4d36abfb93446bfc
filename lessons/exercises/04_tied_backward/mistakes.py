"""The problems, the hints and the known mistakes of 04_tied_backward."""

from exercise_problems import backward_problem, draw_ids, sizes

from minitransformer.exercises import Exercise, Mistake, Output, Task
from minitransformer.gradcheck.judge.clues import places_of_ids

SIZES = sizes("B T C V", (2, 4, 5, 7), (3, 5, 2, 6), (1, 1, 1, 1))


def make_tied(rng, given, B, T, C, V):
    """A table of order one, and a scale that does not saturate the tanh."""
    ids, scale = draw_ids(rng, B, T, V), rng.uniform(1.3, 1.6)
    inputs = {"ids": ids, "E": 0.8 * rng.standard_normal((V, C)), "scale": scale}
    return backward_problem(
        given.tied, inputs, ("E",), rng, ratios={"scale": scale}, places=places_of_ids(ids, V, "dE")
    )


EXERCISE = Exercise(
    name="04_tied_backward",
    hints=(
        "If one entry of E moves, in which two ways does that reach the loss?",
        "One part comes from z = y Eᵀ, with y held fixed. The other part goes on from y: through tanh, `scale` and "
        "the lookup.",
        "way out: dE (V, C) = (V, B T) (B T, C);  way in: dy (B T, C) = (B T, V) (V, C), ∘ slope, times scale, row "
        "by row",
    ),
    tasks=(
        Task(
            function="tied_backward",
            forward="tied",
            outputs=(Output("dE", "VC"),),
            make=make_tied,
            sizes=SIZES,
            linear=True,
            mistakes=(
                Mistake("tied-out-only", {"    np.add.at(dE, ids, scale * dx)  # the way in\n": ""}),
                Mistake("tied-in-only", {"dz.reshape(-1, V).T @ y.reshape(-1, C)": "np.zeros((V, C))"}),
                Mistake("uses-averaged", {"return dE": "return dE / 2"}),
                Mistake("token-twice", {"np.add.at(dE, ids, scale * dx)": "dE[ids] += scale * dx"}),
                Mistake("slope-tanh-missing", {" * (1 - y**2)": ""}),
                Mistake("slope-tanh-computed-input", {"y**2": "(scale * E[ids]) ** 2"}),
                Mistake("embedding-scale-missing", {"scale * dx": "dx"}),
            ),
        ),
    ),
)
