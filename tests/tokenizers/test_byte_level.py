"""Byte pairs with a vocabulary of somebody else's: ids in any order, added tokens, and text that comes in pieces.

That the ids are those of the library `tokenizers` is proven by tests/interop/test_huggingface_tokenizers.
"""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitransformer.tokenizers import AddedToken, ByteLevelTokenizer, BytePairTokenizer, CharacterTokenizer
from minitransformer.tokenizers.byte_level import Reading
from minitransformer.tokenizers.visible import BYTE_ORDER, to_visible
from tests.tokenizers.texts import ANY_TEXT, LIKELY_WORDS, naive_tokens, token_bytes, trained

untimed = settings(deadline=None)  # a slow machine is not a failure
BYTES = [to_visible(bytes([byte])) for byte in BYTE_ORDER]
END = "<|endoftext|>"


def shuffled(added=(END,)):
    """The merges of `trained()` with ids in a random order, the added tokens among them."""
    merges = [(to_visible(left), to_visible(right)) for left, right in trained().merges]
    tokens = [*added, *BYTES, *(left + right for left, right in merges)]
    random.Random(3).shuffle(tokens)
    return ByteLevelTokenizer(tokens, merges, [AddedToken(content) for content in added])


@untimed
@given(text=ANY_TEXT | LIKELY_WORDS)
def test_tokens_equal_those_of_a_naive_encoder_whatever_their_ids(text):
    tokenizer = shuffled()
    ids = tokenizer.encode(text)
    assert ids.dtype == np.int64
    assert token_bytes(tokenizer, ids) == naive_tokens(text, trained().merges)
    assert tokenizer.decode(ids) == text
    assert tokenizer.encode_bytes(text.encode()).tolist() == ids.tolist()


def test_the_order_of_the_merges_decides_and_not_the_ids():
    tokens = ["abc", "bc", "ab", *BYTES]
    early, late = [("a", "b"), ("b", "c"), ("ab", "c")], [("b", "c"), ("a", "b"), ("ab", "c")]
    assert ByteLevelTokenizer(tokens, early).encode("abc").tolist() == [0]
    assert ByteLevelTokenizer(tokens, late).encode("abc").tolist() == [BYTES.index("a") + 3, 1]


def test_two_merges_may_make_the_same_token():
    tokens = ["abc", "bc", "ab", *BYTES]
    tokenizer = ByteLevelTokenizer(tokens, [("b", "c"), ("a", "b"), ("ab", "c"), ("a", "bc")])
    assert tokenizer.encode("abc abb").tolist() == [0, BYTES.index("Ġ") + 3, 2, BYTES.index("b") + 3]


@pytest.mark.parametrize(("whole", "expected"), [(True, ["abc", "Ġ", "ab", "d"]), (False, ["ab", "c", "Ġ", "ab", "d"])])
def test_a_word_that_is_a_token_is_not_merged_if_that_is_asked_for(whole, expected):
    tokens = ["abc", "ab", *BYTES]
    tokenizer = ByteLevelTokenizer(tokens, [("a", "b")], reading=Reading(whole=whole))
    assert tokenizer.encode("abc abd").tolist() == [tokens.index(token) for token in expected]


def test_a_first_token_comes_once_before_a_text_and_has_no_text():
    tokenizer = ByteLevelTokenizer([*BYTES, END], (), [AddedToken(END)], Reading(first=END))
    a, end = BYTES.index("a"), len(BYTES)
    assert tokenizer.encode("").tolist() == [end]
    assert (
        tokenizer.encode(f"a{END}a").tolist()
        == tokenizer.encode_bytes(f"a{END}a".encode()).tolist()
        == [end, a, end, a]
    )
    assert tokenizer.decode([end, a, end, a]) == "aa"


def test_text_is_brought_to_nfc_between_the_added_tokens_of_both_kinds():
    added = [AddedToken("e\u0301x", False), AddedToken("\u1e8fz", False, normalized=True)]
    tokens = [*BYTES, *(token.content for token in added)]
    tokenizer = ByteLevelTokenizer(tokens, (), added, Reading(nfc=True))
    ids = tokenizer.encode("e\u0301xy\u0307ze\u0301")
    assert ids.tolist() == [len(BYTES), len(BYTES) + 1, *tokenizer.encode("\u00e9")]
    assert tokenizer.decode(ids) == "e\u0301x\u1e8fz\u00e9"
    with pytest.raises(ValueError, match="the added token 'e\u0301' must be in the form NFC"):
        ByteLevelTokenizer([*BYTES, "e\u0301"], (), [AddedToken("e\u0301", normalized=True)], Reading(nfc=True))


def test_words_are_those_of_the_pattern():
    tokenizer = ByteLevelTokenizer([*BYTES, "12", "123"], [("1", "2"), ("12", "3")], reading=Reading("qwen"))
    assert tokenizer.encode("123").tolist() == [BYTES.index(digit) for digit in "123"]


def test_a_reading_is_saved_unless_it_is_gpt2s():
    assert "reading" not in ByteLevelTokenizer(BYTES).to_dict()
    reading = Reading("llama3", nfc=True, whole=True, first="a")
    assert ByteLevelTokenizer.from_dict(ByteLevelTokenizer(BYTES, reading=reading).to_dict()).reading == reading


def test_special_tokens_in_a_text_are_one_id_and_have_no_text():
    tokenizer = shuffled()
    end = tokenizer.tokens.index(END)
    plain = tokenizer.encode("one").tolist(), tokenizer.encode(" two").tolist()
    ids = tokenizer.encode(f"{END}one{END}{END} two").tolist()
    assert ids == [end, *plain[0], end, end, *plain[1]]
    assert tokenizer.decode(ids) == "one two"
    assert end not in tokenizer.encode("<|endoftext| >")


def test_added_tokens_that_are_not_special_have_a_text():
    added = [AddedToken("<tool>", special=False), AddedToken("with space", special=False), AddedToken("<s>")]
    tokenizer = ByteLevelTokenizer(["with space", "<tool>", "<s>", *BYTES], [], added)
    ids = tokenizer.encode("a<tool>with space<s>b")
    assert ids.tolist()[1:4] == [1, 0, 2]
    assert tokenizer.decode(ids) == "a<tool>with spaceb"


def test_the_letters_of_an_added_token_are_no_bytes_unless_a_merge_or_a_byte_makes_the_same_token():
    plain = [AddedToken(content, special=False) for content in ("<é>", "ĠĈ", "naïve")]
    tokens = [*BYTES, "Ġa", *(token.content for token in plain)]
    tokenizer = ByteLevelTokenizer(tokens, [("Ġ", "a")], [*plain, *(AddedToken(one, False) for one in ("Ġa", "é"))])
    ids = tokenizer.encode("x<é>ĠĈy naïve a")
    assert ids.tolist()[1:3] == [257, 258]
    assert tokenizer.decode(ids) == "x<é>ĠĈy naïve a"
    assert tokenizer.decode(tokenizer.encode("Ġa")) == " a"
    assert tokenizer.decode([BYTES.index("é"), *tokenizer.encode("飯")[1:]]) == "飯"
    assert tokenizer.tokens[257:] == ("<é>", "ĠĈ", "naïve")


def test_the_longest_added_token_is_found_and_normalized_ones_last():
    contents = ["<a>", "<a><b>", "b><c"]
    tokenizer = ByteLevelTokenizer([*contents, *BYTES], [], [AddedToken(content) for content in contents])
    assert tokenizer.encode("<a><b><c>").tolist()[0] == 1
    later = [AddedToken("<a>", normalized=True), AddedToken("<a><b>", normalized=True), AddedToken("b><c")]
    tokenizer = ByteLevelTokenizer([*contents, *BYTES], [], later)
    ids = tokenizer.encode("<a><b><c>").tolist()
    assert ids[0] == 0
    assert ids[2] == 2


def test_nothing_is_found_inside_an_added_token_that_was_found_before():
    added = [AddedToken("<a>"), AddedToken("a", normalized=True)]
    tokenizer = ByteLevelTokenizer(["<a>", *BYTES], [], added)
    assert tokenizer.encode("<a>a").tolist() == [0, BYTES.index("a") + 1]


@pytest.mark.parametrize("tokenizer", [shuffled(), BytePairTokenizer()], ids=["byte level", "byte pairs"])
def test_a_character_of_several_tokens_comes_with_the_last_of_them(tokenizer):
    small = ByteLevelTokenizer(BYTES) if isinstance(tokenizer, ByteLevelTokenizer) else tokenizer
    ids = small.encode("aé€😀").tolist()
    assert list(small.decode_stream(ids)) == ["a", "", "é", "", "", "€", "", "", "", "😀"]
    assert list(small.decode_stream(ids[:-1]))[-4:] == ["", "", "", "\ufffd"], (
        "half a character is shown once, at the end"
    )
    assert list(small.decode_stream(ids[2:4])) == ["\ufffd", "", "\ufffd"]


@untimed
@given(ids=st.lists(st.integers(0, 100), max_size=20))
def test_the_pieces_of_a_stream_are_the_decoded_text(ids):
    for tokenizer in (shuffled(), trained(), CharacterTokenizer.train("".join(map(chr, range(97, 200))))):
        pieces = list(tokenizer.decode_stream(iter(ids)))
        assert "".join(pieces) == tokenizer.decode(ids)
        assert len(pieces) in (len(ids), len(ids) + 1)


def test_a_stream_gives_each_piece_before_the_next_id_is_asked_for():
    asked = itertools.count()
    stream = shuffled().decode_stream(i for i in itertools.count() if next(asked) >= 0)
    next(stream)
    next(stream)
    assert next(asked) == 2


REFUSED = {
    "a token twice": (([*BYTES, "ab", "ab"],), "the token 'ab' is there twice"),
    "an empty token": (([*BYTES, ""],), "a token must be a str that is not empty, got ''"),
    "a number": (([*BYTES, 7],), "a token must be a str that is not empty, got 7"),
    "a byte missing": ((BYTES[:-1],), r"the byte 173, written 'Ń', is not among the tokens"),
    "an unknown part": ((BYTES, [("ab", "c")]), "merge 0 joins 'ab' and 'c': 'ab' is not a token"),
    "an unknown result": ((BYTES, [("a", "b")]), "merge 0 joins 'a' and 'b': 'ab' is not a token"),
    "a merge twice": (([*BYTES, "ab"], [("a", "b"), ("a", "b")]), "merge 1, of 'a' and 'b', is there twice"),
    "an unknown added token": ((BYTES, [], [AddedToken("<s>")]), "the added token '<s>' is not among the tokens"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_vocabularies_that_cannot_be_are_refused(name):
    arguments, message = REFUSED[name]
    with pytest.raises(ValueError, match=f"^{message}$"):
        ByteLevelTokenizer(*arguments)


def test_tokens_are_shown_as_text_and_special_ones_by_their_names():
    tokenizer = ByteLevelTokenizer([*BYTES, "Ġa", "Ã©", "Ĥ¬", END], [], [AddedToken(END)])
    assert tokenizer.tokens[256:] == (" a", "é", "\\x82\\xac", END)
    assert tokenizer.vocab_size == 260
