"""Encoding with byte pairs: no byte is ever lost, merges are applied in order and stay inside words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitransformer.tokenizers import BytePairTokenizer, byte_merging
from minitransformer.tokenizers.byte_pair import SMALLEST
from minitransformer.tokenizers.visible import BYTE_ORDER, from_visible, to_visible
from minitransformer.vocabulary import BOS, EOS, PAD, SPECIAL_TOKENS
from tests.tokenizers.texts import (
    ANY_TEXT,
    ENGLISH,
    LIKELY_WORDS,
    SMALL_TEXTS,
    UNICODE,
    naive_tokens,
    token_bytes,
    trained,
)

untimed = settings(deadline=None)  # a slow machine is not a failure


@untimed
@given(text=ANY_TEXT | LIKELY_WORDS)
def test_any_text_is_decoded_again(text):
    for tokenizer in (BytePairTokenizer(), trained()):
        ids = tokenizer.encode(text)
        assert ids.dtype == np.int64
        assert ids.min(initial=99) > EOS
        assert tokenizer.decode(ids) == text
        assert tokenizer.decode_bytes(ids) == text.encode()
        assert tokenizer.encode_bytes(text.encode()).tolist() == ids.tolist()


@untimed
@given(data=st.binary(max_size=40), text=ANY_TEXT, cut=st.integers(0, 60))
def test_any_bytes_are_decoded_again(data, text, cut):
    for some in (data, text.encode()[cut:], data + text.encode() + data):
        assert trained().decode_bytes(trained().encode_bytes(some)) == some


def test_every_byte_is_a_token():
    tokenizer = trained()
    assert tokenizer.tokens[:3] == SPECIAL_TOKENS
    singles = token_bytes(tokenizer, range(3, SMALLEST))
    assert singles == [bytes([byte]) for byte in BYTE_ORDER]
    assert sorted(singles) == [bytes([byte]) for byte in range(256)]


def test_order_and_visible_letters_of_the_bytes_are_those_of_gpt2():
    # from its file vocab.json
    gpt2 = {"!": 0, "a": 64, "~": 93, "¡": 94, "ÿ": 187, "Ā": 188, "Ċ": 198, "Ġ": 220, "ł": 254, "Ń": 255}
    assert {letter: BYTE_ORDER.index(from_visible(letter)[0]) for letter in gpt2} == gpt2
    assert to_visible("a é\n".encode()) == "aĠÃ©Ċ"
    assert from_visible(to_visible(bytes(range(256)))) == bytes(range(256))
    assert BytePairTokenizer().encode("! a").tolist() == [3, 223, 67]


def test_half_a_character_is_decoded_as_a_replacement():
    tokenizer = BytePairTokenizer()
    ids = tokenizer.encode("aé€")
    assert len(ids) == 6
    assert tokenizer.decode(ids[:-1]) == "aé\ufffd"
    assert tokenizer.decode(ids[2:]) == "\ufffd€"
    assert tokenizer.decode_bytes(ids[2:]) == b"\xa9\xe2\x82\xac"


def test_special_tokens_have_no_text_and_encoding_never_produces_them():
    tokenizer = trained()
    ids = tokenizer.encode("<eos><pad>")
    assert ids.min() > EOS
    assert tokenizer.decode([BOS, *ids, EOS, *tokenizer.encode(" more"), PAD, PAD]) == "<eos><pad> more"


@untimed
@given(text=SMALL_TEXTS | LIKELY_WORDS | ANY_TEXT)
def test_tokens_equal_those_of_a_naive_encoder(text):
    tokenizer = trained()
    assert token_bytes(tokenizer, tokenizer.encode(text)) == naive_tokens(text, tokenizer.merges)


@untimed
@given(text=SMALL_TEXTS, other=SMALL_TEXTS)
def test_tokens_with_any_merges_equal_those_of_a_naive_encoder(text, other):
    tokenizer = BytePairTokenizer.train(text, SMALLEST + 30, min_count=1)
    assert token_bytes(tokenizer, tokenizer.encode(text + other)) == naive_tokens(text + other, tokenizer.merges)


def test_merges_of_a_repeat_go_from_left_to_right():
    tokenizer = BytePairTokenizer([(b"a", b"a"), (b"aa", b"a"), (b"aa", b"aa")])
    for length, expected in [(2, "2"), (3, "3"), (4, "4"), (5, "2 3"), (6, "4 2"), (9, "4 2 3"), (10, "4 4 2")]:
        tokens = token_bytes(tokenizer, tokenizer.encode("a" * length))
        assert [len(token) for token in tokens] == [int(token) for token in expected.split()], length


def test_a_huge_repeat_is_encoded_in_few_tokens():
    text = "the the " * 1_000 + "a" * 10_000 + " " * 10_000 + "😀" * 2_000
    tokenizer = BytePairTokenizer.train(text, 320)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert len(ids) < 2_100


def test_ids_do_not_depend_on_the_cache(monkeypatch):
    monkeypatch.setattr(byte_merging, "CACHED_WORDS", 3)
    monkeypatch.setattr(byte_merging, "CACHED_LENGTH", 5)
    merges = trained().merges
    tokenizer = BytePairTokenizer(merges)
    for text in (ENGLISH, UNICODE, ENGLISH, "four longer", *["one", "more", "word", "at", "a", "time"]):
        assert tokenizer.encode(text).tolist() == BytePairTokenizer(merges).encode(text).tolist()
        assert 0 < len(tokenizer._cache) <= 3
        assert max(map(len, tokenizer._cache)) <= 5


def test_tokens_are_shown_as_text_if_they_are_valid_utf8():
    tokenizer = BytePairTokenizer([(b" ", b"a"), (b"\xc3", b"\xa9"), (b"\x82", b"\xac")])
    assert tokenizer.tokens[SMALLEST:] == (" a", "é", "\\x82\\xac")
    assert tokenizer.vocab_size == len(tokenizer.tokens) == 262


@pytest.mark.parametrize(
    ("merges", "complaint"),
    [
        ([(b"a", b"b"), (b"ab", b"cd")], "merge 1 joins b'ab' and b'cd': b'cd' is not a token"),
        ([(b"ab", b"c"), (b"a", b"b")], "merge 0 joins b'ab' and b'c': b'ab' is not a token"),
        ([(b"a", b"b"), (b"b", b"c"), (b"ab", b"c"), (b"a", b"bc")], "merge 3 makes b'abc', which is a token already"),
        ([(b"", b"a")], "b'' is not a token"),
    ],
)
def test_impossible_merges_are_refused(merges, complaint):
    with pytest.raises(ValueError, match=complaint):
        BytePairTokenizer(merges)


BROKEN = [("ab\ud800c", "U+D800) at position 2"), ("\udcff", "U+DCFF) at position 0")]


@pytest.mark.parametrize(("text", "place"), BROKEN)
def test_half_a_character_is_refused_with_its_position(text, place):
    with pytest.raises(ValueError, match="half a character") as raised:
        trained().encode(text)
    assert place in str(raised.value)


def test_bad_input_of_encode_and_decode_is_refused():
    with pytest.raises(TypeError, match="as a str, got bytes"):
        trained().encode(b"ab")
    with pytest.raises(TypeError, match="encode_bytes takes bytes, got str"):
        trained().encode_bytes("ab")
    with pytest.raises(IndexError, match="token id 259, but the vocabulary has the ids 0 to 258"):
        BytePairTokenizer().decode([259])
    with pytest.raises(IndexError, match="token id -1"):
        trained().decode_bytes([-1])
    with pytest.raises(ValueError, match=r"one row of ids, got an array of shape \(1, 2\)"):
        trained().decode([[3, 4]])
