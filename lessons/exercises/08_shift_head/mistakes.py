"""The problems, the hints and the known mistakes of 08_shift_head."""

from exercise_problems import DECIDED, draw_word, observe_any, sizes

from minitransformer.exercises import Exercise, Mistake, Output, Task

SIZES = sizes("letters T", (3, 6), (4, 8), (2, 5), (1, 1))


def make_shift(rng, given, letters, T):
    """All positions look at the one before, and the first one looks at itself."""
    return draw_word(rng, given, letters, T, lambda T: [0, *range(T - 1)])


EXERCISE = Exercise(
    name="08_shift_head",
    hints=(
        "The score of query t and key j is their dot product. When should it be large, and when 0?",
        "x W adds two rows of W: the row of the letter and the row of the position. Which rows must be 0, so that "
        "letters do not count? Which key should position 0 look for? Is a score of 1 against 0 enough for a "
        "softmax?",
        "W_k = [0 (letters, T); a one-hot row for each position];  W_q = [0; for each t a large number times one "
        "of these one-hot rows]",
    ),
    tasks=(
        Task(
            function="shift_head",
            outputs=(Output("attention", "TS", sequence=True),),
            make=make_shift,
            sizes=SIZES,
            observe=observe_any,
            float32=False,
            invariants=(DECIDED,),
            mistakes=(
                Mistake("scores-too-small-softmax", {"20 * math.sqrt(T) * ": ""}),
                Mistake("each-position-attends-one", {"k=-1": "k=1", "[0, 0]": "[-1, -1]"}),
                Mistake("position-0-looks-nothing-gets", {"    looks_for[0, 0] = 1.0\n": ""}),
                Mistake("position-0-attends-last-position", {"[0, 0]": "[0, -1]"}),
                Mistake(
                    "letters-compared-not-positions",
                    {
                        "[nothing, 20 * math.sqrt(T) * looks_for]": "[20 * math.sqrt(T) * looks_for, nothing]",
                        "[nothing, np.eye(T)]": "[np.eye(T), nothing]",
                    },
                ),
                Mistake(
                    "matrices-do-not-fit",
                    {
                        "[nothing, 20 * math.sqrt(T) * looks_for]": "[20 * looks_for]",
                        "[nothing, np.eye(T)]": "[np.eye(T)]",
                    },
                ),
            ),
        ),
    ),
)
