"""What becomes of the experts that nobody chooses, and can a router learn at all?

GPTs on Python's own help, by character. Each feed-forward network became eight experts, of which a
router chooses one for each token. An expert that gets few tokens learns little, so it is chosen even less: that is why
Shazeer et al. (2017) and Fedus et al. (2021) add a loss that balances them, and DeepSeek-V3 (2024) a bias. Models that
differ in their router alone are paired by the seed of weights and batches; the dense one has as many weights as a token
uses in the others. An expert is called starved if it gets less than a quarter of its fair share of the held-out tokens.
"""

import dataclasses
import statistics
from functools import partial
from typing import Any

import numpy as np

import minitransformer as mt
from experiments.measuring.paired import collect, compared, plus_minus, train_steps
from experiments.report import Figure, Options, Rows, Table, by_name
from minitransformer.data.text import TextBatch
from minitransformer.plotting import pyplot
from minitransformer.training.parallel.parts import gradients_of

SECONDS = {True: 30, False: 600}
STEPS, SEEDS = {True: 40, False: 400}, {True: 2, False: 5}
PEAK, LENGTH, EXPERTS, STARVED = 5e-3, 64, 8, 0.25
SIZES: dict[str, Any] = {"d_model": 32, "num_heads": 2, "d_ff": 64, "num_layers": 2, "max_len": LENGTH, "dropout": 0.0}
SWITCH = mt.Experts(EXPERTS, per_token=1, renormalize=False, balance=0.0)
SIGMOID = dataclasses.replace(SWITCH, scores="sigmoid")
ROUTERS: dict[str, mt.Experts | None] = {
    "dense": None,
    "renormalized": dataclasses.replace(SWITCH, renormalize=True),
    "softmax": SWITCH,
    "softmax, balance loss": dataclasses.replace(SWITCH, balance=0.01),
    "sigmoid": SIGMOID,
    "sigmoid, bias": dataclasses.replace(SIGMOID, balance=0.01),
}
BALANCED = {"softmax": "softmax, balance loss", "sigmoid": "sigmoid, bias"}
KINDS = ("vowel", "consonant", "capital", "digit", "space", "other")


def kind_of(character: str) -> str:
    """One of KINDS, for any character."""
    if character.isspace() or character.isdigit():
        return "space" if character.isspace() else "digit"
    if not character.isalpha():
        return "other"
    return "capital" if character.isupper() else "vowel" if character in "aeiou" else "consonant"


def rows(options: Options) -> Rows:
    """The loss and the experts' loads of every router and seed: start again to go on after an interruption."""
    corpus = mt.load_python_topics()
    task = mt.TextTask(corpus, mt.CharacterTokenizer.train(corpus.train + corpus.held_out), LENGTH)
    todo = [(name, seed) for seed in options.seeds for name in ROUTERS]
    work = partial(train_and_look, task=task, steps=STEPS[options.quick])
    return {"trainings": collect(options.unfinished, todo, work)}


def train_and_look(name: str, seed: int, task: mt.TextTask, steps: int) -> dict[str, Any]:
    """Train one model -> its loss, and for each layer the share of each kind of token that goes to each expert."""
    config = mt.gpt_config(task.tokenizer.vocab_size, **SIZES, positions="rope", experts=ROUTERS[name])
    model = mt.GPT(config, seed=seed)
    trained = train_steps(model, task, steps, seed, PEAK)
    held_out = list(task.held_out_batches(128))
    row = {"router": name, "seed": seed, "parameters": model.num_parameters(), **trained}
    row["loss"] = mt.mean_loss(model, held_out)
    if config.experts is None:
        return row
    kinds = np.array([kind_of(token) for token in task.tokenizer.tokens])
    chosen = [np.concatenate(layer) for layer in zip(*(choices(model, batch) for batch in held_out), strict=True)]
    of_token = kinds[np.concatenate([batch.ids.reshape(-1) for batch in held_out])]
    row["loads"] = [layer.mean(axis=0).tolist() for layer in chosen]
    row["kinds"] = [[layer[of_token == kind].mean(axis=0).tolist() for kind in KINDS] for layer in chosen]
    row["starved"] = float(np.mean(np.array(row["loads"]) < STARVED / EXPERTS))
    return {**row, **router_of(model, seed, held_out[0])}


def choices(model: mt.GPT, batch: TextBatch) -> list[np.ndarray]:
    """Which tokens went to which expert (B T, E), for each layer."""
    _, cache = model.features(batch.ids)
    return [layer.feed_forward.sublayer.chosen for layer in cache.blocks.layers]


def router_of(model: mt.GPT, seed: int, batch: TextBatch) -> dict[str, float]:
    """The largest entry of a router's gradient on this batch, and the most that one has moved in training."""
    model.zero_grad()
    gradients_of(model, mt.CrossEntropyLoss())(batch)
    new = mt.GPT(model.config, seed=seed).state_dict()
    routers = {name: one for name, one in model.named_parameters() if name.endswith("router.W")}
    return {
        "gradient": max(float(abs(one.grad).max()) for one in routers.values()),
        "moved": max(float(abs(one.data - new[name]).max()) for name, one in routers.items()),
    }


def tables(rows: Rows) -> list[Table]:
    """One line for each router: means over the seeds with their intervals."""
    columns = ["router", "weights", "loss, held out", "starved experts", "largest load", "router moved", "its gradient"]
    cells = []
    for name, group in by_name(rows["trainings"], "router").items():
        line = [name, f"{group[0]['parameters']:,}", plus_minus([row["loss"] for row in group], ".3f")]
        if "loads" in group[0]:
            largest = [max(map(max, row["loads"])) for row in group]
            moved, gradient = (max(row[key] for row in group) for key in ("moved", "gradient"))
            line += [plus_minus([row["starved"] for row in group]), plus_minus(largest)]
            line += [f"{moved:.2g}", f"{gradient:.2g}"]
        cells.append(line + [""] * (len(columns) - len(line)))
    return [Table("", columns, cells)]


def findings(rows: Rows) -> list[str]:
    """Whether a renormalized router learns, whether balancing feeds the experts, and what it and they are worth."""
    of = by_name(rows["trainings"], "router")

    def values(name: str, key: str) -> list[float]:
        return [row[key] for row in of[name]]

    lines = [
        f"One expert, its weight {how}: the largest entry of a router's gradient is {max(values(name, 'gradient')):.2g}"
        f" at the end, and the most that one moved in training is {max(values(name, 'moved')):.2g}."
        for how, name in (("renormalized", "renormalized"), ("as it is", "softmax"))
    ]
    both = values("softmax", "loss"), values("renormalized", "loss")
    lines.append(compared("Loss with a router that learns against one that stays as drawn", *both, ".3f"))
    for name, balanced in BALANCED.items():
        for key, what, form in (("starved", "share of starved experts", ".2f"), ("loss", "loss", ".3f")):
            both = values(balanced, key), values(name, key)
            lines.append(compared(f"{name}, {what} with balancing against none", *both, form))
    for name in ("renormalized", *BALANCED.values()):
        both = values(name, "loss"), values("dense", "loss")
        lines.append(compared(f"{name}, loss of eight experts against one network", *both, ".3f"))
    seconds = [statistics.fmean(values(name, "seconds")) for name in (BALANCED["softmax"], "dense")]
    return [*lines, f"Training takes {seconds[0] / seconds[1]:.1f} times as long as with one network."]


def draw(rows: Rows) -> Figure:
    """In the first seed, where each kind of character goes: one row for each layer, one column for each router."""
    first = [row for row in rows["trainings"] if "kinds" in row and row["seed"] == rows["trainings"][0]["seed"]]
    shown = [row for row in first if row["router"] in {*BALANCED, *BALANCED.values()}]
    layers = len(shown[0]["kinds"])
    figure, axes = pyplot().subplots(layers, len(shown), figsize=(11.5, 5.6), sharex=True, sharey=True, squeeze=False)
    for column, row in enumerate(shown):
        for layer, axis in enumerate(axes[:, column]):
            shares = [*row["kinds"][layer], row["loads"][layer]]
            image = axis.imshow(np.array(shares).T, vmin=0.0, vmax=1.0, aspect="auto")
            axis.set_xticks(range(len(shares)), [*KINDS, "all"], rotation=90)
            axis.set_yticks(range(EXPERTS), range(1, EXPERTS + 1))
            axis.tick_params(length=0)
            axis.spines[:].set_visible(False)
            starved = sum(load < STARVED / EXPERTS for load in row["loads"][layer])
            axis.set(title=f"{row['router']}: {starved} starved")
            axis.set(xlabel="character" if layer == layers - 1 else "", ylabel=f"layer {layer + 1}, expert")
    figure.colorbar(image, ax=axes.ravel().tolist(), label="share of the characters of this kind")
    return figure
