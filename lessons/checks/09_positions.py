"""What lesson 09 says, against what it computed."""

import math

from support.lab import error

import numpy as np

from minitransformer.layers import SelfAttention

HANDS = {
    "weights": (
        lambda run: run.p_stop[run.order][:, run.order],
        {
            "nothing is shuffled: is the letter that asks still in the same row?": lambda run: run.p_stop,
            "the rows are shuffled, but the keys have moved, too": lambda run: run.p_stop[run.order],
            "the columns are shuffled, but the queries have moved, too": lambda run: run.p_stop[:, run.order],
            "shuffled the other way: order[t] is the old place of the letter that is now at t": lambda run: run.p_stop[
                np.argsort(run.order)
            ][:, np.argsort(run.order)],
        },
    ),
    "tip": (
        lambda run: np.array([run.s1 * run.c2 + run.c1 * run.s2, run.c1 * run.c2 - run.s1 * run.s2]),
        {
            "angles add, but their sines and cosines do not": lambda run: np.array([run.s1 + run.s2, run.c1 + run.c2]),
            "sine times sine and cosine times cosine": lambda run: np.array([run.s1 * run.s2, run.c1 * run.c2]),
            "the cosine of a sum has a minus": lambda run: np.array(
                [run.s1 * run.c2 + run.c1 * run.s2, run.c1 * run.c2 + run.s1 * run.s2]
            ),
            "this turns backwards, to position 1": lambda run: np.array(
                [run.s2 * run.c1 - run.c2 * run.s1, run.c1 * run.c2 + run.s1 * run.s2]
            ),
            "the cosine stands before the sine": lambda run: np.array(
                [run.c1 * run.c2 - run.s1 * run.s2, run.s1 * run.c2 + run.c1 * run.s2]
            ),
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson)
    shuffled(lesson, run)
    hands(lesson, run)
    tables(lesson, run)
    claims(lesson, run, library_attention(lesson))


def shuffled(lesson, run):
    p, q = run.self_attention(run.example["source.x"])
    lesson.example("encoder.self.p[1]", p)
    lesson.example("encoder.self.o[1]", q)
    for p, o, place in ((run.p_stop, run.o_stop, 3), (run.p_post, run.o_post, 0)):
        lesson.quote("with the weight 0.53, and its answer begins with 0.70", p[place, place], o[place, 0])
    right = run.with_positions == [word[::-1] for word in run.words]
    lesson.check("with positions the model reverses all six words", right, at_least=1)
    lesson.check('without positions it writes "stp" six times', run.without_positions == ["stp"] * 6, at_least=1)
    lesson.quote("the same answer to all 24 orders", len(run.logits))


def library_attention(lesson):
    """How much shuffled inputs change the outputs and the weights of a random attention of the library."""
    rng = np.random.default_rng(9)
    B, T, C = 3, 7, 6
    attention = SelfAttention(C, 2, rng=rng, dtype="float64")
    for parameter in attention.parameters():
        parameter.data[...] = rng.standard_normal(parameter.data.shape)
    x, order = rng.standard_normal((B, T, C)), rng.permutation(T)
    y, y_shuffled = attention(x), attention(x[:, order])
    lesson.check("the library's attention is equivariant", error(y_shuffled, y[:, order]), 1e-14)
    lesson.check("the mean over the tokens is invariant", error(y_shuffled.mean(axis=1), y.mean(axis=1)), 1e-14)
    return error(y_shuffled, y)


def hands(lesson, run):
    PE, example = run.PE, run.example
    lesson.example("PE", PE)
    root = np.sqrt(6)
    lesson.example("source.x", root * example["source.e"] + PE[:4])
    lesson.example("target.x", root * example["target.e"] + PE)
    angles = 10000 ** (-2 * np.arange(3) / 6)
    lesson.quote("with the angles 1, 0.0464 and 0.00215", *angles)
    right, _ = HANDS["tip"]
    lesson.check("the tip of hand 0 at position 3, from two others", error(right(run), PE[3, :2]), 1e-14)
    neighbours = (PE[:-1] * PE[1:]).sum(axis=1)
    lesson.check("all neighbours have the same dot product", np.ptp(neighbours), 1e-14)
    lesson.quote("0.540 + 0.999 + 1.000 = 2.539", *np.cos(angles), neighbours[0])
    wide, omega = run.wide, np.repeat(10000 ** (-2 * np.arange(32) / 64), 2)
    wave = error(wide[2:] + wide[:-2], 2 * np.cos(omega) * wide[1:-1])
    lesson.check("each column is one wave: f(t + 1) + f(t − 1) = 2 cos ω f(t)", wave, 1e-12)
    distance = np.arange(300)[:, None] - np.arange(300)
    dots = np.cos(distance[..., None] * omega[::2]).sum(axis=-1)
    lesson.check("PE_t·PE_(t+j) = Σ cos ω_i j", error(wide @ wide.T, dots), 1e-12)
    apart = np.concatenate([wide[:, 0::2], wide[:, 1::2]], axis=1)
    lesson.check("sines before cosines: the same dot products", error(apart @ apart.T, wide @ wide.T), 1e-12)
    turn = run.turn(7, 64)
    lesson.check("turn(7) is a rotation", error(turn @ turn.T, np.eye(64)), 1e-14)
    lesson.check("turn(3) turn(4) = turn(7)", error(run.turn(3, 64) @ run.turn(4, 64), turn), 1e-14)
    alike = run.dots["right"]
    lesson.check("right: the dot product does not depend on t", np.ptp(alike, axis=1).max(), 1e-12)
    lesson.check("both mistakes: it does", np.ptp(run.dots["both"], axis=1).min(), at_least=0.05)
    rises = run.distances[1:][np.diff(alike[:, 0]) > 0]
    lesson.quote("with 128 features it first rises from the distance 11 to 12", 128, rises[0] - 1, rises[0])
    estimate = 1 - np.log(run.distances) / np.log(10000)
    lesson.check("about 1 − ln j / ln 10000", np.abs(alike[:, 0] - estimate).max(), 0.25)
    slowest = 2 * np.pi * 10000 ** (510 / 512)
    lesson.check("the slowest of 256 hands comes round in 60,611 positions, not in 62,832", abs(slowest - 60611), 0.5)
    lesson.quote("= C/2 = 256, so 16", 2, 512 / 2, np.linalg.norm(run.sinusoids(2, 512)[1]))
    lesson.quote("about √512 = 22.6", 512, np.sqrt(512))
    for t in range(8):  # the exercise
        for angle in angles:
            block = [[-math.cos(7 * angle), math.sin(7 * angle)], [math.sin(7 * angle), math.cos(7 * angle)]]
            mirrored = np.array([math.sin(angle * t), math.cos(angle * t)]) @ block
            assert np.abs(mirrored - [math.sin(angle * (7 - t)), math.cos(angle * (7 - t))]).max() < 1e-14


def tables(lesson, run):
    names = list(run.colors)
    table = run.table_of("right", 300, 64)
    lesson.check("the table called right is right", error(table, run.wide), 1e-12)
    moving = {name: (np.ptp(run.table_of(name, 9, 32), axis=0) > 0.1).sum() for name in names}
    sentence = "only 7 of its 32 features move by more than 0.1, where in the right table 13 do"
    lesson.quote(sentence, moving["slow"], 32, 0.1, moving["right"])
    lesson.quote("24 orders costs −ln(1/24) = 3.18 nats", 24, 1, 24, math.log(24))
    chance = [math.comb(8, n) * 3 ** (8 - n) / 4**8 for n in range(9)]  # that a letter comes n times in eight
    orders = math.lgamma(9) - 4 * sum(chance[n] * math.lgamma(n + 1) for n in range(9))
    lesson.quote("has the mean 6.60, which is 0.733 nats", orders, orders / 9)
    lesson.quote("the floor, 0.733 nats", orders / 9)
    lesson.check("the floor of the figure", abs(run.floor - orders / 9), 1e-3)
    letters = np.random.default_rng(3).integers(4, size=(4000, 8))
    drawn = [math.lgamma(9) - sum(math.lgamma(n + 1) for n in np.bincount(word)) for word in letters]
    lesson.check("the floor, against words that are drawn", abs(np.mean(drawn) / 9 - orders / 9), 0.02)

    def loss(name, step):
        return run.loss_after(name, min(step, run.steps))

    full = {"full_only": True, "within": 0.2}
    lesson.quote("while without positions it is 0.82", loss("none", 400), full_only=True, within=0.05)
    lesson.quote(
        "after 200 steps it has 0.34, and the right one 0.03", 200, loss("both", 200), loss("right", 200), **full
    )
    lesson.quote("as the right one, with 0.05 after 200 steps", loss("unpaired", 200), 200, **full)
    lesson.quote("all its rotations, but a loss of 0.16", loss("slow", 200), **full)
    lesson.quote("has a loss of 0.09 nats, and the unpaired one 0.79", *run.alone.values(), **full)
    if not lesson.fast:
        lesson.check("all four tables learn", max(loss(name, 400) for name in names[:4]), 0.2)
        lesson.check("without positions the loss stays above the floor", loss("none", 400) / run.floor, at_least=0.98)
        lesson.check("both mistakes are slower: ratio at step 200", loss("both", 200) / loss("right", 200), at_least=3)
        ratio = loss("unpaired", 200) / loss("slow", 200)
        lesson.check("unpaired is faster than slow: ratio at step 200", ratio, 0.9)
        slow = [np.mean(run.losses["slow", start][175:200]) for start in range(run.starts)]
        lesson.check("two starts of the slow table differ widely: ratio at step 200", max(slow) / min(slow), at_least=2)
        lesson.check("an encoder alone needs pairs: ratio", run.alone["unpaired"] / run.alone["right"], at_least=2.5)


def claims(lesson, run, changed):
    lesson.claim(
        "position 0 uses one frequency, position 1 another",
        "wrong",
        "each column of the table is one wave, and each position has all C/2 of them: frequencies belong to pairs of "
        "features",
        said="blog posts and video transcripts",
    )
    lesson.claim(
        "self-attention is permutation-invariant",
        "half right",
        f"shuffled inputs change the outputs (by {changed:.0%}) into the shuffled outputs (to 1e-15): it is "
        "equivariant; only what forgets the order is invariant, such as the decoder's answer to a shuffled memory",
        said="papers, textbooks and blog posts",
    )
    lesson.claim(
        "permute the input, and attention gives the same weights",
        "half right",
        f"the same numbers in other places, shuffled in rows and columns: compared place by place they differ by "
        f"{error(run.p_post, run.p_stop):.0%}",
        said="blog posts",
    )
    lesson.claim(
        "the third entry of PE_1 at d_model = 512 is sin 0.0001",
        "wrong",
        f"it is sin(1 / 10000^(2/512)) = {np.sin(10000 ** (-2 / 512)):.3f}",
        said="worked examples in blog posts",
    )
    lesson.claim(
        "the dot product of two positions falls steadily with their distance",
        "half right",
        "roughly as 1 − ln j / ln 10000, with ripples: at d_model = 128 it first rises from distance 11 to 12",
        said="blog posts",
    )
    found = "the commonest wrong table learns to reverse words, only more slowly, which only a comparison tells"
    if not lesson.fast:
        at = {name: np.mean([run.losses[name, start][175:200] for start in range(run.starts)]) for name in run.colors}
        found += f": {at['both']:.2f} nats after 200 steps, the right table {at['right']:.2f}, none {at['none']:.2f}"
    lesson.claim(
        "a wrong exponent in the table of positions shows in training",
        "half right",
        found,
        said="question-and-answer sites",
    )


def check_elsewhere(lesson):
    """The question that asks for the lesson's idea on something else."""
    hands = np.exp(2j * np.pi * np.arange(24) / 24)
    apart = np.abs(hands - np.roll(hands, 1))
    lesson.quote("any two neighbors are 0.261 apart", apart.max())
    lesson.check("all neighbors are equally far apart", np.ptp(apart), 1e-14)
    lesson.quote("Three hours later is a rotation by 45°", 360 * 3 / 24)
