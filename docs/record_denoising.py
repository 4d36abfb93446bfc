"""Measure how well broken text is restored (BART's objective): records/denoising.json.

    python docs/record_denoising.py          one model for each kind of noise (about 10 minutes of processor time)

Each is `minitransformer train denoise` with its defaults, on one thread. Then `python docs/write_tables.py` writes the
table into commands.md.
"""

import contextlib
import datetime
import io
import json
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from minitransformer.cli import main as command
from minitransformer.course import FOLDER
from minitransformer.data.denoising import NOISES

sys.path.append(str(FOLDER))  # where the experiments are
from experiments.running import describe_machine

RECORD = Path(__file__).resolve().parent / "records" / "denoising.json"
OPTIONS: tuple[str, ...] = ()  # of the training, beside the noise
COLUMNS = ["noise", "nats a token", "exact", "BLEU, restored", "BLEU, broken", "CPU time"]


def measure(noise: str) -> dict[str, Any]:
    """Train one model -> its result, with the seconds of processor time."""
    printed, start = io.StringIO(), time.process_time()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
        about = ("--noise", noise, "--runs", folder, "--threads", "1", "--json")
        if command(["train", "denoise", *about, *OPTIONS]):
            raise RuntimeError(printed.getvalue())
    return {**json.loads(printed.getvalue().splitlines()[-1]), "cpu": time.process_time() - start}


def main() -> int:
    """Measure and record -> exit status."""
    cells = []
    for noise in reversed(NOISES):
        row = measure(noise)
        bleu = f"{row['bleu']:.1f} ± {row['interval'] or 0:.1f}", f"{row['copy_bleu']:.1f}"
        cells.append(
            [noise, f"{math.log(row['perplexity']):.2f}", f"{row['exact_match']:.1%}", *bleu, f"{row['cpu']:.0f} s"]
        )
    about = {"command": "python docs/record_denoising.py", "date": str(datetime.date.today())}
    record = {**about, "machine": describe_machine(), "tables": [{"columns": COLUMNS, "cells": cells}]}
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
