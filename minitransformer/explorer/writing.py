"""How the sources and targets of a model are written as text: its tokens by name, and the ids of what is typed."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from minitransformer.data import ToyTask, get_task, task_names
from minitransformer.data.pairs import tidy
from minitransformer.example.model import LETTERS, WORD
from minitransformer.plotting import readable
from minitransformer.tokenizers import Tokenizer, tokenizer_from_dict
from minitransformer.vocabulary import EOS, PAD, SPECIAL_TOKENS

SPECIAL = tuple(token.strip("<>") for token in SPECIAL_TOKENS)  # pad, bos, eos
QUESTIONS = {  # toy tasks that have no right answer to some sources: an example, and the sources that have one
    "addition": ("57+8", r"\d{1,4}\+\d{1,4}"),
    "recall": ("a3k7c1k", r"(?:[a-z]\d)*([a-z])\d(?:[a-z]\d)*\1"),
}


class Writing(NamedTuple):
    """The text of ids, and the ids of a text."""

    tokens: tuple[str, ...]  # V names, in the order of their ids; each is there once
    separator: str  # what stands between tokens on the page: nothing or a space
    encode: Callable[[str], list[int]]  # raises ValueError for a text that the model cannot read
    end: tuple[int, ...] = (EOS,)  # the ids after every source
    solve: Callable[[str], list[int] | None] = lambda text: None  # the right answer to a source, if there is one
    example: str | None = None  # a source
    task: str | None = None  # the toy task

    def text(self, ids: Sequence[int]) -> str:
        """The names of the tokens, as they are typed on the page."""
        return self.separator.join(self.tokens[id] for id in ids)


def example_writing() -> Writing:
    """The running example: words of the letters o, p, s and t, which it reverses."""
    tokens = (*SPECIAL, *LETTERS)

    def encode(text: str) -> list[int]:
        for letter in text:
            if letter not in LETTERS:
                raise ValueError(f"the running example has the letters {', '.join(LETTERS)}, got {letter!r}")
        return [tokens.index(letter) for letter in text]

    return Writing(tokens, "", encode, end=(), solve=lambda text: encode(text)[::-1], example=WORD, task="reverse")


def writing_of(model: Any, metadata: Mapping[str, Any]) -> Writing:
    """That of a toy task or of a tokenizer, whichever the model was saved with, and otherwise that of plain ids."""
    if metadata.get("task") in task_names():
        return toy_writing(metadata["task"])
    if "tokenizer" in metadata:
        return tokenizer_writing(tokenizer_from_dict(metadata["tokenizer"]))
    return ids_writing(model.config.vocab_size)


def toy_writing(name: str) -> Writing:
    """A toy task, with its right answers."""
    task: ToyTask = get_task(name)
    example, question = QUESTIONS.get(name, (WORD, ".+"))

    def encode(text: str) -> list[int]:
        return task.encode(text).tolist()

    def solve(text: str) -> list[int] | None:
        if not re.fullmatch(question, text):
            return None
        return [id for id in task.solve(task.encode(text)[None])[0].tolist() if id != PAD]

    tokens = unique((*SPECIAL, *task.vocabulary[len(SPECIAL) :]))
    separator = "" if all(len(token) == 1 for token in tokens[len(SPECIAL) :]) else " "
    return Writing(tokens, separator, encode, solve=solve, example=example, task=name)


def tokenizer_writing(tokenizer: Tokenizer) -> Writing:
    """Sentences, as for a model that translates."""
    special = SPECIAL if tokenizer.tokens[: len(SPECIAL)] == SPECIAL_TOKENS else ()  # others have tokens there
    visible = map(readable, tokenizer.tokens[len(special) :])
    return Writing(unique((*special, *visible)), " ", lambda text: tokenizer.encode(tidy(text)).tolist())


def ids_writing(vocab_size: int) -> Writing:
    """Ids as numbers with spaces between them, for a model of which nothing else is known. It adds no eos."""
    tokens = (*SPECIAL, *map(str, range(len(SPECIAL), vocab_size)))[:vocab_size]
    known = {token: id for id, token in enumerate(tokens) if id != PAD}

    def encode(text: str) -> list[int]:
        for token in text.split():
            if token not in known:
                raise ValueError(f"{token!r} is no token: write bos, eos, or ids from {EOS + 1} to {vocab_size - 1}")
        return [known[token] for token in text.split()]

    return Writing(tokens, " ", encode, end=())


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """The names, with the id after one that an earlier token has."""
    found: dict[str, None] = {}
    for id, name in enumerate(names):
        while name in found:
            name = f"{name}_{id}"
        found[name] = None
    return tuple(found)
