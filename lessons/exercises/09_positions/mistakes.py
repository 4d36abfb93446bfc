"""The problems, the hints and the known mistakes of 09_positions."""

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Replacement, Task
from minitransformer.functional import sinusoidal_positions

TABLE_SIZES = sizes("length C", (26, 12), (7, 10), (1, 2), (5, 4))
TURN_SIZES = sizes("j C", (-4, 8), (7, 6), (1, 2), (0, 4))


def make_table(rng, given, length, C):
    """The library's table."""
    columns = np.arange(C)
    places = {
        "in the odd columns, the cosines": {"PE": np.broadcast_to(columns % 2 == 1, (length, C))},
        "in the even columns, the sines": {"PE": np.broadcast_to(columns % 2 == 0, (length, C))},
        "from column 2 on": {"PE": np.broadcast_to(columns > 1, (length, C))},
        "from column 1 on": {"PE": np.broadcast_to(columns > 0, (length, C))},
    }
    return Problem((length, C), (sinusoidal_positions(length, C, np.float64),), places=places)


def make_turn(rng, given, j, C):
    """Twenty positions of the library's table, and the positions j places further."""
    table = sinusoidal_positions(40, C, np.float64)
    return Problem((j, C), (table[10 + j : 30 + j],), {"here": table[10:30]})


def moved(outputs, problem):
    """Where the matrix takes the positions; the matrix itself, if it does not fit them."""
    (matrix,), here = outputs, problem.inputs["here"]
    return here @ matrix if np.shape(matrix) == (here.shape[1], here.shape[1]) else matrix


def has_whole_pairs(outputs, problem):
    """Whether the dot product of neighbours is the same everywhere."""
    (PE,) = outputs
    return PE.ndim != 2 or bool(np.ptp((PE[1:] * PE[:-1]).sum(axis=1)) < 1e-9)


def begins_with_zeros_and_ones(outputs, problem):
    """Whether position 0 has the sines and cosines of 0."""
    (PE,) = outputs
    return PE.ndim != 2 or np.array_equal(PE[0], np.arange(PE.shape[1]) % 2)


def turns_and_does_not_stretch(outputs, problem):
    """Whether the matrix, times its transpose, is the identity."""
    (matrix,) = outputs
    return matrix.ndim != 2 or np.abs(matrix @ matrix.T - np.eye(len(matrix))).max() < 1e-9


TABLE = (
    Mistake(
        "exponent-2c-c-feature-c",
        {
            "-np.arange(0, C, 2)": "-2 * np.arange(C)",
            "np.sin(angles), np.cos(angles)": "np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])",
        },
    ),
    Mistake("pairs-counted-twice", {"-np.arange(0": "-2 * np.arange(0"}),
    Mistake(
        "each-feature-frequency-own",
        {
            "-np.arange(0, C, 2)": "-np.arange(C)",
            "np.sin(angles), np.cos(angles)": "np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])",
        },
    ),
    Mistake("all-sines-come-before-all", {"PE[:, 0::2], PE[:, 1::2]": "PE[:, : C // 2], PE[:, C // 2 :]"}),
    Mistake("sines-cosines-swapped", {"np.sin(angles), np.cos(angles)": "np.cos(angles), np.sin(angles)"}),
    Mistake("positions-counted-1", {"np.arange(length)": "np.arange(1, length + 1)"}),
    Mistake("power-10000-multiplies-position", {"-np.arange(0": "np.arange(0"}),
    Mistake("frequencies-end-1-10000", {"-np.arange(0, C, 2) / C": "-np.arange(0, C, 2) / (C - 2)"}),
    Mistake("base-e-not-10000", {"10000.0 ** (": "np.exp("}),
    Mistake("angles-degrees", {"np.arange(length)": "np.radians(np.arange(length))"}),
)

TURN = (
    Mistake("turns-other-way", {"[[cos, -sin], [sin, cos]]": "[[cos, sin], [-sin, cos]]"}),
    Mistake("all-pairs-turn-same-angle", {"j * 10000.0 ** (-2 * i / C)": "j"}),
    Mistake("matrix-one-step-multiplied-j", {"angle = j * ": "angle = ", "return matrix": "return j * matrix"}),
    Mistake("sign-missing-blocks", {"-sin": "sin"}),
)


def of_any_dtype(mine):
    """The learner's table, in the dtype that a model asks for."""

    def table(length, d_model, dtype=np.float32):
        return np.asarray(mine(length, d_model)).astype(dtype)

    return table


EXERCISE = Exercise(
    name="09_positions",
    hints=(
        "Read the table by columns: which columns have the same frequency? Then by rows: what is row 0?",
        "Table: one frequency for each PAIR, from 1 down to nearly 1/10000. Matrix: sin(ω(t + j)) is a sum of two "
        "terms, and so is cos(ω(t + j)). Each term has a factor without t.",
        "angles (length, C/2) = positions (length, 1) · frequencies (C/2,), and each angle gives two neighbours in "
        "a row.  turn: C/2 blocks (2, 2) on the diagonal, made of the cosine and the sine of j · frequency; (sin, "
        "cos) block = (sin, cos) j positions later",
    ),
    tasks=(
        Task(
            function="sinusoids",
            outputs=(Output("PE", "TC"),),
            make=make_table,
            sizes=TABLE_SIZES,
            float32=False,
            mistakes=TABLE,
            invariants=(
                Invariant("PE_t·PE_(t+1) is the same for all t", has_whole_pairs),
                Invariant("row 0 is 0, 1, 0, 1, ...", begins_with_zeros_and_ones),
            ),
        ),
        Task(
            function="turn",
            outputs=(Output("PE_t turn", "TC"),),
            make=make_turn,
            sizes=TURN_SIZES,
            float32=False,
            mistakes=TURN,
            observe=moved,
            invariants=(
                Invariant(
                    "the matrix turns and does not stretch: times its transpose, it is the identity",
                    turns_and_does_not_stretch,
                ),
            ),
        ),
    ),
    replaces={"sinusoids": Replacement(sinusoidal_positions, of_any_dtype)},
)
