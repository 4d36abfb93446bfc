"""The problems that 08_shift_head is tried on, its hints, and the mistakes that are known."""

from minitransformer.exercises import Exercise, Mistake, Output, Task
from minitransformer.exercises.problems import DECIDED, draw_word, observe_any, sizes

SIZES = sizes("letters n", (3, 6), (4, 8), (2, 5), (1, 1))


def make_shift(rng, given, letters, n):
    """All look at the one before them, and the first at itself."""
    return draw_word(rng, given, letters, n, lambda n: [0, *range(n - 1)])


EXERCISE = Exercise(
    name="08_shift_head",
    see='lesson 08, "Two heads by hand"',
    hints=(
        "The query of position t and the key of position s meet in one product. When is it to be large, when 0?",
        "x W picks rows of W: the row of the letter plus the row of the position. Which rows must be 0, so that "
        "letters do not count? Which key is position 0 to look for? Is a score of 1 against 0 enough for a softmax?",
        "W_k = [0 (letters, n); one row e_s for each position s];  W_q = [0; for each t a large number times one of "
        "those e_s]",
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
                    "How large is exp(1/√D) beside the others, exp(0)? What may you multiply a query by?",
                    {"20 * math.sqrt(n) * ": ""},
                ),
                Mistake(
                    "each position attends to the one after it",
                    "Row t of your matrix is the query of position t. In which column is its one?",
                    {"k=-1": "k=1", "[0, 0]": "[-1, -1]"},
                ),
                Mistake(
                    "position 0 looks for nobody, and so it gets a little of everybody",
                    "What does a softmax make of equal scores? Which key could position 0 look for?",
                    {"    looks_for[0, 0] = 1.0\n": ""},
                ),
                Mistake(
                    "position 0 attends to the last one",
                    "Is there a corner to go round? Which key does position 0 look for?",
                    {"[0, 0]": "[0, -1]"},
                ),
                Mistake(
                    "letters are compared, not positions",
                    "In which features of x does a token's position stand, after the letters or before them?",
                    {
                        "[nothing, 20 * math.sqrt(n) * looks_for]": "[20 * math.sqrt(n) * looks_for, nothing]",
                        "[nothing, np.eye(n)]": "[np.eye(n), nothing]",
                    },
                ),
                Mistake(
                    "the matrices do not fit",
                    "x has letters + n features. How many rows must a matrix after it have, also for what it ignores?",
                    {
                        "[nothing, 20 * math.sqrt(n) * looks_for]": "[20 * looks_for]",
                        "[nothing, np.eye(n)]": "[np.eye(n)]",
                    },
                ),
            ),
        ),
    ),
)
