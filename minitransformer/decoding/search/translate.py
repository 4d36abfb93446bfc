"""Translating sentences with a trained encoder-decoder: text in, text out, as in section 6.1 of the paper."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minitransformer.checks import check_integer
from minitransformer.config import OWN_IDS, ModelConfig, special_ids
from minitransformer.decoding.rereading import decoding_state
from minitransformer.decoding.search.beam import beam_search
from minitransformer.tokenizers import Tokenizer

BEAM, ALPHA = 4, 0.6  # the paper's
MORE = 50  # tokens that a translation may have beyond those of its source (section 6.1)
BATCH_TOKENS = 10_000  # a batch of 33 sources of 25 tokens, with a beam of 4; larger ones are not faster

MASK = "[MASK]"  # in a source: the start of a target, else in none; a model of data/denoising.py fills it in
SHOWN = 30  # characters of a sentence that is refused


class Translation(NamedTuple):
    """One translation."""

    text: str
    ids: tuple[int, ...]  # without bos, ending in eos unless the translation was cut off
    log_prob: float  # the sum over its tokens
    score: float  # by which the beam was ranked: log_prob divided by the length penalty


def translate(
    model: Any,
    tokenizer: Tokenizer,
    sentences: Sequence[str],
    beam: int = BEAM,
    alpha: float = ALPHA,
    *,
    batch_tokens: int = BATCH_TOKENS,
    on_progress: Callable[[int], object] | None = None,
) -> list[str]:
    """The translation of each sentence -> list of str, without line breaks. See `find_translations`."""
    found = find_translations(
        model, tokenizer, sentences, beam, alpha, batch_tokens=batch_tokens, on_progress=on_progress
    )
    return [translation.text for translation in found]


def find_translations(
    model: Any,
    tokenizer: Tokenizer,
    sentences: Sequence[str],
    beam: int = BEAM,
    alpha: float = ALPHA,
    *,
    batch_tokens: int = BATCH_TOKENS,
    on_progress: Callable[[int], object] | None = None,
) -> list[Translation]:
    """The best translation of each sentence that beam search finds, in the order of the sentences.

    With beam = 1 the search is greedy, and alpha is not used. A translation has at most 50 tokens more than its source
    (section 6.1), and at most the model's max_len. A sentence without any text gets an empty translation. Sentences of
    about the same length are a batch, in which sources, beam and the most new tokens multiply to at most
    `batch_tokens`: memory grows with it. `on_progress` is called with the number of sentences of each batch that is
    done. Raises ValueError for a sentence longer than max_len tokens, eos included, and for `beam` or `batch_tokens`
    less than 1, and TypeError for one string, which would be read letter by letter.
    """
    if isinstance(sentences, str):
        raise TypeError(f"sentences must be several, such as [{sentences[:SHOWN]!r}], got one string")
    check_integer("beam", beam, least=1)
    check_integer("batch_tokens", batch_tokens, least=1)
    longest, config = model.config.max_len, special_ids(model)
    sources = [encode_source(tokenizer, sentence, longest, config) for sentence in sentences]
    found = [Translation("", (), 0.0, 0.0)] * len(sources)
    for rows in batches([len(source) for source in sources], beam, longest, batch_tokens):
        ids = np.full((len(rows), len(sources[rows[-1]])), config.filler)
        for line, row in zip(ids, rows, strict=True):
            line[: len(sources[row])] = sources[row]
        if ids.shape[1] > 1:  # more than eos
            limits = [min(len(sources[row]) + MORE, longest) for row in rows]
            state = decoding_state(model, ids, limits[-1])
            answers = beam_search(state, len(rows), limits, state.prompt, beam, alpha if beam > 1 else 0.0)
            for row, (best, *_) in zip(rows, answers, strict=True):
                text = " ".join(tokenizer.decode(best.ids).split())  # one line, as the sentences of training are
                found[row] = Translation(text, *best)
        if on_progress is not None:
            on_progress(len(rows))
    return found


def encode_source(tokenizer: Tokenizer, sentence: str, max_len: int, config: ModelConfig = OWN_IDS) -> np.ndarray:
    """The ids of a sentence and the end of the model's `config`, or this alone if it has no text -> (S,).

    Raises ValueError, naming both numbers, if these are more than `max_len` tokens.
    """
    ids = np.append(
        encode_masked(tokenizer, sentence if sentence.strip() else "", config), np.array(config.ends[:1], int)
    )
    if len(ids) > max_len:
        start = sentence if len(sentence) <= SHOWN else f"{sentence[:SHOWN].rstrip()}..."
        raise ValueError(
            f"the sentence {start!r} has {len(ids):,} tokens, end token included, and this model reads at most "
            f"{max_len:,}"
        )
    return ids


def encode_masked(tokenizer: Tokenizer, text: str, config: ModelConfig = OWN_IDS) -> np.ndarray:
    """The ids of a text, with the start of a target where it has [MASK]."""
    parts = [tokenizer.encode(part) for part in text.split(MASK)]
    return np.concatenate([parts[0], *(np.append([config.start], part) for part in parts[1:])])


def batches(lengths: Sequence[int], beam: int, max_len: int, batch_tokens: int) -> Iterator[list[int]]:
    """Yield the rows of each batch, from the shortest source to the longest. Sources without text come alone."""
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row]):
        tokens = (len(rows) + 1) * beam * min(lengths[row] + MORE, max_len)
        if rows and (tokens > batch_tokens or lengths[rows[0]] == 1 < lengths[row]):
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows
