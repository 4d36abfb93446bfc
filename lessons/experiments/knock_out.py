"""Which heads does a trained model need, and can one tell without taking them away?

Every head of three small models is knocked out, alone and with each other head: its output becomes 0 (zero ablation),
or its mean over the test (mean ablation), which leaves the rest of the model what it usually gets. The cost is what the
loss rises by. Against it stands what can be read from one pass: how sharp the head's map is (the mean of its largest
weight), and the exact gradient |dLoss/ds|, where s multiplies the head's output, for each sequence's loss or for the
mean loss. Michel et al. (2019, "Are Sixteen Heads Really Better than One?") found that most heads can go, and rank them
by the first of these gradients; Voita et al. (2019) rank them by confidence, which is the sharpness. The second
gradient is the sum of W dLoss/dW over the head's rows of W^O: at a minimum of the loss it is 0, whatever the head does.
"""

import itertools
from typing import Any

import numpy as np

from experiments.attention_kinds import options_of, train_as
from experiments.measuring.paired import interval, judged, plus_minus
from experiments.measuring.ranks import spearman
from experiments.report import Figure, Options, Rows, Table, by_name, legend_below
from minitransformer import to_host
from minitransformer.decoding.generate import log_softmax
from minitransformer.inspection import Change, heads, intervene
from minitransformer.layers.losses import loss_for
from minitransformer.plotting import COLORS, pyplot
from minitransformer.recipes import get_recipe
from minitransformer.recipes.text import spread_windows
from minitransformer.system.progress import tqdm

SECONDS = {True: 40, False: 600}
SEEDS = {True: 2, False: 3}
TASKS: dict[str, dict[str, Any]] = {  # options of `train`
    "reverse": {"factor": 0.3, "cooldown": 0.0},
    "translation": {"d_model": 64, "vocab_size": 1000, "dropout": 0.0},
    "text": {"tokenizer": "characters", "d_model": 64, "num_layers": 3, "length": 64, "batch_size": 16},
}
TITLES = {"reverse": "reverse a word", "translation": "German to English", "text": "GPT on characters"}
STEPS = {"reverse": {True: 60, False: 1000}, "translation": {True: 15, False: 400}, "text": {True: 40, False: 600}}
TESTED = {True: 6, False: 48}  # sequences, twice as many of them words
LONGEST = 20  # tokens of a sentence
PAIRS_OF_RANKS = (("weight", "mean"), ("gradient", "mean"), ("net", "mean"), ("gradient", "zero"), ("zero", "mean"))
ONE_PASS = ("gradient", "weight", "net")
ABLATIONS = ("zero", "mean")
COLUMNS = (
    *("model", "heads", "loss", "exact", "right tokens", "ablation"),
    *("can go alone", "right, exact without the worst", "can go together", "pairs that hide a head"),
)
HARMLESS = 0.01  # of the tokens may be wrong that were right
EXTRA = 0.05  # more of them than one by one, for a pair that hides what each of its heads does


def rows(options: Options) -> Rows:
    """A row for each task and seed."""
    found, data = [], {}
    for task, fields in TASKS.items():
        try:
            data[task] = get_recipe(task).data(options_of(task, 0, fields))
        except ValueError as error:  # the sentences come with a package
            tqdm.write(f"no {task}: {error}")
    for task, seed in tqdm([*itertools.product(data, options.seeds)], unit="model"):
        how = options_of(task, seed, {**TASKS[task], "steps": STEPS[task][options.quick]})
        model, _ = train_as(task, how, data[task])
        found.append({"task": task, "seed": seed, **study(model, batch_of(task, data[task], options.quick))})
    return {"models": found}


def batch_of(task: str, data: Any, quick: bool) -> Any:
    """What the model is tested on: the same sequences for every seed and head."""
    count = TESTED[quick]
    if task == "reverse":
        return data.held_out_batch(np.random.default_rng(1), 2 * count)
    if task == "text":
        batch = spread_windows(data)
        return type(batch)(*(ids[:: max(1, len(ids) // count)][:count] for ids in batch))
    short = np.flatnonzero((data.test.lengths <= LONGEST).all(axis=1))
    return data.test.batch(short[np.linspace(0, len(short) - 1, min(count, len(short))).astype(int)])


def study(model: Any, batch: Any) -> dict[str, Any]:
    """All that is measured of one model."""
    every, whole = heads(model), measure(model, batch)
    found: dict[str, Any] = {"heads": [name(change) for change in every], "whole": whole}
    outputs, slopes = pass_through(model, batch, every)
    found["gradient"], found["net"] = abs(slopes).sum(axis=1).tolist(), abs(slopes.sum(axis=1)).tolist()
    found["weight"] = sharpness(model, batch, every)
    for kind in ABLATIONS:
        values = [0.0] * len(every) if kind == "zero" else outputs
        gone = [change._replace(value=value) for change, value in zip(every, values, strict=True)]
        single = [without(model, batch, change) for change in gone]
        joint = [without(model, batch, *pair) for pair in itertools.combinations(gone, 2)]
        order = np.argsort([one["loss"] for one in single], kind="stable")
        together = [without(model, batch, *(gone[i] for i in order[: n + 1])) for n in range(len(gone))]
        fine = [one["right"] >= whole["right"] - HARMLESS for one in together]
        found[kind] = {name: [one[name] for one in single] for name in whole}
        found[kind]["removed"] = fine.index(False) if False in fine else len(fine)
        found[kind]["pairs"] = compare_pairs(whole, single, joint, found["heads"])
    return found


def name(change: Change) -> str:
    """Such as "decoder 1 cross 3", from 1."""
    places = change.path.removeprefix("blocks.").replace("layers.", "").split(".")
    *stack, layer, attention = places[:-2]
    return " ".join([*stack, str(int(layer) + 1), attention.removesuffix("_attention"), str(change.piece[0] + 1)])


def measure(model: Any, batch: Any) -> dict[str, float]:
    """The "loss" in nats a token, the share of "right" tokens, and of "exact" answers.

    Greedy decoding says the right answer exactly if every next token is right after the right ones before it.
    """
    log_p, targets = log_softmax(to_host(model(*batch.inputs)).astype(float)), batch.targets
    losses = -np.take_along_axis(log_p, targets[..., None], axis=-1)[..., 0]
    counted = model.config.tokens(targets)
    right = (log_p.argmax(axis=-1) == targets) | ~counted
    shares = right[counted].mean(), right.all(axis=1).mean()
    return {"loss": float(losses[counted].mean()), "right": float(shares[0]), "exact": float(shares[1])}


def without(model: Any, batch: Any, *changes: Change) -> dict[str, float]:
    """`measure` with these changes."""
    with intervene(model, *changes):
        return measure(model, batch)


def queries(model: Any, change: Change, batch: Any) -> np.ndarray:
    """Which queries of a head are tokens and not padding, boolean (B, T)."""
    return model.config.tokens(batch.inputs[-1 if change.path.startswith("decoder") else 0])


def pass_through(model: Any, batch: Any, every: list[Change]) -> tuple[list[np.ndarray], np.ndarray]:
    """The mean output of every head, and dLoss/ds (heads, B) of factors s = 1 on it, one for each sequence."""
    seen: list[list[Any]] = [[] for _ in every]
    ones = np.ones((len(batch.targets), 1, 1))
    watched = [change._replace(scale=ones, watch=kept.append) for change, kept in zip(every, seen, strict=True)]
    with intervene(model, *watched) as altered:
        logits, cache = model.forward(*batch.inputs)
        loss_fn = loss_for(model)
        _, cache_loss = loss_fn.forward(logits, batch.targets)
        model.backward(loss_fn.backward(1.0, cache_loss), cache)
    model.zero_grad()
    rows = [queries(model, change, batch) for change in every]
    outputs = [to_host(kept[0])[row].mean(axis=0) for row, kept in zip(rows, seen, strict=True)]
    return outputs, np.array([to_host(one.scale.grad)[:, 0, 0] for one in altered], float)


def sharpness(model: Any, batch: Any, every: list[Change]) -> list[float]:
    """The mean over the queries of the largest weight of each head."""
    found = model.attention_weights(*batch.inputs)
    named = found._asdict() if hasattr(found, "_asdict") else {"blocks": found}
    sharp = []
    for change in every:
        stack, _, layer, attention, *_ = change.path.split(".")
        weights = named["cross" if attention == "cross_attention" else stack][int(layer)]
        sharp.append(float(to_host(weights[:, change.piece[0]].max(axis=-1))[queries(model, change, batch)].mean()))
    return sharp


def compare_pairs(
    whole: dict[str, float], single: list[dict[str, float]], joint: list[dict[str, float]], names: list[str]
) -> dict[str, Any]:
    """How much more a pair costs than its two heads one by one, in tokens that are no longer right."""
    pairs = [*itertools.combinations(range(len(single)), 2)]
    alone = [2 * whole["right"] - single[i]["right"] - single[j]["right"] for i, j in pairs]
    extra = np.array([whole["right"] - both["right"] for both in joint]) - alone
    worst = int(extra.argmax())
    largest = {"heads": [names[i] for i in pairs[worst]], "alone": alone[worst], "extra": float(extra[worst])}
    return {"hidden": float((extra > EXTRA).mean()), "largest": largest}


def free(row: dict[str, Any], kind: str) -> int:
    """How many heads can go, one at a time."""
    return sum(right >= row["whole"]["right"] - HARMLESS for right in row[kind]["right"])


def agreement(row: dict[str, Any], what: str, kind: str = "mean") -> float:
    """Spearman's correlation of "weight", "gradient" or another ablation with what the heads cost, in the loss."""
    return spearman(row[what]["loss"] if what in ABLATIONS else row[what], row[kind]["loss"])


def tables(rows: Rows) -> list[Table]:
    """How many heads can go, and what ranks them."""
    cells, groups = [], by_name(rows["models"], "task")
    for (task, found), kind in itertools.product(groups.items(), ABLATIONS):
        means = [f"{np.mean([row['whole'][key] for row in found]):.2f}" for key in ("loss", "exact", "right")]
        alone, together = [free(row, kind) for row in found], [row[kind]["removed"] for row in found]
        worst = ", ".join(f"{np.mean([min(row[kind][key]) for row in found]):.2f}" for key in ("right", "exact"))
        hidden = f"{np.mean([row[kind]['pairs']['hidden'] for row in found]):.1%}"
        about = [TITLES[task], str(len(found[0]["heads"])), *means, kind]
        cells.append([*about, plus_minus(alone), worst, plus_minus(together), hidden])
    ranked = [
        [TITLES[task], *(plus_minus([agreement(row, *pair) for row in found]) for pair in PAIRS_OF_RANKS)]
        for task, found in groups.items()
    ]
    ranks = ["rank correlation", *(f"{one} and {other}" for one, other in PAIRS_OF_RANKS)]
    return [Table("heads", COLUMNS, cells), Table("ranks", ranks, ranked)]


def findings(rows: Rows) -> list[str]:
    """How many heads can go; and whether the gradient or the map says which, where the interval excludes 0."""
    lines = []
    for task, found in by_name(rows["models"], "task").items():
        (count, half), total = interval([free(row, "mean") for row in found]), len(found[0]["heads"])
        most = "most" if count - half > total / 2 else "not most" if count + half < total / 2 else "perhaps most"
        pair = max((row["mean"]["pairs"]["largest"] for row in found), key=lambda pair: pair["extra"])
        lines.append(
            f"{TITLES[task]}: {count:.1f} ± {half:.1f} of {total} heads can go alone, {most} of them; "
            f"{' and '.join(pair['heads'])} cost {pair['alone']:.2f} of the tokens one by one, and "
            f"{pair['alone'] + pair['extra']:.2f} together."
        )
        ranked = " and ".join(f"{plus_minus([agreement(row, one) for row in found])} ({one})" for one in ONE_PASS)
        lines.append(f"{TITLES[task]}: rank correlation with the cost {ranked}.")
    mean, half = interval([agreement(row, "gradient") - agreement(row, "weight") for row in rows["models"]])
    word = judged(mean, half, "worse than", "better than", "not measurably better or worse than")
    about = f"Over all {len(rows['models'])} models, the gradient ranks heads {word} the sharpness of their maps"
    return [*lines, f"{about}: difference of the rank correlations {mean:.2f} ± {half:.2f}."]


def draw(rows: Rows) -> Figure:
    """The share of right tokens without each head, the worst first: a line for each seed and ablation."""
    groups = by_name(rows["models"], "task")
    figure, axes = pyplot().subplots(1, len(groups), figsize=(3.4 * len(groups), 3.2), squeeze=False)
    for axis, (task, found) in zip(axes[0], groups.items(), strict=True):
        for (color, kind), row in itertools.product(zip(COLORS, ABLATIONS, strict=False), found):
            label = f"{kind} ablation" if row is found[0] else None
            places = range(1, len(row["heads"]) + 1)
            axis.plot(places, sorted(row[kind]["right"]), ".-", color=color, linewidth=1, label=label)
        whole = np.mean([row["whole"]["right"] for row in found])
        axis.axhline(whole, color=COLORS[-1], linewidth=1, linestyle="--", label="all heads")
        axis.set(title=TITLES[task], xlabel="rank of the head, the costliest first")
        axis.set(ylabel="share of right tokens without it", ylim=(0.0, 1.05 * max(0.5, whole)))
    legend_below(figure, axes[0, 0], ncols=3)
    return figure
