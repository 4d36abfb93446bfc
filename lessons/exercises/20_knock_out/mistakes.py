"""The problems, the hints and the known mistakes of 20_knock_out."""

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.functional import scaled_dot_product_attention
from minitransformer.inspection import Change, intervene
from minitransformer.layers import SelfAttention


def make_key(rng, given, T, S, D):
    """Random scores, and what attention with a mask gives."""
    s, v, j = rng.standard_normal((T, S)), rng.standard_normal((S, D)), int(rng.integers(S))
    allowed = np.arange(S) != j
    q, k = s * np.sqrt(S), np.eye(S)  # so that q kᵀ / √S are these scores
    expected, _ = scaled_dot_product_attention(q[None, None], k[None, None], v[None, None], allowed)
    return Problem((s, v, j), (expected[0, 0],), places={"in row j": {"o": np.arange(T)[:, None] == j}})


def make_head(rng, given, B, H, T, D):
    """Random heads, and what a layer of the library returns with an intervention."""
    o, gone = rng.standard_normal((B, H, T, D)) + rng.standard_normal((H, 1, D)), int(rng.integers(H))
    layer = SelfAttention(H * D, H, bias=False, dtype=np.float64)
    layer.output.W.data[...] = rng.standard_normal((H * D, H * D))
    merged = o.transpose(0, 2, 1, 3).reshape(B, T, H * D)
    expected = []
    for value in (0.0, o[:, gone].reshape(-1, D).mean(axis=0)):
        with intervene(layer, Change("output", value=value, piece=(gone, H), output=False)):
            expected.append(layer.output(merged))
    return Problem((o, layer.output.W.data.copy(), gone), tuple(expected))


def within_the_values(outputs, problem):
    """Whether every feature of o lies between the smallest and the largest of the values that are left."""
    _, v, j = problem.args
    left = np.delete(v, j, axis=0)
    return bool((outputs[0] >= left.min(axis=0) - 1e-9).all() and (outputs[0] <= left.max(axis=0) + 1e-9).all())


KEY_MISTAKES = (
    Mistake(
        "weights-left-not-renormalised",
        {
            "seen[:, j] = -np.inf": "seen = softmax(seen)\n    seen[:, j] = 0.0",
            "softmax(seen) @ v": "seen @ v",
        },
    ),
    Mistake("score-becomes-0-not-minusinfinity", {"-np.inf": "0.0"}),
    Mistake(
        "query-taken-out-not-key",
        {
            "    seen[:, j] = -np.inf\n": "    seen[j % len(s)] = -np.inf\n",
            "softmax(seen)": "np.nan_to_num(softmax(seen))",
        },
    ),
    Mistake(
        "free-weight-spread-evenly",
        {
            "seen[:, j] = -np.inf": "seen = softmax(seen)\n    free = seen[:, j : j + 1] / (seen.shape[1] - 1)\n"
            "    seen = seen + free\n    seen[:, j] = 0.0",
            "softmax(seen) @ v": "seen @ v",
        },
    ),
    Mistake(
        "value-becomes-mean-all-values",
        {"    seen[:, j] = -np.inf\n": "    v = np.where(np.arange(len(v))[:, None] == j, v.mean(axis=0), v)\n"},
    ),
    Mistake("key-after-taken-out", {"seen[:, j]": "seen[:, (j + 1) % seen.shape[1]]"}),
    Mistake("softmax-over-queries", {"softmax(seen)": "softmax(seen.T).T"}),
)
HEAD_MISTAKES = (
    Mistake("each-sequence-mean-own", {".mean(axis=(0, 1))": ".mean(axis=1)[:, None]"}),
    Mistake("mean-taken-over-features-too", {".mean(axis=(0, 1))": ".mean()"}),
    Mistake("mean-all-heads", {"o[:, gone].mean(axis=(0, 1))": "o.mean(axis=(0, 1, 2))"}),
    Mistake(
        "only-head-left-others-taken",
        {
            "zero[:, gone] = 0.0": "zero[:, np.arange(H) != gone] = 0.0",
            "mean[:, gone] = o[:, gone].mean(axis=(0, 1))": "mean[:, np.arange(H) != gone] = "
            "o[:, np.arange(H) != gone].mean(axis=(0, 2), keepdims=True)",
        },
    ),
    Mistake("other-heads-scaled-up", {"zero[:, gone] = 0.0": "zero *= H / (H - 1)\n    zero[:, gone] = 0.0"}),
    Mistake(
        "position-taken-out-not-head",
        {
            "zero[:, gone] = 0.0": "zero[:, :, gone % T] = 0.0",
            "mean[:, gone] = o[:, gone].mean": "mean[:, :, gone % T] = o[:, :, gone % T].mean",
        },
    ),
    Mistake("heads-reshaped", {"each.transpose(0, 2, 1, 3).reshape(B, T, H * D)": "each.reshape(B, T, H * D)"}),
)

EXERCISE = Exercise(
    name="20_knock_out",
    hints=(
        "A row gives 0.6, 0.3 and 0.1 to three keys. What should it give to the first and the last without the second? "
        "And how many numbers is the mean of a head?",
        "The weights that are left must sum to 1 again, in the same ratios. For a head, think of what W_o would have "
        "read: zeros, or one vector for all tokens.",
        "o = softmax of s (T, S) with one column at −∞, times v (S, D);  mean (D,) of a head (B, T, D) over its first "
        "two axes;  y (B, T, C) = merged heads (B, T, H D) times W_o (H D, C)",
    ),
    tasks=(
        Task(
            function="without_key",
            outputs=(Output("o", "TD"),),
            make=make_key,
            sizes=sizes("T S D", (3, 5, 2), (4, 2, 3), (1, 6, 1)),
            invariants=(Invariant("o lies between the values that are left", within_the_values),),
            mistakes=KEY_MISTAKES,
        ),
        Task(
            function="without_head",
            outputs=(Output("y_zero", "BTC"), Output("y_mean", "BTC")),
            make=make_head,
            sizes=sizes("B H T D", (2, 3, 5, 4), (3, 2, 1, 2), (1, 1, 3, 1)),
            mistakes=HEAD_MISTAKES,
        ),
    ),
)
