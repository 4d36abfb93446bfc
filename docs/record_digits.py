"""Measure how well a Vision Transformer reads digits, beside two older models: records/digits.json.

    python docs/record_digits.py          all rows with three seeds (about five minutes of processor time)

Each seed draws the 450 images that are held out, the first weights and the batches. The Vision Transformer is that of
`train digits`. The convolution is PyTorch's. It learns from as many batches of moved images, and then from three times
as many, which takes about as long as the transformer. Logistic regression is scikit-learn's, and sees the images as
they are. Then `python docs/write_tables.py` writes the table into library.md.
"""

import dataclasses
import datetime
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.course import FOLDER
from minitransformer.data.labelled import SIDE, DigitsTask
from minitransformer.recipes import get_recipe
from minitransformer.system.process import keep_freed_memory, limit_threads
from minitransformer.training import cosine

sys.path.append(str(FOLDER))  # where the experiments are
from experiments.running import describe_machine

RECORD = Path(__file__).resolve().parent / "records" / "digits.json"
SEEDS = (0, 1, 2)
STEPS = get_recipe("digits").defaults.steps
BATCH, PEAK, DECAY = 64, 2e-3, 0.05  # of the convolution, as of the transformer


def vit(data: DigitsTask, seed: int) -> tuple[int, float]:
    """Train a Vision Transformer -> its parameters, and the share of held-out images that it reads."""
    recipe = get_recipe("digits")
    options = dataclasses.replace(recipe.defaults, seed=seed, threads=1, steps=STEPS)
    make, config = recipe.model(options, data)
    model = make(config, seed=seed)
    recipe.train(options, model, data)
    return model.num_parameters(), recipe.evaluate(options, model, data)[0]["accuracy"]


def convolution(data: DigitsTask, seed: int, times: int = 1) -> tuple[int, float]:
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
    steps = times * STEPS
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = cosine(step, steps, PEAK, warmup=50)
        pixels, targets = data.batch(rng, BATCH)
        optimizer.zero_grad()
        nn.functional.cross_entropy(logits(pixels), torch.tensor(targets - 1)).backward()
        optimizer.step()
    with torch.no_grad():
        right = logits(data.held_out.ids).argmax(dim=1).numpy() == data.held_out.targets - 1
    return sum(p.numel() for p in model.parameters()), float(right.mean())


def logistic_regression(data: DigitsTask, seed: int) -> tuple[int, float]:
    """The same of a straight boundary between each two digits."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=2000).fit(data.train.ids / 17, data.train.targets)
    return model.coef_.size + model.intercept_.size, float(model.score(data.held_out.ids / 17, data.held_out.targets))


MODELS = {
    "Vision Transformer": vit,
    "convolution": convolution,
    "convolution, three times the batches": partial(convolution, times=3),
    "logistic regression": logistic_regression,
}


def main() -> int:
    """Measure and record -> exit status."""
    keep_freed_memory()
    DigitsTask(0)  # so that no model's time has the import
    cells = []
    for name, measure in MODELS.items():
        shares, seconds = [], []
        for seed in SEEDS:
            start = time.process_time()
            with limit_threads(1):
                parameters, share = measure(DigitsTask(seed), seed)
            seconds.append(time.process_time() - start)
            shares.append(share)
            print(f"{name}, seed {seed}: {share:.1%}, {seconds[-1]:.1f} s", flush=True)
        each = [f"{share:.1%}" for share in (np.mean(shares), *shares)]
        cells.append([name, f"{parameters:,}", *each, f"{np.mean(seconds):.1f} s"])
    table = {
        "columns": ["model", "parameters", "mean", *(f"seed {seed}" for seed in SEEDS), "training"],
        "cells": cells,
    }
    about = {"command": "python docs/record_digits.py", "date": str(datetime.date.today())}
    record = {**about, "machine": describe_machine(), "tables": [table]}
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
