"""Which pairs are merged, and in which order: by hand, against a naive trainer, and for any order of the words."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitransformer.tokenizers import BytePairTokenizer
from minitransformer.tokenizers.byte_pair import SMALLEST
from minitransformer.tokenizers.words import split_words
from tests.tokenizers.texts import ENGLISH, SMALL_TEXTS, TEXTS, naive_merges, token_bytes

each_text = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
untimed = settings(deadline=None)  # a slow machine is not a failure


def test_example_of_the_paper_by_hand():
    """Sennrich et al. 2016, algorithm 1: 5 x low, 2 x lower, 6 x newest, 3 x widest. No end-of-word token here."""
    text = "\t".join(["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3)
    by_hand = [
        ("e", "s"),  # 9 times: 6 in newest and 3 in widest; s, t has 9 too, but "e" comes before "s"
        ("es", "t"),  # 9
        ("l", "o"),  # 7: 5 in low and 2 in lower; w, e had 8 at first, but 6 of its "e" are part of "es" now
        ("lo", "w"),  # 7
        ("e", "w"),  # 6 in newest, as n, e and w, est: "e" comes first
        ("n", "ew"),  # 6, as ew, est: a byte comes before a merged token
        ("new", "est"),  # 6
        ("d", "est"),  # 3 in widest, as w, i and i, d
        ("i", "dest"),  # 3
        ("w", "idest"),  # 3
        ("e", "r"),  # 2 in lower, as low, e
        ("low", "er"),  # 2
    ]
    tokenizer = BytePairTokenizer.train(text, vocab_size=1000)
    assert [(left.decode(), right.decode()) for left, right in tokenizer.merges] == by_hand
    assert tokenizer.tokens[SMALLEST:] == tuple(left + right for left, right in by_hand)
    words = ["lowest", "newer", "wide"]
    assert [[tokenizer.tokens[i] for i in tokenizer.encode(word)] for word in words] == [
        ["low", "est"],
        ["new", "er"],
        ["w", "i", "d", "e"],
    ]


@untimed
@given(text=SMALL_TEXTS, count=st.integers(0, 20), min_count=st.integers(1, 3))
def test_merges_of_a_small_text_equal_those_of_a_naive_trainer(text, count, min_count):
    tokenizer = BytePairTokenizer.train(text, SMALLEST + count, min_count)
    assert tokenizer.merges == naive_merges(text, count, min_count)


@each_text
def test_merges_of_a_text_equal_those_of_a_naive_trainer(text):
    tokenizer = BytePairTokenizer.train(text, SMALLEST + 10_000)
    assert tokenizer.merges == naive_merges(text, 10_000, min_count=2)
    assert len(tokenizer.merges) > 25


@each_text
def test_merging_to_the_end_makes_every_word_a_token(text):
    tokenizer = BytePairTokenizer.train(text, vocab_size=100_000, min_count=1)
    assert token_bytes(tokenizer, tokenizer.encode(text)) == [word.encode() for word in split_words(text)]


def test_merges_do_not_depend_on_the_order_of_the_words():
    lines = ENGLISH.replace("\n", " ").split(" ")
    there, back = ("\n".join(some) for some in (lines, lines[::-1]))
    assert BytePairTokenizer.train(there, 400).merges == BytePairTokenizer.train(back, 400).merges


def test_pair_is_merged_only_if_it_occurs_min_count_times():
    assert BytePairTokenizer.train("abc", 300).merges == []
    assert BytePairTokenizer.train("abc", 300, min_count=1).merges == [(b"a", b"b"), (b"ab", b"c")]
    assert BytePairTokenizer.train("ab\tab\tab", 300, min_count=3).merges == [(b"a", b"b")]
    assert BytePairTokenizer.train("ab\tab\tab", 300, min_count=4).merges == []


def test_a_huge_repeat_doubles_its_tokens():
    tokenizer = BytePairTokenizer.train("a" * 2**14, vocab_size=SMALLEST + 10)
    assert [left + right for left, right in tokenizer.merges] == [b"a" * 2 ** (i + 1) for i in range(10)]
    assert len(tokenizer.encode("a" * 2**14)) == 2**4


def test_empty_text_gives_no_merges():
    assert BytePairTokenizer.train("", vocab_size=1000).vocab_size == SMALLEST


def test_bad_input_of_training_is_refused():
    with pytest.raises(ValueError, match="min_count must be at least 1, got 0"):
        BytePairTokenizer.train(ENGLISH, 300, min_count=0)
    with pytest.raises(ValueError, match=r"surrogate U\+DC80\) at position 3"):
        BytePairTokenizer.train("abc\udc80", 300)
    with pytest.raises(TypeError, match="as a str, got bytes"):
        BytePairTokenizer.train(b"abc", 300)
