"""The files of a tokenizer of theirs: written by hand, so that the library is not needed, and texts to try them on."""

import functools
import json
import random
import sys

from minitransformer.tokenizers import BytePairTokenizer
from minitransformer.tokenizers.visible import BYTE_ORDER, to_visible
from tests.tokenizers.texts import LIKELY_WORDS_LIST, TEXTS

END = "<|endoftext|>"


@functools.cache
def vocabulary():
    """({token: id}, merges), with <|endoftext|> as the first token, as their trainer puts it."""
    trained = BytePairTokenizer.train("".join(TEXTS.values()), 500)
    merges = [(to_visible(left), to_visible(right)) for left, right in trained.merges]
    tokens = [END, *(to_visible(bytes([byte])) for byte in BYTE_ORDER), *(left + right for left, right in merges)]
    return {token: id for id, token in enumerate(tokens)}, merges


def tokenizer_json(**changes):
    """The content of a tokenizer.json; `changes` replaces parts of it, and of its model where the name says so."""
    vocab, merges = vocabulary()
    step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    end = {"id": 0, "content": END, "single_word": False, "lstrip": False, "rstrip": False}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "fuse_unk": False}
    model |= {"end_of_word_suffix": "", "byte_fallback": False, "ignore_merges": False, "vocab": vocab}
    model |= {"merges": [list(merge) for merge in merges]}
    content = {"version": "1.0", "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": step}
    content |= {"added_tokens": [end | {"normalized": False, "special": True}]}
    content |= {"post_processor": step, "decoder": step | {"add_prefix_space": True}, "model": model}
    for name, value in changes.items():
        (model if name in model else content)[name] = value
    return content


def write_json(path, content):
    """A file in JSON."""
    path.write_text(json.dumps(content, ensure_ascii=False), "utf8")


def write_two_files(folder):
    """vocab.json and merges.txt."""
    vocab, merges = vocabulary()
    write_json(folder / "vocab.json", vocab)
    lines = ["#version: 0.2", *(" ".join(merge) for merge in merges)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", "utf8")


def draw_text(rng: random.Random):
    """A random text of up to 60 pieces: characters of all planes, words, white space, marks, emoji, special tokens."""
    return "".join(rng.choice(_PIECES)(rng) for _ in range(rng.randrange(60)))


def _any_character(rng):
    code = rng.randrange(sys.maxunicode + 1 - 2048)
    return chr(code if code < 0xD800 else code + 2048)  # without the surrogates


def _between(low, high):
    return lambda rng: chr(rng.randint(low, high))


def _one_of(texts):
    return lambda rng: rng.choice(texts)


_PIECES = [
    _any_character,
    _between(0x0, 0x7F),
    _between(0x80, 0x24F),
    _between(0x300, 0x36F),  # combining marks
    _between(0x370, 0x1FFF),
    _between(0x2000, 0x2BFF),  # spaces, punctuation, signs
    _between(0x4E00, 0x9FFF),
    _between(0x1F300, 0x1FAFF),  # emoji
    _between(0x1F1E6, 0x1F1FF),  # flags
    _one_of(["\u200d", "\ufe0f", "\U0001f3fd", "👩‍👩‍👧", "🇨🇭", "e\u0301", "가각"]),
    _one_of([" ", "  ", "   ", "\n", "\r\n", "\t", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u00a0", "\u2003", "\u3000"]),
    _one_of(["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "’s", "'"]),
    _one_of([END, "<|endoftext", "|>", "<|", "<pad>"]),
    _one_of(LIKELY_WORDS_LIST),
    _one_of(["½", "Ⅷ", "٣", "二", "12", "3.14", "_", "__x"]),
]
