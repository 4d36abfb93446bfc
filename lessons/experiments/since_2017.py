"""What is each change since 2017 worth: RoPE, pre-norm, RMSNorm, SwiGLU, grouped keys, and all of them together?

Each row changes one thing of the paper's block, in a GPT that reads the source of Python's standard library by
character (scaling_law.py); "modern" changes nearly all. Row and base are paired by seed. The learning rate is chosen
with a seed of its own and half of the steps; rows in UNTUNED take that of modern or of the base. Equal seconds are a
second training, with its own schedule and as many steps as take the time of the base, where a step costs less or more.
With `--layers 12` there are fewer rows; with 3, positions are tested beyond the length of training.
"""

import dataclasses
import functools
import statistics
import time
from typing import Any

import numpy as np

from experiments import scaling_law
from experiments.measuring import paired
from experiments.measuring.paired import collect, interval, judged
from experiments.measuring.timing import seconds_of
from experiments.report import Figure, Options, Parser, Rows, Table, by_name, pivot
from minitransformer import GPT, Adam, CrossEntropyLoss, Muon, TransformerConfig, Windowed, cosine, mean_loss
from minitransformer.data.text import TextBatch
from minitransformer.decoding import log_softmax
from minitransformer.plotting import COLORS, GREY, pyplot
from minitransformer.system.process import limit_threads
from minitransformer.training import step_with
from minitransformer.training.parallel.threads import DataParallel

SECONDS = {True: 60, False: 1800}
WIDTH, STEPS, QUICK_STEPS = 32, {3: 400, 12: 240}, 30
RATES = (0.002, 0.004, 0.008, 0.016, 0.032)  # and, with 12 layers, 0.0005 and 0.001
SEEDS, TUNING_SEED = {True: 2, False: 5}, 100
BATCH, LENGTH, LONG, BLOCK = 8, 64, 256, 16  # windows; characters of training, of the longest test, and of a mean
TESTED = {LENGTH: 400, LONG: 160}  # held-out windows
ROUNDS, ALIKE = 40, 0.03  # of timing; costs that it cannot tell apart
LLAMA = {"positions": "rope", "norm": "pre", "normalization": "rms", "bias": False, "activation": "swiglu"}
MODERN: dict[str, Any] = {**LLAMA, "num_kv_heads": 2}
BASE = "2017"
CHANGES: dict[str, dict[str, Any]] = {  # what each row changes, in fields of TransformerConfig
    BASE: {},
    "RoPE": {"positions": "rope"},
    "pre-norm": {"norm": "pre"},
    "RMSNorm": {"normalization": "rms"},
    "no biases": {"bias": False},
    "SwiGLU": {"activation": "swiglu"},
    "grouped keys": {"num_kv_heads": 2},
    "QK-norm": {"qk_norm": True},
    "unscaled embeddings": {"scale_embeddings": False},
    "Muon": {},  # the optimizer, in all rows with its name
    "modern": MODERN,
    "modern, sinusoids": {**MODERN, "positions": "sinusoidal"},
    "modern, post-norm": {**MODERN, "norm": "post"},
    "modern, unscaled embeddings": {**MODERN, "scale_embeddings": False},
    "modern and Muon": MODERN,
    "learned": {"positions": "learned"},
    "ALiBi": {"positions": "alibi"},
    "none": {"positions": "none"},
    "2017, long warm-up": {},
}
POSITIONS = ("learned", "ALiBi", "none")  # rows for the long windows alone
ONCE = (BASE, "modern, sinusoids", "modern, unscaled embeddings", *POSITIONS)  # not at equal seconds
TRIED = ("QK-norm", "2017, long warm-up")  # only tuned, with 12 layers
DEEP = (BASE, "RoPE", "pre-norm", "modern", "modern, sinusoids", "modern, post-norm")  # rows for 12 layers
UNTUNED = ("RoPE", "RMSNorm", "no biases", "SwiGLU", "grouped keys", "modern, sinusoids", *POSITIONS)
WINDOWED = {"RoPE, window": (LENGTH, 0), "RoPE, window, 4 sinks": (LENGTH - 4, 4)}  # with the same number of keys
COLUMNS = ("row", "rate", "equal steps", "cost of a step", "equal seconds", "parameters", "bytes cached")


def add_options(parser: Parser) -> None:
    """How deep the models are."""
    parser.add_argument("--layers", type=int, choices=(3, 12), default=3, help="3 (the default) or 12")


def windows(length: int) -> TextBatch:
    """Held-out windows: short ones evenly spaced, and long ones a BLOCK apart, so that each place has the same text."""
    text = scaling_law.load()[0].held_out
    spacing = (len(text) - length - 1) // TESTED[length] if length == LENGTH else BLOCK
    ids = text[np.arange(TESTED[length])[:, None] * spacing + np.arange(length + 1)]
    return TextBatch(ids[:, :-1], ids[:, 1:])


def config_of(name: str, layers: int, vocab_size: int) -> TransformerConfig:
    """The configuration of a row."""
    d_ff = 8 * WIDTH // 3 if "activation" in CHANGES[name] else 4 * WIDTH  # a gate is a third matrix
    sizes = {"d_model": WIDTH, "num_heads": 4, "d_ff": d_ff, "num_layers": layers, "max_len": LONG, "dropout": 0.0}
    return TransformerConfig(vocab_size, **{**sizes, **CHANGES[name]})


def trainer(name: str, model: GPT) -> tuple[DataParallel, Adam]:
    """What takes the gradient, and the optimizer: Muon if the row's name has it, or Adam."""
    return DataParallel(model, CrossEntropyLoss(), 1), Muon(model) if "Muon" in name else Adam(model.parameters())


def train(name: str, rate: float, steps: int, seed: int, layers: int) -> dict[str, Any]:
    """Train one row -> its losses in nats per character, on short windows and by place in long ones."""
    task, start, rng = scaling_law.load()[0], time.process_time(), np.random.default_rng([seed, 17])
    model = GPT(config_of(name, layers, task.tokenizer.vocab_size), seed=seed)
    about: dict[str, Any] = {"row": name, "rate": rate, "steps": steps, "seed": seed}
    with limit_threads(1):
        gradients, optimizer = trainer(name, model)
        for i in range(1, steps + 1):
            optimizer.lr = cosine(i, steps, rate, steps // 2 if "warm-up" in name else max(10, steps // 20))
            step_with(gradients, optimizer, task.batch(rng, BATCH))
        about["loss"] = mean_loss(model, [windows(LENGTH)], 64)
        if layers == 3 and seed < TUNING_SEED and name in (BASE, "RoPE", *POSITIONS):
            about["places"] = {name: losses_by_place(model)}
            for other, (near, first) in WINDOWED.items() if name == "RoPE" else ():
                config = dataclasses.replace(model.config, attention=Windowed(near, first))
                same = GPT(config, seed=None)
                same.load_state_dict(model.state_dict())
                about["places"][other] = losses_by_place(same)
    return {**about, "seconds": time.process_time() - start}


def losses_by_place(model: GPT) -> list[float]:
    """The mean loss of each BLOCK places of long windows, in nats per character."""
    batch, losses = windows(LONG), []
    for i in range(0, len(batch.ids), 20):
        log_p = log_softmax(model(batch.ids[i : i + 20]))
        losses.append(-np.take_along_axis(log_p, batch.targets[i : i + 20, :, None], -1)[..., 0])
    return np.concatenate(losses).mean(axis=0, dtype=float).reshape(-1, BLOCK).mean(axis=1).round(5).tolist()


def cost(name: str, layers: int) -> dict[str, Any]:
    """The CPU time of a step over that of the base, timed in turn."""
    task, rng, times = scaling_law.load()[0], np.random.default_rng(0), np.empty((ROUNDS, 2))
    with limit_threads(1):
        trainers = [trainer(each, GPT(config_of(each, layers, task.tokenizer.vocab_size))) for each in (name, BASE)]
        for i, j in np.ndindex(times.shape):
            take = functools.partial(step_with, *trainers[j], task.batch(rng, BATCH))
            times[i, j] = seconds_of(take, time.process_time)
    return {"row": name, "cost": float(np.divide(*np.median(times, axis=0)))}


def rows(options: Options) -> Rows:
    """Tuning, costs, and the runs of equal steps and of equal seconds, saved one by one in the folder of runs."""
    layers, quick = options.layers, options.quick
    work = functools.partial(train, layers=layers)
    names = DEEP[:4] if quick else DEEP if layers == 12 else list(CHANGES)[:-1]
    steps = QUICK_STEPS if quick else STEPS[layers]
    path = options.unfinished
    rates = RATES[1:2] if quick else RATES if layers == 3 else (0.0005, 0.001, *RATES)
    rated = [n for n in (*names, *(TRIED if names == DEEP else ())) if n not in UNTUNED]
    tuning = collect(path, [(n, rate, steps // 2, TUNING_SEED) for n in rated for rate in rates], work)
    tuned = {name: min(runs, key=lambda run: run["loss"])["rate"] for name, runs in by_name(tuning, "row").items()}
    best = {n: tuned[n if n in tuned else "modern" if n.startswith("modern") else BASE] for n in names}
    seeds = options.seeds
    costs = collect(path, [(name, layers) for name in names], cost)
    equal_steps = collect(path, [(name, best[name], steps, seed) for seed in seeds for name in names], work)
    count = {row["row"]: round(steps / row["cost"]) for row in costs if abs(row["cost"] - 1) > ALIKE}
    todo = [(n, best[n], count[n], seed) for seed in seeds for n in count if n not in ONCE]
    found = {"tuning": tuning, "costs": costs, "steps": equal_steps, "seconds": collect(path, todo, work)}
    return {"about": [{"layers": layers, "text": scaling_law.load()[0].sha256[:16], "steps": steps}], **found}


def differences(runs: list[dict[str, Any]], bases: list[dict[str, Any]], base: str) -> dict[str, tuple[float, float]]:
    """{row: (mean difference of its loss from the base's, half of the 95 % interval)}, paired by seed."""
    return {name: interval(found) for name, found in paired.differences(runs, "loss", "row", base, bases).items()}


def shown(difference: tuple[float, float] | None) -> str:
    """Such as "-0.201 ± 0.012"."""
    return f"{difference[0]:+.3f} ± {difference[1]:.3f}" if difference else ""


def tables(rows: Rows) -> list[Table]:
    """All changes against the base, those left out of modern against modern, the tuning, and the places."""
    layers, costs = rows["about"][0]["layers"], {row["row"]: f"{row['cost']:.2f}" for row in rows["costs"]}
    steps, seconds = (differences(rows[terms], rows["steps"], BASE) for terms in ("steps", "seconds"))
    cells = []
    for name, runs in by_name(rows["steps"], "row").items():
        config = config_of(name, layers, 99)
        cached = 8 * layers * (config.num_kv_heads or config.num_heads) * config.d_model // config.num_heads
        loss = shown(steps.get(name)) or f"{statistics.fmean(run['loss'] for run in runs):.3f}"
        sizes = [f"{GPT(config, seed=None).num_parameters():,}", f"{cached:,}"]
        cells.append([name, f"{runs[0]['rate']:g}", loss, costs[name], shown(seconds.get(name)), *sizes])
    of_modern = [run for run in rows["steps"] if run["row"].startswith("modern")]
    left_out = [[name, shown(found)] for name, found in differences(of_modern, of_modern, "modern").items()]
    tuning = [{**run, "rate": f"{run['rate']:g}"} for run in rows["tuning"]]
    means = [[name, *map(shown, found)] for name, found in beyond(rows).items()]
    spans = [f"{i} to {i + LENGTH - 1}" for i in range(0, LONG, LENGTH)]
    return [
        Table("loss of the base, and differences from it", COLUMNS, cells),
        Table("differences from modern, at equal steps", ["row", "difference"], left_out),
        pivot("tuning: the loss at each rate", tuning, "row", "rate", "loss", ".3f"),
        Table("loss by place, minus that of RoPE with a window", ["positions", *spans], means),
    ]


def placed(rows: Rows) -> dict[str, np.ndarray]:
    """{positions: the losses (seeds, LONG / BLOCK) by place}."""
    runs = [run["places"] for run in rows["steps"] if "places" in run]
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: np.array([run[name] for run in runs if name in run]) for name in names}


def beyond(rows: Rows) -> dict[str, list[tuple[float, float]]]:
    """{positions: the differences from RoPE with a window, at each LENGTH places}; these have the same text."""
    found = placed(rows)
    window = found.pop("RoPE, window", np.empty(0))
    parts = {name: (losses - window).reshape(len(losses), -1, LENGTH // BLOCK) for name, losses in found.items()}
    return {name: [interval(part) for part in each.mean(axis=2).T.tolist()] for name, each in parts.items()}


def told(found: dict[str, tuple[float, float]]) -> str:
    """Differences by verdict."""
    groups: dict[str, list[str]] = {}
    for name, difference in found.items():
        groups.setdefault(judged(*difference), []).append(f"{name} ({shown(difference)})")
    return "; ".join(f"{word}: {', '.join(names)}" for word, names in sorted(groups.items()))


def findings(rows: Rows) -> list[str]:
    """What is better and worse, what RoPE is worth of it, and what happens beyond the length of training."""
    terms = {terms: differences(rows[terms], rows["steps"], BASE) for terms in ("steps", "seconds") if rows[terms]}
    lines = [f"At equal {name}, against {BASE}, {told(found)}." for name, found in terms.items()]
    alone = differences(rows["steps"], rows["steps"], "modern")["RoPE"]
    lines.append(f"RoPE alone, with all else as in {BASE}, is {judged(*alone)} against modern ({shown(alone)}).")
    if last := {name: found[-1] for name, found in beyond(rows).items()}:
        lines.append(f"At places {LONG - LENGTH} to {LONG - 1}, against RoPE with a window, {told(last)}.")
    return lines


def draw(rows: Rows) -> Figure:
    """The differences with their intervals, and the losses by place."""
    figure, axes = pyplot().subplots(1, 1 + bool(placed(rows)), figsize=(10.5, 4.8), squeeze=False)
    left, names = axes[0, 0], list(differences(rows["steps"], rows["steps"], BASE))
    for terms, shift, color in (("steps", 0.14, COLORS[0]), ("seconds", -0.14, COLORS[1])):
        for name, (mean, half) in differences(rows[terms], rows["steps"], BASE).items():
            y = shift - names.index(name)
            left.hlines(y, mean - half, mean + half, color=color)
            left.plot(mean, y, "o", color=color, markersize=4)
    left.axvline(0, color=GREY, linewidth=1, linestyle="--")
    left.set_yticks([-i for i in range(len(names))], names)
    left.set(xlabel=f"loss minus that of {BASE} (nats per character)", ylabel="what is changed")
    left.set_title(f"{rows['about'][0]['layers']} layers (blue: equal steps, orange: equal seconds)")
    for right in axes[0, 1:]:
        for (name, losses), color in zip(placed(rows).items(), COLORS, strict=False):
            places = np.arange(BLOCK / 2, LONG, BLOCK)
            right.plot(places, losses.mean(axis=0), "o-", color=color, markersize=3, label=name)
        right.set(title=f"Trained on {LENGTH} characters", xlabel="place (characters)", ylabel="nats per character")
        right.legend(fontsize=8)
    return figure
