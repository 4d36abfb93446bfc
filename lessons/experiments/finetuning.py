"""What does it save to train a part of a model, and what does the model keep of what it knew?

A GPT that has learned from Shakespeare's plays goes on with Python's standard library, character by character. `--rate
X` trains every row with this peak of the learning rate and the seed 9: so the rates were chosen.
"""

import importlib
import math
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.measuring.paired import compared, spread, train_steps
from experiments.measuring.steps import make_training_step
from experiments.measuring.timing import seconds_of
from experiments.report import Options, Parser, Rows, Table, by_name
from minitransformer import GPT, CharacterTokenizer, Corpus, TextTask, gpt_config, load_shakespeare, mean_loss
from minitransformer.layers import add_lora
from minitransformer.system.progress import tqdm
from minitransformer.training.batches import Batches

SECONDS = {True: 120, False: 900}
MODULES = (  # of the standard library: to train on, and to test on
    "argparse calendar configparser contextlib dataclasses difflib fractions functools heapq shutil textwrap",
    "csv queue shelve tempfile threading",
)
SEEDS, RATE_SEED = {True: 1, False: 3}, 9
SIZES: dict[str, Any] = {"d_model": 64, "num_heads": 4, "d_ff": 256, "num_layers": 3, "max_len": 64, "dropout": 0.0}
PLAYS, LIBRARY = {True: 60, False: 1500}, {True: 20, False: 400}  # steps on the plays, and on the library
PEAK = 4e-3  # of the learning rate on the plays
BATCH, WINDOWS, TURNS = 16, 400, 31
LINEARS = ["qkv", "output", "expand", "contract"]  # all of a GPT
LAST = f"blocks.layers.{SIZES['num_layers'] - 1}"
WAYS: dict[str, tuple[float, int, list[str] | None]] = {  # peak of the rate, rank of LoRA, what is not frozen (or all)
    "everything": (8e-3, 0, None),
    "the last layer": (8e-3, 0, [LAST]),
    "LoRA, rank 4": (2e-2, 4, []),
    "LoRA, rank 16": (2e-2, 16, []),
    "LoRA, rank 4, and the embeddings": (2e-2, 4, ["embedding"]),
    "everything, from new weights": (4e-3, 0, None),
}
SCORES = ("bits per character of Python", "of Shakespeare")
COLUMNS = ("trained", "gradients and Adam's state", "time of a step", *SCORES)


def add_options(parser: Parser) -> None:
    """The rate that is tried."""
    parser.add_argument("--rate", type=float, metavar="X", help=f"try this rate for every row, with seed {RATE_SEED}")


def texts() -> list[Corpus]:
    """Shakespeare's plays, and Python code."""
    parts = [[importlib.import_module(name) for name in part.split()] for part in MODULES]
    code = ("".join(Path(str(module.__file__)).read_text("utf8") for module in part) for part in parts)
    return [load_shakespeare(), Corpus(*code)]


def fit(model: GPT, data: TextTask, steps: int, peak: float, seed: int) -> Callable[[], float]:
    """Train on one thread -> a function that takes one more step with a rate of 0 -> its processor time in seconds."""
    train_steps(model, data, steps, seed, peak, batch=BATCH, warmup=steps // 20)
    batches, step = Batches(data, BATCH, seed), make_training_step(model, label_smoothing=0.0, threads=1)
    return lambda: seconds_of(partial(step, next(batches), 0.0), time.process_time)


def bits(model: GPT, data: TextTask) -> float:
    """Bits per character of windows that are evenly spread over the held-out text."""
    (batch,) = data.held_out_batches(sys.maxsize)
    chosen = np.linspace(0, len(batch.targets) - 1, WINDOWS).astype(int)
    return mean_loss(model, [type(batch)(*(ids[chosen] for ids in batch))], BATCH) / math.log(2)


def rows(options: Options) -> Rows:
    """All ways of every seed. Raises ValueError without the plays."""
    seeds = [RATE_SEED] if options.rate else options.seeds
    return {"ways": [row for seed in seeds for row in measure(seed, options.quick, options.rate)]}


def measure(seed: int, quick: bool, rate: float | None) -> list[dict[str, Any]]:
    """The rows of one seed; "memory" and "time" are shares of those of everything, and the scores are bits."""
    corpora = texts()
    tokenizer = CharacterTokenizer.train("".join(part for corpus in corpora for part in corpus))
    plays, library = (TextTask(corpus, tokenizer, SIZES["max_len"]) for corpus in corpora)
    model = GPT(gpt_config(tokenizer.vocab_size, **SIZES), seed=seed)
    new, total = model.state_dict(), model.num_parameters()
    fit(model, plays, PLAYS[quick], PEAK, seed)
    known, found, steps = model.state_dict(), [], []

    def keep(name: str, memory: float) -> None:
        scores = {"python": bits(model, library), "shakespeare": bits(model, plays)}
        found.append({"trained": name, "seed": seed, "memory": memory, "time": 0.0, **scores})
        tqdm.write(f"seed {seed}, {name}: {scores['python']:.3f} of Python, {scores['shakespeare']:.3f} of Shakespeare")

    keep("nothing", 0.0)
    for name, (peak, rank, others) in WAYS.items():
        model = GPT(model.config, seed=None)
        model.load_state_dict(new if "new" in name else known)
        if rank:
            add_lora(model, LINEARS, rank, rng=np.random.default_rng(seed))
        elif others is not None:
            model.freeze()
        for part in others or []:
            model.freeze(part, frozen=False)
        steps.append(fit(model, library, LIBRARY[quick], rate or peak, seed))
        keep(name, sum(p.data.size for p in model.parameters() if not p.frozen) / total)
    turns = np.array([[step() for step in steps] for _ in range(TURNS)])
    for row, seconds in zip(found[1:], np.median(turns, axis=0) / np.median(turns[:, 0]), strict=True):
        row["time"] = float(seconds)
    return found


def tables(rows: Rows) -> list[Table]:
    """A line for each way, over all seeds."""
    cells = []
    for name, found in by_name(rows["ways"], "trained").items():
        cost = [f"{np.mean([row['memory'] for row in found]):.1%}", spread([row["time"] for row in found], ".2f")]
        losses = [spread([row[text] for row in found], ".2f") for text in ("python", "shakespeare")]
        cells.append([name, *(cost if found[0]["time"] else ["", ""]), *losses])
    return [Table("", COLUMNS, cells)]


def findings(rows: Rows) -> list[str]:
    """What each way loses on the new text against training everything, and what it keeps of the old one."""
    groups = by_name(rows["ways"], "trained")
    every, lines = groups["everything"], []
    for name, found in groups.items():
        for text in ("python", "shakespeare") if name not in ("nothing", "everything") else ():
            after, before = ([row[text] for row in group] for group in (found, every))
            lines.append(compared(f"Bits of {text.capitalize()}, {name} against everything", after, before))
    return lines
