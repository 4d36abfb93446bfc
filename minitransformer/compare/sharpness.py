"""The edge of stability: plain gradient descent makes the loss sharper until the learning rate only just works.

On a quadratic loss with curvature lambda, a step of gradient descent multiplies the distance from the minimum by
1 - lr lambda: it converges for lambda < 2 / lr, and beyond that each step is longer than the last. Cohen et al. (2021,
"Gradient Descent on Neural Networks Typically Occurs at the Edge of Stability") found that on the losses of networks
the largest eigenvalue of the Hessian, the sharpness, rises during training until it reaches 2 / lr, whatever lr is.
There it stays, and training goes on: the loss rises in some steps and falls in the long run.

Here a small Transformer learns to reverse words from one fixed batch, with the gradient of the whole batch, without
momentum and without dropout. GELU and not ReLU, so that the loss has a Hessian everywhere. With label smoothing the
loss has a minimum. Without it, the loss falls towards 0 as the weights grow, and its curvature falls with it.
"""

import statistics
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.compare.figures import plot_sharpness
from minitransformer.compare.hessian import LossOfWeights, largest_eigenpairs
from minitransformer.data import ToyTask, get_task
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.system.process import limit_threads
from minitransformer.system.progress import tqdm

NAME = "sharpness"
DESCRIPTION = "the largest eigenvalue of the Hessian during plain gradient descent, against 2 / lr"
SECONDS = {True: 10, False: 180}
RATES = {True: (0.04, 0.08), False: (0.02, 0.04, 0.08)}
STEPS = {True: 200, False: 2500}
# steps between two measurements, an odd number: at the edge, the weights jump to and fro between two sides of a valley,
# and one side may be twice as sharp as the other
INTERVAL = {True: 5, False: 25}
LETTERS, LONGEST, BATCH, SMOOTHING = 12, 6, 64, 0.1
SIZES: dict[str, Any] = {"d_model": 16, "num_heads": 2, "d_ff": 32, "num_layers": 1, "max_len": 16}
TOLERANCE = 1e-2  # of the eigenvector; the error of the eigenvalue is about the square of it


def run(quick: bool, seed: int, directory: Path) -> dict[str, Any]:
    """Train at every rate, print a table, and draw sharpness.png into `directory` -> the numbers."""
    loss = make_loss(seed)
    rates, steps, interval = RATES[quick], STEPS[quick], INTERVAL[quick]
    print(
        f"reverse, {BATCH} words of up to {LONGEST} of {LETTERS} letters, {len(loss.weights):,} weights, {steps:,} "
        "steps of gradient descent\nsharpness: the largest eigenvalue of the Hessian; late: in the second half\n"
    )
    with limit_threads(1), tqdm(total=len(rates) * steps, unit="step", disable=None) as progress:
        rows = [summary(descend(loss, rate, steps, interval, progress)) for rate in rates]
    print(f"{'lr':>6}{'2 / lr':>9}{'at first':>10}{'reached at':>12}{'late median':>13}{'x lr / 2':>10}{'loss':>9}")
    for row in rows:
        reached = "never" if row["reached"] is None else f"{row['reached']:,}"
        print(
            f"{row['lr']:>6g}{2 / row['lr']:>9g}{row['sharpness'][0]:>10.1f}{reached:>12}"
            f"{row['late']:>13.1f}{row['late'] * row['lr'] / 2:>10.2f}{row['losses'][-1]:>9.3f}"
        )
    figure = directory / "sharpness.png"
    plot_sharpness(rows, figure)
    print(f"\nsaved {figure}")
    return {"rows": rows}


def make_loss(seed: int) -> LossOfWeights:
    """The loss of a new model on a batch of the task."""
    task: ToyTask = get_task("reverse")
    task.symbols, task.max_len = task.symbols[:LETTERS], LONGEST
    batch = task.batch(np.random.default_rng([seed, 7]), BATCH)
    config = TransformerConfig(len(task.vocabulary), activation="gelu", dropout=0.0, **SIZES)
    return LossOfWeights(Transformer(config, seed=seed, dtype=np.float64), batch, SMOOTHING)


def descend(loss: LossOfWeights, lr: float, steps: int, interval: int, progress: Any) -> dict[str, Any]:
    """Gradient descent from the model's own weights -> {"lr", "losses", "steps", "sharpness"}.

    "losses" has the loss before each step, and "sharpness" the largest eigenvalue of the Hessian at "steps". Each
    search for it starts from the last eigenvector, which has changed little since.
    """
    theta, x = loss.weights, None
    losses, measured, sharpness = [], [], []
    for step in range(steps + 1):
        if step % interval == 0:
            product = partial(loss.hessian_product, theta)
            top = largest_eigenpairs(product, len(theta), start=x, tolerance=TOLERANCE)
            x = top.vectors[:, 0]
            measured.append(step)
            sharpness.append(float(top.values[0]))
        value, gradient = loss.gradient(theta)
        losses.append(value)
        theta = theta - lr * gradient
        progress.update()
    return {"lr": lr, "losses": losses, "steps": measured, "sharpness": sharpness}


def summary(row: dict[str, Any]) -> dict[str, Any]:
    """The row, and the first of its "steps" with a sharpness of at least 2 / lr, and the median of the later half."""
    pairs = list(zip(row["steps"], row["sharpness"], strict=True))
    reached = next((step for step, value in pairs if value >= 2 / row["lr"]), None)
    late = statistics.median(value for step, value in pairs if step >= row["steps"][-1] / 2)
    return {**row, "reached": reached, "late": late}
