"""The problems, the hints and the known mistakes of 18_merge."""

import collections
import itertools

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.exercises.problems import sizes

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
    Mistake(
        "each word counts once, however often it comes",
        "One word comes a thousand times in the text, another once. Whose pairs should be joined first?",
        {", 0) + count": ", 0) + 1"},
    ),
    Mistake(
        "a pair counts once in a word, even if it stands there twice",
        "How often does the pair (3, 4) stand in 3 4 3 4?",
        {
            "for place in range(len(ids) - 1):\n            pair = ids[place], ids[place + 1]\n": (
                "for pair in {(ids[place], ids[place + 1]) for place in range(len(ids) - 1)}:\n"
            )
        },
    ),
    Mistake(
        "pairs cross the ends of words",
        "Is the last token of one word a neighbour of the first token of the next one in this list?",
        {
            "zip(words, counts, strict=True)": (
                "zip([np.append(a, b[:1]) for a, b in zip(words, [*words[1:], words[0][:0]])], counts)"
            )
        },
    ),
    Mistake(
        "of equally frequent pairs, it is the first that was seen",
        "Shuffle the words. Should the tokenizer change?",
        {"min(total, key=lambda pair: (-total[pair], pair))": "max(total, key=total.get)"},
    ),
    Mistake(
        "of equally frequent pairs, it is the one with the largest ids",
        "What does the text say about ties? And what does `max` do with a tuple (count, pair)?",
        {"min(total, key=lambda pair: (-total[pair], pair))": "max(total, key=lambda pair: (total[pair], pair))"},
    ),
    Mistake(
        "the order of the two tokens is ignored",
        "Are “st” and “ts” the same token?",
        {
            "pair = ids[place], ids[place + 1]": "pair = tuple(sorted(ids[place : place + 2]))",
        },
    ),
    Mistake(
        "pairs that overlap count once",
        "How often does the text say that the pair (5, 5) stands in 5 5 5?",
        {
            "        for place": "        last = {}\n        for place",
            "            total[pair] = total.get(pair, 0) + count\n": (
                "            if last.get(pair, -2) < place - 1:\n"
                "                total[pair], last[pair] = total.get(pair, 0) + count, place\n"
            ),
        },
    ),
    Mistake(
        "the last pair of each word is missing",
        "How many pairs of neighbours does a word of two tokens have?",
        {"len(ids) - 1": "len(ids) - 2"},
    ),
    Mistake(
        "the rarest pair is taken",
        "Which pair makes the text shorter: one that comes often, or one that hardly comes?",
        {"-total[pair]": "total[pair]"},
    ),
)

MERGE_MISTAKES = (
    Mistake(
        "the right token of a joined pair is read again",
        "After a pair has been joined, which token is the next one to look at?",
        {"            i += 2\n": "            i += 1\n"},
    ),
    Mistake(
        "the text is read from right to left",
        "Which two of 5 5 5 are joined, the first two or the last two?",
        {
            "    merged, i = [], 0\n": "    ids, left, right, merged, i = ids[::-1], right, left, [], 0\n",
            "return merged": "return merged[::-1]",
        },
    ),
    Mistake(
        "only the first pair is joined",
        "If the pair stands in a text three times, how many new tokens are there?",
        {"ids[i + 1] == right:": "ids[i + 1] == right and new not in merged:"},
    ),
    Mistake(
        "a pair is joined in either order",
        "The pair is (left, right). Is (right, left) the same pair?",
        {
            "ids[i] == left and ids[i + 1] == right": "{ids[i], ids[i + 1]} == {left, right}",
        },
    ),
    Mistake(
        "the left token alone decides",
        "Two tokens must be there to be joined. Which of them do you compare?",
        {" and ids[i + 1] == right": ""},
    ),
    Mistake(
        "the right token alone decides",
        "Two tokens must be there to be joined. Which of them do you compare?",
        {" and ids[i] == left": ""},
    ),
    Mistake(
        "a pair at the end of the text is not joined",
        "Where can the last pair of a text of T tokens begin?",
        {"i + 1 < len(ids)": "i + 2 < len(ids)"},
    ),
    Mistake(
        "the last token is lost",
        "Write down your result for a text of one token. What is it?",
        {"while i < len(ids)": "while i < len(ids) - 1"},
    ),
    Mistake(
        "a whole run becomes one token",
        "Read 5 5 5 5 with the pair (5, 5). How many letters does each new token stand for?",
        {
            "            i += 2\n": (
                "            i += 2\n            while i < len(ids) and ids[i] == right:\n                i += 1\n"
            )
        },
    ),
    Mistake(
        "the pair becomes its left token, not the new one",
        "Could you tell afterwards where the right token has been?",
        {"merged.append(new)": "merged.append(left)"},
    ),
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
