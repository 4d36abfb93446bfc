"""The problems that 04_tied_backward is tried on, its hints, and the mistakes that are known."""

from minitransformer.exercises import Exercise, Mistake, Output, Task
from minitransformer.exercises.problems import backward_problem, draw_ids, places_of, sizes

SIZES = sizes("B T C V", (2, 4, 5, 7), (3, 5, 2, 6), (1, 1, 1, 1))


def make_tied(rng, given, B, T, C, V):
    """A table of order one, and a factor that does not saturate the tanh."""
    ids, s = draw_ids(rng, B, T, V), rng.uniform(1.3, 1.6)
    inputs = {"ids": ids, "E": 0.8 * rng.standard_normal((V, C)), "s": s}
    return backward_problem(given.tied, inputs, ("E",), rng, ratios={"s": s}, places=places_of(ids, V))


EXERCISE = Exercise(
    name="04_tied_backward",
    see='lesson 04, "Three gradients for one row"',
    hints=(
        "If one entry of E moves, on which two ways does the loss depend on it?",
        "One part comes from z = h Eᵀ with h held fixed. The other one goes on from h: through tanh, s and the lookup.",
        "way out: dE (V, C) = (V, B T) (B T, C);  way in: dh (B T, C) = (B T, V) (V, C), ∘ slope, times s, row by row",
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
                Mistake(
                    "only the way out is there",
                    "The table also made h. What would the gradient be if the output had a table of its own?",
                    {"    np.add.at(dE, ids, s * dx)  # the way in\n": ""},
                ),
                Mistake(
                    "only the way in is there",
                    "Is there a `dE = ...` after which the other part is gone? How do gradients of two uses combine?",
                    {"dz.reshape(-1, V).T @ h.reshape(-1, C)": "np.zeros((V, C))"},
                ),
                Mistake(
                    "the gradients of the two uses are averaged",
                    "If E moves, both of its uses move, each in full. By how much does the loss move, then?",
                    {"return dE": "return dE / 2"},
                ),
                Mistake(
                    "on the way in a token that comes more than once gets only its last gradient",
                    "What does `dE[ids] += ...` do with two places that have the same id?",
                    {"np.add.at(dE, ids, s * dx)": "dE[ids] += s * dx"},
                ),
                Mistake(
                    "the slope of tanh is missing",
                    "Which step of the forward stands between the lookup and the scores?",
                    {" * (1 - h**2)": ""},
                ),
                Mistake(
                    "the slope of tanh is that of its input",
                    "The slope is 1 − h². Which array of the forward is h: what goes into tanh, or what comes out?",
                    {"h**2": "(s * E[ids]) ** 2"},
                ),
                Mistake(
                    "the factor s is missing on the way in",
                    "By how much does s E[ids] move when E moves? On the way out there is no such factor.",
                    {"s * dx": "dx"},
                ),
            ),
        ),
    ),
)
