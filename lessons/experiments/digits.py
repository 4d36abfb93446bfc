"""How well does a Vision Transformer read digits, beside two older models?

Each seed draws the 450 images that are held out, the first weights and the batches. The Vision Transformer is that of
`train digits`. The convolution is PyTorch's. It learns from as many batches of moved images, and then from three times
as many, which takes about as long as the transformer. Logistic regression is scikit-learn's, and sees the images as
they are.
"""

import dataclasses
import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from experiments.measuring.steps import need
from experiments.report import Options, Rows, Table, grouped
from minitransformer import cosine
from minitransformer.data.labelled import SIDE, DigitsTask
from minitransformer.recipes import get_recipe
from minitransformer.system.progress import tqdm

SECONDS = {True: 60, False: 400}
SEEDS = {True: 1, False: 3}
STEPS = {True: 50, False: get_recipe("digits").defaults.steps}
BATCH, PEAK, DECAY = 64, 2e-3, 0.05  # of the convolution, as of the transformer


def vit(data: DigitsTask, seed: int, steps: int) -> tuple[int, float]:
    """Train a Vision Transformer -> its parameters, and the share of held-out images that it reads."""
    recipe = get_recipe("digits")
    options = dataclasses.replace(recipe.defaults, seed=seed, threads=1, steps=steps)
    make, config = recipe.model(options, data)
    model = make(config, seed=seed)
    recipe.train(options, model, data)
    return model.num_parameters(), recipe.evaluate(options, model, data)[0]["accuracy"]


def convolution(data: DigitsTask, seed: int, steps: int, times: int = 1) -> tuple[int, float]:
    """The same of two convolutions of 3 x 3 pixels, with a mean over 2 x 2 pixels between them, and a matrix."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    nn = torch.nn
    first, second = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
    layers = (first, nn.ReLU(), nn.AvgPool2d(2), second, nn.ReLU(), nn.Flatten(), nn.Linear(32 * (SIDE // 2) ** 2, 10))
    model = nn.Sequential(*layers)

    def logits(pixels: np.ndarray) -> Any:
        return model(torch.tensor(pixels / 17, dtype=torch.float32).reshape(-1, 1, SIDE, SIDE))

    optimizer, rng = torch.optim.AdamW(model.parameters(), weight_decay=DECAY), np.random.default_rng([seed, 1])
    for step in range(1, times * steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = cosine(step, times * steps, PEAK, warmup=50)
        pixels, targets = data.batch(rng, BATCH)
        optimizer.zero_grad()
        nn.functional.cross_entropy(logits(pixels), torch.tensor(targets - 1)).backward()
        optimizer.step()
    with torch.no_grad():
        right = logits(data.held_out.ids).argmax(dim=1).numpy() == data.held_out.targets - 1
    return sum(p.numel() for p in model.parameters()), float(right.mean())


def logistic_regression(data: DigitsTask, seed: int, steps: int) -> tuple[int, float]:
    """The same of a straight boundary between each two digits, which takes no steps."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=2000).fit(data.train.ids / 17, data.train.targets)
    return model.coef_.size + model.intercept_.size, float(model.score(data.held_out.ids / 17, data.held_out.targets))


MODELS: dict[str, Callable[[DigitsTask, int, int], tuple[int, float]]] = {
    "Vision Transformer": vit,
    "convolution": convolution,
    "convolution, three times the batches": partial(convolution, times=3),
    "logistic regression": logistic_regression,
}


def rows(options: Options) -> Rows:
    """Every model and seed. Raises ValueError without PyTorch or scikit-learn."""
    need("digits", torch="oracle", sklearn="digits")
    DigitsTask(0)  # so that no model's time has the import
    found = []
    for name, seed in tqdm([*itertools.product(MODELS, options.seeds)], unit="training"):
        start = time.process_time()
        parameters, share = MODELS[name](DigitsTask(seed), seed, STEPS[options.quick])
        row = {"model": name, "seed": seed, "parameters": parameters, "accuracy": share}
        found.append({**row, "seconds": time.process_time() - start})
    return {"models": found}


def tables(rows: Rows) -> list[Table]:
    """One line for each model."""
    groups, cells = grouped(rows["models"], "model"), []
    for (name,), found in groups.items():
        shares = [row["accuracy"] for row in found]
        each = [f"{share:.1%}" for share in (np.mean(shares), *shares)]
        seconds = np.mean([row["seconds"] for row in found])
        cells.append([name, f"{found[0]['parameters']:,}", *each, f"{seconds:.1f} s"])
    seeds = [f"seed {row['seed']}" for row in next(iter(groups.values()))]
    return [Table("held-out images that are read", ["model", "parameters", "mean", *seeds, "training"], cells)]


def findings(rows: Rows) -> list[str]:
    """The means."""
    groups = grouped(rows["models"], "model").items()
    means = [f"{name} {np.mean([row['accuracy'] for row in found]):.1%}" for (name,), found in groups]
    return [f"Read in the mean: {', '.join(means)}."]
