"""Splitting into words: the same words as GPT-2's pattern, for every character, without the library `regex`."""

import functools
import sys
import unicodedata

import pytest
from hypothesis import given

from minitransformer.tokenizers import words
from minitransformer.tokenizers.words import PATTERNS, batches_of_words, split_words
from tests.tokenizers.texts import ANY_TEXT, ENGLISH, SETTLED_TEXT, TEXTS, is_settled

GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


@functools.cache
def _gpt2_words(pattern=GPT2_PATTERN):
    regex = pytest.importorskip("regex")
    return regex.compile(pattern).findall


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("It's 12 o'clock, they've said", ["It", "'s", " 12", " o", "'", "clock", ",", " they", "'ve", " said"]),
        ("WE'LL we'll", ["WE", "'", "LL", " we", "'ll"]),
        ("a  b   \n  c\t\td ", ["a", " ", " b", "   \n ", " c", "\t", "\t", "d", " "]),
        ("x_1 _y", ["x", "_", "1", " _", "y"]),
        ("½ Ⅷ二 二2", ["½", " Ⅷ", "二", " 二", "2"]),
        ("e\u0301a", ["e", "\u0301", "a"]),
        ("a\x1c\u00a0\u3000b", ["a", "\x1c", "\u00a0", "\u3000", "b"]),
        ("a  \x1cb", ["a", " ", " \x1c", "b"]),
        ("..._?! \ud800.", ["..._?!", " \ud800."]),
    ],
)
def test_words_of_an_example(text, expected):
    assert split_words(text) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("qwen", "I'LL (see) it\n\n x", ["I", "'LL", " (", "see", ")", " it", "\n\n", " x"]),
        ("qwen", "a.b\t_c?!\r\nd 12", ["a", ".b", "\t", "_c", "?!\r\n", "d", " ", "1", "2"]),
        ("llama3", "1234567 x12", ["123", "456", "7", " x", "12"]),
        ("llama3", "  \n a   b  ", ["  \n", " a", "  ", " b", "  "]),
    ],
)
def test_words_of_later_models(pattern, text, expected):
    assert split_words(text, pattern) == expected


@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=ANY_TEXT)
def test_joined_words_are_the_text(pattern, text):
    assert "".join(split_words(text, pattern)) == text


@pytest.mark.parametrize("pattern", PATTERNS)
def test_words_of_a_text_equal_those_of_the_pattern_in_another_library(pattern):
    for text in TEXTS.values():
        assert split_words(text, pattern) == _gpt2_words(PATTERNS[pattern])(text)


@given(text=SETTLED_TEXT)
def test_words_of_any_text_equal_those_of_gpt2(text):
    assert split_words(text) == _gpt2_words()(text)


@pytest.mark.parametrize("last", [0x2FFF, pytest.param(sys.maxunicode, marks=pytest.mark.exhaustive)])
def test_letters_and_numbers_are_the_categories_of_unicode(last):
    """Most of the later ones are Chinese or Korean, or private."""
    characters = {"L": [], "N": [], "neither": []}
    for character in filter(is_settled, map(chr, range(last + 1))):
        characters.get(unicodedata.category(character)[0], characters["neither"]).append(character)
    for category in ("L", "N"):
        assert len(split_words("".join(characters[category]))) == 1, category
    beside = split_words("".join(f"a{character}1" for character in characters["neither"]))
    joined = {word for word in beside if "a" in word} - {"a"} | {word for word in beside if "1" in word} - {"1", " 1"}
    assert not joined


@pytest.mark.parametrize("version", [14, 15, 16])
def test_letters_and_numbers_of_later_unicode_are_known_on_every_python(version):
    letter, number = {14: "\U00010570\U00016ac0", 15: "\U00031350\U00011f50", 16: "\U00010d4a\U00010d40"}[version]
    assert split_words(f"a{letter} 1{number}") == [f"a{letter}", f" 1{number}"]


def test_batches_hold_all_words_in_order(monkeypatch):
    monkeypatch.setattr(words, "BATCH", 7)
    batches = list(batches_of_words(ENGLISH, "words"))
    assert {len(batch) for batch in batches[:-1]} == {7}
    assert [word for batch in batches for word in batch] == split_words(ENGLISH)
