"""When do five features share two dimensions, and what shape do they take?

The toy model of Elhage et al. (2022, "Toy Models of Superposition"): y = ReLU(W^T W x + b) has to give back five
features x through two dimensions. A feature is 0 with a probability called the sparsity, and else uniform in 0 to 1;
an error of feature i counts 0.9^i. Column i of W is the direction in which feature i is kept. The best that directions
at right angles can do is to keep two features and to answer with the mean of the other three.
"""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from experiments.report import Figure, Options, Rows, Table
from minitransformer.plotting import COLORS, GREY, pyplot
from minitransformer.system.progress import tqdm
from minitransformer.training.optimizers import adam_update

SECONDS = {True: 5, False: 30}
TRIED, STEPS = {True: 5, False: 20}, {True: 1000, False: 3000}
SPARSITIES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
BATCH, TESTED, PEAK = 256, 20_000, 1e-2
IMPORTANCE = 0.9 ** np.arange(5)
KEPT = 0.5  # a feature counts as kept if its column is longer; the columns end near 0 or near 1
REGULAR = {4: "cross", 5: "pentagon"}  # shapes whose neighbors have equal angles between them
TOLERANCE = 10  # degrees between an angle and that of the regular shape; a pentagon and a cross differ by 18


class Cache(NamedTuple):
    """What `backward` needs."""

    x: np.ndarray
    W: np.ndarray
    h: np.ndarray
    active: np.ndarray  # where the ReLU passes its input on


def forward(x: np.ndarray, W: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Cache]:
    """x (..., N, F), W (..., D, F), b (..., 1, F) -> y = ReLU(h W + b) with h = x W^T, in D dimensions."""
    h = x @ W.swapaxes(-1, -2)
    z = h @ W + b
    return np.maximum(z, 0), Cache(x, W, h, z.real > 0)


def backward(dy: np.ndarray, cache: Cache) -> tuple[np.ndarray, np.ndarray]:
    """dy (..., N, F) -> dW and db. W is used twice, to write into the dimensions and to read from them."""
    x, W, h, active = cache
    dz = dy * active
    dh = dz @ W.swapaxes(-1, -2)
    return h.swapaxes(-1, -2) @ dz + dh.swapaxes(-1, -2) @ x, dz.sum(axis=-2, keepdims=True)


def rows(options: Options) -> Rows:
    """Train a model for each sparsity and seed, all at the same time -> a row for each sparsity."""
    seeds, steps = TRIED[options.quick], STEPS[options.quick]
    rng = np.random.default_rng([options.seed, 10])
    W = np.tile(rng.normal(0, 0.5, (seeds, 2, 5)), (len(SPARSITIES), 1, 1, 1))
    b = np.zeros((len(SPARSITIES), seeds, 1, 5))
    states = [(array, np.zeros_like(array), np.zeros_like(array)) for array in (W, b)]
    for step in tqdm(range(steps), unit="step"):
        x = draw_features(rng, seeds, BATCH)
        y, cache = forward(x, W, b)
        gradients = backward(2 * IMPORTANCE * (y - x) / (5 * BATCH), cache)
        for (array, m, v), gradient in zip(states, gradients, strict=True):
            adam_update(array, gradient, m, v, PEAK * (1 - step / steps), (0.9, 0.999), 1e-8, step + 1)
    x = draw_features(rng, seeds, TESTED)
    losses = (IMPORTANCE * (forward(x, W, b)[0] - x) ** 2).mean(axis=(2, 3))
    return {"sparsities": [summarize(*each) for each in zip(SPARSITIES, W, losses, strict=True)]}


def draw_features(rng: np.random.Generator, seeds: int, count: int) -> np.ndarray:
    """x (sparsities, seeds, count, F). A seed has the same values at every sparsity, and more of them are 0."""
    values, chance = rng.random((2, seeds, count, 5))
    return values * (chance >= np.reshape(SPARSITIES, (-1, 1, 1, 1)))


def summarize(sparsity: float, W: np.ndarray, losses: np.ndarray) -> dict[str, Any]:
    """The row of a sparsity, from W (seeds, 2, F) and losses (seeds,)."""
    return {
        "sparsity": sparsity,
        "shapes": [shape(each) for each in W],
        "kept": [int((np.linalg.norm(each, axis=0) > KEPT).sum()) for each in W],
        "losses": losses.tolist(),
        "orthogonal": orthogonal(sparsity),
        "best": W[losses.argmin()].round(4).tolist(),
    }


def shape(W: np.ndarray) -> str:
    """What the kept columns of W (2, F) form: "pentagon", "cross" (two pairs of opposites) or such as "3 features"."""
    kept = W[:, np.linalg.norm(W, axis=0) > KEPT]
    count = kept.shape[1]
    angles = np.sort(np.degrees(np.arctan2(kept[1], kept[0])))
    between = np.diff([*angles, *(angles[:1] + 360)])
    regular = count in REGULAR and (abs(between - 360 / count) < TOLERANCE).all()
    return REGULAR[count] if regular else f"{count} features"


def orthogonal(sparsity: float) -> float:
    """The loss of a model that keeps the two most important features exactly and says the mean of the others.

    That costs their variance: E x^2 - (E x)^2 with E x^2 = p / 3 and E x = p / 2, for p = 1 - sparsity.
    """
    p = 1 - sparsity
    return float(IMPORTANCE[2:].sum() / 5 * (p / 3 - (p / 2) ** 2))


def tables(rows: Rows) -> list[Table]:
    """One line for each sparsity."""
    columns = ["sparsity", "features kept", "shapes", "loss / best with right angles", "its range"]
    cells = []
    for row in rows["sparsities"]:
        share = np.array(row["losses"]) / row["orthogonal"]
        counts: Counter[str] = Counter(row["shapes"])
        shapes = ", ".join(f"{name} {count}" for name, count in counts.most_common())
        shares = [f"{share.mean():.2f}", f"{share.min():.2f} to {share.max():.2f}"]
        cells.append([f"{row['sparsity']:g}", f"{np.mean(row['kept']):.1f}", shapes, *shares])
    return [Table("", columns, cells)]


def findings(rows: Rows) -> list[str]:
    """In how many seeds a pentagon forms, whether rarity decides it, and what it gains."""
    lines, intervals = [], []
    for row in rows["sparsities"]:
        count, seeds = row["shapes"].count("pentagon"), len(row["shapes"])
        intervals.append(wilson(count, seeds))
        low, high = intervals[-1]
        lines.append(f"Sparsity {row['sparsity']:g}: a pentagon in {count} of {seeds} seeds ({low:.0%} to {high:.0%}).")
    rarer = intervals[-1][0] > intervals[0][1]
    gain = np.mean(row["losses"]) / row["orthogonal"]
    verdict = "as" if rarer else "which this cannot confirm," if gain < 1 else "unlike"
    lines.append(
        f"Rare features share dimensions, {verdict} in Elhage et al.: at sparsity {row['sparsity']:g} the loss is "
        f"{gain:.2f} times that of the best with right angles."
    )
    return lines


def wilson(found: int, tried: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927), which is right for shares near 0 and 1, too."""
    z2, share = 1.96**2, found / tried
    half = (z2 * (share * (1 - share) / tried + z2 / (4 * tried**2))) ** 0.5
    middle = share + z2 / (2 * tried)
    return (middle - half) / (1 + z2 / tried), (middle + half) / (1 + z2 / tried)


def draw(rows: Rows) -> Figure:
    """The directions of the features in the best seed of each sparsity, and the losses of all seeds below."""
    found = rows["sparsities"]
    figure = pyplot().figure(figsize=(1.55 * len(found), 4.8))
    grid = figure.add_gridspec(2, len(found), height_ratios=(3, 4))
    for column, row in enumerate(found):
        axis = figure.add_subplot(grid[0, column], aspect="equal", xlim=(-1.35, 1.35), ylim=(-1.35, 1.35))
        for color, importance, (x, y) in zip(COLORS, IMPORTANCE, np.transpose(row["best"]), strict=False):
            axis.plot([0, x], [0, y], "o-", color=color, markevery=[1], label=f"feature of importance {importance:.2f}")
        axis.set(xticks=[], yticks=[], title=f"sparsity {row['sparsity']:g}")
        axis.spines[:].set_visible(True)
        name = shape(np.array(row["best"]))
        axis.set_xlabel(f"{name}:\n{row['shapes'].count(name)} of {len(row['shapes'])} seeds")
    handles = axis.get_legend_handles_labels()
    axis = figure.add_subplot(grid[1, :], xlim=(-0.5, len(found) - 0.5))
    for column, row in enumerate(found):
        share = np.array(row["losses"]) / row["orthogonal"]
        axis.scatter(np.linspace(-0.2, 0.2, len(share)) + column, share, s=10, color=COLORS[0])
    axis.axhline(1.0, color=GREY, linewidth=1, linestyle="--", label="best loss with two features at right angles")
    axis.set_xticks(range(len(found)), [f"{row['sparsity']:g}" for row in found])
    axis.set(xlabel="sparsity: probability that a feature is 0", ylabel="loss / best loss\nat right angles")
    axis.set_ylim(0, 1.15)
    axis.legend(loc="lower left")
    figure.suptitle("Five features in two dimensions: the directions of the best seed, and the losses of all")
    figure.legend(*handles, ncols=3, loc="outside lower center")
    return figure
