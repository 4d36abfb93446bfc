"""The problems, the hints and the known mistakes of 23_window_reach."""

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task

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
    Mistake("token-not-counted-own-window", {"window - 1 for": "window for"}),
    Mistake("token-itself-left-out-count", {"sum(window - 1 for window in windows)": "sum(windows) - 1"}),
    Mistake(
        "reaches-layers-multiplied",
        {"sum(window - 1 for window in windows)": "int(np.prod([window - 1 for window in windows]))"},
    ),
    Mistake("windows-multiplied", {"sum(window - 1 for window in windows)": "int(np.prod(windows)) - 1"}),
    Mistake("only-widest-window-counts", {"sum(": "max("}),
    Mistake("only-last-layer-counts", {"in windows)": "in windows[-1:])"}),
    Mistake(
        "all-layers-given-window-first", {"sum(window - 1 for window in windows)": "len(windows) * (windows[0] - 1)"}
    ),
    Mistake("positions-before-first-token", {"np.maximum(np.arange(T) - reach, 0)": "np.arange(T) - reach"}),
    Mistake("full-attention-taken-window-length", {"if 0 in windows": "if False"}),
    Mistake(
        "layer-full-attention-left-out", {"if 0 in windows": "if False", "window - 1 for": "max(window - 1, 0) for"}
    ),
    Mistake(
        "full-attention-counts-last-layer",
        {"if 0 in windows": "if windows[-1] == 0", "window - 1 for": "max(window - 1, 0) for"},
    ),
    Mistake("window-laid-around-token", {"window - 1 for": "window // 2 for"}),
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
