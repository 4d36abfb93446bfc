"""The problems, the hints and the known mistakes of 23_window_reach."""

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.exercises.problems import sizes

SIZES = sizes("T", (60,), (9,), (1,))
STACKS = (
    "one window",
    "two windows",
    "three equal windows",
    "three windows",
    "a window of 1",
    "full attention",
    "full in the middle",
    "full at the end",
)


def make_stacks(rng, given, T):
    """Stacks of windows that all differ; the earliest token by products of the layers' masks."""
    one, two, three = sorted(int(window) for window in rng.permutation(np.arange(3, 9))[:3])
    stacks = [[one], [two, one], [two] * 3, [three, two, one], [1, three], [0], [one, 0, two], [three, 0]]
    distance = np.arange(T)[:, None] - np.arange(T)
    expected = []
    for windows in stacks:
        seen = np.eye(T, dtype=int)
        for window in windows:
            allowed = (distance >= 0) & (distance < (window or T))
            seen = np.minimum(allowed @ seen, 1)
        expected.append(seen.argmax(axis=1))
    return Problem((T, stacks), tuple(expected))


def between(outputs, problem):
    """Whether no token sees a later one, or one before the text begins."""
    return all(0 <= place <= t for output in outputs for t, place in enumerate(output))


MISTAKES = (
    Mistake(
        "a token is not counted in its own window",
        "With a window of 1 a token sees itself alone. How far is the earliest token that it sees?",
        {"window - 1 for": "window for"},
    ),
    Mistake(
        "the token itself is left out of the count once, and not in each layer",
        "Two layers have windows of 2. From a token, how many steps back can you go in the upper layer, and then how "
        "many in the lower one?",
        {"sum(window - 1 for window in windows)": "sum(windows) - 1"},
    ),
    Mistake(
        "the reaches of the layers are multiplied",
        "Three layers see 1 token back each. Where do you stand after three such steps?",
        {"sum(window - 1 for window in windows)": "int(np.prod([window - 1 for window in windows]))"},
    ),
    Mistake(
        "the windows are multiplied",
        "Three layers have windows of 2, so each can go back by one token. Where do you stand after three such steps?",
        {"sum(window - 1 for window in windows)": "int(np.prod(windows)) - 1"},
    ),
    Mistake(
        "only the widest window counts",
        "What a token reads in one layer has already seen something in the layer below. Where did that come from?",
        {"sum(": "max("},
    ),
    Mistake(
        "only the last layer counts",
        "What a token reads in the last layer has already seen something below. Where did that come from?",
        {"in windows)": "in windows[-1:])"},
    ),
    Mistake(
        "all layers are given the window of the first",
        "May the layers of a stack have different windows? See the docstring.",
        {"sum(window - 1 for window in windows)": "len(windows) * (windows[0] - 1)"},
    ),
    Mistake(
        "positions before the first token are not left out",
        "What does the first token of a text see?",
        {"np.maximum(np.arange(T) - reach, 0)": "np.arange(T) - reach"},
    ),
    Mistake(
        "full attention is taken as a window of length 0",
        "What does 0 stand for? See the docstring. How far does such a layer see?",
        {"if 0 in windows": "if False"},
    ),
    Mistake(
        "a layer of full attention is left out",
        "In a layer with full attention a token sees all tokens up to itself. Can the stack then see less?",
        {"if 0 in windows": "if False", "window - 1 for": "max(window - 1, 0) for"},
    ),
    Mistake(
        "full attention counts in the last layer only",
        "The token reads a neighbour in the last layer, and the neighbour has read everything below. What has reached "
        "the token?",
        {"if 0 in windows": "if windows[-1] == 0", "window - 1 for": "max(window - 1, 0) for"},
    ),
    Mistake(
        "the window is laid around the token",
        "Half of the window would lie in the future. On which side of a token may a decoder look?",
        {"window - 1 for": "window // 2 for"},
    ),
)

EXERCISE = Exercise(
    name="23_window_reach",
    hints=(
        "Draw six tokens and two layers with windows of 2. Which tokens can you reach from the last one, if you go one "
        "layer down at a time?",
        "Each layer adds the same kind of step, and one of the tokens in a window is the token itself. Two cases are "
        "special: the beginning of the text, and a layer without a limit.",
        "T numbers = the larger of 0 and a position minus one number for the whole stack, a sum over the layers; "
        "with a 0 among the windows that number has no limit",
    ),
    tasks=(
        Task(
            function="first_seen_each",
            outputs=tuple(Output(name, "T", "int", sequence=True) for name in STACKS),
            make=make_stacks,
            sizes=SIZES,
            invariants=(Invariant("every token sees itself or an earlier token of the text", between),),
            mistakes=MISTAKES,
            float32=False,  # it takes no arrays
        ),
    ),
)
