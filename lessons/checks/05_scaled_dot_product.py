"""What lesson 05 says, against what it computed."""

import numpy as np


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    q, k, s, p = run.q, run.k, run.s, run.p
    for name, computed in (("s", s), ("p", p), ("o", run.o)):
        lesson.example(f"cross.{name}[0]", computed)
    lesson.quote("Row 1 asks with q = (0.714, 0.028, −1.451)", 1, *q[1])
    lesson.quote("letter o is (4.908, 0.708, 0.228)", *k[2])
    terms = [number for d in range(3) for number in (abs(q[1, d]), k[2, d])]
    lesson.quote("0.714 · 4.908 + 0.028 · 0.708 − 1.451 · 0.228 = 3.19", *terms, q[1] @ k[2])
    lesson.quote("this is the score 1.844", s[1, 2])
    lesson.quote("get −0.703, 0.893 and 0.664", s[1, 0], s[1, 1], s[1, 3])
    lesson.quote("to 1: 0.044, 0.218, 0.564, 0.173", 1, *p[1])
    lesson.quote("So 56 % of the answer is the value of o", 100 * p[1, 2])
    lesson.check(
        "each row but the last looks mostly at the letter that it writes",
        (p[:4].argmax(1) == [3, 2, 1, 0]).all(),
        at_least=1,
    )
    worst = max(abs(found / width - 1) for width, found in run.variance.items())
    lesson.check("Var(q·k) / D is 1", worst, 0.1)

    even, gap_1, gap_8 = run.two_keys
    lesson.quote("For equal scores this is 0.5", even)
    lesson.quote("For the scores 1 and 0 it is 0.393", 1, 0, gap_1)
    lesson.quote("8 and 0 it is 0.00067, which is 586 times less", 8, 0, gap_8, gap_1 / gap_8)
    median, mean = run.median, {place: np.mean(pair, axis=-1) for place, pair in run.sizes.items()}
    lesson.quote("falls from 0.43 to 0.02", *median[4, 64])
    lesson.quote("With 16 keys it falls from 0.30 to 0.12", 16, *median[16, 64])
    lesson.quote("With 64 keys nothing is lost: 0.18 with the division, 0.20 without", 64, *median[64, 64])
    lesson.quote("passes without it: 0.25 instead of 0.10", *median[256, 64][::-1])
    lesson.quote("go up to 12.03", s.max())
    lesson.quote("the median falls by a factor of 24", median[4, 64][0] / median[4, 64][1], within=0.05)
    lesson.quote("the mean of ‖J‖ only from 0.40 to 0.12", *mean[4, 64])
    lesson.quote("0.40/8 = 0.05 with the division, and 0.12", mean[4, 64][0], 8, mean[4, 64][0] / 8, mean[4, 64][1])
    with_division, without = 100 * run.share
    lesson.quote("the luckiest tenth of the queries has 54 % of the sum of all ‖J‖²", without)
    lesson.quote("With it, 12 %", with_division)
    lesson.check(
        "with the division the median does not depend on D", abs(median[4, 1024][0] / median[4, 64][0] - 1), 0.05
    )

    J = p[..., :, None] * (np.eye(4) - p[..., None, :])
    lesson.check("‖J‖ in terms of p", np.abs(run.jacobian_size(p) - np.sqrt((J**2).sum((-1, -2)))).max(), 1e-14)
    lesson.check("keys of different lengths: another answer than kernel regression", run.different, at_least=0.05)
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
    lesson.claim(
        "without the division by √d_k the softmax's gradient vanishes",
        "half right",
        "it depends on the number of keys: at d_k = 64 the median norm of the softmax Jacobian with and without it is "
        + "; ".join(f"{median[n, 64][0]:.2f} and {median[n, 64][1]:.2f} with {n} keys" for n in (4, 16, 64, 256)),
        said="the paper (as a suspicion), textbooks and most tutorials",
    )
