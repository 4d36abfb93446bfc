"""What does a GPT lose whose layers are one layer, as in ALBERT?

Each model writes characters of Python's documentation, for as many steps of 8 windows. The differences from the first
are paired by the seed of weights and batches.
"""

import statistics
from typing import Any

from experiments.measuring.paired import collect, compared, grouped, plus_minus, train_steps
from experiments.report import Options, Rows, Table
from minitransformer.data import TextTask, load_python_topics
from minitransformer.evaluation import mean_loss
from minitransformer.models import GPT, gpt_config
from minitransformer.system.process import keep_freed_memory, limit_threads
from minitransformer.tokenizers import CharacterTokenizer

SECONDS = {True: 60, False: 600}
SEEDS, STEPS = {True: 2, False: 3}, {True: 40, False: 1000}
BATCH, PEAK, LENGTH = 8, 4e-3, 64
MODELS: dict[str, dict[str, Any]] = {
    "4 layers": {"d_model": 64},
    "1 layer, 4 times": {"d_model": 64, "share_layers": True},
    "1 layer, 4 times, d_model 120": {"d_model": 120, "share_layers": True},
}


def rows(options: Options) -> Rows:
    """Every model and seed, saved one by one: start again to go on after an interruption."""
    keep_freed_memory()
    path = options.runs / "experiments" / f"sharing{'-quick' if options.quick else ''}.jsonl"
    todo = [(name, options.seed + i, STEPS[options.quick]) for name in MODELS for i in range(SEEDS[options.quick])]
    found = collect(path, todo, train_and_test)
    path.unlink()
    return {"models": found}


def train_and_test(name: str, seed: int, steps: int) -> dict[str, Any]:
    """The parameters, the loss on the held-out text, and the seconds of processor time of one training."""
    corpus, fields = load_python_topics(), MODELS[name]
    data = TextTask(corpus, CharacterTokenizer.train(corpus.train + corpus.held_out), LENGTH)
    sizes = {"num_heads": 4, "num_layers": 4, "d_ff": 4 * fields["d_model"], "max_len": LENGTH, "positions": "rope"}
    model = GPT(gpt_config(data.tokenizer.vocab_size, **sizes, **fields, dropout=0.0), seed=seed)
    trained = train_steps(model, data, steps, seed, PEAK, batch=BATCH, warmup=100)
    with limit_threads(1):
        loss = mean_loss(model, list(data.held_out_batches(64)))
    return {"model": name, "seed": seed, "parameters": model.num_parameters(), **trained, "loss": loss}


def tables(rows: Rows) -> list[Table]:
    """One line for each model."""
    groups, cells = grouped(rows["models"], "model"), []
    first, *_ = groups.values()
    for (name,), found in groups.items():
        more = [row["loss"] - base["loss"] for row, base in zip(found, first, strict=True)]
        parameters, base = found[0]["parameters"], first[0]["parameters"]
        loss, seconds = (statistics.fmean(row[key] for row in found) for key in ("loss", "seconds"))
        difference = "" if found is first else plus_minus(more, "+.3f")
        cells.append(
            [name, f"{parameters:,}", f"{parameters / base:.0%}", f"{loss:.3f}", difference, f"{seconds:.0f} s"]
        )
    columns = ["model", "parameters", "of the first", "nats a character", "more than the first", "CPU time"]
    return [Table("", columns, cells)]


def findings(rows: Rows) -> list[str]:
    """Whether one layer loses anything, with as few parameters and with about as many."""
    losses = {name: [row["loss"] for row in found] for (name,), found in grouped(rows["models"], "model").items()}
    (first, base), *others = losses.items()
    return [compared(f"Loss of {name} against {first}", found, base, ".3f") for name, found in others]
