"""How does the cost of a training step grow with its sizes, and what would 1.3 billion parameters cost?

One size of a small encoder-decoder grows at a time, from 16 sequences of 32 tokens. A step takes turns with a product
of two large matrices, in a process of its own on one thread; the least processor time of all turns counts. What a step
computes is known, see `arithmetic`. Its products should take as long as the large one does for as many operations; what
one of everything else costs is fitted, for all sizes together.

Then come GPTs as wide as GPT-3 XL, with as many layers as fit into 8, 14 and 20 GB. From the largest that ran follows,
by operations, a step of all its layers, and with the sum of `communication` a training on a thousand machines.
"""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.communication import NETWORKS, PAPER_SECONDS, PAPER_TOKENS, ring_seconds
from experiments.measuring import environment
from experiments.measuring.steps import LR, Size, make_training_step
from experiments.measuring.timing import resident_peak, seconds_of
from experiments.report import Figure, Options, Rows, Table, by_name, listed, name_ticks
from minitransformer import GPT, Transformer, TransformerConfig, gpt_config, named_config
from minitransformer.data.text import TextBatch
from minitransformer.functional.since_2017.tiled import TILE
from minitransformer.inspection import count_parameters, training_flops, training_memory
from minitransformer.inspection.memory_estimate import PROCESS
from minitransformer.plotting import BLUE, GREY, ORANGE, pyplot, wrap
from minitransformer.system.children import last_line
from minitransformer.system.devices import free_memory
from minitransformer.system.process import keep_freed_memory, limit_threads
from minitransformer.system.progress import tqdm

PER_ROW = 2.0
SECONDS = {True: 600, False: 1500}
THREADS = 1
DROPOUT = 0.1
BASE = Size("encoder-decoder", 1000, 128, 4, 512, 2, batch=16, length=32)
XL = Size("GPT", 50_257, 2048, 16, 8192, 24, batch=1, length=1024)  # GPT-3 XL has these layers and this width
# what grows: its values, and the power of it that the step's time should approach for large values
GROWTH = {
    "batch": ((2, 8, 32, 128), 1),
    "length": ((8, 32, 128, 256, 512, 1024), 2),
    "d_model": ((32, 128, 512, 1024, 2048), 2),
    "num_layers": ((1, 4, 16), 1),
}
BOUNDS = (8e9, 14e9, 20e9)  # bytes that a step of a GPT may take
SPARE = 3e9  # bytes that are left to others
LEAST = 2  # turns that count, after a first one
SIDE = 2048  # of the matrices in the large product
COSTS = ("softmaxes", "features", "parameters")
MACHINES, TOKENS = 1000, 20  # in the training that is predicted, and for each parameter (Hoffmann et al. 2022)
PAPER_LENGTH = 30  # tokens of a sentence


def rows(options: Options) -> Rows:
    """The step at each size of GROWTH and BOUNDS, what it computes, and the memory of the whole model."""
    jobs = [(what, value, grown(what, value)) for what, (values, _) in GROWTH.items() for value in values]
    jobs += [("GPT", size.num_layers, size) for size in map(largest, BOUNDS[: 1 if options.quick else None])]
    steps = []
    for what, value, size in tqdm(jobs, leave=False, unit="size"):
        row = {"what": what, "value": value, **arithmetic(size), "estimate": step_memory(size)}
        short = what == "GPT" and row["estimate"] + SPARE > (free_memory() or 0)
        steps.append(row if short else {**row, **in_own_process(size, options.seconds)})
    steps.append({"what": "GPT", "value": XL.num_layers, **arithmetic(XL), "estimate": step_memory(XL)})
    return {"steps": steps, "memory": memories()}


def grown(what: str, value: int) -> Size:
    """BASE with one field changed; d_ff stays 4 d_model, as in the paper, and each head keeps 32 features."""
    changes: dict[str, Any] = {what: value}
    if what == "d_model":
        changes |= {"d_ff": 4 * value, "num_heads": value // 32}
    return BASE._replace(**changes)


def largest(bound: float) -> Size:
    """XL with as many layers as fit."""
    sizes = (XL._replace(num_layers=count) for count in range(1, XL.num_layers))
    return [size for size in sizes if step_memory(size) < bound][-1]


def kind_and_config(size: Size) -> tuple[Any, TransformerConfig]:
    """The class of a size's model, and its configuration."""
    config = size.config(DROPOUT)
    if size.name != XL.name:
        return Transformer, config
    fields = ("d_model", "num_heads", "d_ff", "num_layers", "dropout", "max_len")
    return GPT, gpt_config(size.vocab_size, **{name: getattr(config, name) for name in fields})


def arithmetic(size: Size) -> dict[str, float]:
    """What a step computes, forward and backward -> {part: how many}.

    An encoder-decoder has 3 attentions and 2 feed-forward networks for each of its N layers, a GPT one of each.

        products    operations: `training_flops` derives those of an encoder-decoder. A GPT has 6 for each token and
                    entry of a matrix: 4 C^2 of an attention, 2 C F of a network, C V. Its attention is in tiles: a
                    query meets (T + n) / 2 keys in the mean, n queries being in a tile, in 2 products of C
                    multiply-adds forward and 5 backward, where the scores are made again; one of these has a column
                    more for each head
        softmaxes   exponentials: of each head and pair of query and key, twice in tiles, and of each logit
        features    numbers in the other arrays of a layer: 6 C for a token in an attention, 2 C + F in a network
        parameters  numbers that clipping and Adam read and change
    """
    kind, config = kind_and_config(size)
    C, F, T, tokens = size.d_model, size.d_ff, size.length, size.batch * size.length
    if kind is Transformer:
        attentions, networks, exponentials = 3 * size.num_layers, 2 * size.num_layers, T
        products = sum(training_flops(config, tokens, tokens, T, T).values())
    else:
        attentions, networks, exponentials = size.num_layers, size.num_layers, T + TILE[0]
        matrices = attentions * 4 * C**2 + networks * 2 * C * F + C * size.vocab_size
        products = tokens * (6 * matrices + attentions * (T + TILE[0]) * (7 * C + size.num_heads))
    return {
        "products": products,
        "softmaxes": tokens * (attentions * size.num_heads * exponentials + size.vocab_size),
        "features": tokens * (attentions * 6 * C + networks * (2 * C + F)),
        "parameters": count_parameters(config, kind),
    }


def step_memory(size: Size, **how: Any) -> int:
    """The bytes of a step by the library's estimate, without those of a checkpoint."""
    kind, config = kind_and_config(size)
    found = training_memory(config, size.batch, [size.length] * 2, kind, **how)
    return found.weights + found.gradients + found.moments + found.kept + found.work + PROCESS


def memories() -> list[dict[str, Any]]:
    """The bytes of a step of XL on each machine, with what makes them fewer."""
    ways: dict[str, dict[str, Any]] = {
        "as it is": {},
        "layers computed again in backward": {"recompute": True},
        "Adam's means shared": {"shards": MACHINES},
        "both": {"recompute": True, "shards": MACHINES},
    }
    return [{"way": way, "bytes": step_memory(XL, **how)} for way, how in ways.items()]


def in_own_process(size: Size, seconds: float) -> dict[str, float]:
    """What `measure` finds in a new process."""
    code = f"import json\nfrom experiments.step_growth import *\nprint(json.dumps(measure({size!r}, {seconds!r})))"
    return json.loads(last_line([sys.executable, "-c", code], env=environment()))


def measure(size: Size, seconds: float) -> dict[str, float]:
    """A step of `size` and the large product, in turns -> the seconds of each, and the bytes that steps take."""
    keep_freed_memory()
    (kind, config), rng = kind_and_config(size), np.random.default_rng(0)
    a, product = (np.ones((SIDE, SIDE), np.float32) for _ in range(2))
    with limit_threads(THREADS):
        np.matmul(a, a, out=product)
        before = resident_peak()
        step, ids = make_training_step(kind(config)), rng.integers(3, size.vocab_size, (2, size.batch, size.length))
        batch = TextBatch(*ids) if kind is GPT else size.make_batch()
        calls = {"seconds": lambda: step(batch, LR), "product": lambda: np.matmul(a, a, out=product)}
        times: dict[str, list[float]] = {name: [] for name in calls}
        while len(times["seconds"]) <= LEAST or sum(times["seconds"]) < seconds:
            for name, call in calls.items():
                times[name].append(seconds_of(call, time.process_time))
    return {**{name: min(found[1:]) for name, found in times.items()}, "bytes": resident_peak() - before}


def alone(row: Mapping[str, Any]) -> float:
    """The seconds of a step's products, if each operation takes as long as in the large one."""
    return row["products"] * row["product"] / (2 * SIDE**3)


def fit(steps: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The seconds that one of each part costs: those with the smallest squares of relative errors."""
    measured, products = np.array([[row["seconds"], alone(row)] for row in steps]).T
    counts = np.array([[row[part] for part in COSTS] for row in steps])
    scale = counts.max(axis=0)
    costs = np.linalg.lstsq(counts / measured[:, None] / scale, 1 - products / measured, rcond=None)[0] / scale
    return dict(zip(COSTS, costs.tolist(), strict=True))


def modelled(steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """`steps` with the seconds by arithmetic: its products at the rate of the large one, and the fitted costs."""
    costs = fit([row for row in steps if row["what"] != "GPT"])
    found, usual = [], float(np.median([row["product"] for row in steps if "product" in row]))
    for row in steps:
        rest = sum(cost * row[part] for part, cost in costs.items())
        found.append({**row, "modelled": alone({"product": usual, **row}) + rest})
    return found


def training(steps: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A training of XL on MACHINES, each with one sequence in a step, for two machines and two networks.

    A core takes as long for an operation as in the largest step that ran, and a P100 as in a step of the paper's big
    model. At best, the sum is hidden behind the backward pass, two thirds of the work.
    """
    *parts, whole = (row for row in steps if row["what"] == "GPT")
    tokens = PAPER_TOKENS / 2
    flops = training_flops(named_config("big", 37_000), tokens, tokens, PAPER_LENGTH, PAPER_LENGTH)
    speeds = [("one core", row["products"] / row["seconds"]) for row in parts if "seconds" in row][-1:]
    speeds.append(("P100", sum(flops.values()) / PAPER_SECONDS["big"] / 8))
    count = TOKENS * whole["parameters"] / (MACHINES * XL.batch * XL.length)  # of steps
    found = []
    for machine, speed in speeds:
        for network in NETWORKS:
            work = whole["products"] / speed
            talk = ring_seconds(MACHINES, 4 * whole["parameters"], network)
            hidden = work / 3 + max(2 * work / 3, talk)
            row = {"machine": machine, "network": network.name, "speed": speed, "work": work, "sum": talk}
            days = {"days": count * (work + talk) / 86400, "days hidden": count * hidden / 86400}
            found.append({**row, **days, "share": work / (work + talk)})
    return found


def tables(rows: Rows) -> list[Table]:
    """Each size; the fitted costs; the GPTs; the training of the whole one; its memory."""
    steps = modelled(rows["steps"])
    for row in steps:
        row |= {"alone": alone(row), "share": alone(row) / row["seconds"]} if "seconds" in row else {}
    growth, gpts = ([row for row in steps if (row["what"] == "GPT") is gpt] for gpt in (False, True))
    costs = [{"part": part, "seconds": cost} for part, cost in fit(growth).items()]
    each = {
        **{"size": ("what",), "value": ("value",), "step (ms)": ("seconds", ",.1f", 1e3)},
        **{"products alone": ("alone", ",.1f", 1e3), "share": ("share", ".2f")},
        **{"by arithmetic": ("modelled", ",.1f", 1e3), "memory (MB)": ("bytes", ",.0f", 1e-6)},
        "estimate": ("estimate", ",.0f", 1e-6),
    }
    large = {
        **{"layers": ("value",), "parameters": ("parameters", ",.0f"), "10^12 operations": ("products", ".2f", 1e-12)},
        **{"memory (GB)": ("bytes", ".1f", 1e-9), "estimate": ("estimate", ".1f", 1e-9)},
        **{"step (s)": ("seconds", ".1f"), "by arithmetic": ("modelled", ".1f"), "products' share": ("share", ".2f")},
    }
    predicted = {
        **{"machine": ("machine",), "network": ("network",), "work (s)": ("work", ".3g"), "sum (s)": ("sum", ".3g")},
        **{"work's share": ("share", ".2f"), "days": ("days", ".1f"), "with the sum hidden": ("days hidden", ".1f")},
    }
    return [
        listed("one size grows", growth, each),
        listed("fitted", costs, {"one of": ("part",), "takes (ns)": ("seconds", ".1f", 1e9)}),
        listed("GPTs 2,048 wide, one sequence of 1,024 tokens", gpts, large),
        listed(f"the whole on {MACHINES:,} machines", training(rows["steps"]), predicted),
        listed("memory of the whole", rows["memory"], {"a step": ("way",), "GB": ("bytes", ".1f", 1e-9)}),
    ]


def findings(rows: Rows) -> list[str]:
    """The power of each size between its last two values, and how well small steps predict large ones."""
    found, growth = [], by_name(rows["steps"], "what")
    for what in [what for what in GROWTH if what in growth]:
        (n, before), (m, after) = ((row["value"], row["seconds"]) for row in growth[what][-2:])
        power, expected = np.log(after / before) / np.log(m / n), GROWTH[what][1]
        found.append(f"From {what} = {n} to {m} the time grows with the power {power:.2f}; in the end: {expected}.")
    errors = [row["modelled"] / row["seconds"] for row in modelled(rows["steps"]) if "seconds" in row]
    found.append(f"Arithmetic with fitted costs gives {min(errors):.2f} to {max(errors):.2f} of the measured times.")
    return found


def draw(rows: Rows) -> Figure:
    """Step time and peak memory over each size that grows, measured and by arithmetic, both axes logarithmic."""
    growth = by_name([row for row in modelled(rows["steps"]) if row["what"] != "GPT"], "what")
    width = 2.7 * len(growth)
    figure, axes = pyplot().subplots(2, len(growth), figsize=(width, 4.9), sharex="col", sharey="row", squeeze=False)
    for column, (what, steps) in enumerate(growth.items()):
        values = [row["value"] for row in steps]
        seconds, memory = axes[:, column]
        seconds.plot(values, [1e3 * alone(row) for row in steps], ":", color=GREY, label="products alone")
        seconds.plot(values, [1e3 * row["modelled"] for row in steps], "--", color=ORANGE, label="by arithmetic")
        memory.plot(values, [1e-6 * row["estimate"] for row in steps], "--", color=ORANGE, label="estimate")
        for axis, key, unit in ((seconds, "seconds", 1e3), (memory, "bytes", 1e-6)):
            axis.plot(values, [unit * row[key] for row in steps], "o", color=BLUE, markersize=4, label="measured")
            name_ticks(axis, values)
        memory.set_xlabel(what)
    for axis, label in zip(axes[:, 0], ("training step (ms)", "peak memory (MB)"), strict=True):
        axis.set_ylabel(label)
        axis.legend()
    figure.suptitle(wrap("A training step on one core as one size grows: measured, and by arithmetic", width))
    return figure
