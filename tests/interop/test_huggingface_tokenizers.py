"""The tokenizers of GPT-2, Qwen and Llama 3: the ids of the library `tokenizers` for any text, or a reason why not."""

import itertools
import random
import unicodedata

import pytest

from minitransformer.interop import load_huggingface_tokenizer
from minitransformer.tokenizers import load_tokenizer, save_tokenizer
from minitransformer.tokenizers.words import PATTERNS
from tests.interop.tokenizer_files import END, draw_text, tokenizer_json, vocabulary, write_json, write_two_files
from tests.tokenizers.texts import TEXTS, naive_tokens, token_bytes, trained

pytestmark = pytest.mark.host_only
KINDS = ["tokenizer.json", "old tokenizer.json", "two files"]
every_kind = pytest.mark.parametrize("kind", KINDS)
few_or_many = pytest.mark.parametrize(
    "count", [60, pytest.param(1000, marks=pytest.mark.exhaustive), pytest.param(20_000, marks=pytest.mark.weekly)]
)


def write(folder, kind):
    """The files of one kind."""
    if kind == "two files":
        write_two_files(folder)
    elif kind == "old tokenizer.json":  # without the type of the model, and with merges as one text
        content = tokenizer_json(merges=[" ".join(merge) for merge in vocabulary()[1]])
        del content["model"]["type"], content["pre_tokenizer"]["use_regex"], content["model"]["ignore_merges"]
        write_json(folder / "tokenizer.json", content)
    else:
        write_json(folder / "tokenizer.json", tokenizer_json())


def their_tokenizer(folder, kind):
    """The library's own tokenizer of these files."""
    library = pytest.importorskip("tokenizers")
    if kind != "two files":
        return library.Tokenizer.from_file(str(folder / "tokenizer.json"))
    theirs = library.ByteLevelBPETokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    theirs.add_special_tokens([END])  # as transformers does, which knows that it is one
    return theirs


def decoded(theirs, ids, added):
    """The text by the library, except for tokens of `added` {id: text}, whose letters it takes for bytes."""
    parts = itertools.groupby(ids, added.get)
    return "".join(theirs.decode(list(run)) if text is None else text * len(list(run)) for text, run in parts)


@every_kind
def test_ids_are_those_of_the_files(kind, tmp_path):
    write(tmp_path, kind)
    tokenizer = load_huggingface_tokenizer(tmp_path)
    for text in TEXTS.values():
        ids = tokenizer.encode(text)
        assert token_bytes(tokenizer, ids) == naive_tokens(text, trained().merges)
        assert tokenizer.decode(ids) == text
    vocab, _ = vocabulary()
    assert tokenizer.encode(f"The{END} wind").tolist() == [vocab["The"], 0, vocab["Ġwind"]]
    assert tokenizer.vocab_size == len(vocab)


@every_kind
@pytest.mark.parametrize(
    "count", [60, pytest.param(1000, marks=pytest.mark.exhaustive), pytest.param(20_000, marks=pytest.mark.weekly)]
)
def test_ids_and_text_equal_those_of_the_library(kind, count, tmp_path):
    write(tmp_path, kind)
    ours, theirs, rng = load_huggingface_tokenizer(tmp_path), their_tokenizer(tmp_path, kind), random.Random(count)
    for _ in range(count):
        text = draw_text(rng)
        ids = theirs.encode(text).ids
        assert ours.encode(text).tolist() == ids, repr(text)
        rng.shuffle(ids)  # bytes that are no text in this order
        assert ours.decode(ids) == theirs.decode(ids)
        assert "".join(ours.decode_stream(ids)) == theirs.decode(ids)


def test_ids_of_a_vocabulary_that_the_library_trained_equal_its_own(tmp_path):
    library = pytest.importorskip("tokenizers")
    theirs, rng = library.ByteLevelBPETokenizer(), random.Random(5)
    texts = [*TEXTS.values(), *(draw_text(rng) for _ in range(200))]
    theirs.train_from_iterator(texts, vocab_size=900, special_tokens=[END, "<pad>"], show_progress=False)
    theirs.save(str(tmp_path / "tokenizer.json"))
    ours = load_huggingface_tokenizer(tmp_path)
    assert ours.vocab_size == theirs.get_vocab_size()
    for text in [*texts, *(draw_text(rng) for _ in range(100))]:
        assert ours.encode(text).tolist() == theirs.encode(text).ids, repr(text)


ADDED = {"id": 500, "content": "<a>", "single_word": False, "lstrip": False, "rstrip": False}
ADDED |= {"normalized": True, "special": False}


def test_added_tokens_equal_those_of_the_library(tmp_path):
    contents = ["<a>", "<a><b>", "b><c", "with space", "éé", "<|endof", "a<", "ĠĈ", "<日本>", "<é>"]
    added = [
        ADDED | {"id": len(vocabulary()[0]) + i, "content": content, "normalized": i % 2 == 0, "special": i % 3 == 0}
        for i, content in enumerate(contents)
    ]
    plain = {token["id"]: token["content"] for token in added if not token["special"]}
    end = tokenizer_json()["added_tokens"]
    write_json(tmp_path / "tokenizer.json", tokenizer_json(added_tokens=[*end, *added]))
    ours, theirs = load_huggingface_tokenizer(tmp_path), their_tokenizer(tmp_path, "tokenizer.json")
    rng = random.Random(7)
    for _ in range(200):
        text = "".join(rng.choice([*contents, END, "<", "a", "b", ">", " ", "c"]) for _ in range(rng.randrange(12)))
        ids = theirs.encode(text).ids
        assert ours.encode(text).tolist() == ids, repr(text)
        assert ours.decode(ids) == decoded(theirs, ids, plain)


def test_two_merges_of_one_token_are_applied_as_in_the_library(tmp_path):
    vocab = {token: id for token, id in vocabulary()[0].items() if id <= 256}
    for token in ("bc", "ab", "abc", "abcd", "cd", "bcd"):
        vocab[token] = len(vocab)
    merges = [("b", "c"), ("a", "b"), ("ab", "c"), ("a", "bc"), ("c", "d"), ("ab", "cd"), ("abc", "d"), ("b", "cd")]
    write_json(tmp_path / "tokenizer.json", tokenizer_json(vocab=vocab, merges=[list(merge) for merge in merges]))
    ours, theirs = load_huggingface_tokenizer(tmp_path), their_tokenizer(tmp_path, "tokenizer.json")
    rng = random.Random(8)
    for _ in range(200):
        text = "".join(rng.choice("aabbccd") for _ in range(rng.randrange(10)))
        assert ours.encode(text).tolist() == theirs.encode(text).ids, text


@pytest.mark.parametrize(("ending", "last"), [("\r\n", ""), ("\n", "\n")])
def test_lines_of_merges_may_end_in_both_ways(ending, last, tmp_path):
    write_two_files(tmp_path)
    text = (tmp_path / "merges.txt").read_text("utf8")
    (tmp_path / "merges.txt").write_bytes((text.removesuffix("\n").replace("\n", ending) + last).encode())
    assert load_huggingface_tokenizer(tmp_path).merges == vocabulary()[1]


def with_token(**changes):
    return [*tokenizer_json()["added_tokens"], ADDED | {"id": len(vocabulary()[0])} | changes]


STEP = tokenizer_json()["pre_tokenizer"]
TEXT, SPECIAL = {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": END, "type_id": 0}}


def template(*single, ids=(0,)):
    """A step that adds tokens to those of a text."""
    tokens = {END: {"id": END, "ids": list(ids), "tokens": [END]}}
    return {"type": "TemplateProcessing", "single": list(single), "pair": [], "special_tokens": tokens}


SPLIT = {"type": "Split", "pattern": {"Regex": PATTERNS["qwen"]}, "behavior": "Isolated", "invert": False}


def sequence(split=None, last=None):
    return {"type": "Sequence", "pretokenizers": [SPLIT | (split or {}), STEP | {"use_regex": False} | (last or {})]}


REFUSED = {
    "a normalizer": ({"normalizer": {"type": "NFKC"}}, "its normalizer must be NFC or null, got NFKC"),
    "no pre-tokenizer": ({"pre_tokenizer": None}, "its pre_tokenizer must be ByteLevel, .*, got null"),
    "another pattern": (
        {"pre_tokenizer": sequence({"pattern": {"Regex": "[0-9]+"}})},
        r"its Split has a pattern that is none of gpt2, qwen, llama3: \{'Regex': '\[0-9\]\+'\}",
    ),
    "words without their ends": ({"pre_tokenizer": sequence({"behavior": "Removed"})}, "must have behavior = Isolated"),
    "SentencePiece's characters": ({"byte_fallback": True}, "it merges characters, as SentencePiece does"),
    "a space before the text": ({"pre_tokenizer": STEP | {"add_prefix_space": True}}, "must have add_prefix_space = f"),
    "no words": ({"pre_tokenizer": STEP | {"use_regex": False}}, "and use_regex = true without a Split"),
    "another decoder": ({"decoder": {"type": "WordPiece"}}, "its decoder must be ByteLevel, got WordPiece"),
    "two ids": (
        {"post_processor": template(SPECIAL, SPECIAL, TEXT)},
        "its post_processor must add at most one token, before the text",
    ),
    "Unigram": ({"type": "Unigram"}, "its model must be BPE or WordPiece, got Unigram"),
    "dropout": ({"dropout": 0.1}, "its model must not have dropout, got 0.1"),
    "a suffix": ({"end_of_word_suffix": "</w>"}, "its model must not have end_of_word_suffix, got '</w>'"),
    "a token that changes": (
        {"normalizer": {"type": "NFC"}, "added_tokens": with_token(content="e\u0301")},
        "the added token 'e\u0301' must be in the form NFC",
    ),
    "no byte": ({"vocab": {END: 0}}, "the byte 33, written '!', is not among the tokens"),
    "a hole": ({"vocab": {END: 0, "b": 2}}, "it has 2 tokens, but none with the id 1"),
    "an id twice": ({"vocab": {"a": 0, "b": 0}}, "'a' and 'b' have the same id 0"),
    "a merge of one": ({"merges": [["a"]]}, "a merge must be two tokens with a space between them, got 'a'"),
    "an unknown merge": ({"merges": [["q", "q"]]}, "merge 0 joins 'q' and 'q': 'qq' is not a token"),
    "an added token that strips": ({"added_tokens": with_token(lstrip=True)}, "token '<a>' must not have lstrip"),
    "an added token with two ids": (
        {"added_tokens": [*with_token(), ADDED | {"id": 3}]},
        "the added token '<a>' has two ids",
    ),
}


LATER = {  # as in the files of Qwen 3 and Llama 3
    "qwen": {"normalizer": {"type": "NFC"}, "pre_tokenizer": sequence()},
    "llama3": {
        "pre_tokenizer": sequence({"pattern": {"Regex": PATTERNS["llama3"]}}),
        "ignore_merges": True,
        "post_processor": {"type": "Sequence", "processors": [STEP, template(SPECIAL, TEXT)]},
    },
}
BREAKS = [" \n", "\r\n\n", "(x)\n", "I'LL it'ſ", "1234567", "x²34", "e\u0301", "\u1100\u1161", "ſ", "\t.a", "A\u030a"]


def newer_marks(theirs):
    """The combining marks that Python knows and their NFC does not, which is that of an older Unicode."""
    marks = [mark for mark in map(chr, range(0x110000)) if unicodedata.combining(mark) > 1]
    if theirs.normalizer is not None:
        yield from (mark for mark in marks if theirs.normalizer.normalize_str(f"{mark}\u0334")[0] == mark)


@pytest.mark.parametrize(
    "count", [60, pytest.param(1000, marks=pytest.mark.exhaustive), pytest.param(20_000, marks=pytest.mark.weekly)]
)
@pytest.mark.parametrize("name", LATER)
def test_ids_of_later_models_equal_those_of_the_library(name, count, tmp_path):
    content = tokenizer_json(**LATER[name])
    vocab = content["model"]["vocab"] = dict(content["model"]["vocab"])
    for word in ("Ġmillstone", "123", "234", "Ġstands"):  # tokens that no merge makes
        vocab.setdefault(word, len(vocab))
    content["added_tokens"].append(ADDED | {"id": len(vocab), "content": "é<a>"})
    content["added_tokens"].append(ADDED | {"id": len(vocab) + 1, "content": "Ġx"})
    write_json(tmp_path / "tokenizer.json", content)
    ours, theirs = load_huggingface_tokenizer(tmp_path), their_tokenizer(tmp_path, "tokenizer.json")
    save_tokenizer(tmp_path / "saved.json", ours)
    saved, rng, newer = load_tokenizer(tmp_path / "saved.json"), random.Random(count), set(newer_marks(theirs))
    for _ in range(count):
        words = [
            draw_text(rng),
            rng.choice(BREAKS),
            rng.choice(["é<a>", "e\u0301<a>", " x", " millstone", "123", " stands", "Ġx"]),
        ]
        text = "".join(letter for letter in "".join(rng.choices(words, k=5)) if letter not in newer)
        ids = theirs.encode(text).ids
        assert ours.encode(text).tolist() == saved.encode(text).tolist() == ids, repr(text)
        assert ours.decode(ids) == decoded(theirs, ids, {len(vocab): "é<a>", len(vocab) + 1: "Ġx"})


@pytest.mark.parametrize("name", REFUSED)
def test_a_tokenizer_of_another_kind_is_refused_by_name(name, tmp_path):
    changes, message = REFUSED[name]
    write_json(tmp_path / "tokenizer.json", tokenizer_json(**changes))
    with pytest.raises(ValueError, match=rf"tokenizer\.json is not a tokenizer like .*: .*{message}") as refusal:
        load_huggingface_tokenizer(tmp_path)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("missing", ["model", "vocab", "merges", "content"])
def test_a_missing_field_is_named(missing, tmp_path):
    content = tokenizer_json()
    part = next(part for part in (content, content["model"], content["added_tokens"][0]) if missing in part)
    del part[missing]
    write_json(tmp_path / "tokenizer.json", content)
    with pytest.raises(ValueError, match=f"BERT: the field '{missing}' is missing"):
        load_huggingface_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokenizer.json", "{", "tokenizer.json is not JSON: "),
        ("vocab.json", '{"a": 0, "a": 1}', "vocab.json is not JSON: the name 'a' is there twice"),
        ("merges.txt", "a b c\n", "merges.txt is not a tokenizer like .*: a merge must be two tokens"),
        ("added_tokens.json", "{}", "the tokens of added_tokens.json need a tokenizer.json"),
        (
            "tokenizer_config.json",
            '{"add_prefix_space": true}',
            "tokenizer_config.json .* must not have add_prefix_space",
        ),
    ],
)
def test_a_bad_file_is_refused_with_its_path(name, content, message, tmp_path):
    write_two_files(tmp_path)
    (tmp_path / name).write_text(content, "latin1")
    with pytest.raises(ValueError, match=message) as refusal:
        load_huggingface_tokenizer(tmp_path)
    assert str(refusal.value).startswith(str(tmp_path))
    assert "\n" not in str(refusal.value)
