"""The problems, the hints and the known mistakes of 07_masks."""

import numpy as np
from exercise_problems import sizes

from minitransformer.backend import xp
from minitransformer.exercises import Exercise, Mistake, Output, Problem, Replacement, Task
from minitransformer.functional import causal_mask, padding_mask

LENGTHS = sizes("T", (5,), (7,), (1,))
SIZES = sizes("B T", (3, 5), (4, 3), (1, 1))


def make_causal(rng, given, T):
    """T positions."""
    return Problem((T,), (causal_mask(T),))


def draw_ids(rng, B, T):
    """Sequences with padding at the end, in front, and without any -> (ids, the id of padding, which is not 0)."""
    pad = int(rng.integers(1, 4))
    ids = rng.integers(4, 9, (B, T))
    ids[0, -2:] = ids[1:2, 0] = pad
    ids[0, 1:-2] = ids[2:3, -1] = 0  # a token like any other
    return ids, pad


def make_padding(rng, given, B, T):
    """The id of padding is not 0, but the id of some tokens is."""
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
    Mistake("each-position-sees-one-token", {"j <= t": "j <= t + 1"}),
    Mistake("position-may-not-look-itself", {"<=": "<"}),
    Mistake("true-means-ignore", {"<=": ">"}),
    Mistake("rows-columns-swapped-each-position", {"<=": ">="}),
    Mistake("axes-sequences-heads-missing", {"(j <= t)[None, None]": "j <= t"}),
    Mistake("mask-holds-numbers", {"(j <= t)": "np.where(j <= t, 0.0, -np.inf)"}),
)

PADDING_MISTAKES = (
    Mistake("true-taken-mean-padding", {"!=": "=="}),
    Mistake("pad-id-fixed", {"!= pad": "!= 0"}),
    Mistake("padding-lies-along-axis-queries", {"None, None, :": "None, :, None"}),
    Mistake("axes-heads-queries-missing", {"[:, None, None, :]": ""}),
    Mistake("mask-holds-numbers", {"(ids != pad)": "np.where(ids != pad, 0.0, -np.inf)"}),
)

TARGET_MISTAKES = (
    Mistake("look-allowed-either-mask-allows", {"&": "|"}),
    Mistake("padding-can-looked", {"padding_mask(ids, pad)": "np.ones((len(ids), 1, 1, 1), bool)"}),
    Mistake("future-can-looked", {"causal_mask(ids.shape[1])": "np.ones((ids.shape[1], 1), bool)"}),
    Mistake("padding-may-not-look", {"padding_mask(ids, pad)": "padding_mask(ids, pad).swapaxes(-1, -2)"}),
    Mistake(
        "queries-padding-may-not-look",
        {"padding_mask(ids, pad)": "padding_mask(ids, pad) & padding_mask(ids, pad).swapaxes(-1, -2)"},
    ),
    Mistake("two-masks-added", {"causal_mask(ids.shape[1]) &": "1 * causal_mask(ids.shape[1]) +"}),
)


def booleans(mine):
    """The learner's mask in the library's place, where it must be boolean."""

    def mask(*args, **options):
        return xp.asarray(mine(*args, **options)).astype(bool)

    return mask


EXERCISE = Exercise(
    name="07_masks",
    hints=(
        "Take one query and one key. What decides whether the look is allowed: their positions, or the token at "
        "the key?",
        "The causal mask depends on the two positions, the padding mask only on the token of the key. Both must "
        "allow a look.",
        "causal: column ≤ row, (1, 1, T, T);  padding: (B, S) on the first and the last of four axes;  both: & of "
        "the two",
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
