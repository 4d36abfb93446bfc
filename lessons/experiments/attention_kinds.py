"""What do tiled, windowed, linear and grouped attention cost in bits, and which kind finds a pair again?

Tiled attention is the same function as full attention. Windowed, linear and grouped attention are other functions,
which need less memory. Every model is trained as `minitransformer train` does it, with the options below.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from experiments.measuring.equal_terms import score_at
from experiments.report import Figure, Options, Rows, Table, draw_kinds, entries, legend_below, listed, unrolled
from minitransformer import GPT, TextTask, mean_loss
from minitransformer.data.tasks import Recall
from minitransformer.layers.since_2017.kv_cache import make_kv_caches
from minitransformer.plotting import BLUE, GREY, pyplot
from minitransformer.recipes import get_recipe
from minitransformer.recipes.options import TrainOptions
from minitransformer.recipes.text import WINDOWS, spread_windows
from minitransformer.system.progress import tqdm
from minitransformer.training import History

SECONDS = {True: 60, False: 420}  # at most, on two cores
THREADS = None

TEXT: dict[str, Any] = {  # options of `train shakespeare`
    **{"tokenizer": "characters", "length": 128, "d_model": 64, "num_layers": 2, "dropout": 0.0},
    **{"batch_size": 8, "warmup": 50, "peak": 5e-3},
}
TEXT_KINDS: dict[str, dict[str, Any]] = {
    "full": {},
    "tiled": {"attention": "tiled"},
    "windowed, 64": {"attention": "windowed", "window": 64},
    "grouped, 1 of 4": {"num_kv_heads": 1},
    "full, learned": {"positions": "learned"},  # to compare with linear attention, which has no rotary positions
    "linear, learned": {"positions": "learned", "attention": "linear"},
}
RECALL: dict[str, Any] = {"model": "gpt", "pairs": len(Recall.keys)}  # options of `train recall`
RECALL_KINDS: dict[str, dict[str, Any]] = {
    "full": {},
    "windowed, 16": {"attention": "windowed", "window": 16},
    "windowed, 8": {"attention": "windowed", "window": 8},
    "linear": {"attention": "linear"},
}
STEPS = {"text": {True: 40, False: 1000}, "recall": {True: 300, False: 1500}}
PAIRS = (2, 4, 8, 12, 16, 20, 26)  # of which one is asked
TESTED = {True: 50, False: 500}  # held-out sequences for each number of pairs


def rows(options: Options) -> Rows:
    """All models, trained and tested. Without Shakespeare's plays, there is only recall."""
    recall = recall_rows(options.quick, options.seed)
    try:
        data = get_recipe("shakespeare").data(options_of("shakespeare", options.seed, TEXT))
    except ValueError as error:
        tqdm.write(f"no bits per character: {error}")
        return {"text": [], "recall": recall}
    return {"text": text_rows(data, options.quick, options.seed), "recall": recall}


def options_of(task: str, seed: int, options: dict[str, Any]) -> TrainOptions:
    """The options of a task, as the command `train` with these options has them."""
    return dataclasses.replace(get_recipe(task).defaults, seed=seed, **options)


def train_as(task: str, options: TrainOptions, data: Any) -> tuple[Any, History]:
    """Train a model with the recipe of a task -> the model and its history."""
    recipe = get_recipe(task)
    model_class, config = recipe.model(options, data)
    model = model_class(config, seed=options.seed)
    return model, recipe.train(options, model, data)


def text_rows(data: TextTask, quick: bool, seed: int) -> list[dict[str, Any]]:
    """A GPT on Shakespeare with each kind of attention -> "kind", "bits" per character, "parameters" and so on.

    All have the same initial weights and batches, except for those with fewer heads of keys. They are compared with
    full attention with the same positions: "more" bits, and the "largest_difference" of the loss of a step.
    """
    rows: list[dict[str, Any]] = []
    full: dict[str, tuple[float, np.ndarray]] = {}  # by positions
    for kind, fields in TEXT_KINDS.items():
        options = options_of("shakespeare", seed, {**TEXT, **fields, "steps": STEPS["text"][quick]})
        model, history = train_as("shakespeare", options, data)
        batches = [spread_windows(data)] if quick else data.held_out_batches(WINDOWS)
        bits, losses = mean_loss(model, batches) / math.log(2), np.array(history.losses)
        full_bits, full_losses = full.setdefault(options.positions, (bits, losses))
        sizes = {"parameters": model.num_parameters(), "decoding_bytes": decoding_bytes(model)}
        largest = float(abs(losses - full_losses).max())
        rows.append({"kind": kind, "bits": bits, "more": bits - full_bits, "largest_difference": largest, **sizes})
        tqdm.write(f"{kind}: {bits:.3f} bits per character")
    return rows


def decoding_bytes(model: GPT) -> int:
    """What decoding keeps of one text of `max_len` tokens."""
    return sum(kv_cache.nbytes for kv_cache in make_kv_caches(model.blocks, 1, model.config.max_len))


def recall_rows(quick: bool, seed: int) -> list[dict[str, Any]]:
    """A GPT on key-value recall with each kind of attention -> "kind", and "exact_match" for each of PAIRS."""
    rows = []
    for kind, fields in RECALL_KINDS.items():
        options = options_of("recall", seed, {**RECALL, **fields, "steps": STEPS["recall"][quick]})
        model, _ = train_as("recall", options, get_recipe("recall").data(options))
        scores = [score_at(model, Recall(n), n + 1, [seed, 4, n], TESTED[quick]) for n in PAIRS]
        rows.append({"kind": kind, "pairs": PAIRS, "exact_match": scores})
        tqdm.write(f"{kind}: {rows[-1]['exact_match'][-1]:.2f} with {PAIRS[-1]} pairs")
    return rows


def tables(rows: Rows) -> list[Table]:
    """Bits per character, compared with full attention with the same positions, and right answers by pairs."""
    bits, pairs = rows["text"], rows["recall"][0]["pairs"]
    columns: dict[str, tuple] = {
        "attention": ("kind",),
        "bits per character": ("bits", ".3f"),
        "more than full": (lambda row: against_full(row, f"{row['more']:+.3f}".replace("+0.000", "0.000")),),
        "difference": (lambda row: against_full(row, f"{row['largest_difference']:.1g}"),),
        "parameters": ("parameters", ","),
        "KB": ("decoding_bytes", ".0f", 1e-3),
    }
    found = [listed(f"windows of {TEXT['length']} characters; KB are kept for decoding", bits, columns)] if bits else []
    columns = {"attention": ("kind",), **entries(pairs, "exact_match", ".2f")}
    return [*found, listed("right answers by pairs; a guess is right in 0.10", rows["recall"], columns)]


def against_full(row: dict[str, Any], text: str) -> str:
    """The text, which is left out where full attention would be compared with itself."""
    return "" if row["kind"].startswith("full") else text


def findings(rows: Rows) -> list[str]:
    """What each kind costs on text, and finds among the most pairs."""
    costs = [f"{row['kind']}: {row['more']:+.3f} bits per character." for row in rows["text"] if row["more"]]
    pairs = rows["recall"][0]["pairs"][-1]
    return [*costs, *(f"{row['kind']}: {row['exact_match'][-1]:.2f} with {pairs} pairs." for row in rows["recall"])]


def draw(rows: Rows) -> Figure:
    """The bits per character of each kind, and the exact match over the number of pairs."""
    text, recall = rows["text"], rows["recall"]
    figure, axes = pyplot().subplots(1, 2 if text else 1, figsize=(9.0 if text else 6.4, 3.8), squeeze=False)
    right = axes[0, -1]
    if text:
        left = axes[0, 0]
        bars = left.barh([row["kind"] for row in text], [row["bits"] for row in text], color=BLUE)
        left.bar_label(bars, [f"{row['bits']:.3f}" for row in text], padding=3)
        left.invert_yaxis()
        left.margins(x=0.15)
        left.set(title="Shakespeare", xlabel="bits per character of unseen plays", ylabel="attention")
    draw_kinds(right, unrolled(recall, "pairs", "exact_match"), "kind", "pairs", "exact_match", 100)
    right.axhline(10, color=GREY, linewidth=1, linestyle="--", label="a guess")
    right.set(title="Recall: which kind finds the pair?", xlabel="key-value pairs")
    right.set(ylabel="exact answers (%)", ylim=(0, 105))
    legend_below(figure, right, ncols=5)
    return figure
