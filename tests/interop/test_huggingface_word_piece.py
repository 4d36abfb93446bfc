"""BERT's tokenizer: the ids of the library `tokenizers` for any text, from either of its files, or a reason why not."""

import json
import random
import shutil
import unicodedata

import pytest

from minitransformer.interop import load_huggingface_tokenizer
from minitransformer.tokenizers.word_piece import SPECIAL
from tests.interop.tokenizer_files import draw_text, write_json
from tests.minilm import minilm

pytestmark = pytest.mark.host_only
WORDS = [
    "playing",
    "un" * 50,
    "un" * 50 + "s",
    "x" * 100,
    "x" * 101,
    "don't",
    "do not",
    "U.S.A.",
    "can't.",
    "İ",
    "ΑΣ Σ",
]
WORDS += ["한국어", "が", "か\u3099", "हिन्दी", "ไทย", "مرحبا", "ﬁ", "Ａ", "²", "。", "##able", "flibbertigibbet"]
SIGNS = ["[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]", "[mask]", "[", "]", "\0", "\ufffd", "\xad", "\ufeff", "^", "~`|"]


def their_tokenizer(folder):
    """The library's own tokenizer of tokenizer.json, which neither cuts nor pads."""
    library = pytest.importorskip("tokenizers")
    theirs = library.Tokenizer.from_file(str(folder / "tokenizer.json"))
    theirs.no_padding()
    theirs.no_truncation()
    return theirs


def is_the_same_to_both(character):
    """Whether no version of Unicode has changed what a character is, if that matters: mark, punctuation or control."""
    before, now = unicodedata.ucd_3_2_0.category(character), unicodedata.category(character)
    matters = any(kind[0] in "CMP" for kind in (before, now) if kind != "Cn")
    return not matters or before == now


def draw(rng):
    """A random text: words of the vocabulary's kind, signs, and characters of all planes."""
    parts = [rng.choice([*WORDS, *SIGNS, "".join(filter(is_the_same_to_both, draw_text(rng)[:4]))]) for _ in range(9)]
    return rng.choice(["", " "]).join(parts[: rng.randrange(10)])


@pytest.mark.parametrize("count", [400, pytest.param(20_000, marks=pytest.mark.weekly)])
def test_ids_segments_and_text_equal_those_of_the_library(count):
    ours, theirs, rng = load_huggingface_tokenizer(minilm()), their_tokenizer(minilm()), random.Random(count)
    for _ in range(count):
        first, second = draw(rng), draw(rng)
        ids = theirs.encode(first, add_special_tokens=False).ids
        assert ours.encode(first).tolist() == ids, repr(first)
        assert ours.decode(ids) == theirs.decode(ids), repr(first)
        pair, expected = ours.encode_pair(first, second), theirs.encode(first, second)
        assert (pair.ids.tolist(), pair.segments.tolist()) == (expected.ids, expected.type_ids), repr((first, second))
        assert ours.encode_pair(first).ids.tolist() == theirs.encode(first).ids
        some = [rng.randrange(ours.vocab_size) for _ in range(5)]
        assert ours.decode(some) == theirs.decode(some)


def test_sentences_that_are_too_long_are_cut_as_in_the_library():
    ours, theirs, rng = load_huggingface_tokenizer(minilm()), their_tokenizer(minilm()), random.Random(3)
    for _ in range(300):
        first, second, length = "a " * rng.randrange(9), "b " * rng.randrange(9), rng.randrange(3, 12)
        theirs.enable_truncation(length)
        assert ours.encode_pair(first, second, length).ids.tolist() == theirs.encode(first, second).ids
        assert ours.encode_pair(first, length=length).ids.tolist() == theirs.encode(first).ids


@pytest.mark.weekly
def test_every_character_is_read_as_in_the_library_unless_unicode_has_changed_since():
    ours, theirs = load_huggingface_tokenizer(minilm()), their_tokenizer(minilm())
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    texts = [f"a{character}b" for character in filter(is_the_same_to_both, characters)]
    for text, expected in zip(texts, theirs.encode_batch(texts, add_special_tokens=False), strict=True):
        assert ours.encode(text).tolist() == expected.ids, repr(text)


def test_the_vocabulary_alone_gives_the_same_tokenizer(tmp_path):
    for name in ("vocab.txt", "tokenizer_config.json"):
        shutil.copy(minilm() / name, tmp_path / name)
    assert load_huggingface_tokenizer(tmp_path).to_dict() == load_huggingface_tokenizer(minilm()).to_dict()


def content():
    """A small tokenizer.json, with the fields that BERT's has."""

    def template(*parts):
        return [
            {"SpecialToken" if "[" in part else "Sequence": {"id": part, "type_id": segment}} for part, segment in parts
        ]

    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    first = [("[CLS]", 0), ("A", 0), ("[SEP]", 0)]
    vocab = {token: id for id, token in enumerate([*SPECIAL, "a", "##b", "É", "e", "f", "g"])}
    return {
        "added_tokens": [{"id": id, "content": token, **plain} for id, token in enumerate(SPECIAL)],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": False,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": template(*first),
            "pair": template(*first, ("B", 1), ("[SEP]", 1)),
            "special_tokens": {name: {"id": name, "ids": [id], "tokens": [name]} for id, name in enumerate(SPECIAL)},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocab,
        },
    }


def test_case_and_accents_are_as_the_file_says(tmp_path):
    for lowercase, strip_accents, expected in ((False, None, 7), (True, None, 8), (True, False, 1), (False, True, 1)):
        given = content()
        given["normalizer"] |= {"lowercase": lowercase, "strip_accents": strip_accents}
        write_json(tmp_path / "tokenizer.json", given)
        assert load_huggingface_tokenizer(tmp_path).encode("É").tolist() == [expected]


REFUSED = {
    "another prefix": (("model", "continuing_subword_prefix"), "@@", "its model must have continuing_subword_prefix ="),
    "longer words": (
        ("model", "max_input_chars_per_word"),
        200,
        "its model must have max_input_chars_per_word = 100, ",
    ),
    "another unknown token": (("model", "unk_token"), "<unk>", "its model must have unk_token = '.UNK.', got '<unk>'"),
    "control characters": (
        ("normalizer", "clean_text"),
        False,
        "its normalizer must have clean_text = True, got False",
    ),
    "Chinese without spaces": (("normalizer", "handle_chinese_chars"), False, "must have handle_chinese_chars = True"),
    "another normalizer": (
        ("normalizer", "type"),
        "NFC",
        "its normalizer must have type = 'BertNormalizer', got 'NFC'",
    ),
    "no normalizer": (("normalizer",), None, "its normalizer must be a dictionary, got NoneType"),
    "other words": (("pre_tokenizer", "type"), "ByteLevel", "its pre_tokenizer must have type = 'BertPreTokenizer'"),
    "other spaces": (("decoder", "cleanup"), False, "its decoder must have cleanup = True, got False"),
    "an added token with space": (("added_tokens", 0, "lstrip"), True, r"added token '\[PAD\]' must not have lstrip"),
    "an added token that changes": (("added_tokens", 4, "normalized"), True, "'.MASK.' must not have normalized"),
    "an added token with a text": (("added_tokens", 4, "special"), False, "'.MASK.' must be special"),
    "another id": (("added_tokens", 4, "id"), 3, "'.SEP.' and '.MASK.' have the same id 3"),
    "one sentence without an end": (("post_processor", "single", 2), {}, r"must make \[CLS\] A \[SEP\] of single sent"),
    "one segment": (("post_processor", "pair", 3, "Sequence", "type_id"), 0, r"\[SEP\] B \[SEP\] of pair sentences"),
    "no template": (("post_processor",), None, r"its post_processor must make \[CLS\] A \[SEP\] of single sentences"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_make_other_ids_is_refused(name, tmp_path):
    place, value, message = REFUSED[name]
    part = given = content()
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    write_json(tmp_path / "tokenizer.json", given)
    with pytest.raises(
        ValueError, match=f"is not a tokenizer like those of GPT-2, Qwen, Llama 3 and BERT: .*{message}"
    ):
        load_huggingface_tokenizer(tmp_path)


def test_missing_fields_and_wrong_lines_are_refused(tmp_path):
    given = content()
    del given["post_processor"]
    write_json(tmp_path / "tokenizer.json", given)
    with pytest.raises(ValueError, match="the field 'post_processor' is missing"):
        load_huggingface_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.txt").write_text("a\n[PAD]\n", "utf8")
    with pytest.raises(ValueError, match=r"vocab.txt is not a tokenizer .* the special token '.UNK.' is not among"):
        load_huggingface_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenize_chinese_chars": False}), "utf8")
    with pytest.raises(ValueError, match=r"vocab.txt is not a tokenizer .* it must have tokenize_chinese_chars"):
        load_huggingface_tokenizer(tmp_path)
