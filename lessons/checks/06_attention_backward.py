"""What lesson 06 says, against what it computed."""

import numpy as np

from minitransformer.functional import scaled_dot_product_attention, scaled_dot_product_attention_backward

HANDS = {
    "ds_row": (
        lambda run: run.p[1] * (run.dp[1] - run.p[1] @ run.dp[1]),
        {
            "the average is forgotten: weights that gain must take from others": lambda run: run.p[1] * run.dp[1],
            "this is the way that descent goes, against the gradient": lambda run: (
                run.p[1] * (run.p[1] @ run.dp[1] - run.dp[1])
            ),
            "in the average, each letter must count as much as the row looks at it": lambda run: (
                run.p[1] * (run.dp[1] - run.dp[1].mean())
            ),
            "a score reaches all weights of its row; this is its own weight alone": lambda run: (
                run.p[1] * (1 - run.p[1]) * run.dp[1]
            ),
            "the factor p_j is missing: a letter moves as much as the row looks at it": lambda run: (
                run.dp[1] - run.p[1] @ run.dp[1]
            ),
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson, run)
    for name in ("o", "s", "p", "dv", "dp", "ds", "dq", "dk"):
        lesson.example(f"cross.{name}[0]", getattr(run, name))
    quote_the_row(lesson, run)
    quote_descent(lesson, run)
    quote_deeper(lesson, run)
    check_exercises(lesson, run)
    claim(lesson, run)


def quote_the_row(lesson, run):
    """Row p→o of head 0."""
    example, p, dp, ds, do = run.example, run.p[1], run.dp[1], run.ds[1], run.do[1]
    average = p @ dp
    lesson.quote("to which it gives a probability of 0.70", example["output.p"][1, 3])
    lesson.quote("56 % at «o», but also 22 % at «t» and 17 % at «p»", *(100 * p[[2, 1, 3]]))
    lesson.quote("do = (0.1894, 0.1222, 0.0180)", *do)
    lesson.quote("weight 0.044 0.218 0.564 0.173", *p)
    lesson.quote("price −0.152 0.205 −0.354 0.621", *dp)
    lesson.quote("handed over the value v_2 = (−0.8163, −1.4823, −1.0204)", 2, *run.v[2])
    terms = [number for d in range(3) for number in (do[d], run.v[2, d])]
    lesson.quote("0.1894 · (−0.8163) + 0.1222 · (−1.4823) + 0.0180 · (−1.0204) = −0.3541", *terms, do @ run.v[2])
    lesson.quote("0.564 · do = (0.107, 0.069, 0.010)", p[2], *(p[2] * do))
    terms = [number for pair in zip(p, dp, strict=True) for number in pair]
    lesson.quote("0.044 · (−0.152) + 0.218 · 0.205 + 0.564 · (−0.354) + 0.173 · 0.621 = −0.054", *terms, average)
    lesson.quote("dp_j − p·dp −0.098 0.259 −0.300 0.675", *(dp - average))
    lesson.quote("ds_j −0.004 0.056 −0.169 0.117", *ds)
    lesson.quote("eos a probability of 0.999", example["output.p"][4, 2])
    others = np.abs(np.delete(run.ds, 1, axis=0)).max()
    lesson.check("row p→o's largest gradient over that of the other rows", np.abs(ds).max() / others, at_least=5)
    lesson.check("the gradient of the keys' bias is 0", np.abs(example["cross.db_k"]).max(), 1e-15)
    lesson.quote(
        "The key of «o» pulls with the factor 0.169, while the keys of «p» and «t» push with 0.117 and 0.056",
        -ds[2],
        ds[3],
        ds[1],
    )
    lesson.quote("the query pulls at the key of «o», also with 0.169", -ds[2])
    step = -run.dq[1] @ run.k.T  # what a step of the query adds to its dot products
    lesson.check("the step raises the product with the key of o most", step[2] - np.delete(step, 2).max(), at_least=0.1)
    lesson.check("... and that with the key of p too", step[3], at_least=0.1)
    o, p = run.k[2:]
    quote_the_step(lesson, run)
    lesson.quote("the cosine is 0.88", o @ p / np.sqrt((o @ o) * (p @ p)))


def quote_the_step(lesson, run):
    """The query and the key that turn towards each other."""

    def degrees(x, y):
        return np.degrees(np.arccos(x @ y / np.sqrt((x @ x) * (y @ y))))

    before, after = (run.q[1], run.k[2]), (run.turned_q, run.turned_k)
    lesson.quote("With a learning rate of 2, the angle", run.size)
    lesson.quote("falls from 67° to 48°", degrees(*before), degrees(*after))
    lesson.quote("rises from 1.84 to 3.77", *(x @ y / 3**0.5 for x, y in (before, after)))
    end = run.end - run.size * run.ds[1, 0] * run.k[0] / 3**0.5  # that of «s» is too short to be drawn
    lesson.check("the pull and the pushes are the whole step of the query", np.abs(end - run.turned_q).max(), 1e-14)


def quote_descent(lesson, run):
    """The same row under descent, and rows that are sure and wrong."""
    paid, price, steps = run.paid, run.prices, run.steps
    lesson.quote("falls from −0.054 towards −0.354", paid[0], price[2])
    lesson.quote("whose price is −0.152 all the time. At first the row pays −0.054", price[0], paid[0])
    lesson.quote("After three steps the row pays −0.168", paid[3])
    above = paid > price[0]
    lesson.check(
        "s is better than the average before the first three steps only",
        above.sum() == above[:3].sum() == 3,
        at_least=1,
    )
    long = run.descend(run.s[1], price, 3000) @ price
    lesson.check("the average price falls at each of 3,000 steps", np.diff(long).max(), 0.0)
    lesson.quote(
        "From leads of 2, 4, 6 and 8 it takes 12, 30, 148 and 1,010 steps until «o» has more than half",
        *(2, 4, 6, 8, *(steps[lead] for lead in (2, 4, 6, 8))),
    )
    scores, waited = np.array([0.0, 0.0, 0.0, 8.0]), 0
    while run.softmax(scores)[2] <= 0.5:  # descent without the factor p_j, from the worst start
        scores, waited = scores - (price - run.softmax(scores) @ price), waited + 1
    lesson.check("steps from a lead of 8 if the factor p_j is missing", waited, 12)
    lesson.quote(
        "Each further 2 makes the weight of «o», a factor of its gradient, about e² = 7.39 times smaller", 2, np.exp(2)
    )
    waits = np.array([steps[lead] for lead in (2, 4, 6, 8)], dtype=float)
    ratios = waits[1:] / waits[:-1]
    lesson.check("in the end the wait grows by nearly e²", ratios[-1] / np.exp(2), at_least=0.9)
    lesson.check("... and at most by e²", ratios.max(), np.exp(2))


def quote_deeper(lesson, run):
    """The average by do·o, the tests, the table of mistakes."""
    lesson.check("p·dp = do·o", np.abs((run.p * run.dp).sum(-1) - (run.do * run.o).sum(-1)).max(), 1e-15)
    blocks = in_blocks(run, run.kinds["different"])
    lesson.check("exercise 2: two keys at a time", max(run.error(x, y) for x, y in blocks), 1e-14)
    for arrays in run.kinds.values():
        right = run.signature({}, arrays)
        lesson.check("right lines pass the three tests", max(right[3:]), 1e-12)
    different = {name: run.signatures["different", name] for name in run.MISTAKES}
    square = {name: run.signatures["square", name] for name in run.MISTAKES}
    softmax = [name for name, changes in run.MISTAKES.items() if "ds" in changes]
    assert (len(softmax), len(run.MISTAKES)) == (4, 11)  # "All four mistakes in ds", "of the eleven"
    lesson.check("the row sums catch every mistake in ds", min(different[name][3] for name in softmax), at_least=0.05)
    lesson.check("... and dv is right", max(different[name][0] for name in softmax), 1e-14)
    lesson.check("... and dq and dk are wrong", min(min(different[name][1:3]) for name in softmax), at_least=0.05)
    lesson.check("a forgotten scale passes the three tests", max(different["scale forgotten"][3:]), 1e-12)
    arrays = run.kinds["different"]
    right, wrong = (run.run_lines(changes, *arrays) for changes in ({}, run.MISTAKES["scale forgotten"]))
    for name in ("dq", "dk"):
        ratio = wrong[name] / right[name]
        lesson.check(f"... and makes all of {name} √D times too large", np.abs(ratio / 5**0.5 - 1).max(), 1e-12)
    lesson.quote("√D = 2.2361 times too large, for D = 5", ratio.mean(), 5)
    reshaped = different["dk by reshape"]
    lesson.check("dk by reshape: dv and dq are right", max(reshaped[:2]), 1e-14)
    lesson.check("... dk is wrong", reshaped[2], at_least=0.3)
    lesson.check("refused if lengths differ", sum(values is None for values in different.values()) == 4, at_least=1)
    lesson.check("refused if all are 4", sum(values is None for values in square.values()), 0)
    unseen = square["v not transposed in dp"]
    lesson.check("v not transposed, square: no test sees it", max(unseen[3:]), 1e-12)
    lesson.check("... but its dq is wrong", unseen[1], at_least=0.3)
    lesson.check("scale twice in dk fails q·dq = k·dk", different["scale twice in dk"][4], at_least=0.05)
    lesson.check("q and k swapped, square, fail it too", square["q and k swapped"][4], at_least=0.05)
    lesson.check("p not transposed, square, fails v·dv = o·do", square["p not transposed in dv"][5], at_least=0.05)


def check_exercises(lesson, run):
    """What the answers say."""
    q, k, v, do = run.q, run.k, run.v, run.do
    centred = k - (run.p @ k)[:, None]  # (T, S, D): each key minus the row's average key
    advantage = run.p * (run.dp - (run.p * run.dp).sum(-1, keepdims=True))
    covariance = (advantage[..., None] * centred).sum(axis=1)
    lesson.check("√D dq is the covariance of price and key", run.error(covariance, 3**0.5 * run.dq), 1e-13)
    shifted = run.attention_backward(do, q, k, v + np.array([1.0, -2.0, 3.0]), run.p)
    same = [
        run.error(mine, other) for mine, other in zip(shifted, (run.dv, run.dp, run.ds, run.dq, run.dk), strict=True)
    ]
    lesson.check("question 3: dv, ds, dq and dk stay", max(same[0], *same[2:]), 1e-12)
    lesson.check("... and dp does not", same[1], at_least=0.1)


def in_blocks(run, arrays, size=2):
    """Exercise 2 -> pairs (dq, dk or dv of blocks, the same from the whole)."""
    q, k, v, do = arrays
    o, s, p = run.attention(q, k, v)
    dv, _, _, dq, dk = run.attention_backward(do, q, k, v, p)
    log = np.log(np.exp(s).sum(axis=-1, keepdims=True))
    price, root, mine, others = (do * o).sum(-1, keepdims=True), np.sqrt(q.shape[-1]), np.zeros_like(q), []
    for start in range(0, len(k), size):
        keys, values = k[start : start + size], v[start : start + size]
        p = np.exp(q @ keys.T / root - log)
        ds = p * (do @ values.T - price)
        mine += ds @ keys / root
        others += [(ds.T @ q / root, dk[start : start + size]), (p.T @ do, dv[start : start + size])]
    return [(mine, dq), *others]


def claim(lesson, run):
    """Verdicts on popular texts."""
    lesson.quote("a lead of 37 is enough: 1 + exp(−37) is stored as 1", 37, 1, -37, 1 + np.exp(-37.0))
    assert 1 + np.exp(-37.0) == 1 / (1 + np.exp(-37.0)) == 1 < 1 + np.exp(-36.0)
    lesson.quote("The other weight is then 8.5e-17", np.exp(-37.0))
    lesson.quote("exp(−750) is stored as 0", -750, np.exp(-750.0))
    assert np.exp(-750.0) == 0 < np.exp(-740.0)
    lesson.quote("In float32, a lead of 17 is enough", 32, 17)
    one = np.float32(1)
    assert one + np.exp(np.float32(-17)) == one < one + np.exp(np.float32(-16))
    sizes = [jacobian_size(np.full(keys, 1 / keys)) for keys in (64, 2, 1)]
    lesson.quote("is 0.124 for 64 equal weights, 0.5 for two, and 0 for a single one", *sizes[:1], 64, *sizes[1:])
    lesson.check("256 equal keys: each value gets 1/256 of do", np.abs(256 * run.shares - 1).max(), 1e-14)
    lesson.check("... together all of it", np.abs(run.shares.sum(axis=0) - 1).max(), 1e-13)
    lesson.check("a lead of 40: largest gradient of a score", run.deaf, 1e-16)
    _, cache = scaled_dot_product_attention(*(np.ones((1, 1, n, 3)) for n in (1, 256, 256)))
    library = scaled_dot_product_attention_backward(np.ones((1, 1, 1, 3)), cache)[2]
    lesson.check("the library's values get the same", run.error(library[0, 0], run.shares), 1e-14)
    lesson.claim(
        "attention eliminates the vanishing gradient",
        "half right",
        "every token is one step away; but even attention over 256 tokens passes "
        f"{run.shares.max():.4f} of the gradient to each value, and the scores of a row whose best key leads by 40 get "
        f"{run.deaf:.0e} at most",
        said="blog posts and lecture slides that compare attention with recurrent networks",
    )
    lesson.claim(
        "the more evenly a row attends, the larger the gradient of its scores",
        "wrong",
        f"the norm of the softmax Jacobian is {sizes[0]:.3f} for 64 equal weights, {sizes[1]:.3f} for two keys with "
        f"half each, {sizes[2]:.0f} for a sure row",
        said="explanations of why attention should begin even",
    )


def jacobian_size(p):
    """The norm of the softmax Jacobian at the weights p (S,)."""
    return float(np.sqrt(np.square(np.diag(p) - np.outer(p, p)).sum()))


def check_elsewhere(lesson, run):
    """The question that asks for the lesson's idea on something else."""
    p, price = np.array([0.7, 0.2, 0.1]), np.array([1.0, -2, 0])
    lesson.quote("0.7 · 1 − 0.2 · 2 = 0.3", 0.7, 1, 0.2, 2, p @ price)

    def loss(s):
        weights = np.exp(s)
        return (weights / weights.sum()) @ price

    lesson.quote("which is (0.49, −0.46, −0.03)", *run.complex_step(loss, np.log(p)))
