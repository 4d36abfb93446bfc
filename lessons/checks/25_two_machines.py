"""What lesson 25 says, against what it computed."""

import numpy as np

from minitransformer.core import Parameter
from minitransformer.training import Adam

HANDS = {
    "g": (
        lambda run: (run.N_first * run.g_first + run.N_second * run.g_second) / (run.N_first + run.N_second),
        {
            "that is the plain mean, which gives each machine the same weight": lambda run: (
                (run.g_first + run.g_second) / 2
            ),
            "each machine's mean is turned into a sum, but the division by all tokens is missing": lambda run: (
                run.N_first * run.g_first + run.N_second * run.g_second
            ),
            "the division by the number of machines is not that by the number of tokens": lambda run: (
                (run.N_first * run.g_first + run.N_second * run.g_second) / 2
            ),
            "the shares are exchanged: the machine with more tokens counts less": lambda run: (
                (run.N_second * run.g_first + run.N_first * run.g_second) / (run.N_first + run.N_second)
            ),
            "two means are added: that is twice a mean, and not weighted": lambda run: run.g_first + run.g_second,
        },
    ),
    "y": (
        lambda run: run.parts[0] + run.parts[1] + run.b_2,
        {
            "the bias is in it twice": lambda run: run.parts[0] + run.parts[1] + 2 * run.b_2,
            "the bias is forgotten": lambda run: run.parts[0] + run.parts[1],
            "the parts are averaged, but each of them is a part of a sum": lambda run: (
                (run.parts[0] + run.parts[1]) / 2 + run.b_2
            ),
            "the units of the second machine are left out": lambda run: run.parts[0] + run.b_2,
            "the units of the first machine are left out": lambda run: run.parts[1] + run.b_2,
        },
    ),
    "dx": (
        lambda run: run.back[0] + run.back[1],
        {
            "x has gone to both machines: what the second one sends back is missing": lambda run: run.back[0],
            "x has gone to both machines: what the first one sends back is missing": lambda run: run.back[1],
            "the parts are averaged, but each use of x adds to its gradient": lambda run: (
                (run.back[0] + run.back[1]) / 2
            ),
            "they are put side by side, but both are gradients of the same features": lambda run: np.hstack(run.back),
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson)
    for name, array in run.names.items():
        lesson.example(f"decoder.ffn.{name}", array)
    lesson.example("cross.y", run.y_cross)
    quote_the_means(lesson, run)
    quote_the_layer(lesson, run)
    quote_the_surprise(lesson, run)
    quote_deeper(lesson, run)
    claim(lesson, run)


def quote_the_means(lesson, run):
    """Two words, and 32."""
    L_first, N_first, L_second, N_second = run.L_first, run.N_first, run.L_second, run.N_second
    lesson.quote("reports a loss of 0.1108 over T = 5 tokens", L_first, N_first)
    lesson.quote("reports 0.8214 over 2 tokens", L_second, N_second)
    lesson.quote(
        "The mean of the two reports is 0.4661, while one computer that holds both words says 0.3138",
        *((L_first + L_second) / 2, run.L),
    )
    lesson.check(
        "the loss weighted by tokens",
        abs((N_first * L_first + N_second * L_second) / (N_first + N_second) - run.L),
        1e-14,
    )
    assert N_first + N_second == run.N
    lesson.quote("its N_first = 5 tokens, and the second a mean over its N_second = 2", N_first, N_second)
    long, short = np.linalg.norm(run.g_first), np.linalg.norm(run.g_second)
    angle = np.degrees(np.arccos(run.g_first @ run.g_second / (long * short)))
    lesson.quote("These are 4.5 and 8.5 long, at an angle of 98°", long, short, angle)
    lesson.check("the plain mean of two is wrong, in per cent", run.wrong, at_least=50)
    lesson.check("the plain mean of 32 is wrong, in per cent", run.wrong_32, at_least=10)
    lesson.quote("take in 31 vectors", len(run.found) - 1)
    vectors = run.sent / len(run.alone_32)
    lesson.quote("a machine sends 31 of its 32 pieces", len(run.found) - 1, len(run.found))
    lesson.check("vectors that each machine sends", vectors, 2.0)
    lesson.check("... nearly two", vectors, at_least=1.9)
    reordered = sum(run.shares[::-1])
    lesson.check("in another order the sum has other bits", (reordered != sum(run.shares)).sum(), at_least=1)


def quote_the_layer(lesson, run):
    """The feed-forward network in two halves."""
    example = run.example
    lesson.quote(
        "the first feature has the parts 1.284 and 0.222, and the bias −0.250",
        *(run.parts[0][1, 0], run.parts[1][1, 0], run.b_2[0]),
    )
    da = np.hstack(run.da)
    lesson.check("da of both machines", run.error(da, example["decoder.ffn.da"]), 1e-14)
    lesson.check("db_2, which both compute", run.error(run.dy.sum(axis=0), example["decoder.ffn.db_2"]), 1e-14)
    copy, (x, parts) = np.hstack([np.eye(6), np.eye(6)]), np.random.default_rng(0).standard_normal((2, 12))
    lesson.check("x (I I) is x twice", run.error(x[:6] @ copy, np.tile(x[:6], 2)), 1e-15)
    lesson.check("its transpose on the right is the sum", run.error(parts @ copy.T, parts[:6] + parts[6:]), 1e-15)


def quote_the_surprise(lesson, run):
    """Six curves, and a factor that Adam does not see."""
    right = [run.last["by tokens", seed] for seed in range(3)]
    wrong = [run.last["plain mean", seed] for seed in range(3)]
    lesson.quote(
        "the best wrong one ends at 0.624, ahead of a right one with 0.681", min(wrong), max(right), within=0.02
    )
    behind = np.subtract(wrong, right)
    lesson.check("each wrong model is behind its twin", behind.min(), at_least=0.0)
    lesson.quote("behind its twin, by 0.035 to 0.157", behind.min(), behind.max(), within=0.2)
    falls = min(losses[0] - losses[-1] for losses in run.curves.values())
    lesson.check("all six curves fall by", falls, at_least=1.0)
    clear = np.abs(run.alone_32) > 1e-3
    steps = []
    for factor in (1.0, run.counts.sum()):
        parameter = Parameter(np.zeros(clear.sum()))
        parameter.grad = factor * run.alone_32[clear]
        Adam([parameter], lr=1.0).step()
        steps.append(parameter.data)
    lesson.check("a common factor changes Adam's first step by", np.abs(steps[0] - steps[1]).max(), 1e-5)


def quote_deeper(lesson, run):
    """Mistakes, and what is sent."""
    y = np.array([values[0] for values in run.errors.values()])
    assert (len(y), (y == 0).sum()) == (7, 4)
    doubled = run.errors["dy is summed as well"][1:]
    lesson.check("dy summed as well: all gradients double", np.abs(np.subtract(doubled, 1)).max(), 1e-12)
    assert max(run.run_wrong({})) == 0
    V, C, F = 37_000, 512, 2048
    attention, network, norm = 4 * C * C + 4 * C, 2 * C * F + F + C, 2 * C
    parameters = V * C + 6 * (attention + network + 2 * norm) + 6 * (2 * attention + network + 3 * norm)
    lesson.quote("63 million in the base model, 252 MB", parameters / 1e6, 4e-6 * parameters)
    one = 4e-6 * 25_000 * C
    lesson.quote("The base model has 12 such pairs in its encoder and 18 in its decoder", 6 * 2, 6 * 3)
    lesson.quote(
        "With 25,000 tokens in the source and 25,000 in the target, each of these 61 sums has 25,000 · 512 numbers, or "
        "51 MB. Together that is 3.1 GB in a step",
        *(25_000, 25_000, 2 * (12 + 18) + 1, 25_000, C, one, 61 * one / 1e3),
    )
    lesson.quote("2 · 3/4 = 1.5", 2, 3, 4, 2 * 3 / 4)
    _, sent = run.all_reduce(list(np.ones((4, 12))))
    assert sent == 1.5 * 12


def claim(lesson, run):
    """Verdicts on popular texts."""
    lesson.claim(
        "machines that share a batch average their gradients",
        "half right",
        f"right if all have equally many tokens; with 5 and 2 tokens the average is wrong by {run.wrong:.0f} % of the "
        f"gradient's length, with 32 words of different lengths by {run.wrong_32:.0f} %, and weighted by tokens by "
        f"{run.error(run.together_32, run.alone_32):.0e}",
        said="tutorials on training with several processors",
    )
    lesson.claim(
        "if the gradients of several machines were combined wrongly, the loss would show it",
        "wrong",
        f"three models with the plain mean end at losses of {run.last['plain mean', 0]:.2f}, "
        f"{run.last['plain mean', 1]:.2f} and {run.last['plain mean', 2]:.2f} after 150 steps, three with the right "
        f"weights at {run.last['by tokens', 0]:.2f}, {run.last['by tokens', 1]:.2f} and "
        f"{run.last['by tokens', 2]:.2f}",
        said="answers in forums on training with several processors",
    )


def check_elsewhere(lesson):
    """The question that asks for the lesson's idea on something else."""
    rng = np.random.default_rng(10)
    dy, weights = rng.standard_normal(8), rng.standard_normal(3)

    def backward(dy):  # of a convolution with padding at both ends -> one number more on each side
        return sum(weight * np.pad(dy, (i, 2 - i)) for i, weight in enumerate(weights))

    first, second = backward(dy[:4]), backward(dy[4:])
    halves = np.concatenate([first[1:5], second[1:5]])
    halves[3] += second[0]  # the gradient of the copy that the second machine was lent
    halves[4] += first[5]
    lesson.check("a convolution on two machines: dx", np.abs(halves - backward(dy)[1:9]).max(), 1e-14)
