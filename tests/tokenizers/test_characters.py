"""The character tokenizer: ids by hand, any text there and back, and no unknown character lost silently."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.vocabulary import BOS, EOS, PAD, SPECIAL_TOKENS

ANY_STR = st.text(st.characters(), max_size=40)  # lone surrogates are characters too


def test_ids_are_those_of_the_sorted_characters_after_the_special_tokens():
    tokenizer = CharacterTokenizer.train("banana bread\n")
    assert tokenizer.tokens == ("<pad>", "<bos>", "<eos>", "\n", " ", "a", "b", "d", "e", "n", "r")
    assert (tokenizer.tokens[PAD], tokenizer.tokens[BOS], tokenizer.tokens[EOS]) == SPECIAL_TOKENS
    assert tokenizer.vocab_size == 11
    ids = tokenizer.encode("bad\n")
    assert ids.dtype == np.int64
    assert ids.tolist() == [6, 5, 7, 3]
    assert tokenizer.decode(ids) == "bad\n"


@given(text=ANY_STR, more=ANY_STR, unknown=st.booleans())
def test_any_text_of_known_characters_is_decoded_again(text, more, unknown):
    tokenizer = CharacterTokenizer.train(text + more, unknown)
    ids = tokenizer.encode(text)
    assert ids.shape == (len(text),)
    assert ids.min(initial=99) > EOS
    assert tokenizer.decode(ids) == text


def test_special_tokens_have_no_text_and_encoding_never_produces_them():
    tokenizer = CharacterTokenizer.train("<pad>bos", unknown=True)
    assert tokenizer.decode([BOS, *tokenizer.encode("<pad>"), EOS, *tokenizer.encode("so"), PAD, PAD]) == "<pad>so"
    assert tokenizer.encode("<pad>").min() > 3


@pytest.mark.parametrize(("text", "name"), [("abxay", "'x' (U+0078)"), ("abé", "'é' (U+00E9)"), ("ab\0", "U+0000")])
def test_unknown_character_is_refused_with_its_position(text, name):
    with pytest.raises(ValueError, match="does not know the character") as raised:
        CharacterTokenizer.train("ab").encode(text)
    assert name in str(raised.value)
    assert "at position 2" in str(raised.value)


def test_unknown_character_becomes_unk_if_the_tokenizer_has_it():
    tokenizer = CharacterTokenizer.train("ab", unknown=True)
    assert tokenizer.tokens == ("<pad>", "<bos>", "<eos>", "<unk>", "a", "b")
    assert tokenizer.encode("xaéb").tolist() == [3, 4, 3, 5]
    assert tokenizer.decode([3, 4, 3, 5]) == "\ufffda\ufffdb"


def test_empty_text_has_no_ids_and_gives_an_empty_vocabulary():
    tokenizer = CharacterTokenizer.train("")
    assert tokenizer.vocab_size == len(SPECIAL_TOKENS)
    assert tokenizer.encode("").dtype == np.int64
    assert tokenizer.encode("").shape == (0,)
    assert tokenizer.decode([]) == tokenizer.decode(tokenizer.encode("")) == ""


@pytest.mark.parametrize(("characters", "complaint"), [("abcb", "'b' is there twice"), (["a", "bc"], "bc"), ([1], "1")])
def test_vocabulary_must_be_distinct_characters(characters, complaint):
    with pytest.raises(ValueError, match=complaint):
        CharacterTokenizer(characters)


def test_ids_that_cannot_be_decoded_are_refused():
    tokenizer = CharacterTokenizer.train("ab")
    with pytest.raises(IndexError, match="token id 5, but the vocabulary has the ids 0 to 4"):
        tokenizer.decode([3, 5])
    with pytest.raises(IndexError, match="token id -1"):
        tokenizer.decode(np.array([-1]))
    with pytest.raises(ValueError, match=r"one row of ids, got an array of shape \(1, 2\)"):
        tokenizer.decode([[3, 4]])
    with pytest.raises(TypeError, match="integer"):
        tokenizer.decode([3.0])
