"""What a BERT makes of whole sentences: their embeddings, and which words the cosine of two of them hangs on.

The embedding of a sentence is the mean of its tokens' features, divided by its length (Reimers and Gurevych 2019,
"Sentence-BERT"). The dot product of two is then their cosine: 1 for the same direction, about 0 for unrelated ones.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from minitransformer.backend import to_device, to_host, xp
from minitransformer.data.labelled import encode_sentences
from minitransformer.models.reading import read
from minitransformer.models.since_2017.bert import BERT
from minitransformer.system.progress import tqdm
from minitransformer.tokenizers import Tokenizer

POSITIONS = 1024  # in a batch, padding included


def embeddings(model: BERT, tokenizer: Tokenizer, sentences: Sequence[str]) -> np.ndarray:
    """The embedding of each sentence, of length 1 -> (N, C), on the host.

    Sentences of about the same length are read together, so that little of the work is padding. Of a longer one than
    the model reads, only the beginning counts.
    """
    rows = [encode_sentences(tokenizer, [each], model.config.max_len, model.config)[0] for each in sentences]
    found = np.empty((len(rows), model.config.d_model), model.embedding.norm.gamma.data.dtype)
    with tqdm(total=len(rows), unit="sentence", disable=None) as progress:
        for batch in _batches(rows):
            ids = _padded([rows[i] for i in batch], model.config.filler)
            means = _means(read(model.features, ids), to_device(model.config.tokens(ids)))
            found[batch] = to_host(means / _norms(means))
            progress.update(len(batch))
    return found


def _batches(rows):
    """The numbers of rows of about the same length, at most POSITIONS in each batch, padding included."""
    batch: list[int] = []
    for i in sorted(range(len(rows)), key=lambda i: len(rows[i])):
        if batch and (len(batch) + 1) * len(rows[i]) > POSITIONS:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _padded(rows, filler):
    width = max(map(len, rows))
    return np.array([[*row, *[filler] * (width - len(row))] for row in rows])


def _means(y, tokens):
    """y (B, T, C) and which are tokens (B, T) -> the mean of each row's tokens (B, C)."""
    return (y * tokens[:, :, None]).sum(axis=1) / tokens.sum(axis=1)[:, None]


def _norms(x):
    return xp.sqrt((x * x).sum(axis=-1, keepdims=True))


class WordPairs(NamedTuple):
    """What each pair of words, one of each sentence, adds to the cosine of the two."""

    first: list[str]
    second: list[str]
    shares: np.ndarray  # (S, T), whose sum is the cosine


def word_pairs(model: BERT, tokenizer: Tokenizer, first: str, second: str) -> WordPairs:
    """Which words the cosine of two sentences hangs on -> WordPairs; pieces of a word count as one.

    Forward    m = 1/n sum_t y_t over the n tokens of a sentence      c = m . m' / (|m| |m'|)
    Shares     the cosine is a sum over pairs of tokens: a_st = y_s . y'_t / (n n' |m| |m'|)      sum_st a_st = c
    Remember   y_t has read the whole sentence: it stands for the token where it is, not for the word by itself

    The sum over a row is exactly what that token adds to the mean, and so to the cosine. The gradient with respect to
    the vector at the bottom, times that vector, is a worse measure: it says what an infinitely small change does, and
    the layers above are far from linear. Compared with what the cosine of all-MiniLM-L6-v2 loses without the token
    (163 tokens, 8 pairs of sentences), the correlation was 0.03, and 0.64 for the shares.
    """
    config = model.config
    ids = encode_sentences(tokenizer, [first, second], config.max_len, config)
    tokens = config.tokens(ids)
    y = read(model.features, ids)
    norms = tokens.sum(axis=1) * to_host(_norms(_means(y, to_device(tokens))))[:, 0]
    parts = [np.asarray(to_host(y[i]))[tokens[i]] / norms[i] for i in (0, 1)]
    names = [[tokenizer.tokens[id] for id in row[is_token]] for row, is_token in zip(ids, tokens, strict=True)]
    starts = [[t for t, name in enumerate(row) if not name.startswith("##")] for row in names]
    (one, other), (vectors, others) = map(_words, names, starts), map(np.add.reduceat, parts, starts)
    return WordPairs(one, other, vectors @ others.T)


def _words(names, starts):
    """Pieces joined where they go on with a word."""
    ends = [*starts[1:], len(names)]
    return ["".join(names[start:end]).replace("##", "") for start, end in zip(starts, ends, strict=True)]
