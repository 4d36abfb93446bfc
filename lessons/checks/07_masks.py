"""What lesson 07 says, against what it computed."""

from support.noise import LETTERS, WIDTH, multiplied_after, multiplied_after_backward

import numpy as np

from minitransformer.functional import padding_mask
from minitransformer.models import GPT, gpt_config


def lower(T, above=0):
    """The mask that lets row t look at rows 0 to t + above."""
    return np.tril(np.ones((T, T), bool), above)


HANDS = {
    "mask": (
        lambda run: 1.0 * lower(run.T),
        {
            "the wrong way round: it sees all of the future and none of the past": lambda run: 1.0 * ~lower(run.T),
            "transposed: rows look ahead, because t counts rows and j columns": lambda run: 1.0 * lower(run.T).T,
            "no row may look at itself, and row 0 is empty": lambda run: 1.0 * lower(run.T, -1),
            "every row sees one token too many": lambda run: 1.0 * lower(run.T, 1),
        },
    ),
    "row_weights": (
        lambda run: run.softmax(np.where(lower(run.T)[1], run.row, -np.inf)),
        {
            "the forbidden keys are still in the denominator": lambda run: run.softmax(run.row) * lower(run.T)[1],
            "these are the weights without a mask": lambda run: run.softmax(run.row),
            "a forbidden score of 0 is a score like any other": lambda run: run.softmax(run.row * lower(run.T)[1]),
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson, run)
    small_numbers(lesson, run)
    rows_and_masks(lesson, run)
    noise(lesson, run)
    the_alphabet(lesson, run)
    finite_masks(lesson, run)


def small_numbers(lesson, run):
    s, p, row = run.s, run.p, run.row
    lesson.example("decoder.self.s", s)
    lesson.example("decoder.self.p", p)
    for name, gradient in zip("qkv", run.gradients, strict=True):
        lesson.example(f"decoder.self.d{name}", gradient)
    exps = np.exp(row)
    lesson.quote("score 0.822 −0.031 1.175 −0.610 1.106", *row)
    lesson.quote("exp 2.274 0.970 3.237 0.543 3.021 sum 10.045", *exps, exps.sum())
    lesson.check("row 1 would look mostly at the letter that it must write", row.argmax() == 2, at_least=1)
    lesson.quote("plain softmax gives it 3.237/10.045 = 0.322", exps[2], exps.sum(), run.softmax(row)[2])
    allowed, both = exps[:2].sum(), [number for i in range(2) for number in (exps[i], exps[:2].sum(), p[1, 1, i])]
    lesson.quote("2.274/3.244 = 0.701 0.970/3.244 = 0.299 sum 1", *both, 1)
    lesson.quote("exponentials of bos and «p» alone sum to 3.244", exps[:2].sum())
    lesson.quote("2.274/10.045 = 0.226", exps[0], exps.sum(), run.after[0])
    lesson.quote("0.970/10.045 = 0.097 sum 0.323", exps[1], exps.sum(), run.after[1], allowed / exps.sum())
    lesson.check("the two programs", np.abs(run.before - p[1, 1]).max(), 1e-15)
    lesson.quote("and they take 68 % of the attention away", 100 * (1 - run.after.sum()))
    louder = run.softmax(np.where(np.arange(5) == 2, 3, row))
    lesson.quote("If the score of «o» were 3, the allowed weights would shrink to 0.085 and 0.036", 3, *louder[:2])
    lesson.check("what is above the stairs", np.abs(np.triu(p, 1)).max(), 0)
    dp, ds = (run.example[f"decoder.self.{name}"][1] for name in ("dp", "ds"))
    lesson.quote("dp of «o» is 0.149, so the loss has an opinion about that look, but its ds is 0", dp[1, 2], ds[1, 2])


def rows_and_masks(lesson, run):
    q, k, v = run.q[0], run.k[0], run.v[0]
    causal = run.causal
    padded = causal & np.array([False, True, True, True, True])  # padding in front of a word: row 0 is empty
    o, cache = run.attention(q, k, v, padded)
    do = np.random.default_rng(1).standard_normal(o.shape)
    do[0] = 0  # no loss is computed there
    lesson.check(
        "an empty row: its answer and its ds", np.abs([o[0], run.attention_backward(do, cache)[0][0]]).max(), 0
    )
    with np.errstate(invalid="ignore"):
        without_care = run.softmax(np.where(padded, q @ k.T, -np.inf))
    lesson.check("an empty row of NaN: share of NaN in dv", np.isnan(without_care.T @ do).mean(), at_least=1)

    lesson.example("encoder.self.s[0]", run.s_words[0])
    lesson.example("encoder.self.p[0]", run.masked[0])
    lesson.quote('the «t» of "to" puts 92 % of its attention on padding', 100 * run.unmasked[1, 0, 2:].sum())
    assert run.written(None) == ["o", "p", "o"], "writes «o», «p», «o»"
    assert run.written(padding_mask(run.words)) == ["o", "t", "eos"], "writes «o», «t», eos"
    alone, together = run.model(run.words[1:, :2], run.targets[1:]), run.model(run.words, run.targets)[1:]
    lesson.check('the logits of "to", padded and alone', np.abs(alone - together).max(), 1e-12)

    x = np.random.default_rng(2).standard_normal((1, 8, 3))
    ids, ones = np.arange(8)[None], np.ones((8, 8), bool)

    def reach(allowed):
        return run.reach_of(lambda ids: run.attention(*[x + ids[..., None]] * 3, allowed)[0], ids)

    not_itself, reversed_mask = reach(~np.triu(ones)), reach(~np.tril(ones))
    lesson.quote("The leak test says 0", run.leak_test(not_itself))
    lesson.check("~np.triu(ones): rows 0 and 1 see their own tokens", np.diag(not_itself)[:2].sum(), 0)
    lesson.check("~np.tril(ones): looks at the past", np.tril(reversed_mask, -1).sum(), 0)
    lesson.check("~np.tril(ones): sees too far by", run.leak_test(reversed_mask), at_least=7)


def noise(lesson, run):
    final, history, floor = run.final, run.history, np.log(LETTERS)
    fast = lesson.fast
    lesson.quote("ln 16 = 2.773 nats", 16, floor)
    lesson.quote("Its best mean loss is ln 16 / 8 = 0.347", 16, 8, floor / 8)
    for kind, end, slack in (
        ("honest", floor, 0.1),
        ("one too many", floor / 8, 0.3),
        ("multiplied after", floor / 8, 2.2),
    ):
        lesson.check(f"{kind}: loss above its floor", abs(final[kind] - end), slack if fast else 0.02)
    lesson.check("no honest loss below ln 16, except for chance", final["honest"], at_least=floor - 0.01)
    lesson.check("first losses, away from ln 16", max(abs(losses[0] - floor) for losses in history.values()), 0.3)
    lesson.quote("The honest model ends at 2.773", final["honest"], within=0.002, full_only=True)
    lesson.quote("The second ends at 0.347, and its training", final["one too many"], within=0.01, full_only=True)
    lesson.quote("its loss is about 10 nats", run.caught, within=0.25, full_only=True)
    lesson.quote("ends at 0.348", final["multiplied after"], within=0.05, full_only=True)
    assert run.leaks == {"honest": 0, "one too many": 1, "multiplied after": 7}
    lesson.quote("the leak test says 7 tokens too far", run.leaks["multiplied after"])
    library = GPT(gpt_config(LETTERS + 1, num_layers=2, d_model=WIDTH, num_heads=1, d_ff=8, dropout=0.0, max_len=8))
    lesson.check("the library's GPT sees too far by", run.leak_test(run.reach_of(library, run.fresh.ids[:10])), 0)
    lesson.claim(
        "a mask may as well be multiplied onto the weights after the softmax",
        "wrong",
        f"the forbidden scores stay in the denominator: on random letters, where {floor:.3f} nats is the best honest "
        f"loss, such a model ends at {final['multiplied after']:.3f}",
        said="question-and-answer threads and home-made attention code",
    )


def the_alphabet(lesson, run):
    share, fresh, full = np.log(run.share), run.fresh, not lesson.fast
    own = fresh.ids[:, 3]

    def explained_by(groups):
        within = sum(np.square(share[groups == i] - share[groups == i].mean()).sum() for i in np.unique(groups))
        return 1 - within / np.square(share - share.mean()).sum()

    medians = np.array([np.median(group) for group in run.by_answer])
    lesson.quote("one of 16 levels from 0.001 to 0.81", 16, medians[0], medians[-1], within=0.5, full_only=True)
    lesson.quote(
        "each about 1.5 times the one before", (medians[-1] / medians[0]) ** (1 / 15), within=0.1, full_only=True
    )
    lesson.quote("explains 97 % of the variance", 100 * explained_by(run.answer), within=0.02, full_only=True)
    lesson.quote("more than 99 %", 100 * explained_by(run.answer * 100 + own), within=0.01, full_only=True)
    lesson.check("weight of letters after the next", run.p_noise[:, 5:].sum(-1).mean(), 0.05 if full else 0.5)
    q, k, v, do = np.random.default_rng(3).standard_normal((4, 2, 8, 3))
    claimed = multiplied_after_backward(do, multiplied_after(q, k, v, run.right)[1])
    for i, gradient in enumerate(claimed):
        moved = [x + 1e-30j * do if i == j else x for j, x in enumerate((q, k, v))]
        true = (do * multiplied_after(*moved, run.right)[0]).sum().imag / 1e-30
        difference = abs((gradient * do).sum() - true)
        lesson.check(f"multiplied after: d{'qkv'[i]} along a random direction", difference, 1e-12)

    x, ids = np.random.default_rng(4).standard_normal((20, 8, 3)), np.tile(np.arange(8), (20, 1))

    def repaired(ids):  # exercise 2
        y = x + 0.1 * ids[..., None]
        p = run.softmax(y @ y.swapaxes(-1, -2)) * run.right
        return p / p.sum(axis=-1, keepdims=True) @ y

    lesson.check(
        "divided by their sum, the leak test still sees", run.leak_test(run.reach_of(repaired, ids)), at_least=1
    )
    other = np.where(np.arange(8) > 3, 1, ids)
    lesson.check("though little", np.abs(repaired(other) - repaired(ids))[:, :4].max(), 1e-13)

    one_bit = (7 * np.log(8) + np.log(16)) / 8
    lesson.quote("(7 ln 8 + ln 16) / 8 = 2.17", 7, 8, 16, 8, one_bit)
    plateau = run.history["multiplied after"][100:120]
    lesson.check(
        "multiplied after: losses of steps 100 to 120, away from one bit's", abs(np.mean(plateau) - one_bit), 0.15
    )
    lesson.check("one letter too many, in two layers: two", abs(run.two_layers - 2), 0)


def finite_masks(lesson, run):
    row, empty = run.row, run.empty
    gap = row[2:].max() - row[:2].max()
    lesson.quote("«o» beats the best allowed score by 0.353", gap)
    lesson.quote("Make all scores 28,330 times larger", 1e4 / gap, within=1e-3)
    at_draw = run.softmax(1e4 / gap * row - np.array([0, 0, 1e4, 1e4, 1e4]))
    lesson.check("the draw: o gets half", abs(at_draw[2] - 0.5), 1e-9)
    lesson.check("−1e4 in an empty row: the weights of no mask", np.abs(empty["−1e4"] - run.softmax(row)).max(), 1e-11)
    lesson.quote("all weights are 0.2", empty["−1e9, float32"].max())
    lesson.quote("In float16, whose largest number is 65,504", 16, float(np.finfo("float16").max))
    for name in ("−∞", "−1e9, float16"):
        lesson.check(f"{name} in an empty row: entries that are NaN", np.isnan(empty[name]).sum(), at_least=5)
    lesson.check("ours in an empty row", np.abs(empty["ours"]).max(), 0)
    lesson.check("a leak test with scores of order 1 passes −1e4", np.exp(row - 1e4)[2:].max(), 0)
    lesson.claim(
        "-1e9 is as good as minus infinity",
        "half right",
        "the weights are 0 while no score is 1e9 better than another; an empty row attends to all it must not see, and "
        "in float16, whose largest number is 65,504, -1e9 is minus infinity and the empty row is NaN",
        said="the code of many libraries, and tutorials",
    )


def check_elsewhere(lesson, run):
    """The question that asks for the lesson's idea on something else."""
    rng = np.random.default_rng(3)
    ids, weights = rng.integers(3, 9, (1, 9)), rng.uniform(0.5, 1, 3)

    def network(ahead):
        def forward(ids):
            x = ids.astype(float)
            for _ in range(4):
                padded = np.pad(x, ((0, 0), (2 - ahead, ahead)))
                x = sum(weight * padded[:, i : i + 9] for i, weight in enumerate(weights))
            return x[..., None]

        return forward

    lesson.quote("It says 4: each layer", run.leak_test(run.reach_of(network(1), ids)))
    lesson.check("repaired: the leak test says", run.leak_test(run.reach_of(network(0), ids)), 0)
    divided = run.reach_of(lambda ids: (ids / ids.max())[..., None], np.array([[2, 3, 2, 5]]))
    lesson.check("divided by the largest value: the leak test says", run.leak_test(divided), at_least=3)
