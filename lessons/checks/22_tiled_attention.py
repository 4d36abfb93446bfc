"""What lesson 22 says, against what it computed."""

from functools import reduce

import numpy as np

from minitransformer.functional.since_2017.tiled import TILE

HANDS = {
    "total": (
        lambda run: np.exp(run.m_left - run.m) * run.total_left + np.exp(run.m_right - run.m) * run.total_right,
        {
            "the two totals have different scales: each has subtracted its own largest score": lambda run: (
                run.total_left + run.total_right
            ),
            "the factors are upside down, and can overflow": lambda run: (
                np.exp(run.m - run.m_left) * run.total_left + np.exp(run.m - run.m_right) * run.total_right
            ),
            "the half with the smaller scores is left out": lambda run: run.total_right,
        },
    ),
    "price": (
        lambda run: (run.do * run.o).sum(axis=-1, keepdims=True),
        {
            "it is summed over the rows: each row has an average of its own": lambda run: (run.do * run.o).sum(
                axis=0, keepdims=True
            ),
            "it is a mean over the features, where the derivation has a sum": lambda run: (run.do * run.o).mean(
                axis=-1, keepdims=True
            ),
            "the numbers are right, but the shape is (T,): keepdims=True is missing": lambda run: (run.do * run.o).sum(
                axis=-1
            ),
            "that is do∘o, of which the sum over the features is missing": lambda run: run.do * run.o,
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson)
    for name in ("o", "dq", "dk", "dv"):
        lesson.example(f"cross.{name}[0]", getattr(run, name))
    quote_the_story(lesson, run)
    quote_the_merge(lesson, run)
    quote_the_cost(lesson, run)
    quote_deeper(lesson, run)
    check_answers(lesson, run)
    claim(lesson, run)


def quote_the_story(lesson, run):
    """How much memory the weights of Ines's model take, in float32."""
    one = {length: 4e-6 * length**2 for length in (256, 2048)}  # MB
    lesson.quote(
        "the weights of one head take 0.26 MB at 256 characters and 16.8 MB at 2,048, which is 64 times as much",
        *(one[256], 256, one[2048], 2048, one[2048] / one[256]),
    )
    answers = 4e-6 * 2048 * 64
    heads = 6 * 8 * 16
    lesson.quote(
        "With 6 layers of 8 heads and 16 pieces in a batch they need 12.9 GB, while the answers of the heads, o, need "
        "0.4 GB with D = 64",
        *(6, 8, 16, heads * one[2048] / 1e3, heads * answers / 1e3, 64),
    )


def quote_the_merge(lesson, run):
    """Row p→o in two halves."""
    s, m_left, m_right = run.example["cross.s"][0, 1], run.m_left, run.m_right
    total_left, total_right = run.total_left, run.total_right
    lesson.quote("score −0.703 0.893 1.844 0.664", *s)
    lesson.quote(
        "The left reader reports m = 0.893 and total = 1.203, the right one m = 1.844 and total = 1.307",
        *(m_left, total_left, m_right, total_right),
    )
    factor = np.exp(m_left - m_right)
    lesson.quote("the factor is exp(0.893 − 1.844) = 0.386", m_left, m_right, factor)
    lesson.quote("exp(0) = 1", 0, np.exp(m_right - run.m))
    total = np.exp(s - s.max()).sum()
    lesson.quote("That is 0.46 + 1.31 = 1.77", factor * total_left, total_right, total)
    lesson.quote("the share 1.31 / 1.77", total_right, total)
    p = run.example["cross.p"][0, 1]
    lesson.check("the share of the right half is p of its two keys", abs(run.shares[1] - p[2:].sum()), 1e-15)
    lesson.quote("the 56 % of «o» and the 17 % of «p» from lesson 05", *(100 * p[2:]), 5)
    climbs, falls = np.diff(run.largest) > 0, np.diff(run.sums) < 0
    assert climbs.sum() == 3
    assert list(np.flatnonzero(falls)) == [np.flatnonzero(climbs)[-1]]
    lesson.quote("one row reads 128 keys in 16 tiles", len(run.drawn), len(run.sums))


def quote_the_cost(lesson, run):
    """Memory, and how often a largest score moves."""
    memory, slack = run.memory, 0.06  # another NumPy may keep other temporary arrays
    lesson.quote("The five lines of lesson 06 need 52.4 MB at their peak", 6, memory[2048, "whole"], within=slack)
    ratio = memory[2048, "whole"] / memory[2048, "tiles"]
    lesson.quote("On the page the tiles need 20 times less", ratio, within=2 * slack)
    lesson.check("less memory in tiles, by a factor", ratio, at_least=12)
    growth = {kind: memory[2048, kind] / memory[1024, kind] for kind in ("whole", "tiles")}
    lesson.quote(
        "2,048 characters instead of 1,024, multiplies the upper line by 3.9 and the lower one by 1.9",
        *(2048, 1024, growth["whole"], growth["tiles"]),
        within=slack,
    )
    lesson.check("twice the text takes so many times the memory, all at once", growth["whole"], at_least=3.6)
    lesson.check("... and in tiles", growth["tiles"], 2.0)
    lesson.check("the largest score moves so often, of 63", run.moves.mean(), 4.0)
    lesson.quote("The sum of 1/i from 2 to 64 is 3.74", 1, 2, 64, run.expected)
    lesson.quote("it would be only 10.6", (1 / np.arange(2, 64001)).sum())


def quote_deeper(lesson, run):
    """Tiles below the diagonal, and mistakes that one tile hides."""
    rows, columns = np.indices((16, 16))
    lesson.quote("At T = 2,048 in tiles of 128, 136 of the 256 tiles remain", 2048, 128, (rows >= columns).sum(), 256)
    broken = np.isnan(run.with_mask[False]).any(axis=-1)
    lesson.check("rows that are NaN without the remedy", broken.sum(), at_least=1)
    assert list(np.flatnonzero(broken)) == [2]
    q, k, v = run.arrays.values()
    tiles = run.tiles(len(k), 3)
    empty = [run.attend_allowed(q, k[keys], v[keys], run.allowed[:, keys], True) for keys in tiles]
    with np.errstate(invalid="ignore"):
        half = np.isnan(reduce(run.merge_states, empty)[2]).any(axis=-1)
    assert list(np.flatnonzero(half)) == [2], "a merge without the remedy survives two empty tiles"
    m, total, o = (x[2] for x in run.merge_allowed(*empty[:2]))
    assert np.isneginf(m).all()
    lesson.check("two empty reports make another one", max(abs(total).max(), abs(o).max()), 0.0)
    same = max(
        run.error(x, y) for x, y in zip(run.merge_allowed(*empty[2:]), run.merge_states(*empty[2:]), strict=True)
    )
    lesson.check("... and otherwise the merge with the remedy is the other one", same, 0.0)
    lesson.quote("each on 10 keys: in one tile of 16, and in tiles of 3", len(run.arrays["k"]), 16, 3)
    lesson.check("in one tile, both careless ones are right", max(run.errors[16]), 1e-13)
    lesson.check("... and in four tiles, both are wrong", min(run.errors[3]), at_least=0.05)
    lesson.quote("The default of our library is 512 keys", TILE[1])


def check_answers(lesson, run):
    """What the answers say."""
    q, k, v = run.arrays.values()
    twice = run.attend(q, np.concatenate([k, k]), np.concatenate([v, v]))
    once = run.attend(q, k, v)
    lesson.check("every key twice: the answer stays", run.error(twice[2], once[2]), 1e-14)
    lesson.check("... and the total doubles", run.error(twice[1], 2 * once[1]), 1e-14)
    one, two, three = reports_of(run)[:3]
    first, last = (
        run.merge_states(run.merge_states(one, two), three),
        run.merge_states(one, run.merge_states(two, three)),
    )
    lesson.check("merging is associative", max(run.error(x, y) for x, y in zip(first, last, strict=True)), 1e-14)
    nothing = np.full_like(one[0], -np.inf), np.zeros_like(one[1]), np.zeros_like(one[2])
    same = max(run.error(x, y) for x, y in zip(run.merge_states(nothing, one), one, strict=True))
    lesson.check("a report on no keys changes nothing", same, 1e-15)
    keep = np.random.default_rng(0).integers(0, 2, (len(q), len(k))) / 0.5
    p = np.exp(q @ k.T / 2 - run.logs)
    dp, o = keep * (run.upstream @ v.T), (keep * p) @ v
    error = run.error((p * dp).sum(axis=-1), (run.upstream * o).sum(axis=-1))
    lesson.check("with dropout, p·dp is do·o", error, 1e-13)
    rising = np.sort(np.random.default_rng(0).standard_normal((1, 64)))
    often = [(np.diff(run.largest_so_far(s, 4)) > 0).sum() for s in (rising, rising[:, ::-1])]
    assert often == [15, 0]


def reports_of(run):
    """The reports of the tiles of 3 keys."""
    q, k, v = run.arrays.values()
    return [run.attend(q, k[keys], v[keys]) for keys in run.tiles(len(k), 3)]


def claim(lesson, run):
    """Verdicts on popular texts."""
    reports = reports_of(run)
    difference = run.error(reduce(run.merge_states, reports)[2], run.whole[0])
    lesson.check("o in tiles, against the library's", difference, 1e-14)
    lesson.claim(
        "FlashAttention is one of the approximations of attention",
        "wrong",
        f"it is the same function and the same gradients, computed in another order: the outputs differ by "
        f"{max(difference, 1e-16):.0e}",
        said="overviews that list it with sparse and linear attention",
    )
    memory = run.memory
    lesson.claim(
        "FlashAttention makes attention linear in the length of the text",
        "half right",
        f"the memory, yes: from T = 1,024 to 2,048 it grows from {memory[1024, 'tiles']:.1f} to "
        f"{memory[2048, 'tiles']:.1f} MB instead of from {memory[1024, 'whole']:.0f} to {memory[2048, 'whole']:.0f}; "
        "the work still grows with T²: 64 tiles become 256",
        said="blog posts and release notes",
    )
    lesson.claim(
        "a softmax needs all scores of a row before the first value can be added",
        "wrong",
        "a running largest score, a total and an answer are enough; with random keys in 64 tiles, the largest score "
        f"moves {run.moves.mean():.1f} times",
        said="explanations of why attention needs T² memory",
    )


def check_elsewhere(lesson):
    """The question that asks for the lesson's idea on something else."""
    readings = np.random.default_rng(8).standard_normal(1000) + 5
    left, right = readings[:300], readings[300:]
    squares = sum(((part - part.mean()) ** 2).sum() for part in (left, right))
    squares += (left.mean() - right.mean()) ** 2 * 300 * 700 / 1000
    lesson.check("two reports on mean and variance", abs(squares / 1000 / readings.var() - 1), 1e-13)
    mean = (300 * left.mean() + 700 * right.mean()) / 1000
    lesson.check("... their mean", abs(mean - readings.mean()), 1e-13)
