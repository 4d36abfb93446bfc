"""The problems, the hints and the known mistakes of 18_merge."""

import collections
import itertools

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task

PAIR_SIZES = sizes("texts words V pairs", (40, 4, 3, 5), (3, 1, 2, 1), (2, 9, 6, 4), (4, 2, 1, 3), (1, 3, 2, 8))
MERGE_SIZES = sizes("T same", (9, 1), (8, 0), (2, 1), (2, 0), (1, 0), (14, 1))
TEXTS = ("text 0", "text 1", "text 2", "text 3")


def make_words(rng, given, texts, words, V, pairs):
    """Short texts of few words, in which several pairs often come equally often. Every second has a run.

    The longest word has so many pairs.
    """
    drawn, right, T = [], [], pairs + 1
    for text in range(texts):
        lengths = [T, *rng.integers(1, T + 1, size=words - 1)]
        tokens = [rng.integers(3, 3 + V, size=length).tolist() for length in lengths]
        if text % 4 == 0:  # hardly any pair comes twice
            tokens = [rng.permutation(np.arange(3, 3 + length)).tolist() for length in lengths]
        tokens[0][: 4 * (text % 2)] = tokens[0][:1] * min(4 * (text % 2), T)
        unlike = sorted(map(list, dict.fromkeys(map(tuple, tokens))), key=lambda ids: rng.random())
        counts = rng.integers(1, 4 if text % 4 else 2, size=len(unlike))
        total = collections.Counter()
        for ids, count in zip(unlike, counts, strict=True):
            for pair in itertools.pairwise(ids):
                total[pair] += int(count)
        drawn.append(([np.array(ids) for ids in unlike], counts))
        right.append(min(pair for pair, count in total.items() if count == max(total.values())))
    return Problem((drawn,), (np.array(right),))


def make_texts(rng, given, T, same):
    """Four texts of three tokens: with runs, with the pair at both ends, at random, and without the pair."""
    left, right, other, new = rng.permutation(np.arange(3, 12))[:4].tolist()
    right = left if same else right
    pair = [left, right]
    runs = [left] * min(3, T) + [right] * 2 + [other, right, left]
    ends = pair + [other] * max(T - 4, 0) + pair
    mixed = rng.choice([left, right, other], size=T).tolist()
    texts = [np.array((text + mixed)[:T]) for text in (runs, ends, mixed, [other, right])]
    if T > 3:
        texts[1][-2:] = pair
    return Problem((texts, tuple(pair), new), tuple(joined(text.tolist(), pair, new) for text in texts))


def joined(ids, pair, new):
    """What is right, found with a search in a string of letters."""
    text = "".join(map(chr, ids)).replace("".join(map(chr, pair)), chr(new))
    return np.array([*map(ord, text), *[-1] * (len(ids) - len(text))])


def says_the_same(outputs, problem):
    """Whether the texts are the same again if each new token is written as its pair."""
    texts, pair, new = problem.args
    for ids, out in zip(texts, outputs, strict=True):
        spelled = [part for id in out if id >= 0 for part in (pair if id == new else (id,))]
        if not np.array_equal(spelled, ids):
            return False
    return True


PAIR_MISTAKES = (
    Mistake("each-word-counts-once-however", {", 0) + count": ", 0) + 1"}),
    Mistake(
        "pair-counts-once-word",
        {
            "for place in range(len(ids) - 1):\n            pair = ids[place], ids[place + 1]\n": (
                "for pair in {(ids[place], ids[place + 1]) for place in range(len(ids) - 1)}:\n"
            )
        },
    ),
    Mistake(
        "pairs-cross-ends-words",
        {
            "zip(words, counts, strict=True)": (
                "zip([np.append(a, b[:1]) for a, b in zip(words, [*words[1:], words[0][:0]])], counts)"
            )
        },
    ),
    Mistake(
        "equally-frequent-pairs-first-seen",
        {"min(total, key=lambda pair: (-total[pair], pair))": "max(total, key=total.get)"},
    ),
    Mistake(
        "equally-frequent-pairs-one-largest",
        {"min(total, key=lambda pair: (-total[pair], pair))": "max(total, key=lambda pair: (total[pair], pair))"},
    ),
    Mistake(
        "order-two-tokens-ignored",
        {
            "pair = ids[place], ids[place + 1]": "pair = tuple(sorted(ids[place : place + 2]))",
        },
    ),
    Mistake(
        "pairs-overlap-count-once",
        {
            "        for place": "        last = {}\n        for place",
            "            total[pair] = total.get(pair, 0) + count\n": (
                "            if last.get(pair, -2) < place - 1:\n"
                "                total[pair], last[pair] = total.get(pair, 0) + count, place\n"
            ),
        },
    ),
    Mistake("last-pair-each-word-missing", {"len(ids) - 1": "len(ids) - 2"}),
    Mistake("rarest-pair-taken", {"-total[pair]": "total[pair]"}),
)

MERGE_MISTAKES = (
    Mistake("right-token-joined-pair-read", {"            i += 2\n": "            i += 1\n"}),
    Mistake(
        "text-read-right-left",
        {
            "    merged, i = [], 0\n": "    ids, left, right, merged, i = ids[::-1], right, left, [], 0\n",
            "return merged": "return merged[::-1]",
        },
    ),
    Mistake("only-first-pair-joined", {"ids[i + 1] == right:": "ids[i + 1] == right and new not in merged:"}),
    Mistake(
        "pair-joined-either-order",
        {
            "ids[i] == left and ids[i + 1] == right": "{ids[i], ids[i + 1]} == {left, right}",
        },
    ),
    Mistake("left-token-alone-decides", {" and ids[i + 1] == right": ""}),
    Mistake("right-token-alone-decides", {" and ids[i] == left": ""}),
    Mistake("pair-end-text-not-joined", {"i + 1 < len(ids)": "i + 2 < len(ids)"}),
    Mistake("last-token-lost", {"while i < len(ids)": "while i < len(ids) - 1"}),
    Mistake(
        "whole-run-becomes-one-token",
        {
            "            i += 2\n": (
                "            i += 2\n            while i < len(ids) and ids[i] == right:\n                i += 1\n"
            )
        },
    ),
    Mistake("pair-becomes-left-token", {"merged.append(new)": "merged.append(left)"}),
)

EXERCISE = Exercise(
    name="18_merge",
    hints=(
        "How many pairs of neighbours does a word of T tokens have? And how many can be joined at once in 5 5 5?",
        "Counting needs a table from pairs to numbers, and knows nothing of joining. Joining needs a place i that "
        "sometimes goes on by one, and sometimes by two. What happens at the last place?",
        "total: {(id, id): number};  the pair: the smallest of (minus a number, pair);  merged: a list that gets one "
        "id at each turn of the loop",
    ),
    tasks=(
        Task(
            function="pairs_of",
            outputs=(Output("pairs", ("texts", "left and right"), "int"),),
            make=make_words,
            sizes=PAIR_SIZES,
            mistakes=PAIR_MISTAKES,
        ),
        Task(
            function="merge_all",
            outputs=tuple(Output(name, "T", "int") for name in TEXTS),
            make=make_texts,
            sizes=MERGE_SIZES,
            rich=2,
            invariants=(
                Invariant("the text is the same again if each new token is written as its pair", says_the_same),
            ),
            mistakes=MERGE_MISTAKES,
        ),
    ),
)
