"""The problems, the hints and the known mistakes of 18_bits_per_byte."""

import math

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.exercises.problems import sizes

SIZES = sizes("B T pieces", (3, 6, 7), (4, 5, 10), (1, 2, 2), (2, 1, 1))
PAD, EOS = 0, 1
PIECES = ("s", "to", "p", "stop", "é", "über", "λόγος", "pots", "naïve", "o")


def make_texts(rng, given, B, T, pieces):
    """Texts of up to T tokens, with a vocabulary of so many pieces. The longest one has no padding after its eos."""
    chosen = [PIECES[i] for i in rng.permutation(len(PIECES))[:pieces]] if pieces > 4 else ["é", "stop"][:pieces]
    texts, T = ["", "", *chosen], T + 1
    targets = rng.integers(2, len(texts), size=(B, T))
    lengths = np.append(T, rng.integers(1, max(T - 1, 2), size=B))[:B]  # with eos
    targets[np.arange(B), lengths - 1] = EOS
    targets[np.arange(T) >= lengths[:, None]] = PAD
    targets[0, 0] = next(i for i, text in enumerate(texts) if len(text.encode()) > len(text))
    log_p = -rng.exponential(2.0, size=(B, T)) - 0.05
    nats, size, count = 0.0, 0, 0
    for row, ids in zip(log_p, targets, strict=True):
        for logarithm, id in zip(row.tolist(), ids.tolist(), strict=True):
            if id != PAD:
                nats, size, count = nats - logarithm, size + len(texts[id].encode()), count + 1
    return Problem((log_p, targets, texts), (np.array(nats / math.log(2) / size), np.array(math.exp(nats / count))))


def is_no_less_than_one(outputs, problem):
    """Whether the perplexity is that of some probabilities."""
    return outputs[1].ndim > 0 or bool(outputs[1] >= 1)


EXERCISE = Exercise(
    name="18_bits_per_byte",
    hints=(
        "The probability of a text is a product. What is its logarithm, and which tokens have a part in it?",
        "Both numbers begin with the same sum of nats. One divides it by what the texts weigh, and the other by how "
        "often the model had to predict. Which of the two has a logarithm of 2 in it?",
        "nats: one number for each target that is not padding;  bits = sum of nats / number / sum of bytes;  "
        "perplexity = e to the power of a mean of nats",
    ),
    tasks=(
        Task(
            function="price",
            outputs=(Output("bits", ""), Output("perplexity", "")),
            make=make_texts,
            sizes=SIZES,
            tolerance=1e-9,
            invariants=(Invariant("a perplexity is at least 1", is_no_less_than_one),),
            mistakes=(
                Mistake(
                    "padding is counted",
                    "What did the model predict after the end of a text? Should anybody pay for it?",
                    {"targets != PAD": "targets >= PAD"},
                ),
                Mistake(
                    "eos is not paid for",
                    "The model must say where a text ends. Is this free because eos has no letters?",
                    {"counted = targets != PAD": "counted = targets > 1"},
                ),
                Mistake(
                    "characters are counted, not bytes",
                    "How many bytes has é in UTF-8, and what is len('é')?",
                    {"len(text.encode())": "len(text)"},
                ),
                Mistake(
                    "nats are taken for bits",
                    "How many nats is one bit? Ask it of p = 1/2.",
                    {" / np.log(2) /": " /"},
                ),
                Mistake(
                    "nats are multiplied by ln 2",
                    "Is a bit more or less than a nat? So are there more bits in a text, or more nats?",
                    {"/ np.log(2) /": "* np.log(2) /"},
                ),
                Mistake(
                    "the logarithm has the base 10",
                    "A bit is a choice between how many things?",
                    {"np.log(2)": "np.log(10)"},
                ),
                Mistake(
                    "the bits are per token, not per byte",
                    "What would happen to this number if each token had twice as many letters?",
                    {"/ size.sum()": "/ counted.sum()"},
                ),
                Mistake(
                    "the mean of nats is divided by the number of bytes",
                    "All of the text's bits, divided by all of its bytes: do you have all of its bits?",
                    {"nats.sum() / np.log(2)": "nats.mean() / np.log(2)"},
                ),
                Mistake(
                    "each text counts alike, the short and the long",
                    "Join two texts into one. Should your number change?",
                    {
                        "nats.sum() / np.log(2) / size.sum()": (
                            "np.mean([-row[ok].sum() / np.log(2) / max(own.sum(), 1) "
                            "for row, ok, own in zip(log_p, counted, size)])"
                        )
                    },
                ),
                Mistake(
                    "each token counts alike, whatever its number of bytes",
                    "A token of one byte costs 8 bits, and one of four bytes 8 bits. What do the five bytes cost each?",
                    {
                        "nats.sum() / np.log(2) / size.sum()": (
                            "(nats / np.maximum(size[counted], 1)).mean() / np.log(2)"
                        )
                    },
                ),
                Mistake(
                    "bytes per bit",
                    "A better model needs fewer bits for a byte. Does your number fall then?",
                    {"nats.sum() / np.log(2) / size.sum()": "size.sum() / (nats.sum() / np.log(2))"},
                ),
                Mistake(
                    "the perplexity is a power of 2, with nats in the exponent",
                    "Which base belongs to nats, and which to bits?",
                    {"np.exp(nats.mean())": "2 ** nats.mean()"},
                ),
                Mistake(
                    "the perplexity is the mean of 1/p",
                    "A single token with the probability 0 makes your number infinite. What does the exponential of a "
                    "mean do, and what the mean of exponentials?",
                    {"np.exp(nats.mean())": "np.exp(nats).mean()"},
                ),
                Mistake(
                    "the perplexity is per byte",
                    "The docstring asks for the perplexity of a token. Which number divides the sum of nats?",
                    {"np.exp(nats.mean())": "np.exp(nats.sum() / size.sum())"},
                ),
                Mistake(
                    "the sign of the logarithm is missing",
                    "Is ln p of a probability positive or negative? And a price?",
                    {"-log_p[counted]": "log_p[counted]"},
                ),
            ),
        ),
    ),
)
