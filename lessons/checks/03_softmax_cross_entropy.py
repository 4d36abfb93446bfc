"""What lesson 03 says, against what it computed."""

import numpy as np

HANDS = {
    "dz_row": (
        lambda run: run.p_row - run.wanted_row,
        {
            "the sign is turned round: the right logit must be pulled up, so its gradient is negative": (
                lambda run: run.wanted_row - run.p_row
            ),
            "this is dp; it has still to go through the softmax": lambda run: -run.wanted_row / run.p_row,
            "this keeps only the diagonal of J: the wrong logits must get a gradient, too": (
                lambda run: -run.wanted_row * (1 - run.p_row)
            ),
            "this is already divided by N, but the question was for one token": (
                lambda run: (run.p_row - run.wanted_row) / run.N
            ),
            "the mean of dp is −1, and subtracting it adds 1": (
                lambda run: run.p_row * (-run.wanted_row / run.p_row - 1)
            ),
        },
    ),
}


def entropy(right, other, how_many):
    """−Σ p* ln p* for one right token and `how_many` others."""
    return -right * np.log(right) - how_many * other * np.log(other)


def floors(V):
    """The smallest loss if 0.1 is spread over all V tokens, over V − 1 and over V − 2 of them."""
    return [
        entropy(0.9 + 0.1 / V, 0.1 / V, V - 1),
        *(entropy(0.9, 0.1 / others, others) for others in (V - 1, V - 2)),
    ]


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson)
    z, p, losses = run.z, run.p, run.losses
    lesson.example("output.p", p)
    lesson.example("output.dz", run.dz)
    lesson.example("output.L", run.L)
    lesson.quote("−1.215 −3.728 −7.717 5.559 4.705 0.561 −3.150", *z[1])
    lesson.check("o has the largest logit", z[1].argmax() == 3, at_least=1)
    lesson.quote("the row gives «o» 70 % and «p» 30 %", 100 * p[1, 3], 100 * p[1, 4])
    powers = np.exp(z[1])
    lesson.quote("are 0.30, 0.02, 0.00, 259.45, 110.50, 1.75 and 0.04, with the sum 372.06", *powers, powers.sum())
    lesson.quote("259.45 / 372.06 = 0.697", powers[3], powers.sum(), p[1, 3])
    lesson.quote("which is 0 for a probability of 1, and 0.361 in our row", 0, 1, losses[1])
    lesson.quote(
        "The mean is L = 0.1108 nats, and our row alone accounts for 65 % of it", run.L, 20 * losses[1] / run.L
    )
    lesson.quote("(0.697 − 1)/5 = −0.061", p[1, 3], 1, 5, run.dz[1, 3])
    lesson.quote("«p» gets 0.297/5 = 0.059", p[1, 4], 5, run.dz[1, 4])
    lesson.check("rows of dz sum to 0", np.abs(run.dz.sum(axis=-1)).max(), 1e-15)
    wanted_rows = np.eye(7)[run.right]
    mistaken = p * (1 - p) * -wanted_rows / p
    lesson.check("the mistake keeps the right token's", np.abs((mistaken - (p - 1)) * wanted_rows).max(), 1e-15)
    lesson.check("and gives the others nothing", np.abs(mistaken * (1 - wanted_rows)).max(), 0.0)
    powers = run.softmax(run.scores)
    far = np.abs(run.upstream * powers * (1 - powers) - run.softmax_backward(run.upstream, powers)).max()
    lesson.check("the mistaken backward is far off", far, at_least=0.1)

    plain = {name: -np.log(path) @ run.shares for name, path in run.runs.items()}
    sentence = "After 80 steps the mistaken gradient has the *lower* loss, 0.8982 against 0.9031 nats"
    lesson.quote(sentence, 80, plain[True][80], plain[False][80])
    lesson.quote("After 20,000 steps its loss is 20.7 nats", 20000, plain[True][20000])
    ends = {mistaken: path[-1] for mistaken, path in run.runs.items()}
    lesson.check("right: p ends at p*", np.abs(ends[False] - run.shares).max(), 1e-9)
    lesson.check("mistaken: p ends at (2/3, 1/3, 0)", np.abs(ends[True] - [2 / 3, 1 / 3, 0]).max(), 1e-9)
    lesson.check("two tokens, mistaken: p ends at p*", np.abs(run.two - [0.7, 0.3]).max(), 1e-9)
    twofold = run.descend(np.array([0.7, 0.3]), False, 1, np.zeros(2))[-1] - 0.5
    once = run.descend(np.array([0.7, 0.3]), True, 1, np.zeros(2))[-1] - 0.5
    lesson.check("two tokens: the mistake costs a factor of 2 in speed", abs(twofold[0] / once[0] - 2), 1e-3)
    total = (1 / run.shares).sum()
    lesson.quote("(1/0.6 + 1/0.3 + 1/0.1) = 3 − 15 speed", 1, 0.6, 1, 0.3, 1, 0.1, 3, total)
    lesson.check("at that speed the rare token's probability is −1/3", abs(1 - 2 / total / 0.1 + 1 / 3), 1e-12)
    lesson.claim(
        "the softmax's derivative is p (1 − p), as for the sigmoid",
        "wrong",
        "that is only the diagonal of the Jacobian; with two tokens gradient descent still finds (0.7, 0.3), but with "
        f"three it turns (0.6, 0.3, 0.1) into {tuple(float(x) for x in ends[True].round(3))}",
        said="backward passes of small from-scratch repositories",
    )

    V, wanted = run.V, run.wanted[0]
    parts = -wanted * np.log(wanted)
    lesson.quote("the right token p* = 0.9000027 0.0948", wanted[0], parts[0])
    lesson.quote("36,999 others p* = 0.0000027 each 1.2821", V - 1, wanted[1], parts[1:].sum())
    lesson.quote("floor 1.3769 nats", run.floor)
    lesson.quote("begin at ln V = 10.519", run.cross_entropy(np.zeros((1, V)), run.wanted))
    lesson.quote("touches the floor at a lead of 12.7", np.log(wanted[0] / wanted[1]))
    lesson.quote("accounts for 0.095 of the 1.377 nats", parts[0], run.floor)
    lesson.quote("93 % of the floor, is charged for the 36,999", 100 * parts[1:].sum() / run.floor, V - 1)
    lesson.check("at the floor, the loss without smoothing is 0.105", abs(-np.log(wanted[0]) - 0.105), 0.0005)
    lesson.check(
        "naively these losses are NaN and infinite", np.isnan(run.naive[0]) and np.isinf(run.naive[1]), at_least=1
    )
    lesson.quote("The true losses are 0 and 66.7 nats", *run.exact)
    lesson.check(
        "floors of smoothing over V, V − 1 and V − 2 tokens: all 1.377", np.ptp([*floors(37000), 1.377]), 0.001
    )
    lesson.check(
        "with 5 tokens they are 0.390, 0.464 and 0.435",
        np.abs(np.subtract(floors(5), (0.390, 0.464, 0.435))).max(),
        0.0005,
    )
    lesson.quote("is right in 60 % of the cases, «s» in 30 % and «t» in 10 %", *(100 * run.shares))
    twice = run.cross_entropy(run.one_hot, run.one_hot)  # a perfect model's probabilities, taken for logits
    lesson.check("the softmax of a softmax: a perfect model stays at 9.519 nats", abs(twice - 9.519), 0.0005)
    lesson.quote("p* = (0.4, 0.35, 0.25) ends at (0.466, 0.389, 0.145)", 0.4, 0.35, 0.25, *run.survivor)
    lesson.quote("0.123 nats, since the floor is 1.377", 1.50 - run.floor, run.floor)


def check_elsewhere(lesson):
    """The question that asks for the lesson's idea on something else."""
    z = np.log(0.001 / 0.999) + 1e-30j
    p = 1 / (1 + np.exp(-z))
    by_log, by_square = (loss.imag / 1e-30 for loss in (-np.log(p), (1 - p) ** 2))
    lesson.quote("So that mail gets −0.999", by_log)
    lesson.quote("· p (1 − p) = −0.002, next to nothing", 1, by_square)
