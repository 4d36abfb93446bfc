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

from experiments.report import Options, Rows, Table, listed
from minitransformer.cli import main
from minitransformer.data.denoising import NOISES
from minitransformer.system.progress import tqdm

SECONDS = {True: 120, False: 900}
THREADS = None
SMALL = ("--steps", "20", "--d-model", "16", "--num-layers", "1", "--batch-size", "200", "--vocab-size", "300")
OPTIONS: dict[bool, tuple[str, ...]] = {True: SMALL, False: ()}  # of the training, beside the noise


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
    columns: dict[str, tuple] = {
        **{"noise": ("noise",), "nats a token": (lambda row: math.log(row["perplexity"]), ".2f")},
        "exact": ("exact_match", ".1%"),
        "BLEU, restored": (lambda row: f"{row['bleu']:.1f} ± {row['interval'] or 0:.1f}",),
        **{"BLEU, broken": ("copy_bleu", ".1f"), "CPU time": (lambda row: f"{row['seconds']:.0f} s",)},
    }
    return [listed("held-out passages", rows["models"], columns)]


def findings(rows: Rows) -> list[str]:
    """What is gained for each kind of noise."""
    return [
        f"{row['noise']}: BLEU {row['copy_bleu']:.1f} of what is broken, {row['bleu']:.1f} of what is restored."
        for row in rows["models"]
    ]
