"""The problems, the hints and the known mistakes of 08_shift_head."""

from minitransformer.exercises import Exercise, Mistake, Output, Task
from minitransformer.exercises.problems import DECIDED, draw_word, observe_any, sizes

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
                Mistake(
                    "the scores are too small for the softmax",
                    "How large is exp(1/√D), compared with exp(0) of the others? What may you multiply a query by?",
                    {"20 * math.sqrt(T) * ": ""},
                ),
                Mistake(
                    "each position attends to the one after it",
                    "Row t of your matrix is the query of position t. In which column is its one?",
                    {"k=-1": "k=1", "[0, 0]": "[-1, -1]"},
                ),
                Mistake(
                    "position 0 looks for nothing, so it gets a little of everything",
                    "What does a softmax make of equal scores? Which key could position 0 look for?",
                    {"    looks_for[0, 0] = 1.0\n": ""},
                ),
                Mistake(
                    "position 0 attends to the last position",
                    "There is no way round from the first position to the last. Which key should position 0 look for?",
                    {"[0, 0]": "[0, -1]"},
                ),
                Mistake(
                    "letters are compared, not positions",
                    "Which features of x hold the position of a token: those before the letters, or those after them?",
                    {
                        "[nothing, 20 * math.sqrt(T) * looks_for]": "[20 * math.sqrt(T) * looks_for, nothing]",
                        "[nothing, np.eye(T)]": "[np.eye(T), nothing]",
                    },
                ),
                Mistake(
                    "the matrices do not fit",
                    "x has letters + T features. How many rows must a matrix after x have, even if it ignores some "
                    "features?",
                    {
                        "[nothing, 20 * math.sqrt(T) * looks_for]": "[20 * looks_for]",
                        "[nothing, np.eye(T)]": "[np.eye(T)]",
                    },
                ),
            ),
        ),
    ),
)
