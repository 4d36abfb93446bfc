"""The problems, the hints and the known mistakes of 24_lanczos."""

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task

SIZES = sizes("steps size", (5, 8), (4, 6), (1, 2), (2, 5))
NOISE = 1e-3  # of the products: J is symmetric up to this part of its largest entry


def make_lanczos(rng, given, steps, size):
    """A matrix with eigenvalues from -1 to 8, and noise in its products.

    The directions come from a QR decomposition of those before and the new product, whose last column they are, up to
    the sign.
    """
    axes, _ = np.linalg.qr(rng.standard_normal((size, size)))
    J = axes @ np.diag(np.linspace(-1, 2, size) ** 3) @ axes.T + NOISE * rng.standard_normal((size, size))
    start = 3 * rng.standard_normal(size)
    basis = [start / np.linalg.norm(start)]
    diagonal, beside = [], []
    for _ in range(steps):
        image = J @ basis[-1]
        columns, triangle = np.linalg.qr(np.column_stack([*basis, image]))
        diagonal.append(basis[-1] @ image)
        beside.append(abs(triangle[-1, -1]))
        basis.append(columns[:, -1] * np.sign(triangle[-1, -1]))
    expected = np.array(diagonal), np.array(beside), np.array(basis[:-1])
    return Problem((lambda u: J @ u, start, steps), expected, ratios={"|start|": float(np.linalg.norm(start))})


def has_unit_rows(outputs, problem):
    """Whether every direction has the length 1."""
    return np.abs(np.linalg.norm(outputs[2], axis=-1) - 1).max() < 1e-6


def is_perpendicular(outputs, problem):
    """Whether each two directions are perpendicular."""
    rows = outputs[2] / np.linalg.norm(outputs[2], axis=-1, keepdims=True)
    return np.abs(rows @ rows.T - np.eye(len(rows))).max() < 1e-6


EXERCISE = Exercise(
    name="24_lanczos",
    hints=(
        "Take J = the matrix of ones (2, 2), and the beginning (1, 0). Which part of J u lies along u, and how long is "
        "the rest?",
        "What lies along a direction u of length 1 is (u·left) u. Which directions have to be taken out: the last one, "
        "the last two, or all of them? And what is `beside`: the length before or after that?",
        "all directions known are the rows of a matrix (step + 1, size);  left (size,) − (step + 1 numbers) (step + 1, "
        "size);  diagonal: one number from a row and its product;  beside: the length of what is left",
    ),
    tasks=(
        Task(
            function="lanczos",
            outputs=(
                Output("diagonal", ("steps",)),
                Output("beside", ("steps",)),
                Output("basis", ("steps", "size")),
            ),
            make=make_lanczos,
            sizes=SIZES,
            invariants=(
                Invariant("each direction has the length 1", has_unit_rows),
                Invariant("each two directions are perpendicular", is_perpendicular),
            ),
            mistakes=(
                Mistake("only-last-two-directions-taken", {"basis[: step + 1]": "basis[max(step - 1, 0) : step + 1]"}),
                Mistake(
                    "short-recurrence-last-two-directions",
                    {
                        "        for _ in range(2):\n            left = left - (known @ left) @ known\n": (
                            "        left = left - diagonal[step] * basis[step]\n"
                            "        if step:\n            left = left - beside[step - 1] * basis[step - 1]\n"
                        )
                    },
                ),
                Mistake("only-last-direction-taken-out", {"basis[: step + 1]": "basis[step : step + 1]"}),
                Mistake("nothing-taken-out-product-power", {"for _ in range(2)": "for _ in range(0)"}),
                Mistake("last-direction-left-only", {"basis[: step + 1]": "basis[:step]"}),
                Mistake(
                    "beginning-not-scaled-length-1", {"    length = np.linalg.norm(start)\n": "    length = 1.0\n"}
                ),
                Mistake(
                    "left-not-scaled-length-1",
                    {
                        "        basis[step] = left / length\n": (
                            "        basis[step] = left / length if step == 0 else left\n"
                        )
                    },
                ),
                Mistake("diagonal-length-product-not-part", {"basis[step] @ left\n": "np.linalg.norm(left)\n"}),
                Mistake(
                    "diagonal-taken-after-everything-along",
                    {
                        "        diagonal[step] = basis[step] @ left\n": "",
                        "        beside[step] = length\n": (
                            "        diagonal[step] = basis[step] @ left\n        beside[step] = length\n"
                        ),
                    },
                ),
                Mistake("beside-squares-lengths", {"beside[step] = length": "beside[step] = length**2"}),
                Mistake(
                    "beside-length-product-before-anything",
                    {
                        "        known = basis": "        beside[step] = np.linalg.norm(left)\n        known = basis",
                        "        beside[step] = length\n": "",
                    },
                ),
                Mistake(
                    "beside-comes-one-step-late",
                    {
                        "        basis[step] = left": "        beside[step] = length\n        basis[step] = left",
                        "        length = np.linalg.norm(left)\n        beside[step] = length\n": (
                            "        length = np.linalg.norm(left)\n"
                        ),
                    },
                ),
            ),
        ),
    ),
)
