"""The problems that 09_positions is tried on, its hints, and the mistakes that are known."""

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Replacement, Task
from minitransformer.exercises.problems import sizes
from minitransformer.functional import sinusoidal_positions

TABLE_SIZES = sizes("length C", (26, 12), (7, 10), (1, 2), (5, 4))
ROTATION_SIZES = sizes("k C", (-4, 8), (7, 6), (1, 2), (0, 4))


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


def make_rotation(rng, given, k, C):
    """Twenty positions of the library's table, and those k places from them."""
    table = sinusoidal_positions(40, C, np.float64)
    return Problem((k, C), (table[10 + k : 30 + k],), {"here": table[10:30]})


def moved(outputs, problem):
    """Where the matrix takes the positions; the matrix itself, if it does not fit them."""
    (R,), here = outputs, problem.inputs["here"]
    return here @ R if np.shape(R) == (here.shape[1], here.shape[1]) else R


def has_whole_pairs(outputs, problem):
    """Whether neighbours are equally alike everywhere."""
    (PE,) = outputs
    return PE.ndim != 2 or bool(np.ptp((PE[1:] * PE[:-1]).sum(axis=1)) < 1e-9)


def begins_with_zeros_and_ones(outputs, problem):
    """Whether position 0 has the sines and cosines of 0."""
    (PE,) = outputs
    return PE.ndim != 2 or np.array_equal(PE[0], np.arange(PE.shape[1]) % 2)


def turns_and_does_not_stretch(outputs, problem):
    """Whether R Rᵀ = 1."""
    (R,) = outputs
    return R.ndim != 2 or np.abs(R @ R.T - np.eye(len(R))).max() < 1e-9


TABLE = (
    Mistake(
        "the exponent takes twice the index of the feature, and sine and cosine have two frequencies",
        "The paper's 2i is an even column. If your loop goes 0, 2, 4 ..., what is its variable: i, or 2i?",
        {
            "-np.arange(0, C, 2)": "-2 * np.arange(C)",
            "np.sin(angles), np.cos(angles)": "np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])",
        },
    ),
    Mistake(
        "the exponent takes twice the index of the feature",
        "For C = 4 the second pair turns 100 times as slowly as the first. How slowly does yours? What is i there?",
        {"-np.arange(0": "-2 * np.arange(0"},
    ),
    Mistake(
        "each feature has a frequency of its own",
        "How many frequencies does a table with C columns have? Which columns share one?",
        {
            "-np.arange(0, C, 2)": "-np.arange(C)",
            "np.sin(angles), np.cos(angles)": "np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])",
        },
    ),
    Mistake(
        "all sines stand before all cosines",
        "No model can tell, but which columns does the paper give to the sines?",
        {"PE[:, 0::2], PE[:, 1::2]": "PE[:, : C // 2], PE[:, C // 2 :]"},
    ),
    Mistake(
        "sines and cosines are exchanged",
        "What are sin 0 and cos 0, and so how does row 0 begin?",
        {"np.sin(angles), np.cos(angles)": "np.cos(angles), np.sin(angles)"},
    ),
    Mistake(
        "positions are counted from 1",
        "Which p does the first token have, and what is its sine?",
        {"np.arange(length)": "np.arange(1, length + 1)"},
    ),
    Mistake(
        "the power of 10000 multiplies the position",
        "How far must the last pair go to come round: less than one position, or tens of thousands?",
        {"-np.arange(0": "np.arange(0"},
    ),
    Mistake(
        "the frequencies end at 1/10000",
        "2i/C for the last i is not quite 1. How large is it for C = 4, and into how many steps do you divide?",
        {"-np.arange(0, C, 2) / C": "-np.arange(0, C, 2) / (C - 2)"},
    ),
    Mistake(
        "the base is e, not 10000",
        "10000^a is exp(a times what?)",
        {"10000.0 ** (": "np.exp("},
    ),
    Mistake(
        "the angles are taken for degrees",
        "Which unit does np.sin take, and after how many positions does the paper's first pair come round?",
        {"np.arange(length)": "np.radians(np.arange(length))"},
    ),
)

ROTATION = (
    Mistake(
        "it turns the other way",
        "PE(p) stands to the LEFT of R: do its entries meet the rows of a block or the columns?",
        {"[[c, -s], [s, c]]": "[[c, s], [-s, c]]"},
    ),
    Mistake(
        "all pairs turn by the same angle",
        "The pairs are clocks of different speed: by which angle does each move in k positions?",
        {"k * 10000.0 ** (-2 * i / C)": "k"},
    ),
    Mistake(
        "one step is multiplied by k",
        "Two steps are one after the other: is that the sum of two matrices? What becomes of the angle?",
        {"angle = k * ": "angle = ", "return R": "return k * R"},
    ),
    Mistake(
        "a sign is missing in the blocks",
        "The derivative of cos has a minus: where is it in cos(a + b)?",
        {"-s": "s"},
    ),
)


def of_any_dtype(mine):
    """The learner's table, in the dtype that a model asks for."""

    def table(length, d_model, dtype=np.float32):
        return np.asarray(mine(length, d_model)).astype(dtype)

    return table


EXERCISE = Exercise(
    name="09_positions",
    see='lesson 09, "The same step is the same matrix"',
    hints=(
        "Read the table by columns: which columns have the same frequency? Then by rows: what is row 0?",
        "Table: a frequency for each PAIR, from 1 down to nearly 1/10000. Matrix: sin(ω(p + k)) is a sum of two terms, "
        "and so is cos(ω(p + k)); each term has a factor without p.",
        "angles (length, C/2) = positions (length, 1) · frequencies (C/2,), and each angle gives two neighbours of a "
        "row.  R: C/2 blocks (2, 2) on the diagonal, made of the cosine and sine of k · frequency; (s, c) block = "
        "(s, c) further on",
    ),
    tasks=(
        Task(
            function="sinusoids",
            outputs=(Output("PE", "pC"),),
            make=make_table,
            sizes=TABLE_SIZES,
            float32=False,
            mistakes=TABLE,
            invariants=(
                Invariant("PE(p)·PE(p+1) is the same for all p", has_whole_pairs),
                Invariant("row 0 is 0, 1, 0, 1 ...", begins_with_zeros_and_ones),
            ),
        ),
        Task(
            function="rotation",
            outputs=(Output("PE(p) R", "pC"),),
            make=make_rotation,
            sizes=ROTATION_SIZES,
            float32=False,
            mistakes=ROTATION,
            observe=moved,
            invariants=(Invariant("R turns and does not stretch: R Rᵀ is the identity", turns_and_does_not_stretch),),
        ),
    ),
    replaces={"sinusoids": Replacement(sinusoidal_positions, of_any_dtype)},
)
