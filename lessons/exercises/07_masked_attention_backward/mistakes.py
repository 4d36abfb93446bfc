"""The problems, the hints and the known mistakes of 07_masked_attention_backward."""

import math

import numpy as np
from exercise_problems import backward_problem, sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Task

SIZES = sizes("B T S D width", (2, 4, 5, 3, 6), (3, 5, 6, 4, 2), (1, 1, 1, 1, 1))


def make_masked_attention(rng, given, B, T, S, D, width):
    """A mask with an empty row and a key that nobody sees. All other rows have two keys or more, if S allows it."""
    allowed = rng.random((B, T, S)) < 0.6
    allowed[:, :, 1::3] = True
    allowed[0, 2:3], allowed[1:2, :, 3:4] = False, False
    allowed[1:2, 0] = np.arange(S) != 3
    allowed |= S == 1
    inputs = {
        "q": rng.standard_normal((B, T, D)),
        "k": rng.standard_normal((B, S, D)),
        "v": rng.standard_normal((B, S, width)),
        "allowed": allowed,
    }
    empty, unseen = ~allowed.any(axis=2)[..., None], ~allowed.any(axis=1)[..., None]
    sequence = (np.arange(B) == 0)[:, None, None]  # the one with the empty row
    places = {
        "at the query that may look at nothing": {"dq": empty},
        "at the key that nobody may look at": {"dk": unseen, "dv": unseen},
        "in the sequence with the empty row": {"dq": sequence, "dk": sequence, "dv": sequence},
    }
    ratios = {"sqrt(D)": math.sqrt(D), "D": D}
    return backward_problem(given.masked_attention, inputs, ("q", "k", "v"), rng, ratios=ratios, places=places)


def unseen_keys_get_nothing(outputs, problem):
    """Whether dk and dv are 0 at keys that no query may look at."""
    unseen = ~problem.inputs["allowed"].any(axis=1)
    return not outputs[1][unseen].any() and not outputs[2][unseen].any()


def empty_rows_get_nothing(outputs, problem):
    """Whether dq is 0 at queries that may look at nothing."""
    return not outputs[0][~problem.inputs["allowed"].any(axis=2)].any()


EXERCISE = Exercise(
    name="07_masked_attention_backward",
    hints=(
        "A forbidden score appears in no formula. What is its weight, and what does this factor do to ds?",
        "Compute p as the forward does, with both of its guards for empty rows. Does any line after that need the "
        "mask?",
        "p (T, S) with zeros where not allowed;  ds = p ∘ (dp − a number for each row);  dq (T, D) = (T, S) (S, D) "
        "/ number",
    ),
    tasks=(
        Task(
            function="masked_attention_backward",
            forward="masked_attention",
            outputs=(Output("dq", "BTD"), Output("dk", "BSD"), Output("dv", ("B", "S", "width"))),
            make=make_masked_attention,
            sizes=SIZES,
            linear=True,
            invariants=(
                Invariant("a key that nobody may look at gets no gradient", unseen_keys_get_nothing),
                Invariant("a query that may look at nothing gets no gradient", empty_rows_get_nothing),
            ),
            mistakes=(
                Mistake("weights-computed-again-without-mask", {"k, allowed)": "k, np.ones_like(allowed))"}),
                Mistake("empty-row-nan", {"np.where(total == 0.0, 1.0, total)": "total"}),
                Mistake("empty-row-looks-all-keys", {"-np.inf": "-1e9"}),
                Mistake("true-means-ignore", {"k, allowed)": "k, ~allowed)"}),
                Mistake("mask-after-softmax", {"k, allowed)": "k, np.ones_like(allowed)) * allowed"}),
                Mistake("no-scale-backward", {" / math.sqrt(q.shape[-1])": ""}),
            ),
        ),
    ),
)
