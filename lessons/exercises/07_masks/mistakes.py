"""The problems that 07_masks is tried on, its hints, and the mistakes that are known."""

import numpy as np

from minitransformer.backend import xp
from minitransformer.exercises import Exercise, Mistake, Output, Problem, Replacement, Task
from minitransformer.exercises.problems import sizes
from minitransformer.functional import causal_mask, padding_mask

LENGTHS = sizes("T", (5,), (7,), (1,))
SIZES = sizes("B T", (3, 5), (4, 3), (1, 1))


def make_causal(rng, given, T):
    """T positions."""
    return Problem((T,), (causal_mask(T),))


def draw_ids(rng, B, T):
    """Ids with padding at the end, in front, and nowhere -> (ids, the id of padding, which is not 0)."""
    pad = int(rng.integers(1, 4))
    ids = rng.integers(4, 9, (B, T))
    ids[0, -2:] = ids[1:2, 0] = pad
    ids[0, 1:-2] = ids[2:3, -1] = 0  # a token like any other
    return ids, pad


def make_padding(rng, given, B, T):
    """Padding whose id is not 0, among tokens one of which is."""
    ids, pad = draw_ids(rng, B, T)
    return Problem((ids, pad), (padding_mask(ids, pad),))


def make_target(rng, given, B, T):
    """Both masks."""
    ids, pad = draw_ids(rng, B, T)
    expected = causal_mask(T) & padding_mask(ids, pad)
    key = np.broadcast_to((ids == pad)[:, None, None, :], expected.shape)
    query = np.broadcast_to((ids == pad)[:, None, :, None], expected.shape)
    places = {"where the key is padding": {"mask": key}, "where the query is padding": {"mask": query}}
    places["where the key is later than the query"] = {"mask": np.broadcast_to(~causal_mask(T), expected.shape)}
    return Problem((ids, pad), (expected,), places=places)


CAUSAL_MISTAKES = (
    Mistake(
        "each position sees one too many",
        "Position 0 must predict what comes at position 1. What does your first row let it see?",
        {"s <= t": "s <= t + 1"},
    ),
    Mistake(
        "a position may not look at itself",
        "The input at t is known when the next token is said. And what is left for position 0 to look at?",
        {"<=": "<"},
    ),
    Mistake("True is taken for 'ignore'", "In this project, what does True mean in a mask?", {"<=": ">"}),
    Mistake(
        "rows and columns are exchanged, so that each position sees the future",
        "Rows are queries. What may the first row see, and is that the row with a single True in yours?",
        {"<=": ">="},
    ),
    Mistake(
        "the axes of sequences and heads are missing",
        "The scores have four axes. Which two of them is the mask the same for, and of which length are they?",
        {"(s <= t)[None, None]": "s <= t"},
    ),
    Mistake(
        "it holds numbers to be added to the scores",
        "What should a mask say about a pair: whether it is allowed, or how much its score changes?",
        {"(s <= t)": "np.where(s <= t, 0.0, -np.inf)"},
    ),
)

PADDING_MISTAKES = (
    Mistake(
        "True is taken for 'padding'",
        "In this project, what does True mean in a mask: 'may look' or 'nothing there'?",
        {"!=": "=="},
    ),
    Mistake("padding is always taken to be the id 0", "What is the second argument for?", {"!= pad": "!= 0"}),
    Mistake(
        "padding lies along the axis of the queries",
        "Who must not be looked at: is it the key or the query that is padding?",
        {"None, None, :": "None, :, None"},
    ),
    Mistake(
        "the axes of heads and queries are missing",
        "The scores are (B, H, T, S). How would NumPy line up (B, S) with that, from the right?",
        {"[:, None, None, :]": ""},
    ),
    Mistake(
        "it holds numbers to be added to the scores",
        "What should a mask say about a pair: whether it is allowed, or how much its score changes?",
        {"(ids != pad)": "np.where(ids != pad, 0.0, -np.inf)"},
    ),
)

TARGET_MISTAKES = (
    Mistake(
        "a look is allowed if either mask allows it",
        "A later token that is no padding: one of the masks allows it. May it be looked at?",
        {"&": "|"},
    ),
    Mistake(
        "padding can be looked at",
        "Which of the two masks depends on the ids, and where is it?",
        {"padding_mask(ids, pad)": "np.ones((len(ids), 1, 1, 1), bool)"},
    ),
    Mistake(
        "the future can be looked at",
        "Which of the two masks keeps the answers secret?",
        {"causal_mask(ids.shape[1])": "np.ones((ids.shape[1], 1), bool)"},
    ),
    Mistake(
        "padding may not look, but may be looked at",
        "Along which axis do the keys lie, the third or the fourth?",
        {"padding_mask(ids, pad)": "padding_mask(ids, pad).swapaxes(-1, -2)"},
    ),
    Mistake(
        "queries at padding may not look, either",
        "Nobody asks for the output of a query at padding. Does the definition say that it may not look?",
        {"padding_mask(ids, pad)": "padding_mask(ids, pad) & padding_mask(ids, pad).swapaxes(-1, -2)"},
    ),
    Mistake(
        "the two masks are added",
        "True + True is 2 in numbers. Which operation is True only if both are?",
        {"causal_mask(ids.shape[1]) &": "1 * causal_mask(ids.shape[1]) +"},
    ),
)


def booleans(mine):
    """The learner's mask in the library's place, where it must be boolean."""

    def mask(*args, **options):
        return xp.asarray(mine(*args, **options)).astype(bool)

    return mask


EXERCISE = Exercise(
    name="07_masks",
    see='lesson 07, "Two words in one batch"',
    hints=(
        "For one query and one key: by what can you tell whether the look is allowed, by places or by the token there?",
        "Causal depends on the pair of places, padding on the key's token alone. A look needs the consent of both.",
        "causal: column ≤ row, (1, 1, T, T);  padding: (B, S) put at the first and last of four axes;  both: & of them",
    ),
    tasks=(
        Task("causal_mask", (Output("mask", "BHTS", "bool"),), make_causal, LENGTHS, CAUSAL_MISTAKES, float32=False),
        Task("padding_mask", (Output("mask", "BHTS", "bool"),), make_padding, SIZES, PADDING_MISTAKES),
        Task("target_mask", (Output("mask", "BHTS", "bool"),), make_target, SIZES, TARGET_MISTAKES),
    ),
    replaces={
        "causal_mask": Replacement(causal_mask, booleans),
        "padding_mask": Replacement(padding_mask, booleans),
    },
)
