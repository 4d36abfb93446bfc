"""A tokenizer in a file: loading restores it, people can read the file, and a bad file gets a clear error."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minitransformer.tokenizers import (
    AddedToken,
    ByteLevelTokenizer,
    BytePairTokenizer,
    CharacterTokenizer,
    load_tokenizer,
    save_tokenizer,
    tokenizer_from_dict,
)
from minitransformer.tokenizers.visible import to_visible
from tests.tokenizers.texts import TEXTS, trained

EVERYTHING = "".join(TEXTS.values())
BYTES = [to_visible(bytes([byte])) for byte in range(256)]
TOKENIZERS = {
    "byte pairs": trained(),
    "bytes": BytePairTokenizer(),
    "characters": CharacterTokenizer.train(EVERYTHING),
    "characters with unk": CharacterTokenizer.train(EVERYTHING, unknown=True),
    "byte level": ByteLevelTokenizer(
        ["<|endoftext|>", *reversed(BYTES), "Ġa", "Ã©"],
        [("Ġ", "a"), ("Ã", "©")],
        [AddedToken("<|endoftext|>", normalized=True), AddedToken("a", special=False)],
    ),
    "surrogates": CharacterTokenizer('a\ud83d\udc00\\"é😀\udcff'),
    "nothing": CharacterTokenizer(""),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_loaded_tokenizer_equals_the_saved_one(name, tmp_path):
    tokenizer, path = TOKENIZERS[name], tmp_path / "new" / "tokenizer.json"
    save_tokenizer(path, tokenizer)
    loaded = load_tokenizer(path)
    assert type(loaded) is type(tokenizer)
    assert loaded.tokens == tokenizer.tokens
    assert [file.name for file in path.parent.iterdir()] == ["tokenizer.json"]
    if "characters" in name or "byte" in name:
        ids = tokenizer.encode(EVERYTHING)
        assert loaded.encode(EVERYTHING).tolist() == ids.tolist()
        assert loaded.decode(ids) == EVERYTHING
    if name == "characters with unk":
        assert loaded.encode("\0").tolist() == [3]


@given(characters=st.sets(st.characters(), max_size=20))
def test_any_characters_survive_json(characters):
    tokenizer = CharacterTokenizer(sorted(characters))
    assert tokenizer_from_dict(json.loads(json.dumps(tokenizer.to_dict()))).tokens == tokenizer.tokens


def checksum_of(path):
    checksum = json.loads(path.read_text("utf-8"))["checksum"]
    assert re.fullmatch("sha256:[0-9a-f]{64}", checksum)
    return checksum


def test_file_is_readable(tmp_path):
    save_tokenizer(tmp_path / "pairs.json", BytePairTokenizer([(b" ", b"a"), (b" a", b"\n"), (b"\xc3", b"\xa9")]))
    assert (tmp_path / "pairs.json").read_text("utf-8").splitlines() == [
        "{",
        ' "format": "minitransformer-tokenizer-1",',
        ' "kind": "byte_pairs",',
        ' "merges": [',
        '  "Ġ a",',
        '  "Ġa Ċ",',
        '  "Ã ©"',
        " ],",
        f' "checksum": "{checksum_of(tmp_path / "pairs.json")}"',
        "}",
    ]
    save_tokenizer(tmp_path / "characters.json", CharacterTokenizer("aé\n", unknown=True))
    assert json.loads((tmp_path / "characters.json").read_text("utf-8")) == {
        "format": "minitransformer-tokenizer-1",
        "kind": "characters",
        "unknown": True,
        "characters": ["a", "é", "\n"],
        "checksum": checksum_of(tmp_path / "characters.json"),
    }
    assert '"é"' in (tmp_path / "characters.json").read_text("utf-8")


PAIRS = {"format": "minitransformer-tokenizer-1", "kind": "byte_pairs", "merges": ["a b"]}
CHARACTERS = {"format": "minitransformer-tokenizer-1", "kind": "characters", "unknown": False, "characters": ["a"]}
LEVEL = {"format": "minitransformer-tokenizer-1", "kind": "byte_level", "tokens": BYTES, "merges": [], "added": []}
ADDED = {"content": "a", "special": True, "normalized": False}
READING = {"words": "qwen", "nfc": True, "whole": False, "first": "a"}
BAD_FILES = {
    "nothing": (b"", "Expecting value"),
    "half a file": (json.dumps(PAIRS)[:-9].encode(), "Unterminated string|Expecting"),
    "too deep": (b"[" * 200_000, "recursion|Stack overflow"),
    "this format in other digits": ({**PAIRS, "format": "minitransformer-tokenizer-\u0662"}, "its format is not"),
    "this format with a zero": ({**PAIRS, "format": "minitransformer-tokenizer-01"}, "its format is not"),
    "other checksum": ({**PAIRS, "checksum": "sha256:0"}, "its checksum does not match its content"),
    "a field too many": ({**PAIRS, "unknown": True}, r"missing nothing, unexpected \['unknown'\]"),
    "no kind": ({"format": PAIRS["format"]}, "the field 'kind' is missing"),
    "other kind": (
        {**PAIRS, "kind": "words"},
        "kind must be one of characters, byte_pairs, byte_level, word_piece, got 'words'",
    ),
    "no merges": ({**CHARACTERS, "kind": "byte_pairs"}, "the field 'merges' is missing"),
    "merges of numbers": ({**PAIRS, "merges": [1]}, "a merge must be two tokens with a space between them, got 1"),
    "merge of one": ({**PAIRS, "merges": ["ab"]}, "must be two tokens .* got 'ab'"),
    "merge of no byte": ({**PAIRS, "merges": ["a €"]}, "'€' in '€' stands for no byte"),
    "merge twice": ({**PAIRS, "merges": ["a b", "a b"]}, "token already"),
    "characters a text": ({**CHARACTERS, "characters": "ab"}, "characters must be a list"),
    "character twice": ({**CHARACTERS, "characters": ["a", "a"]}, "twice"),
    "character a list": ({**CHARACTERS, "characters": [["a"]]}, "unhashable|length 1"),
    "tokens a text": ({**LEVEL, "tokens": "ab"}, "tokens must be a list"),
    "tokens of lists": ({**LEVEL, "tokens": [["a"]]}, "unhashable"),
    "a byte too few": ({**LEVEL, "tokens": BYTES[1:]}, "the byte 0, written 'Ā', is not among the tokens"),
    "an added token with less": (
        {**LEVEL, "added": [{"content": "a", "special": True}]},
        "an added token must have the fields content, special, normalized",
    ),
    "an added switch": ({**LEVEL, "added": [{**ADDED, "normalized": 0}]}, "normalized must be true or false"),
    "an added stranger": ({**LEVEL, "added": [{**ADDED, "content": "<s>"}]}, "'<s>' is not among the tokens"),
    "a reading with less": (
        {**LEVEL, "reading": {"nfc": True}},
        "reading must have the fields words, nfc",
    ),
    "a reading of numbers": ({**LEVEL, "reading": {**READING, "nfc": 1}}, "nfc must be true or false"),
    "other words": (
        {**LEVEL, "reading": {**READING, "words": "bert"}},
        "words must be one of gpt2, qwen, llama3, got 'bert'",
    ),
    "another first token": (
        {**LEVEL, "reading": {**READING, "first": "<s>"}},
        "first token '<s>' is not among",
    ),
    "unknown a number": ({**CHARACTERS, "unknown": 1}, "unknown true or false"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_file_is_refused_with_its_path(name, tmp_path):
    content, complaint = BAD_FILES[name]
    path = tmp_path / "bad.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    with pytest.raises(ValueError, match=complaint) as raised:
        load_tokenizer(path)
    assert type(raised.value) is ValueError
    assert str(raised.value).startswith(f"{path} is not a minitransformer tokenizer: ")


def test_the_order_of_the_fields_does_not_matter(tmp_path):
    path = tmp_path / "tokenizer.json"
    save_tokenizer(path, trained())
    fields = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(dict(reversed(fields.items()))), "utf-8")
    assert load_tokenizer(path).tokens == trained().tokens


@pytest.mark.parametrize("content", [PAIRS, CHARACTERS], ids=["byte pairs", "characters"])
def test_files_behind_the_bad_ones_are_good(content, tmp_path):
    (tmp_path / "good.json").write_text(json.dumps(content))
    assert load_tokenizer(tmp_path / "good.json").tokens[-1] in ("ab", "a")
