"""The problems, the hints and the known mistakes of 23_causal_state."""

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.exercises.problems import backward_problem, sizes

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
    Mistake(
        "the current token is left out of its state",
        "Does row t of a causal mask allow the token t itself? Then what does the first state hold?",
        {"np.cumsum(products, axis=1)": "np.cumsum(products, axis=1) - products"},
    ),
    Mistake(
        "every token gets the state after the last one",
        "May a token see what comes after it?",
        {"np.cumsum(products, axis=1)": "np.broadcast_to(products.sum(axis=1, keepdims=True), products.shape)"},
    ),
    Mistake(
        "the products are not added up",
        "What does the state keep of the tokens before?",
        {"np.cumsum(products, axis=1)": "products"},
    ),
    Mistake(
        "the sum begins at the last token",
        "In which direction does the text run? Which tokens are in the first state?",
        {"np.cumsum(products, axis=1)": "np.cumsum(products[:, ::-1], axis=1)[:, ::-1]"},
    ),
    Mistake(
        "the sum runs over the sequences of the batch",
        "Which axis of the products counts the tokens?",
        {"axis=1": "axis=0"},
    ),
    Mistake(
        "the state is a mean of the products, not their sum",
        "Does the third token's product count less because two came before it? Look at the formula.",
        {"np.cumsum(products, axis=1)": "np.cumsum(products, axis=1) / np.arange(1, k.shape[1] + 1)[:, None, None]"},
    ),
    Mistake(
        "the keys are added up, but not their products with the values",
        "A value must stay bound to its own key. Is a product of two sums the sum of products?",
        {
            "products = k[": "products = np.cumsum(k, axis=1)[",
            "np.cumsum(products, axis=1)": "products",
        },
    ),
)

BACKWARD_MISTAKES = (
    Mistake(
        "the gradient of the states is summed forward",
        "Which queries use a state: those before it, or those after it?",
        {"np.cumsum(outer(q, do)[:, ::-1], axis=1)[:, ::-1]": "np.cumsum(outer(q, do), axis=1)"},
    ),
    Mistake(
        "dk and dv leave out the query of their own token",
        "Does a token see itself? Then its own query, too, has read its key and its value.",
        {"axis=1)[:, ::-1]": "axis=1)[:, ::-1] - outer(q, do)"},
    ),
    Mistake(
        "dk and dv hear from the query of their own token alone",
        "How many later queries read a state after this token has added to it?",
        {"np.cumsum(outer(q, do)[:, ::-1], axis=1)[:, ::-1]": "outer(q, do)"},
    ),
    Mistake(
        "dk and dv hear from all queries",
        "Did the queries before this token see its key?",
        {"np.cumsum(outer(q, do)[:, ::-1], axis=1)[:, ::-1]": "0 * states + outer(q, do).sum(axis=1, keepdims=True)"},
    ),
    Mistake(
        "the sum from the end is left in the wrong order",
        "Which token does the first entry of your sum belong to, after you have turned the tokens around?",
        {"axis=1)[:, ::-1]": "axis=1)"},
    ),
    Mistake(
        "dq is made with the last state",
        "Which state did the query of token t meet in the forward?",
        {'btde->btd", do, states)': 'bde->btd", do, states[:, -1])'},
    ),
    Mistake(
        "dq is made with the state before its own token",
        "Does a query see its own token?",
        {"do, states)": "do, states - outer(k, v))"},
    ),
    Mistake(
        "dq is made with the gradient of the states",
        "o = q Z is a product. What does a product send back to its first factor?",
        {"do, states)": "do, dstates)"},
    ),
    Mistake(
        "dk is made with do where the value belongs",
        "The state gets k_jᵀ v_j. Which of the two is the factor of k?",
        {'"bte,btde->btd", v, dstates)': '"bte,btde->btd", do, dstates)'},
    ),
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
