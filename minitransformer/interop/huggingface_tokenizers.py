"""The tokenizer of a Hugging Face GPT-2, Qwen, Llama 3 or BERT: tokenizer.json, or older files of GPT-2 and BERT."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minitransformer.interop.huggingface_files import read_json
from minitransformer.system.files import kind_of, read_bytes
from minitransformer.tokenizers import (
    AddedToken,
    ByteLevelTokenizer,
    BytePairTokenizer,
    Tokenizer,
    WordPieceTokenizer,
)
from minitransformer.tokenizers.byte_level import Reading
from minitransformer.tokenizers.byte_merging import split_merge
from minitransformer.tokenizers.visible import BYTE_ORDER, to_visible
from minitransformer.tokenizers.word_piece import CLS, LONGEST, SEP, SPECIAL, UNKNOWN
from minitransformer.tokenizers.words import PATTERNS
from minitransformer.vocabulary import SPECIAL_TOKENS

END_OF_TEXT = "<|endoftext|>"
# what their byte-pair model may not have: with other values than these, it makes other tokens
PLAIN_MODEL: dict[str, tuple[Any, ...]] = {
    "dropout": (None, 0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
}
# what an added token may not have: these say which white space or letters may be around it
PLAIN_ADDED = ("single_word", "lstrip", "rstrip")
# what a word-piece model and the steps around it must be
WORD_PIECE = {"unk_token": UNKNOWN, "continuing_subword_prefix": "##", "max_input_chars_per_word": LONGEST}
NORMALIZER = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
TEMPLATE = {"single": (CLS, "A", SEP), "pair": (CLS, "A", SEP, "B", SEP)}


def load_huggingface_tokenizer(folder: str | os.PathLike[str]) -> ByteLevelTokenizer | WordPieceTokenizer:
    """The tokenizer in `folder`: of tokenizer.json or, if it is missing, of vocab.json and merges.txt, or vocab.txt.

    The ids of any text are those of the library `tokenizers`, whose Unicode is older: its NFC does not know some rare
    marks that Python's orders. How it cuts and pads texts is left out. Raises FileNotFoundError if there is none, and
    ValueError, naming the file and what is different, for a tokenizer of another kind than theirs.
    """
    folder = Path(folder)
    settings = _check_settings(folder / "tokenizer_config.json")
    names = ("tokenizer.json", "vocab.json", "merges.txt", "vocab.txt")
    whole, vocab, merges, pieces = (folder / name for name in names)
    if kind_of(whole):
        content = read_json(whole)
        with _named_in_errors(whole):
            return _from_tokenizer_json(content)
    if kind_of(pieces):
        lines = read_bytes(pieces)
        with _named_in_errors(pieces):
            return _from_vocabulary(lines.decode("utf-8").splitlines(), settings)
    if not (kind_of(vocab) and kind_of(merges)):
        raise FileNotFoundError(f"{folder} has no tokenizer: no {', '.join(names[:-1])} or {names[-1]}")
    ids, lines = read_json(vocab), read_bytes(merges)
    with _named_in_errors(merges):
        return _from_two_files(ids, lines, bool(kind_of(folder / "added_tokens.json")))


def tokenizer_to_huggingface(tokenizer: Tokenizer, theirs: Mapping[str, Any]) -> dict[str, Any]:
    """{name of a file: its content}: `tokenizer` for their model with the configuration `theirs`.

    Our own byte pairs have the same ids there, except that their <pad>, <bos> and <eos> are found in a text. Raises
    ValueError for a tokenizer that is neither one of byte pairs nor WordPiece with BERT's special tokens.
    """
    if isinstance(tokenizer, WordPieceTokenizer) and tokenizer.special == SPECIAL:
        settings: dict[str, Any] = {"tokenizer_class": "BertTokenizer", "do_lower_case": tokenizer.lowercase}
        vocabulary = "".join(f"{token}\n" for token in tokenizer.tokens)
        return {"vocab.txt": vocabulary, "tokenizer_config.json": settings | {"strip_accents": tokenizer.strip_accents}}
    if isinstance(tokenizer, BytePairTokenizer):
        merges = [(to_visible(left), to_visible(right)) for left, right in tokenizer.merges]
        tokens = [*SPECIAL_TOKENS, *(to_visible(bytes([byte])) for byte in BYTE_ORDER)]
        added = [AddedToken(token) for token in SPECIAL_TOKENS]
        tokenizer = ByteLevelTokenizer([*tokens, *(left + right for left, right in merges)], merges, added)
    if not isinstance(tokenizer, ByteLevelTokenizer):
        raise ValueError(f"a {type(tokenizer).__name__} cannot be exported, only byte pairs and WordPiece can")
    names, reading = tokenizer.to_dict()["tokens"], tokenizer.reading
    ids = {name: id for id, name in enumerate(names)}
    plain = dict.fromkeys(PLAIN_ADDED, False)
    special = [{"id": ids[token.content], **token._asdict(), **plain} for token in tokenizer.added]
    step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": reading.words == "gpt2"}
    words = {"type": "Split", "pattern": {"Regex": PATTERNS[reading.words]}, "behavior": "Isolated", "invert": False}
    model = {"type": "BPE", **{name: values[0] for name, values in PLAIN_MODEL.items()}, "ignore_merges": reading.whole}
    content = {
        "version": "1.0",
        "added_tokens": special,
        "normalizer": {"type": "NFC"} if reading.nfc else None,
        "pre_tokenizer": step if step["use_regex"] else {"type": "Sequence", "pretokenizers": [words, step]},
        "post_processor": _template(reading.first, ids),
        "decoder": step,
        "model": {**model, "vocab": ids, "merges": [list(merge) for merge in tokenizer.merges]},
    }
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    for role in ("pad", "bos", "eos"):
        id = theirs.get(f"{role}_token_id")
        if isinstance(id, int) and id < len(names) and names[id] in [token.content for token in tokenizer.added]:
            settings[f"{role}_token"] = names[id]
    return {"tokenizer.json": content, "tokenizer_config.json": settings}


def _template(first, ids):
    """The post-processor that puts the token `first` before each text, or none: the reverse of `_first`."""
    if not first:
        return None
    single = [{"SpecialToken": {"id": first, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    tokens = {first: {"id": first, "ids": [ids[first]], "tokens": [first]}}
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens}


def _check_settings(path):
    """The settings outside tokenizer.json; ValueError for the two that change its ids."""
    settings = read_json(path) if kind_of(path) else {}
    with _named_in_errors(path):
        _check_dictionary("it", settings)
        for name in ("add_prefix_space", "add_bos_token"):
            if settings.get(name):
                raise ValueError(f"it must not have {name}")
    return settings


@contextlib.contextmanager
def _named_in_errors(path):
    """A `with` block whose errors become a ValueError that names the file."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        reason = f"the field {error} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path} is not a tokenizer like those of GPT-2, Qwen, Llama 3 and BERT: {reason}") from error


def _from_tokenizer_json(content):
    _check_dictionary("it", content)
    model = content["model"]
    _check_dictionary("its model", model)
    if model.get("type") == "WordPiece":
        return _from_word_piece(content)
    if model.get("type", "BPE") != "BPE":
        raise ValueError(f"its model must be BPE or WordPiece, got {model['type']}")
    if model.get("byte_fallback"):
        raise ValueError("it merges characters, as SentencePiece does (byte_fallback), and not bytes")
    for name, allowed in PLAIN_MODEL.items():
        if model.get(name) not in allowed:
            raise ValueError(f"its model must not have {name}, got {model[name]!r}")
    ids, added = {}, []
    for token in content.get("added_tokens") or []:
        _check_dictionary("an added token", token)
        name = token["content"]
        for more in PLAIN_ADDED:
            if token.get(more):
                raise ValueError(f"the added token {name!r} must not have {more}")
        if ids.setdefault(name, token["id"]) != token["id"]:
            raise ValueError(f"the added token {name!r} has two ids")
        added.append(AddedToken(name, bool(token["special"]), bool(token.get("normalized"))))
    merges = [_as_pair(merge) for merge in model["merges"]]
    tokens = _in_order(model["vocab"], ids)
    return ByteLevelTokenizer(tokens, merges, added, _reading(content, tokens))


def _from_word_piece(content):
    """From a tokenizer.json like BERT's."""
    model, normalizer, special = content["model"], content["normalizer"], []
    needed = [("model", model, WORD_PIECE), ("normalizer", normalizer, NORMALIZER)]
    needed.append(("pre_tokenizer", content["pre_tokenizer"], {"type": "BertPreTokenizer"}))
    needed.append(("decoder", content["decoder"], {"type": "WordPiece", "prefix": "##", "cleanup": True}))
    for name, part, values in needed:
        _check_dictionary(f"its {name}", part)
        for field, value in values.items():
            if part.get(field) != value:
                raise ValueError(f"its {name} must have {field} = {value!r}, got {part.get(field)!r}")
    ids = {}
    for token in content["added_tokens"]:
        _check_dictionary("an added token", token)
        for more in (*PLAIN_ADDED, "normalized"):
            if token.get(more):
                raise ValueError(f"the added token {token['content']!r} must not have {more}")
        if not token["special"]:
            raise ValueError(f"the added token {token['content']!r} must be special")
        ids[token["content"]] = token["id"]
        special.append(token["content"])
    _check_template(content["post_processor"])
    lowercase, strip_accents = bool(normalizer["lowercase"]), normalizer.get("strip_accents")
    return WordPieceTokenizer(
        _in_order(model["vocab"], ids), lowercase=lowercase, strip_accents=strip_accents, special=special
    )


def _check_template(step):
    """ValueError unless a post-processor makes [CLS] A [SEP], and [CLS] A [SEP] B [SEP] with segments 0 and 1."""
    if _type_of(step) == "BertProcessing" and (step["cls"][0], step["sep"][0]) == (CLS, SEP):
        return
    for name, parts in TEMPLATE.items():
        segments = [int("B" in parts[: place + 1]) for place in range(len(parts))]
        wanted = [
            {"Sequence" if part in "AB" else "SpecialToken": {"id": part, "type_id": segment}}
            for part, segment in zip(parts, segments, strict=True)
        ]
        if _type_of(step) != "TemplateProcessing" or step[name] != wanted:
            raise ValueError(f"its post_processor must make {' '.join(parts)} of {name} sentences, as BERT's does")


def _from_vocabulary(tokens, settings):
    """From the lines of vocab.txt, and what tokenizer_config.json says."""
    if not settings.get("tokenize_chinese_chars", True):
        raise ValueError("it must have tokenize_chinese_chars")
    lowercase = bool(settings.get("do_lower_case", True))
    return WordPieceTokenizer(tokens, lowercase=lowercase, strip_accents=settings.get("strip_accents"), special=SPECIAL)


def _check_dictionary(name, content):
    if not isinstance(content, dict):
        raise TypeError(f"{name} must be a dictionary, got {type(content).__name__}")


def _as_pair(merge):
    """A merge in one of the two forms of tokenizer.json: ["Ġt", "he"] or, in older files, "Ġt he"."""
    return split_merge(" ".join(merge) if isinstance(merge, list) and all(isinstance(x, str) for x in merge) else merge)


def _reading(content, tokens):
    """How the steps around the model read a text -> Reading. ValueError for a step that we do not have."""
    normalizer, decoder = (_type_of(content.get(name)) for name in ("normalizer", "decoder"))
    if normalizer not in ("null", "NFC"):
        raise ValueError(f"its normalizer must be NFC or null, got {normalizer}")
    if decoder != "ByteLevel":
        raise ValueError(f"its decoder must be ByteLevel, got {decoder}")
    whole = bool(content["model"].get("ignore_merges"))
    return Reading(_words(content.get("pre_tokenizer")), normalizer == "NFC", whole, _first(content, tokens))


def _words(step):
    """The name of the pattern that a pre-tokenizer splits a text with."""
    steps = _steps(step, "pretokenizers")
    *splits, last = steps or [None]
    if [*map(_type_of, steps)] not in (["ByteLevel"], ["Split", "ByteLevel"]):
        found = ", ".join(map(_type_of, steps)) or "null"
        raise ValueError(f"its pre_tokenizer must be ByteLevel, after a Split or alone, got {found}")
    regex = "false after a Split" if splits else "true without a Split"
    if last.get("add_prefix_space") is not False or last.get("use_regex", True) is bool(splits):
        raise ValueError(f"its pre_tokenizer must have add_prefix_space = false and use_regex = {regex}")
    if not splits:
        return "gpt2"
    if (splits[0]["behavior"], splits[0]["invert"]) != ("Isolated", False):
        raise ValueError("its Split must have behavior = Isolated and invert = false")
    names = [name for name, pattern in PATTERNS.items() if splits[0]["pattern"] == {"Regex": pattern}]
    if not names:
        raise ValueError(f"its Split has a pattern that is none of {', '.join(PATTERNS)}: {splits[0]['pattern']!r}")
    return names[0]


def _first(content, tokens):
    """The token that a post-processor puts before each text, or ""."""
    first = ""
    for step in _steps(content.get("post_processor"), "processors"):
        if _type_of(step) == "TemplateProcessing":
            *before, text = step["single"]
            first = before[0]["SpecialToken"]["id"] if before else ""
            if "Sequence" not in text or len(before) > 1:
                raise ValueError("its post_processor must add at most one token, before the text")
            if first and step["special_tokens"][first]["ids"] != [tokens.index(first)]:
                raise ValueError(f"its post_processor has another id for {first!r} than its vocabulary")
        elif _type_of(step) != "ByteLevel":
            raise ValueError(f"its post_processor must be ByteLevel, TemplateProcessing or null, got {_type_of(step)}")
    return first


def _steps(step, name):
    """The steps of a Sequence, which are in the field `name`, or of a step alone, or of none."""
    return step[name] if _type_of(step) == "Sequence" else [] if step is None else [step]


def _type_of(step):
    """The name of a step."""
    return "null" if step is None else step.get("type") if isinstance(step, dict) else repr(step)


def _from_two_files(vocab, data, more_tokens):
    """From vocab.json, the bytes of merges.txt, and whether there is a third file."""
    if more_tokens:
        raise ValueError("the tokens of added_tokens.json need a tokenizer.json, which says how they are used")
    tokens = _in_order(vocab, {})
    lines = [line.removesuffix("\r") for line in data.decode("utf-8").removesuffix("\n").split("\n")]
    merges = [split_merge(line) for line in lines if line and not line.startswith("#version")]
    return ByteLevelTokenizer(tokens, merges, [AddedToken(END_OF_TEXT)] if END_OF_TEXT in vocab else [])


def _in_order(vocab, added):
    """The tokens in the order of their ids, from {token: id} of the model and of the added tokens."""
    _check_dictionary("its vocabulary", vocab)
    tokens = {}
    for token, id in (*vocab.items(), *added.items()):
        if not isinstance(id, int) or isinstance(id, bool):
            raise TypeError(f"an id must be a whole number, got {id!r} for {token!r}")
        if tokens.setdefault(id, token) != token:
            raise ValueError(f"{tokens[id]!r} and {token!r} have the same id {id}")
    if sorted(tokens) != list(range(len(tokens))):
        missing = next(i for i in range(len(tokens)) if i not in tokens)
        raise ValueError(f"it has {len(tokens)} tokens, but none with the id {missing}")
    return [tokens[id] for id in range(len(tokens))]
