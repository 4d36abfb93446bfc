"""How well is broken text restored, as BART learns to?

Each kind of noise has a model of its own: `minitransformer train denoise` with its defaults, on one thread.
"""

import contextlib
import io
import json
import math
import tempfile
import time
from typing import Any

from experiments.report import Options, Rows, Table
from minitransformer.cli import main
from minitransformer.data.denoising import NOISES
from minitransformer.system.progress import tqdm

SECONDS = {True: 120, False: 900}
SMALL = ("--steps", "20", "--d-model", "16", "--num-layers", "1", "--batch-size", "200", "--vocab-size", "300")
OPTIONS: dict[bool, tuple[str, ...]] = {True: SMALL, False: ()}  # of the training, beside the noise
COLUMNS = ["noise", "nats a token", "exact", "BLEU, restored", "BLEU, broken", "CPU time"]


def rows(options: Options) -> Rows:
    """One model for each kind of noise."""
    about = (*OPTIONS[options.quick], "--seed", str(options.seed))
    return {"models": [train_and_test(noise, *about) for noise in tqdm(NOISES[::-1], unit="training")]}


def train_and_test(noise: str, *options: str) -> dict[str, Any]:
    """Train one model -> its result, with the seconds of processor time."""
    printed, start = io.StringIO(), time.process_time()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
        about = ("--noise", noise, "--runs", folder, "--threads", "1", "--json")
        if main(["train", "denoise", *about, *options]):
            raise RuntimeError(printed.getvalue())
    found = json.loads(printed.getvalue().splitlines()[-1])
    keys = ("perplexity", "exact_match", "bleu", "interval", "copy_bleu")
    return {"noise": noise, **{key: found[key] for key in keys}, "seconds": time.process_time() - start}


def tables(rows: Rows) -> list[Table]:
    """One line for each kind of noise."""
    cells = [
        [
            *(row["noise"], f"{math.log(row['perplexity']):.2f}", f"{row['exact_match']:.1%}"),
            *(f"{row['bleu']:.1f} ± {row['interval'] or 0:.1f}", f"{row['copy_bleu']:.1f}", f"{row['seconds']:.0f} s"),
        ]
        for row in rows["models"]
    ]
    return [Table("held-out passages", COLUMNS, cells)]


def findings(rows: Rows) -> list[str]:
    """What is gained for each kind of noise."""
    return [
        f"{row['noise']}: BLEU {row['copy_bleu']:.1f} of what is broken, {row['bleu']:.1f} of what is restored."
        for row in rows["models"]
    ]
