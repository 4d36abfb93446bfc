"""What does a GPT lose whose layers are one layer, as in ALBERT?

Each model writes characters of Python's documentation, for as many steps of 8 windows. The differences from the first
are paired by the seed of weights and batches.
"""

import statistics
from typing import Any

from experiments.measuring.paired import collect, compared, differences, plus_minus, train_steps
from experiments.report import Options, Rows, Table, by_name
from minitransformer import GPT, CharacterTokenizer, TextTask, gpt_config, load_python_topics, mean_loss

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
    todo = [(name, seed, STEPS[options.quick]) for name in MODELS for seed in options.seeds]
    return {"models": collect(options.unfinished, todo, train_and_test)}


def train_and_test(name: str, seed: int, steps: int) -> dict[str, Any]:
    """The parameters, the loss on the held-out text, and the seconds of processor time of one training."""
    corpus, fields = load_python_topics(), MODELS[name]
    data = TextTask(corpus, CharacterTokenizer.train(corpus.train + corpus.held_out), LENGTH)
    sizes = {"num_heads": 4, "num_layers": 4, "d_ff": 4 * fields["d_model"], "max_len": LENGTH, "positions": "rope"}
    model = GPT(gpt_config(data.tokenizer.vocab_size, **sizes, **fields, dropout=0.0), seed=seed)
    trained = train_steps(model, data, steps, seed, PEAK, batch=BATCH, warmup=100)
    loss = mean_loss(model, list(data.held_out_batches(64)))
    return {"model": name, "seed": seed, "parameters": model.num_parameters(), **trained, "loss": loss}


def tables(rows: Rows) -> list[Table]:
    """One line for each model."""
    more, cells = differences(rows["models"], "loss", "model", next(iter(MODELS))), []
    for name, found in by_name(rows["models"], "model").items():
        parameters, base = found[0]["parameters"], rows["models"][0]["parameters"]
        loss, seconds = (statistics.fmean(row[key] for row in found) for key in ("loss", "seconds"))
        numbers = [f"{parameters:,}", f"{parameters / base:.0%}", f"{loss:.3f}"]
        cells.append([name, *numbers, plus_minus(more[name], "+.3f") if name in more else "", f"{seconds:.0f} s"])
    columns = ["model", "parameters", "of the first", "nats a character", "more than the first", "CPU time"]
    return [Table("", columns, cells)]


def findings(rows: Rows) -> list[str]:
    """Whether one layer loses anything, with as few parameters and with about as many."""
    losses = {name: [row["loss"] for row in found] for name, found in by_name(rows["models"], "model").items()}
    (first, base), *others = losses.items()
    return [compared(f"Loss of {name} against {first}", found, base, ".3f") for name, found in others]
