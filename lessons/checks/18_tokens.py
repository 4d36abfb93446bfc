"""What lesson 18 says, against what it computed, and what is right where its reader writes a line.

The text is the manual of the Python that runs it, so measured numbers may differ a little from version to version.
"""

import numpy as np

MANUAL = 0.06  # how far its numbers may be off, relatively, with another manual

HANDS = {
    "merged": (
        lambda run: [7, 3, 4, 7],
        {
            "tokens that have been joined are joined again: each 3 belongs to one pair at most": lambda run: [
                7,
                7,
                4,
                7,
            ],
            "the text is read from left to right, so the first two of the three are joined": lambda run: [3, 7, 4, 7],
            "a 7 stands for two tokens, not for three": lambda run: [7, 4, 7],
            "the pair stands twice in the text": lambda run: [7, 3, 4, 3, 3],
        },
    ),
    "bits": (
        lambda run: run.nats.sum() / np.log(2) / len(run.corpus.held_out),
        {
            "these are bits per token, and a token is a byte here: some characters have several": lambda run: (
                run.nats.mean() / np.log(2)
            ),
            "these are nats per token": lambda run: run.nats.mean(),
            "these are nats: one bit is ln 2 nats": lambda run: run.nats.sum() / len(run.corpus.held_out),
            "there are more bits than nats, so divide by ln 2": lambda run: (
                run.nats.sum() * np.log(2) / len(run.corpus.held_out)
            ),
            "these are the bits of the whole text": lambda run: run.nats.sum() / np.log(2),
            "the mean is over tokens already, so do not divide by the characters again": lambda run: (
                run.nats.mean() / np.log(2) / len(run.corpus.held_out)
            ),
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson)
    lesson.example("output.p", run.p)
    lesson.example("output.L", run.L)
    lesson.check("merge_pair", run.merge_pair(run.row, (3, 3), 7) == [7, 3, 4, 7], at_least=1)
    quote_prices(lesson, run)
    quote_deeper(lesson, run)
    check_answers(lesson, run)
    claim(lesson, run)


def quote_prices(lesson, run):
    """Perplexities and bits."""
    small, large = run.perplexity[259], run.perplexity[4096]
    lesson.quote("the manual of Python, 440,000 characters", len(run.corpus.train), within=MANUAL)
    lesson.quote("The first has a perplexity of 9", small, within=MANUAL)
    lesson.quote("The second has a perplexity of 119", large, within=MANUAL)
    lesson.quote("has a perplexity of 9.38", small, within=MANUAL)
    lesson.quote("grows to 13 times what it was", large / small, within=MANUAL)
    lesson.quote("the perplexity of 119 needs 1.63 bits", large, run.per_character[4096], within=MANUAL)
    lesson.quote("the one with 9 needs 3.23", small, run.per_character[259], within=MANUAL)
    lesson.quote("its tokens are 4.2 characters long", run.length[4096], within=MANUAL)
    half = run.per_character[4096] / run.per_character[259]
    lesson.check("the price of the text falls to half of it", abs(half - 0.5), 0.05)
    lesson.check("the perplexity rises at every step", min(np.diff(list(run.perplexity.values()))), at_least=1)
    lesson.check("the bits fall at every step", max(np.diff(list(run.per_character.values()))), -0.005)
    pairs = np.exp(run.even.reshape(-1, 2).sum(axis=1).mean())
    lesson.check("two bytes: the square", run.error(pairs, np.exp(run.even.mean()) ** 2), 1e-12)
    for size, nats in run.prices.items():
        price = np.log(run.perplexity[size]) * len(nats) / run.K / np.log(2)
        lesson.check(
            f"{size}: nats per token times tokens per character", run.error(price, run.per_character[size]), 1e-12
        )
    check_probabilities(lesson, run, back=1)
    check_probabilities(lesson, run, back=2)
    lesson.quote("look back by four bytes, and it needs 1.64 bits", run.four_bits, within=MANUAL)
    lesson.quote("their perplexities are 3.1 and 119", run.four_perplexity, large, within=MANUAL)
    lesson.check("equally good", abs(run.four_bits / run.per_character[4096] - 1), 0.05)
    lesson.check('"stop" is one token', len(run.tokenizer.encode("stop")), 1)
    lesson.check('"pots" is three', abs(len(run.tokenizer.encode("pots")) - 3), 0)


def check_probabilities(lesson, run, back):
    """The probabilities of all bytes after one row of bytes sum to 1."""
    train = run.plain.encode(run.corpus.train[:20_000])
    tests = ([*train[5:8], last] for last in range(259))
    total = sum(np.exp(-run.nats_of(train, np.array(test), 259, back)[3]) for test in tests)
    lesson.check(f"{back} back: the probabilities of what comes next sum to 1", abs(total - 1), 1e-9)


def quote_deeper(lesson, run):
    """Rare tokens, and all ways to cut a text."""
    lesson.quote("34 % occur fewer than five times", 100 * run.rare, within=0.2)
    lesson.quote("The longest token is a line of 93 signs", len(run.longest), within=0.2)
    lesson.check("... most of them dashes", run.longest.count(b"-") / len(run.longest), at_least=0.9)
    lesson.check("... and some never occur", run.never, at_least=0.05)
    gap = run.one_way - run.every_way
    lesson.check("all ways are likelier than one", gap, at_least=0)
    lesson.quote("K = 4 characters, but it makes N = 5 predictions", 4, 5)
    lesson.quote("For this model the gap is 0.024 bits", gap, within=0.2)
    lesson.check("about one per cent", abs(100 * gap / run.one_way - 1), 0.4)


def check_answers(lesson, run):
    """The numbers in the answers."""
    lesson.quote(
        "log₂ 20 / 4 = 1.08 bits per character, and log₂ 60 / 5.5 = 1.07",
        *(20, 4, np.log2(20) / 4),
        *(60, 5.5, np.log2(60) / 5.5),
    )
    lesson.quote("256, and log₂ 256 = 8", 256, 256, 8)
    lesson.quote(
        "2^1.63 = 3.1, against 9.4",
        2,
        run.per_character[4096],
        2 ** run.per_character[4096],
        run.perplexity[259],
        within=MANUAL,
    )
    six = [run.measure(size, back=6).sum() / np.log(2) / run.K for size in (1024, 4096)]
    lesson.quote(
        "With six tokens back, 1,024 tokens are as good as 4,096, with 1.36 bits each",
        1024,
        4096,
        six[0],
        within=MANUAL,
    )
    lesson.check("exercise 2: they are as good", abs(six[0] / six[1] - 1), 0.02)
    eos = -np.log2(run.chances[-1]) / 4
    lesson.quote("with p = 0.999, so only by 0.0004 bits", run.chances[-1], eos)


def claim(lesson, run):
    """Verdicts on popular texts."""
    lesson.claim(
        "the language model with the lower perplexity is the better one",
        "half right",
        f"only with the same tokens: of one text, a vocabulary of 259 tokens gives a perplexity of "
        f"{run.perplexity[259]:.0f} and {run.per_character[259]:.2f} bits per character, one of 4,096 tokens "
        f"{run.perplexity[4096]:.0f} and {run.per_character[4096]:.2f}",
        said="leaderboards and blog posts that compare models with different tokenizers",
    )


def check_elsewhere(lesson):
    """The question that asks for the lesson's idea on something else."""
    lesson.quote("3 = 158 bits", 3, 100 * np.log2(3))
    lesson.quote("20 = 108 bits", 20, 25 * np.log2(20))
