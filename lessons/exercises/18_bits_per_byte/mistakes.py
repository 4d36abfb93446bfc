"""The problems, the hints and the known mistakes of 18_bits_per_byte."""

import math

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task

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
                Mistake("price-padding-counted", {"targets != PAD": "targets >= PAD"}),
                Mistake("eos-not-paid", {"counted = targets != PAD": "counted = targets > 1"}),
                Mistake("characters-counted-not-bytes", {"len(text.encode())": "len(text)"}),
                Mistake("nats-taken-bits", {" / np.log(2) /": " /"}),
                Mistake("nats-multiplied-ln-2", {"/ np.log(2) /": "* np.log(2) /"}),
                Mistake("logarithm-base-10", {"np.log(2)": "np.log(10)"}),
                Mistake("bits-per-token-not-per", {"/ size.sum()": "/ counted.sum()"}),
                Mistake("mean-nats-divided-number-bytes", {"nats.sum() / np.log(2)": "nats.mean() / np.log(2)"}),
                Mistake(
                    "each-text-counts-alike-short",
                    {
                        "nats.sum() / np.log(2) / size.sum()": (
                            "np.mean([-row[ok].sum() / np.log(2) / max(own.sum(), 1) "
                            "for row, ok, own in zip(log_p, counted, size)])"
                        )
                    },
                ),
                Mistake(
                    "each-token-counts-alike-whatever",
                    {
                        "nats.sum() / np.log(2) / size.sum()": (
                            "(nats / np.maximum(size[counted], 1)).mean() / np.log(2)"
                        )
                    },
                ),
                Mistake(
                    "bytes-per-bit", {"nats.sum() / np.log(2) / size.sum()": "size.sum() / (nats.sum() / np.log(2))"}
                ),
                Mistake("perplexity-power-2-nats-exponent", {"np.exp(nats.mean())": "2 ** nats.mean()"}),
                Mistake("perplexity-mean-1-p", {"np.exp(nats.mean())": "np.exp(nats).mean()"}),
                Mistake("perplexity-per-byte", {"np.exp(nats.mean())": "np.exp(nats.sum() / size.sum())"}),
                Mistake("sign-logarithm-missing", {"-log_p[counted]": "log_p[counted]"}),
            ),
        ),
    ),
)
