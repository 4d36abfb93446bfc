"""Measure whether a classifier of sentences gains from a masked model: records/classification.json.

    python docs/record_classification.py          all rows with three seeds (about 12 minutes of processor time)

Of each sentence in the docstrings of ten packages, a model says which package it is from (`train classify`). It
starts with new weights, or with the encoder of a BERT that has learnt to guess hidden tokens (`train masked`). Then
`python docs/write_tables.py` writes the table into library.md.
"""

import datetime
import json
import math
import re
import sys
import time
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.course import FOLDER
from minitransformer.data import Corpus, MaskedTask, TextTask, load_python_topics
from minitransformer.data.labelled import LabelledTask, docstrings, load_labelled
from minitransformer.data.text import split_text
from minitransformer.decoding.classify import classify
from minitransformer.models import BERT, bert_config
from minitransformer.recipes.text import fitting_vocab_size
from minitransformer.system.process import keep_freed_memory, limit_threads
from minitransformer.tokenizers import BytePairTokenizer
from minitransformer.training import cosine
from minitransformer.training.batches import Batches

sys.path.append(str(FOLDER))  # where the experiments are
from experiments.measuring.steps import make_training_step
from experiments.running import describe_machine

RECORD = Path(__file__).resolve().parent / "records" / "classification.json"
SEEDS = (0, 1, 2)
SIZES: dict[str, Any] = {
    "d_model": 64,
    "num_heads": 4,
    "d_ff": 256,
    "num_layers": 2,
    "max_len": 64,
    "positions": "rope",
}
STEPS = {200: 150, 1000: 300, sys.maxsize: 1000}  # of classification, for as many sentences
HIDDEN, PEAK = 2500, 2e-3  # steps of the masked model, and the peak of all learning rates
BATCH, HIDDEN_BATCH = 16, 32


def texts() -> dict[str, Corpus]:
    """What the masked models read: no sentence of the test is in it."""
    held_out = {sentence for sentence, _ in load_labelled()[1]}
    own = dict.fromkeys(sentence for sentence, _ in docstrings() if sentence not in held_out)
    return {"these docstrings": split_text("\n".join(own)), "Python's language": load_python_topics()}


def fit(model: BERT, data: Any, batch: int, steps: int, seed: int) -> float:
    """Train on one thread -> seconds of processor time."""
    start, batches = time.process_time(), Batches(data, batch, seed)
    step = make_training_step(model, label_smoothing=0.0, threads=1)
    for number in range(1, steps + 1):
        step(batches.next(), cosine(number, steps, PEAK, warmup=max(1, steps // 20)))
    return time.process_time() - start


def masked(corpus: Corpus, seed: int) -> tuple[BytePairTokenizer, dict[str, np.ndarray], float]:
    """The tokenizer, the weights without the head, and the seconds of a masked model."""
    tokenizer = BytePairTokenizer.train(corpus.train, fitting_vocab_size(len(corpus.train)))
    data = MaskedTask(TextTask(corpus, tokenizer, SIZES["max_len"]))
    model = BERT(bert_config(data.vocab_size, **SIZES, dropout=0.0), seed=seed)
    seconds = fit(model, data, HIDDEN_BATCH, HIDDEN, seed)
    return tokenizer, {name: w for name, w in model.state_dict().items() if not name.startswith("head.")}, seconds


def naive_bayes(train: list, held_out: list) -> float:
    """The share that is right of a naive Bayes classifier on words, with a tenth of a count for each that is unseen."""
    words, sentences = defaultdict(Counter), Counter(label for _, label in train)
    for sentence, label in train:
        words[label].update(re.findall(r"\w+", sentence.lower()))
    V = len(set().union(*words.values()))

    def score(sentence: str, label: str) -> float:
        counts, total = words[label], words[label].total() + 0.1 * V
        found = re.findall(r"\w+", sentence.lower())
        return math.log(sentences[label]) + sum(math.log((counts[word] + 0.1) / total) for word in found)

    right = [max(sentences, key=partial(score, sentence)) == label for sentence, label in held_out]
    return sum(right) / len(right)


def measure(seed: int) -> dict[str, list[float]]:
    """{row: [seconds of the masked model, then for each number of sentences the share that is right, and seconds]}"""
    train, held_out = load_labelled()
    order = np.random.default_rng(seed).permutation(len(train))
    starts: dict[str, Any] = {"new weights": (None, {}, 0.0)}
    starts |= {f"a masked model of {name}": masked(text, seed) for name, text in texts().items()}
    found = {name: [start[2]] for name, start in starts.items()}
    found |= {"naive Bayes on words": [0.0], "the commonest label": [0.0]}
    for count, steps in STEPS.items():
        part = [train[row] for row in order[:count]]
        for name, (tokenizer, weights, _) in starts.items():
            if tokenizer is None:
                text = "\n".join(sentence for sentence, _ in part)
                tokenizer = BytePairTokenizer.train(text, fitting_vocab_size(len(text)))
            data = LabelledTask(part, held_out, tokenizer, SIZES["max_len"])
            config = bert_config(tokenizer.vocab_size + 1, **SIZES, dropout=0.1)
            model = BERT(config, num_classes=len(data.labels) + 1, seed=seed)
            model.load_state_dict({**model.state_dict(), **weights})
            seconds = fit(model, data, BATCH, steps, seed)
            p = classify(model, tokenizer, [sentence for sentence, _ in held_out])
            found[name] += [float((p.argmax(axis=1) == data.held_out.targets - 1).mean()), seconds]
            print(f"seed {seed}, {len(part)} sentences, {name}: {found[name][-2]:.1%}, {seconds:.0f} s", flush=True)
        labels = [label for _, label in held_out]
        found["naive Bayes on words"] += [naive_bayes(part, held_out), 0.0]
        found["the commonest label"] += [max(map(labels.count, {*labels})) / len(labels), 0.0]
    return found


def spread(values: np.ndarray) -> str:
    """The mean, the lowest and the highest share."""
    middle = f"{values.mean():.1%}"
    return middle if values.min() == values.max() else f"{middle} ({values.min():.1%} to {values.max():.1%})"


def main() -> int:
    """Measure and record -> exit status."""
    keep_freed_memory()
    with limit_threads(1):
        found = [measure(seed) for seed in SEEDS]
    cells = []
    for name in found[0]:
        values = np.array([each[name] for each in found])  # (seeds, 1 + 2 * numbers of sentences)
        seconds = f"{values[:, 0].mean():.0f} s" if values[:, 0].any() else ""
        cells.append([name, *(spread(values[:, column]) for column in range(1, values.shape[1], 2)), seconds])
    tuned = [np.mean([each["new weights"][column] for each in found]) for column in range(2, 2 * len(STEPS) + 1, 2)]
    every = len(load_labelled()[0])
    heads = [f"{min(count, every):,} sentences, {seconds:.1f} s" for count, seconds in zip(STEPS, tuned, strict=True)]
    table = {"columns": ["starts from", *heads, "masked model"], "cells": cells}
    about = {"command": "python docs/record_classification.py", "date": str(datetime.date.today())}
    record = {**about, "machine": describe_machine(), "tables": [table]}
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
