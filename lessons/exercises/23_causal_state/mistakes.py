"""The problems, the hints and the known mistakes of 23_causal_state."""

import numpy as np
from exercise_problems import backward_problem, sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task

STATE_SIZES = sizes("B T D width", (2, 5, 3, 4), (3, 4, 5, 2), (1, 1, 1, 1))
BACKWARD_SIZES = sizes("B T D width", (2, 5, 3, 4), (3, 4, 5, 2), (1, 1, 1, 1))


def make_states(rng, given, B, T, D, width):
    """Keys and values of order one; the states by loops."""
    k, v = rng.standard_normal((B, T, D)), rng.standard_normal((B, T, width))
    expected = np.zeros((B, T, D, width))
    for b, t, j in np.ndindex(B, T, T):
        if j <= t:
            expected[b, t] += np.outer(k[b, j], v[b, j])
    places = {"in the first state": {"states": np.broadcast_to(np.arange(T)[:, None, None] == 0, expected.shape)}}
    return Problem((k, v), (expected,), ratios={"T": T}, places=places)


def make_attention(rng, given, B, T, D, width):
    """Queries, keys and values of order one."""
    inputs = {
        "q": rng.standard_normal((B, T, D)),
        "k": rng.standard_normal((B, T, D)),
        "v": rng.standard_normal((B, T, width)),
    }
    return backward_problem(given.attend, inputs, ("q", "k", "v"), rng)


def products_agree(outputs, problem):
    """Whether q dq, k dk and v dv have the same sum: multiply one of the three by a number, and so is o."""
    q, k, v = problem.args[1]
    sums = [float((x * dx).sum()) for x, dx in zip((q, k, v), outputs, strict=True)]
    return max(sums) - min(sums) < 1e-9


STATE_MISTAKES = (
    Mistake("current-token-left-out-state", {"np.cumsum(products, axis=1)": "np.cumsum(products, axis=1) - products"}),
    Mistake(
        "every-token-gets-state",
        {"np.cumsum(products, axis=1)": "np.broadcast_to(products.sum(axis=1, keepdims=True), products.shape)"},
    ),
    Mistake("products-not-added-up", {"np.cumsum(products, axis=1)": "products"}),
    Mistake("sum-begins-last-token", {"np.cumsum(products, axis=1)": "np.cumsum(products[:, ::-1], axis=1)[:, ::-1]"}),
    Mistake("sum-runs-over-sequences-batch", {"axis=1": "axis=0"}),
    Mistake(
        "state-mean-products-not-sum",
        {"np.cumsum(products, axis=1)": "np.cumsum(products, axis=1) / np.arange(1, k.shape[1] + 1)[:, None, None]"},
    ),
    Mistake(
        "keys-added-up",
        {
            "products = k[": "products = np.cumsum(k, axis=1)[",
            "np.cumsum(products, axis=1)": "products",
        },
    ),
)

BACKWARD_MISTAKES = (
    Mistake(
        "gradient-states-summed-forward",
        {"np.cumsum(outer(q, do)[:, ::-1], axis=1)[:, ::-1]": "np.cumsum(outer(q, do), axis=1)"},
    ),
    Mistake("dk-dv-leave-out-query", {"axis=1)[:, ::-1]": "axis=1)[:, ::-1] - outer(q, do)"}),
    Mistake("dk-dv-hear-query-own", {"np.cumsum(outer(q, do)[:, ::-1], axis=1)[:, ::-1]": "outer(q, do)"}),
    Mistake(
        "dk-dv-hear-all-queries",
        {"np.cumsum(outer(q, do)[:, ::-1], axis=1)[:, ::-1]": "0 * states + outer(q, do).sum(axis=1, keepdims=True)"},
    ),
    Mistake("sum-end-left-wrong-order", {"axis=1)[:, ::-1]": "axis=1)"}),
    Mistake("dq-made-last-state", {'btde->btd", do, states)': 'bde->btd", do, states[:, -1])'}),
    Mistake("dq-made-state-before-own", {"do, states)": "do, states - outer(k, v))"}),
    Mistake("dq-made-gradient-states", {"do, states)": "do, dstates)"}),
    Mistake("dk-made-do-where-value", {'"bte,btde->btd", v, dstates)': '"bte,btde->btd", do, dstates)'}),
)

EXERCISE = Exercise(
    name="23_causal_state",
    hints=(
        "Write down the first three states, and the first three answers. In which answers does the second key appear?",
        "The states are a running sum over the tokens, the current one included. A state is read by its own query and "
        "by all later ones, so its gradient is a running sum, too: from which end?",
        "Z (B, T, D, width) = sums over the axis T of products k_td v_te;  dZ: the same with q_td do_te, from the "
        "other end;  dq = do and Z, dk = v and dZ, dv = k and dZ, each a product for every token",
    ),
    tasks=(
        Task(
            function="causal_states",
            outputs=(Output("states", ("B", "T", "D", "width")),),
            make=make_states,
            sizes=STATE_SIZES,
            mistakes=STATE_MISTAKES,
        ),
        Task(
            function="attend_backward",
            forward="attend",
            outputs=(Output("dq", "BTD"), Output("dk", "BTD"), Output("dv", ("B", "T", "width"))),
            make=make_attention,
            sizes=BACKWARD_SIZES,
            linear=True,
            invariants=(
                Invariant("q, k and v each scale o, so q∘dq, k∘dk and v∘dv have the same sum", products_agree),
            ),
            mistakes=BACKWARD_MISTAKES,
        ),
    ),
)
