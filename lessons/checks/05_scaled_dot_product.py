"""What lesson 05 says, against what it computed."""

import json
from pathlib import Path

import numpy as np

RECORDS = Path(__file__).parents[2] / "docs" / "records"

HANDS = {
    "s_row": (
        lambda run: run.q[1] @ run.k.T / np.sqrt(run.D),
        {
            "the dot products are right, and not yet divided by √D": lambda run: run.q[1] @ run.k.T,
            "it divides by D instead of √D": lambda run: run.q[1] @ run.k.T / run.D,
            "it divides by √C, the width of the model, instead of √D": lambda run: run.q[1] @ run.k.T / np.sqrt(6),
            "it asks with row 0; rows are counted from 0, and row p→o is row 1": lambda run: (
                run.q[0] @ run.k.T / np.sqrt(run.D)
            ),
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson)
    quote_the_bottleneck(lesson, run)
    q, k, s, p = run.q, run.k, run.s, run.p
    for name, computed in (("s", s), ("p", p), ("o", run.o)):
        lesson.example(f"cross.{name}[0]", computed)
    lesson.quote("Row p→o asks with q = (0.714, 0.028, −1.451)", *q[1])
    lesson.quote("the key of «o» is (4.908, 0.708, 0.228)", *k[2])
    terms = [number for d in range(3) for number in (abs(q[1, d]), k[2, d])]
    lesson.quote("0.714 · 4.908 + 0.028 · 0.708 − 1.451 · 0.228 = 3.19", *terms, q[1] @ k[2])
    lesson.quote("this is the score 1.844", s[1, 2])
    lesson.quote("get −0.703, 0.893 and 0.664", s[1, 0], s[1, 1], s[1, 3])
    lesson.quote("sum to 1: 0.044, 0.218, 0.564, 0.173", 1, *p[1])
    lesson.quote("So 56 % of the answer is the value of «o»", 100 * p[1, 2])
    lesson.check(
        "each row but the last looks mostly at the letter that it writes",
        (p[:4].argmax(1) == [3, 2, 1, 0]).all(),
        at_least=1,
    )
    worst = max(abs(found / width - 1) for width, found in run.variance.items())
    lesson.check("Var(q·k) / D is 1", worst, 0.1)

    even, gap_1, gap_8 = run.two_keys
    lesson.quote("For equal scores this is 0.5, and", even)
    lesson.quote("for the scores 1 and 0 it is 0.393", 1, 0, gap_1)
    lesson.quote("For the scores 8 and 0 it is 0.00067, which is 586 times less", 8, 0, gap_8, gap_1 / gap_8)
    quote_medians(lesson, run)

    J = p[..., :, None] * (np.eye(4) - p[..., None, :])
    lesson.check("‖J‖ in terms of p", np.abs(run.jacobian_size(p) - np.sqrt((J**2).sum((-1, -2)))).max(), 1e-14)
    lesson.check("keys of different lengths: another answer than kernel regression", run.different, at_least=0.05)
    check_t5(lesson)
    own = np.random.default_rng(7).standard_normal((2000, 64))
    lesson.quote("about √D = 8", np.median((own * own).sum(-1) / 8), within=0.05)
    lesson.quote("The softmax is [0.550, 0.450, 0]", *run.popular)
    lesson.check(
        "exercise 2: ‖J‖ of four equal weights is √3/4", abs(run.jacobian_size(np.full(4, 0.25)) - 3**0.5 / 4), 1e-15
    )
    lesson.claim(
        "softmax of [0.5, 0.3, -inf] is [0.625, 0.375, 0]",
        "wrong",
        f"it is [{run.popular[0]:.3f}, {run.popular[1]:.3f}, 0]; printed are the scores divided by their sum",
        said="blog posts and slides on masking",
    )


def quote_the_bottleneck(lesson, run):
    """One vector for a whole word, as measured for docs/compare.md."""
    copied = {name: dict(zip(run.LENGTHS, shares, strict=True)) for name, shares in run.COPIED.items()}
    one, attention = copied.values()
    lesson.quote("two letters it copies 100 of 100, with 8 letters 81, with 12 letters 61, and with 16 only 7",
                 one[2], 100, 8, one[8], 12, one[12], 16, one[16])  # fmt: skip
    lesson.quote("copy at least 99 of 100 words at every length up to 16", min(attention.values()), 100, 16)
    if not RECORDS.is_dir():  # in a copy of the lessons alone
        return
    rows = json.loads((RECORDS / "one-vector.json").read_text("utf-8"))["rows"]["models"]
    for row in rows:
        if row["task"] == "copy" and row["model"] in ("fixed vector", "additive"):
            found = dict(zip(row["lengths"], row["exact_match"], strict=True))
            shares = one if row["model"] == "fixed vector" else attention
            worst = max(abs(100 * found[length] - share) for length, share in shares.items())
            lesson.check(f"copied by the model with {row['model']}, against the record", worst, 1e-9)
    recall = json.loads((RECORDS / "recall.json").read_text("utf-8"))["rows"]["recall"]
    fixed, additive = (dict(zip(row["pairs"], row["exact_match"], strict=True)) for row in recall[:2])
    lesson.quote("shown 26 pairs", max(fixed))
    lesson.quote("vector is right in 33 of 100 cases", 100 * fixed[26], 100)
    lesson.check("with attention in all of them", additive[26], at_least=1)


def quote_medians(lesson, run):
    """How much gets through at the scores and at the dot products, with the division and without it."""
    median, mean = run.median, {place: np.mean(triple, axis=-1) for place, triple in run.sizes.items()}
    keys = (4, 8, 16, 64, 256)
    at_scores, at_dots, without = np.array([median[n, 64] for n in keys]).T
    lesson.quote("with √D, at the scores 0.427 0.367 0.303 0.180 0.097", *at_scores)
    lesson.quote("with √D, at q·k 0.053 0.046 0.038 0.022 0.012", *at_dots)
    lesson.quote("without, at both 0.018 0.070 0.120 0.179 0.249", *without)
    lesson.quote("with 4 of them, the division keeps 24 times as much", 4, at_scores[0] / without[0], within=0.05)
    lesson.check("at the scores: 64 keys, without the division over with it", abs(without[3] / at_scores[3] - 1), 0.1)
    lesson.check("... 256 keys", without[4] / at_scores[4], at_least=2)
    lesson.check("at q·k the division helps with 4 keys", at_dots[0] / without[0], at_least=2)
    lesson.check(
        "... and not with more: least median without it over with it", min((without / at_dots)[1:]), at_least=1
    )
    lesson.quote("with 64 keys a typical query would get 8 times as much", 64, without[3] / at_dots[3])
    lesson.check("in the mean it does not help at q·k, even with 4 keys", mean[4, 64][2] / mean[4, 64][1], at_least=2)
    with_division, without = 100 * run.share[4]
    lesson.quote("luckiest tenth of the queries has 54 % of the sum of all ‖J‖²; with it, 12 %", without, with_division)
    lesson.check(
        "for any number of keys, its share is larger without", min(b / a for a, b in run.share.values()), at_least=1.3
    )
    lesson.quote("go up to 12.03", run.s.max())
    lesson.check(
        "with the division the median does not depend on D", abs(median[4, 1024][0] / median[4, 64][0] - 1), 0.05
    )
    crossing = {
        n: [median[n, width][2] < median[n, width][1] for width in run.WIDTHS].index(True) for n in (4, 16, 256)
    }
    lesson.check("the more keys, the later the lines cross", np.diff(list(crossing.values())).min(), at_least=1)
    lesson.claim(
        "without the division by √d_k the softmax's gradient vanishes",
        "half right",
        "it depends on the number of keys, and on where one looks: at d_k = 64 the median of what passes is, with it "
        "at the scores, with it at the dot products (which q and k feel), and without it at both, "
        + "; ".join(f"{' '.join(f'{x:.3f}' for x in median[n, 64])} for {n} keys" for n in (4, 8, 64, 256)),
        said="the paper (as a suspicion), textbooks and most tutorials",
    )


def check_t5(lesson):
    """Question 3: no division, but a W_q smaller by √D."""
    rng, root = np.random.default_rng(8), 2.0
    x, keys, ds = (rng.standard_normal(shape) for shape in ((5, 6), (3, 4), (5, 3)))
    W_q = rng.standard_normal((6, 4))
    lesson.check("T5: the same scores", np.abs(x @ (W_q / root) @ keys.T - x @ W_q @ keys.T / root).max(), 1e-14)
    ours, theirs = x.T @ (ds @ keys / root), x.T @ (ds @ keys)
    lesson.check("... and √D times the gradient of W_q", np.abs(theirs - root * ours).max(), 1e-13)
    of_keys = ds.T @ (x @ W_q) / root - ds.T @ (x @ (W_q / root))
    lesson.check("... and the same gradient of the keys", np.abs(of_keys).max(), 1e-14)


def check_elsewhere(lesson):
    """The question that asks for the lesson's idea on something else."""
    rng = np.random.default_rng(9)
    one, other = rng.standard_normal((2, 20_000, 512))
    one, other = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (one, other))
    lesson.quote("a size of 0.044", 512**-0.5)
    lesson.check("dot products of random vectors of length 1", abs((one * other).sum(1).std() * 512**0.5 - 1), 0.03)
