"""Does plain gradient descent make the loss sharper until the learning rate only just works?

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
from typing import Any

import numpy as np

from experiments.measuring.hessian import LossOfWeights, largest_eigenpairs
from experiments.report import Figure, Options, Rows, Table, legend_below, listed
from minitransformer import Transformer, TransformerConfig, get_task
from minitransformer.data import ToyTask
from minitransformer.plotting import COLORS, count_steps, mark_powers, plot_line, pyplot
from minitransformer.system.progress import tqdm

SECONDS = {True: 10, False: 180}
RATES = {True: (0.04, 0.08), False: (0.02, 0.04, 0.08)}
STEPS = {True: 200, False: 2500}
# steps between two measurements, an odd number: at the edge, the weights jump to and fro between two sides of a valley,
# and one side may be twice as sharp as the other
INTERVAL = {True: 5, False: 25}
LETTERS, LONGEST, BATCH, SMOOTHING = 12, 6, 64, 0.1
SIZES: dict[str, Any] = {"d_model": 16, "num_heads": 2, "d_ff": 32, "num_layers": 1, "max_len": 16}
TOLERANCE = 1e-2  # of the eigenvector; the error of the eigenvalue is about the square of it


def rows(options: Options) -> Rows:
    """Gradient descent at every learning rate."""
    loss, rates = make_loss(options.seed), RATES[options.quick]
    steps, interval = STEPS[options.quick], INTERVAL[options.quick]
    with tqdm(total=len(rates) * steps, unit="step", disable=None) as progress:
        return {"rates": [summary(descend(loss, rate, steps, interval, progress)) for rate in rates]}


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


def tables(rows: Rows) -> list[Table]:
    """One line for each learning rate; "median" is that of the second half of the steps."""
    columns: dict[str, tuple] = {
        "lr": ("lr", "g"),
        "2 / lr": (lambda row: 2 / row["lr"], "g"),
        "sharpness at first": (lambda row: row["sharpness"][0], ".1f"),
        "reached 2 / lr at step": (lambda row: "never" if row["reached"] is None else f"{row['reached']:,}",),
        "median of the second half": ("late", ".1f"),
        "times lr / 2": (lambda row: row["late"] * row["lr"] / 2, ".2f"),
        "last loss": (lambda row: row["losses"][-1], ".3f"),
    }
    return [listed("", rows["rates"], columns)]


def findings(rows: Rows) -> list[str]:
    """Where the sharpness stays."""
    shares = [row["late"] * row["lr"] / 2 for row in rows["rates"]]
    most = f"{min(shares):.2f} to {max(shares):.2f}"
    return [f"In the second half of the steps the median sharpness is {most} times 2 / lr."]


def draw(rows: Rows) -> Figure:
    """The largest eigenvalue over the steps with the line 2 / lr of every learning rate, and the losses below."""
    figure, (top, bottom) = pyplot().subplots(2, 1, figsize=(6.4, 5.6), sharex=True, height_ratios=(3, 2))
    for color, row in zip(COLORS, rows["rates"], strict=False):
        lr = row["lr"]
        top.semilogy(row["steps"], row["sharpness"], color=color, linewidth=1, label=f"lr = {lr:g}")
        top.axhline(2 / lr, color=color, linewidth=1, linestyle="--")
        top.annotate(f"2 / {lr:g}", (1.01, 2 / lr), xycoords=("axes fraction", "data"), color=color, va="center")
        plot_line(bottom, range(len(row["losses"])), row["losses"], color=color, linewidth=1)
    top.set(title="Gradient descent at the edge of stability", ylabel="largest eigenvalue of the Hessian")
    mark_powers(top)
    bottom.set(ylabel="loss (nats per token)")
    count_steps(bottom)
    legend_below(figure, top, ncols=3)
    return figure
