"""WordPiece: the longest piece from the left, what is made plain before, and the special tokens around a sentence."""

import numpy as np
import pytest

from minitransformer.tokenizers import WordPieceTokenizer, load_tokenizer, save_tokenizer, tokenizer_from_dict
from minitransformer.tokenizers.word_piece import SPECIAL

pytestmark = pytest.mark.host_only
PIECES = [
    "un",
    "una",
    "##ffa",
    "##ff",
    "##able",
    "##ble",
    "##b",
    "able",
    "cafe",
    "the",
    "cat",
    "##s",
    "Ou",
    "est",
    "?",
    ".",
    ",",
    "'",
    "-",
    "京",
    "都",
    "o",
    "##u",
    "e",
    "##s",
    "##t",
    "café",
]
TOKENS = [*SPECIAL, *dict.fromkeys(PIECES)]
UNCASED, CASED = WordPieceTokenizer(TOKENS), WordPieceTokenizer(TOKENS, lowercase=False)


def pieces(text, tokenizer=UNCASED):
    return [tokenizer.tokens[id] for id in tokenizer.encode(text)]


def naive_pieces(word, tokens):
    """All ways through a word, as a list of pieces; of these the one whose pieces are longest from the left."""
    ways = [([], word)]
    found = []
    while ways:
        before, rest = ways.pop()
        if not rest:
            found.append(before)
        for token in tokens if rest else ():
            plain = token[2:] if token.startswith("##") else token
            if plain and token.startswith("##") == bool(before) and rest.startswith(plain):
                ways.append(([*before, token], rest[len(plain) :]))
    return max(found, key=lambda way: [len(token) for token in way], default=["[UNK]"])


def test_each_piece_is_the_longest_from_the_left():
    assert pieces("unaffable") == ["una", "##ffa", "##ble"]
    assert pieces("cats") == ["cat", "##s"]
    assert naive_pieces("unaffable", PIECES) == ["una", "##ffa", "##ble"]


def test_nothing_is_taken_back_so_a_word_may_be_unknown_although_there_is_a_way():
    tokens = [*SPECIAL, "ab", "a", "##bc"]
    assert pieces("abc", WordPieceTokenizer(tokens)) == ["[UNK]"]
    assert naive_pieces("abc", tokens) == ["a", "##bc"]


def test_a_word_of_more_than_100_characters_is_unknown_as_a_whole():
    tokenizer = WordPieceTokenizer([*SPECIAL, "x", "##x"])
    assert pieces("x" * 100, tokenizer) == ["x", *["##x"] * 99]
    assert pieces("x " + "x" * 101, tokenizer) == ["x", "[UNK]"]


def test_a_text_is_made_plain_unless_case_matters():
    assert pieces("CAF\u00c9, cafe\u0301!") == ["cafe", ",", "cafe", "[UNK]"]
    assert pieces("caf\u00e9", CASED) == ["café"]
    assert pieces("O\u00f9 The", CASED) == ["[UNK]", "[UNK]"]
    assert pieces("Ou Cat", CASED) == ["Ou", "[UNK]"]
    assert pieces("caf\u00e9", WordPieceTokenizer(TOKENS, lowercase=False, strip_accents=True)) == ["cafe"]
    assert pieces("un\u200baff\0able\x1c") == ["una", "##ffa", "##ble"]
    assert pieces("京都the\u3000cat\xa0est\n") == ["京", "都", "the", "cat", "est"]


def test_special_tokens_are_found_in_a_text_as_they_are_written():
    assert pieces("the[MASK]cat [mask]") == ["the", "[MASK]", "cat", "[UNK]", "[UNK]", "[UNK]"]
    assert UNCASED.decode(UNCASED.encode("the [MASK]cat[SEP]")) == "the cat"
    assert UNCASED.mask_id == TOKENS.index("[MASK]")


def test_decoding_joins_pieces_and_puts_no_space_before_a_full_stop():
    assert UNCASED.decode(UNCASED.encode("The unaffable cats, est?")) == "the unaffable cats, est?"
    assert UNCASED.decode([]) == ""
    with pytest.raises(IndexError):
        UNCASED.decode([len(TOKENS)])


def test_pairs_have_two_segments_and_the_longer_one_is_cut():
    CLS, SEP, the, cat, est = (TOKENS.index(name) for name in ("[CLS]", "[SEP]", "the", "cat", "est"))
    assert UNCASED.encode_pair("the cat").ids.tolist() == [CLS, the, cat, SEP]
    ids, segments = UNCASED.encode_pair("the cat", "est")
    assert ids.tolist() == [CLS, the, cat, SEP, est, SEP]
    assert segments.tolist() == [0, 0, 0, 0, 1, 1]
    assert UNCASED.encode_pair("the cat est cat", "est", length=6).ids.tolist() == [CLS, the, cat, SEP, est, SEP]
    assert UNCASED.encode_pair("the cat", "", length=3).segments.tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match=r"^length must be at least 2, got 1$"):
        UNCASED.encode_pair("the", length=1)


def test_a_saved_tokenizer_is_the_same(tmp_path):
    for tokenizer in (UNCASED, CASED, WordPieceTokenizer([*TOKENS, "[X]"], special=[*SPECIAL, "[X]"])):
        save_tokenizer(tmp_path / "tokenizer.json", tokenizer)
        again = load_tokenizer(tmp_path / "tokenizer.json")
        assert again.to_dict() == tokenizer.to_dict()
        text = "The Caf\u00e9 [X] unaffable"
        np.testing.assert_array_equal(again.encode(text), tokenizer.encode(text))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": [*TOKENS, "cat"]}, "the token 'cat' is there twice"),
        ({"tokens": TOKENS[1:]}, r"the special token '\[PAD\]' is not among the tokens"),
        ({"special": [*SPECIAL, "[X]"]}, r"the special token '\[X\]' is not among the tokens"),
        ({"special": []}, r"the special token '\[PAD\]' is not among the tokens"),
        ({"special": "no"}, "special must be a list of texts"),
        ({"tokens": [1]}, "tokens must be a list of texts"),
        ({"lowercase": 1}, "lowercase and strip_accents must be true or false"),
    ],
)
def test_content_that_is_no_vocabulary_is_refused(changes, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        tokenizer_from_dict(UNCASED.to_dict() | changes)


def test_only_texts_are_encoded():
    with pytest.raises(TypeError, match="a tokenizer takes text as a str, got int"):
        UNCASED.encode(3)
