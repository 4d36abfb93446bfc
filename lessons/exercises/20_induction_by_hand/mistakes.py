"""The problems, the hints and the known mistakes of 20_induction_by_hand."""

import numpy as np
from exercise_problems import NEAR, sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task

SIZES = sizes("letters T period", (8, 13, 7), (5, 8, 4), (6, 7, 5), (2, 3, 2), (1, 1, 1))


def make_word(rng, given, letters, T, period):
    """A word that repeats. In a period of five or more, one letter stands twice."""
    word = rng.permutation(letters)[:period]
    if period > 4:
        word[3] = word[1]
    word = np.resize(word, T)
    judged = [t for t in range(period, T) if np.sum(word[:period] == word[t]) == 1]
    first = np.eye(T)[[0, *range(T - 1)]]
    second, says = np.zeros((T, T)), np.zeros((T, letters))
    for t in judged:
        places = [j for j in range(1, t + 1) if word[j - 1] == word[t]]
        second[t, places] = 1 / len(places)
        says[t, word[places[0]]] = 1.0
    return Problem((word, letters), (first, second, says), {"judged": np.array(judged, int)})


def observe(outputs, problem):
    """The rows that are judged, with weights near 0, 1 and 1/2 taken for these."""
    observed = []
    for number, array in enumerate(outputs):
        array = np.nan_to_num(np.asarray(array, dtype=float))
        rounded = np.where(np.abs(2 * array - (2 * array).round()) <= 2 * NEAR, (2 * array).round() / 2, array)
        if number:
            kept = np.zeros((len(array), 1), dtype=bool)
            kept[problem.inputs["judged"]] = True
            rounded = np.where(kept, rounded, 0.0)
        observed.append(rounded)
    return tuple(observed)


def nothing_from_later(outputs, problem):
    """Whether no row looks at a later position."""
    return not any(np.triu(array, k=1).any() for array in outputs[:2])


EXERCISE = Exercise(
    name="20_induction_by_hand",
    hints=(
        "A row must find the place whose predecessor is its own letter. Which features of that place tell what its "
        "predecessor was, and who has written them there?",
        "Layer 1 reads positions and carries a letter. Layer 2 reads letters on one side and heard letters on the "
        "other. How large must a score be for the softmax, and what can a key have that makes its score small for all "
        "queries?",
        "layer 1: W_q and W_k have entries in the rows of the positions, W_vo maps the features of the letter to the "
        "empty ones;  layer 2: W_q has entries in the rows of the letter, W_k in those of what was heard, and one row "
        "of negative numbers",
    ),
    tasks=(
        Task(
            function="continue_word",
            outputs=(Output("first", "TT"), Output("second", "TT"), Output("says", ("T", "letters"))),
            make=make_word,
            sizes=SIZES,
            observe=observe,
            float32=False,
            invariants=(Invariant("no row looks at a later position", nothing_from_later),),
            mistakes=(
                Mistake("layer-1-looks-token-itself", {"k=-1": "k=0"}),
                Mistake("layer-1-looks-token", {"k=-1": "k=1"}),
                Mistake("layer-1-looks-two-places", {"k=-1": "k=-2"}),
                Mistake("layer-2-finds-same-letter", {"found = heard.copy()": "found = letter.copy()"}),
                Mistake("layer-2-asks-row-heard", {"math.sqrt(letters) * letter": "math.sqrt(letters) * heard"}),
                Mistake("position-0-found-because-heard", {"    found[letters] = -1.0\n": ""}),
                Mistake("scores-layer-1-too-small", {"30 * math.sqrt(T) * ": "math.sqrt(T) * "}),
                Mistake("scores-layer-2-too-small", {"40 * math.sqrt(letters) * ": "math.sqrt(letters) * "}),
                Mistake(
                    "layer-1-hears-written",
                    {"letter @ heard.T": "letter @ letter.T", "found = heard.copy()": "found = letter.copy()"},
                ),
                Mistake("position-0-found-everybody", {"found[letters] = -1.0": "found[letters] = 2.0"}),
            ),
        ),
    ),
)
