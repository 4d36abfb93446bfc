"""What lesson 20 says, against what it computed."""

import numpy as np

from experiments.induction import set_by_hand
from minitransformer.layers import GeneralSelfAttention

HANDS = {
    "asks": (
        lambda run: run.letter @ run.heard.T,
        {
            "it finds the row's own token, not the place that has heard it": lambda run: run.letter @ run.letter.T,
            "rows and columns are exchanged: the position that asks is the row": lambda run: run.heard @ run.letter.T,
            "both sides use what they have heard; the row asks with its own letter": lambda run: (
                run.heard @ run.heard.T
            ),
        },
    ),
    "between": (
        lambda run: run.W_q2 @ run.W_k2.T @ run.W_o1.T @ run.W_v1.T,
        {
            "x_i stands transposed at the end, so W_v1 and W_o1 come transposed, too": (
                lambda run: run.W_q2 @ run.W_k2.T @ run.W_v1 @ run.W_o1
            ),
            "queries and keys are exchanged: y_t is what asks": (
                lambda run: run.W_k2 @ run.W_q2.T @ run.W_o1.T @ run.W_v1.T
            ),
            "this is the first term, which compares with token j itself": lambda run: run.W_q2 @ run.W_k2.T,
            "this composes layer 1 with the query instead of the key": (
                lambda run: run.W_v1 @ run.W_o1 @ run.W_q2 @ run.W_k2.T
            ),
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson, run)
    check_by_hand(lesson, run)
    check_composition(lesson, run)
    quote_training(lesson, run)
    quote_one_layer(lesson, run)
    quote_heads_taken_out(lesson, run)
    check_a_key_taken_out(lesson, run)
    check_the_example(lesson, run)
    check_answers(lesson, run)
    claim(lesson, run)


def check_by_hand(lesson, run):
    """The two heads, and the library's layers with the same matrices."""
    lesson.check("layer 1 has heard what stood before", np.abs(run.y[:, run.HEARD :] - run.heard).max(), 1e-6)
    said = ["".join(run.TOKENS[row.argmax()] if row.max() > 0.9 else "?" for row in run.says[5:])]
    assert said == ["top"], said
    even = np.tri(5) / np.tri(5).sum(axis=1, keepdims=True)
    lesson.check("the first rows spread their weight", np.abs(run.p_2[1:5, :5] - even[1:]).max(), 1e-7)
    lesson.quote("token has 5 features for its letter, 8 for its position, and 5 that are empty", run.V, run.T, run.V)
    for x, layer, y in ((run.x, run.layer_1, run.found), (run.y, run.layer_2, run.says)):
        W_q, W_k, W_v, W_o = layer
        theirs = GeneralSelfAttention(run.C, 1, bias=False, d_k=W_q.shape[1], d_v=W_v.shape[1], dtype=np.float64)
        theirs.qkv.W.data[...] = np.hstack([W_q, W_k, W_v])
        theirs.output.W.data[...] = np.pad(W_o, ((0, 0), (0, run.C - W_o.shape[1])))
        got = theirs(x[None], run.causal_mask(len(x)))[0, :, : W_o.shape[1]]
        lesson.check("the library's SelfAttention says the same", run.error(got, y), 1e-12)
    lesson.quote("A score of 20 wins against a score of 0", 20, 0)
    for layer, x in ((run.layer_1, run.x), (run.layer_2, run.y)):
        scores = x @ layer[0] @ (x @ layer[1]).T / np.sqrt(layer[0].shape[1])
        lesson.check("scores by hand are 20 or 0", np.abs(scores * (scores - 20)).max(), 1e-5)


def check_composition(lesson, run):
    """One layer cannot see the token before a key; two layers do."""
    other = run.tokens.copy()
    other[2] = np.random.default_rng(0).standard_normal(7)
    one = [x @ run.W_q1 @ (x @ run.W_k1).T for x in (run.tokens, other)]
    lesson.check("another token before key 3: scores of one layer", np.abs(one[0] - one[1])[3:, 3].max(), 0.0)
    both = [x + run.head(x, run.W_q1, run.W_k1, run.W_v1, run.W_o1)[0] for x in (run.tokens, other)]
    scores = [y @ run.W_q2 @ (y @ run.W_k2).T for y in both]
    lesson.check("... and of two", np.abs(scores[0] - scores[1])[3:, 3].max(), at_least=0.1)


def quote_training(lesson, run):
    """What the two models get right."""
    two, one = (100 * run.right(model) for model in (run.two, run.one))
    lesson.quote("is right in 3 of 100 cases. The model is right in 98 of 100", 100 / 32, 100, two, 100, full_only=True)
    lesson.quote("about half of its weight, 0.49,", run.before_it.max(), within=0.1, full_only=True)
    lesson.quote("7 places back (the period − 1)", run.LENGTH - run.again.sum(axis=1).max() - 1, 1)
    lesson.quote(
        "still 23 of 100 tokens are right, where guessing gives 3", one, 100, 100 / 32, within=0.1, full_only=True
    )
    if not lesson.fast:
        lesson.check("one layer, of 100", one, 30)
        lesson.check("a head of layer 1 looks at the token before", run.before_it.max(), at_least=0.4)
        lesson.check("a head of layer 2 looks after copies", run.after_copies.max(), at_least=0.7)
        apart = [step for (step, two), (_, one) in zip(run.path_two, run.path_one, strict=True) if two > 1.2 * one]
        lesson.check("the curves part, at step", apart[0], 400)
    lesson.quote("with a period of 8", run.LENGTH - run.again.sum(axis=1).max())


def quote_one_layer(lesson, run):
    """The rule of the most frequent token among those 7 to 15 places back."""
    B, T, ids = len(run.tested.ids), run.LENGTH, run.tested.ids
    count = np.zeros((B, T, 33))
    for n in range(7, 16):
        for t in range(n, T):
            count[np.arange(B), t, ids[:, t - n]] += 1
    best = count == count.max(axis=-1, keepdims=True)
    share = np.take_along_axis(best / best.sum(-1, keepdims=True), run.tested.targets[..., None], -1)[..., 0]
    lesson.check("the rule, counted in a loop", abs(share[run.again].mean() - run.rule), 1e-12)
    lesson.quote("is right in 26 of 100 cases, not in 11", 100 * run.rule, 100, 100 / 9)
    full = run.again & (np.arange(T) >= 15)  # rows with nine places
    eight = (ids[:, 8:] == ids[:, :-8]).all(axis=1)[:, None]
    chance, twice, early = (share[each].mean() for each in (full & ~eight, full & eight, run.again & ~full))
    lesson.check("the rule with nine places, once there: more than 1/9, by chance repeats", chance, at_least=0.15)
    lesson.check("... where the answer stands there twice", twice, at_least=0.7)
    lesson.check("... and in early rows", early, at_least=0.2)
    said = run.one(ids).argmax(axis=-1)
    inside = np.take_along_axis(count, said[..., None], -1)[run.again] > 0
    lesson.check("what one layer says stands 7 to 15 places back", inside.mean(), at_least=lesson.pick(0.97, 0.9))
    lesson.check(
        "... and the answer does",
        np.take_along_axis(count, run.tested.targets[..., None], -1)[run.again].min(),
        at_least=1,
    )
    if not lesson.fast:
        lesson.check("weight of one layer 7 to 15 places back", np.sum(run.far[7:16], axis=0).mean(), at_least=0.75)
    lesson.quote("0.8 of the weight, on average", np.sum(run.far[7:16], axis=0).mean(), within=0.1, full_only=True)


def quote_heads_taken_out(lesson, run):
    """Which heads are missed."""
    lost = run.lost
    assert min(lost, key=lost.get)[:2] == ("0", 3) or lesson.fast
    lesson.quote("79 of 100 tokens are still right", lost["1", 2, "mean"], 100, within=0.03, full_only=True)
    zero, mean = (100 * run.right(run.two) - lost["0", 1, kind] for kind in ("zero", "mean"))
    lesson.quote(
        "costs 31 tokens if it becomes 0, but 3 if it becomes its mean", zero, 0, mean, within=0.4, full_only=True
    )


def check_a_key_taken_out(lesson, run):
    """The weights that are left are shared out again."""
    rng = np.random.default_rng(1)
    s, v = rng.standard_normal((4, 6)), rng.standard_normal((6, 3))
    p = run.softmax(s)
    gone = np.where(np.arange(6) == 2, -np.inf, s)
    formula = (p @ v - p[:, 2:3] * v[2]) / (1 - p[:, 2:3])
    lesson.check("(o − p_j v_j) / (1 − p_j)", run.error(formula, run.softmax(gone) @ v), 1e-14)


def check_the_example(lesson, run):
    """Composition in the model of "stop"."""
    numbers = run.example
    written = run.own + sum(head @ rows for head, rows in zip(run.o, np.split(run.W_o, 2), strict=True))
    norm = {name: numbers[f"decoder.norm1.{name}"] for name in ("mu", "sigma", "gamma", "beta")}
    total = written + numbers["decoder.self.b_o"]
    normed = norm["gamma"] * (total - norm["mu"]) / norm["sigma"] + norm["beta"]
    query = normed @ run.W_q + numbers["cross.b_q"][:3]
    lesson.example("cross.s[0]", query @ run.keys.T / np.sqrt(3))  # the shares, and what the biases add
    lesson.quote("0.92 of its weight", run.example["cross.p"][0, 4, 0])
    assert numbers["decoder.self.p"][1, 4].argmax() == 2, "head 1 does not look at «o» most"
    lesson.quote("Of a lead of 22.74 over «p»", run.whole_lead)
    lesson.quote("head 1 of self-attention brings 16.53, and the row's own token and position only 2.51",
                 1, run.lead["head 1"], run.lead["own token"])  # fmt: skip


def check_answers(lesson, run):
    """What the answers say, and the GPT by hand."""
    rows = np.random.default_rng(7).permuted(np.tile(np.arange(1, 65), (64, 1)), axis=1)[:, :16]
    rows = np.hstack([rows, rows, rows])
    hand = set_by_hand()(rows).argmax(axis=-1)
    lesson.check("a GPT by hand, where the rows repeat", (hand[:, 16:-1] == rows[:, 17:]).mean(), at_least=1)
    s, t, o, p = (run.TOKENS.index(token) for token in "stop")
    says = by_hand(run, [s, t, o, p, s])
    lesson.check("question 1: half «s», half «t»", np.abs(says[[s, t]] - 0.5).max(), 1e-6)
    says = by_hand(run, [0, o, t, o, p, o])
    lesson.check("question 3: half of each successor", np.abs(says[[t, p]] - 0.5).max(), 1e-6)
    for text, answer in (("axbcxdax", "b"), ("axbcxdcx", "d")):
        symbols = "*abcdx"  # * is «bos»
        letter = np.eye(6)[[symbols.index(symbol) for symbol in "*" + text]]
        one, two = (letter[np.maximum(np.arange(9) - back, 0)] for back in (1, 2))  # what each place has heard
        p = run.softmax(20 * (np.hstack([letter, one]) @ np.hstack([one, two]).T)[-1])
        lesson.check(f"exercise 2: after {text} comes {answer}", (p @ letter)[symbols.index(answer)], at_least=0.99)


def by_hand(run, ids):
    """What the two heads say after these tokens."""
    x = np.hstack([np.eye(run.V)[ids], np.eye(run.T)[: len(ids)], np.zeros((len(ids), run.V))])
    y = x + run.head(x, *run.layer_1)[0]
    return run.head(y, *run.layer_2)[0][-1]


def claim(lesson, run):
    """Verdicts on popular texts."""
    one, two = (100 * run.right(model) for model in (run.one, run.two))
    lesson.claim(
        "a Transformer of one layer cannot continue a sequence that repeats",
        "half right",
        f"it is right in {one:.0f} of 100 tokens, two layers in {two:.0f}, and guessing in 3: one layer learns how far "
        "back the answer must stand, but not which token it is",
        said="explanations of induction heads",
    )
    zero, mean = (two - run.lost["0", 1, kind] for kind in ("zero", "mean"))
    lesson.claim(
        "what a model loses when a head is set to zero is what the head does",
        "half right",
        f"a head of layer 1 costs {zero:.0f} of 100 tokens as 0, and {mean:.0f} as its mean: what is "
        "missed then is mostly a constant",
        said="reports on pruned heads",
    )


def check_elsewhere(lesson, run):
    """The question that asks for the lesson's idea on something else."""
    lesson.quote("that is the rule above, right in 26 of 100 cases", 100 * run.rule, 100)
