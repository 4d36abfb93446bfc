"""Measure what a GPT loses whose layers are one layer (ALBERT): records/sharing.json.

    python docs/record_sharing.py          all rows with three seeds (about 6 minutes of processor time)

Each model writes characters of Python's documentation, for as many steps of 8 windows. Then
`python docs/write_tables.py` writes the table into models.md.
"""

import datetime
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from minitransformer.course import FOLDER
from minitransformer.data import TextTask, load_python_topics
from minitransformer.evaluation import mean_loss
from minitransformer.models import GPT, gpt_config
from minitransformer.system.process import keep_freed_memory, limit_threads
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.training import cosine
from minitransformer.training.batches import Batches

sys.path.append(str(FOLDER))  # where the experiments are
from experiments.measuring.paired import collect, interval
from experiments.measuring.steps import make_training_step
from experiments.running import describe_machine

RECORD = Path(__file__).resolve().parent / "records" / "sharing.json"
SEEDS, STEPS, BATCH, PEAK, LENGTH = (0, 1, 2), 1000, 8, 4e-3, 64
MODELS: dict[str, dict[str, Any]] = {
    "4 layers": {"d_model": 64},
    "1 layer, 4 times": {"d_model": 64, "share_layers": True},
    "1 layer, 4 times, d_model 120": {"d_model": 120, "share_layers": True},
}


def measure(name: str, seed: int) -> dict[str, Any]:
    """The parameters, the loss on the held-out text, and the seconds of processor time of one training."""
    corpus, fields = load_python_topics(), MODELS[name]
    data = TextTask(corpus, CharacterTokenizer.train(corpus.train + corpus.held_out), LENGTH)
    sizes = {"num_heads": 4, "num_layers": 4, "d_ff": 4 * fields["d_model"], "max_len": LENGTH, "positions": "rope"}
    model = GPT(gpt_config(data.tokenizer.vocab_size, **sizes, **fields, dropout=0.0), seed=seed)
    batches = Batches(data, BATCH, seed)
    with limit_threads(1):
        start = time.process_time()
        step = make_training_step(model, label_smoothing=0.0, threads=1)
        for number in range(1, STEPS + 1):
            step(batches.next(), cosine(number, STEPS, PEAK, warmup=100))
        seconds = time.process_time() - start
        loss = mean_loss(model, list(data.held_out_batches(64)))
    return {"parameters": model.num_parameters(), "loss": loss, "seconds": seconds}


def main() -> int:
    """Measure and record -> exit status."""
    keep_freed_memory()
    jobs, partial = [(name, seed) for name in MODELS for seed in SEEDS], RECORD.with_suffix(".partial")
    rows = dict(zip(jobs, collect(partial, jobs, measure), strict=True))
    cells, first = [], next(iter(MODELS))
    for name in MODELS:
        own = [rows[name, seed] for seed in SEEDS]
        mean, half = interval([rows[name, seed]["loss"] - rows[first, seed]["loss"] for seed in SEEDS])
        parameters, base = own[0]["parameters"], rows[first, SEEDS[0]]["parameters"]
        loss, seconds = (statistics.fmean(row[key] for row in own) for key in ("loss", "seconds"))
        more = "" if name == first else f"{mean:+.3f} ± {half:.3f}"
        cells.append([name, f"{parameters:,}", f"{parameters / base:.0%}", f"{loss:.3f}", more, f"{seconds:.0f} s"])
    columns = ["model", "parameters", "of the first", "nats a character", "more than the first", "CPU time"]
    about = {"command": "python docs/record_sharing.py", "date": str(datetime.date.today())}
    record = {**about, "machine": describe_machine(), "tables": [{"columns": columns, "cells": cells}]}
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")
    partial.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
