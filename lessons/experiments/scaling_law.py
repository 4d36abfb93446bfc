"""Can the loss of a training run be predicted before it starts?

GPTs of different widths are trained on the source of Python's standard library, six widths for each of four budgets of
compute, C = 6 N D floating-point operations for N parameters (all of them) and D characters. The losses of one budget
over N form a valley. How its lowest point moves with C says how large a model to train, and how good it will be (Kaplan
et al. 2020; Hoffmann et al. 2022). `--predict FLOP` writes such a prediction to a file. Given again, it trains that
model and compares: commit the file in between, and nobody has to believe you that it came first.
"""

import datetime
import functools
import hashlib
import itertools
import json
import math
import re
import sysconfig
import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments.measuring.equal_terms import train_all
from experiments.measuring.laws import FLOPS_PER_WEIGHT, bootstrap, fit_law, parabola, power
from experiments.measuring.steps import make_training_step
from experiments.report import Figure, Options, Parser, Rows, Table, by_name, grouped
from minitransformer import GPT, CharacterTokenizer, Corpus, TextTask, cosine, gpt_config, mean_loss
from minitransformer.data.text import TextBatch
from minitransformer.plotting import COLORS, GREY, pyplot
from minitransformer.system.files import atomic_write

SECONDS = {True: 90, False: 1500}
WIDTHS = {  # {C: d_model of its six models}
    8e9: (8, 12, 16, 20, 24, 28),
    2e10: (8, 12, 16, 20, 24, 32),
    5e10: (12, 16, 20, 24, 32, 40),
    1.25e11: (16, 20, 24, 32, 40, 48),
}
BUDGETS, SEEDS = {True: 2, False: 4}, {True: 1, False: 3}
# what `recipe` was chosen by, with a seed of its own: (C, width, peaks of the learning rate, windows in a batch)
TUNING = (
    (1e10, 12, (0.004, 0.008, 0.016, 0.032), (4, 8, 16)),
    (1e10, 12, (0.008, 0.016, 0.032), (2,)),
    (6e10, 24, (0.002, 0.004, 0.008, 0.016), (4, 8, 16)),
    (6e10, 24, (0.004, 0.008, 0.016), (2,)),
    (3e11, 48, (0.002, 0.004, 0.008, 0.016), (4, 8)),
)
TUNING_SEED, UNTUNED = 100, (0.004, 4)  # the second: one peak and one batch for all sizes
LAYERS, HEADS, LENGTH = 2, 2, 64
TESTED = 1024  # held-out windows
NO_TEXT = {"site-packages", "dist-packages", "test", "tests", "idle_test", "encodings"}  # encodings has tables alone
CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
FITS = {"minima": "a power of C through the lowest points", "law": "E + A / N^a + B / D^b through all runs"}


def add_options(parser: Parser) -> None:
    """The budget that is predicted."""
    help = "write what is predicted for this budget to a file; with the file there, train that model and compare"
    parser.add_argument("--predict", type=float, metavar="FLOP", help=help)


def check(options: Options) -> None:
    """ValueError for a budget that is no prediction."""
    largest = list(WIDTHS)[BUDGETS[options.quick] - 1]
    if options.predict is not None and not largest < options.predict < 1e16:
        raise ValueError(f"--predict must be more than {largest:.4g}, the largest budget measured, and less than 1e16")


@functools.cache
def load() -> tuple[TextTask, TextBatch]:
    """The source of Python's standard library by character; each tenth file is held out -> (task, windows to test)."""
    folder = Path(sysconfig.get_path("stdlib"))
    files = [file for file in sorted(folder.rglob("*.py")) if not NO_TEXT & {*file.relative_to(folder).parts}]
    texts = [re.sub(r"[^\n -~]", "", file.read_text("utf8").expandtabs(4)) for file in files]
    held_out = "\n".join(texts[::10])
    del texts[::10]
    task = TextTask(Corpus("\n".join(texts), held_out), CharacterTokenizer(CHARACTERS), LENGTH)
    (windows,) = task.held_out_batches(len(task.held_out))
    chosen = np.linspace(0, len(windows.ids) - 1, TESTED).astype(int)
    return task, TextBatch(windows.ids[chosen], windows.targets[chosen])


def make_model(width: int, seed: int | None) -> GPT:
    """A GPT that differs from the others in its width alone."""
    sizes: dict[str, Any] = {"d_model": width, "num_heads": HEADS, "d_ff": 4 * width, "num_layers": LAYERS}
    config = gpt_config(len(CHARACTERS) + 3, max_len=LENGTH, dropout=0.0, positions="rope", **sizes)
    return GPT(config, seed=seed)


def recipe(width: int) -> tuple[float, int]:
    """The peak of the learning rate and the windows in a batch, as functions of the size; see TUNING."""
    size = make_model(width, None).num_parameters() / 5000
    return 0.016 * (1 / size) ** 0.5, max(2, round(2 * size**0.3))


def train(width: int, flops: float, seed: int, peak: float, windows: int, folder: str) -> dict[str, Any]:
    """Train one model -> its row; a row that FOLDER has is not measured again."""
    task, held_out = load()
    about = {"width": width, "flops": flops, "seed": seed, "peak": peak, "windows": windows, "text": task.sha256[:16]}
    path = Path(folder, "scaling-law.jsonl")
    for line in path.read_text("utf8").splitlines() if path.exists() else ():
        if about.items() <= (row := json.loads(line)).items():
            return row
    start = time.process_time()
    model, rng = make_model(width, seed), np.random.default_rng([seed, 9])
    N = model.num_parameters()
    steps = round(flops / (FLOPS_PER_WEIGHT * N * windows * LENGTH))
    step = make_training_step(model, 0.0, threads=1)
    for i in range(1, steps + 1):
        step(task.batch(rng, windows), cosine(i, steps, peak, max(10, steps // 20)))
    loss = mean_loss(model, [held_out], 64)
    row = {**about, "N": N, "D": steps * windows * LENGTH, "steps": steps, "loss": loss}
    row["seconds"] = time.process_time() - start
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf8") as file:
        file.write(json.dumps(row) + "\n")
    return row


def rows(options: Options) -> Rows:
    """The runs of all budgets, those of tuning, the prediction and its test, as far as they are asked for."""
    folder = options.runs / "experiments"
    seeds = options.seeds
    budgets = list(WIDTHS)[: BUDGETS[options.quick]]
    todo = [(w, C, seed, *recipe(w), str(folder)) for seed in seeds for C in budgets for w in WIDTHS[C]]
    tuning = [
        (width, C, TUNING_SEED, peak, windows, str(folder))
        for C, width, peaks, batches in (() if options.quick else TUNING)
        for windows, peak in itertools.product(batches, peaks)
    ]
    runs = train_all(train, todo + tuning)
    found: Rows = {"runs": runs[: len(todo)], "tuning": runs[len(todo) :], "prediction": [], "tests": []}
    if options.predict:
        path = folder / f"scaling-law-{options.predict:.4g}.json"
        filed = path.exists()
        if not filed:
            text = json.dumps(predict(found["runs"], options.predict), indent=1)
            with atomic_write(path) as unfinished:
                unfinished.write_text(text + "\n", encoding="utf8")
            print(f"the prediction is in {path}: file it, and give the command again to test it")
        prediction = json.loads(path.read_text("utf8"))
        found["prediction"] = [{**prediction, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}]
        if filed:
            width = prediction["width"]
            tests = [(width, options.predict, seed, *recipe(width), str(folder)) for seed in seeds]
            found["tests"] = train_all(train, tests)
    return found


def grid(runs: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """C, N and D (cells,) and the losses (cells, seeds) of the runs."""
    cells = grouped(runs, "flops", "width").values()
    C, N, D = (np.array([cell[0][key] for cell in cells], float) for key in ("flops", "N", "D"))
    return C, N, D, np.array([[run["loss"] for run in cell] for cell in cells])


def extrapolate(C: np.ndarray, N: np.ndarray, D: np.ndarray, losses: np.ndarray, flops: float) -> dict[str, float]:
    """What both fits say of a larger budget, from the losses (cells,): {"minima", "minima N", "law", "law N", ...}."""
    budgets = np.unique(C)
    lowest = np.array([parabola(N[budget == C], losses[budget == C]) for budget in budgets])
    (n, n_power), (height, loss_power) = power(budgets, lowest[:, 0]), power(budgets, lowest[:, 1])
    law = fit_law(N, D, losses)
    best = law.optimum(flops) if law.A > 0 and law.B > 0 else (math.nan, math.nan)
    return {
        "minima": height * flops**loss_power,
        "minima N": n * flops**n_power,
        "N power": n_power,
        "loss power": loss_power,
        "law": float(law.loss(*best)),
        "law N": best[0],
        **law._asdict(),
    }


def back_test(runs: list[dict[str, Any]]) -> dict[str, float]:
    """By how much each fit of all budgets but the largest misses the lowest point of that one, as a share of it."""
    C, N, D, losses = grid(runs)
    mean, largest = losses.mean(axis=1), C.max()
    seen = largest > C
    found = extrapolate(C[seen], N[seen], D[seen], mean[seen], largest)
    truth = parabola(N[~seen], mean[~seen])[1]
    return {name: found[name] / truth - 1 for name in FITS}


def predict(runs: list[dict[str, Any]], flops: float) -> dict[str, Any]:
    """The prediction for a larger budget, by the fit with the best back-test; from two budgets, by the valleys."""
    C, N, D, losses = grid(runs)
    found = extrapolate(C, N, D, losses.mean(axis=1), flops)
    draws = bootstrap(lambda mean: extrapolate(C, N, D, mean, flops), losses, np.random.default_rng(0))
    missed = back_test(runs) if len(np.unique(C)) > 2 else {"minima": 0.0, "law": 1.0}
    chosen = min(missed, key=lambda name: abs(missed[name]))
    sizes = {width: make_model(width, None).num_parameters() for width in range(8, 1025, 4)}
    width = min(sizes, key=lambda width: abs(np.log(sizes[width] / found[f"{chosen} N"])))
    intervals = {name: np.quantile(values, (0.025, 0.975)).tolist() for name, values in draws.items()}
    return {
        "date": str(datetime.date.today()),
        "flops": flops,
        "fit": chosen,
        "loss": found[chosen],
        "interval": intervals[chosen],
        "width": width,
        "N": sizes[width],
        "back-test": missed,
        "fits": found,
        "intervals": intervals,
    }


def tables(rows: Rows) -> list[Table]:
    """The lowest point of each budget, what both fits say, and how the prediction came out."""
    C, N, _, losses = grid(rows["runs"])
    mean = losses.mean(axis=1)
    columns = ["FLOPs", "parameters", "loss, mean of the seeds", "lowest at N", "D / N there", "lowest loss"]
    cells = []
    for budget in np.unique(C):
        at = budget == C
        n, loss = parabola(N[at], mean[at])
        sizes = ", ".join(f"{size:,.0f}" for size in N[at])
        values = ", ".join(f"{value:.3f}" for value in mean[at])
        per_weight = budget / FLOPS_PER_WEIGHT / n**2
        cells.append([f"{budget:.3g}", sizes, values, f"{n:,.0f}", f"{per_weight:.0f}", f"{loss:.3f}"])
    found = [Table("budgets", columns, cells)]
    for row in rows["prediction"]:
        columns = ["fit", "back-test", f"loss at {row['flops']:.3g} FLOPs", "N there"]
        fits = [
            [about, f"{row['back-test'][name]:+.1%}", fitted(row, name), f"{row['fits'][f'{name} N']:,.0f}"]
            for name, about in FITS.items()
        ]
        found.append(Table("prediction", columns, fits))
    return found


def fitted(row: dict[str, Any], name: str) -> str:
    """What a fit says, with its interval."""
    return "{:.3f} ({:.3f} to {:.3f})".format(row["fits"][name], *row["intervals"][name])


def findings(rows: Rows) -> list[str]:
    """Noise, what tuning does, the powers, and whether the prediction held."""
    losses = grid(rows["runs"])[-1]
    lines = []
    if losses.shape[1] > 1:
        noise = float(np.sqrt((losses.var(axis=1, ddof=1) / losses.mean(axis=1) ** 2).mean()))
        lines.append(f"Runs that differ in their seed alone differ by {noise:.1%} (standard deviation).")
    if rows["tuning"]:
        best = {C: min(run["loss"] for run in runs) for C, runs in by_name(rows["tuning"], "flops").items()}
        same = {run["flops"]: run["loss"] for run in rows["tuning"] if (run["peak"], run["windows"]) == UNTUNED}
        gains = ", ".join(f"{same[C]:.3f} to {best[C]:.3f} at {C:.0e} FLOPs" for C in sorted(same))
        lines.append(f"From a peak of {UNTUNED[0]} and {UNTUNED[1]} windows, tuning takes the loss from {gains}.")
    for row in rows["prediction"]:
        powers = [fitted(row, name) for name in ("N power", "loss power")]
        lines.append("The best N grows with C^{}, and the lowest loss with C^{}.".format(*powers))
        lines.append(
            f"Predicted on {row['date']} for {row['flops']:.3g} FLOPs and N = {row['N']:,}: a loss of "
            f"{row['loss']:.3f} ({row['interval'][0]:.3f} to {row['interval'][1]:.3f})."
        )
        if rows["tests"]:
            measured = np.array([test["loss"] for test in rows["tests"]])
            inside = "inside" if row["interval"][0] <= measured.mean() <= row["interval"][1] else "outside"
            each = ", ".join(f"{loss:.3f}" for loss in measured)
            lines.append(
                f"Measured: {measured.mean():.3f} ({each}). The prediction is off by "
                f"{row['loss'] / measured.mean() - 1:+.2%}, and the measurement {inside} its interval."
            )
    return lines


def draw(rows: Rows) -> Figure:
    """The valleys of the budgets over N, and the lowest loss over C with the prediction and what came."""
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(9, 4))
    C, N, _, losses = grid(rows["runs"])
    mean = losses.mean(axis=1)
    lowest = []
    for color, budget in zip(COLORS, np.unique(C), strict=False):
        at = budget == C
        lowest.append(parabola(N[at], mean[at])[1])
        fine = np.geomspace(N[at].min(), N[at].max(), 50)
        valley = np.polyval(np.polyfit(np.log(N[at]), mean[at], 2), np.log(fine))
        left.plot(fine, valley, color=color, linewidth=1, label=f"{budget:.3g} FLOPs")
        left.scatter(N[at], mean[at], s=14, color=color)
    right.plot(np.unique(C), lowest, "o", color=COLORS[0], label="lowest point of a valley")
    for row in rows["prediction"]:
        budgets = np.geomspace(C.min(), row["flops"], 50)
        scale = row["fits"]["minima"] * (budgets / row["flops"]) ** row["fits"]["loss power"]
        right.plot(budgets, scale, color=GREY, linewidth=1, label="a power of C through them")
        error = np.abs(np.array(row["interval"]) - row["loss"])[:, None]
        right.errorbar(row["flops"], row["loss"], error, fmt="_", color=COLORS[1], capsize=5, label="predicted")
        missed = row["fits"]["law"]
        right.plot(row["flops"], missed, "v", color=GREY, label="what E + A / N^a + B / D^b says")
    if rows["tests"]:
        at, tests = ([test[key] for test in rows["tests"]] for key in ("flops", "loss"))
        right.plot(at, tests, "x", color=COLORS[2], label="measured afterwards")
    left.set(title="A valley for each budget", xlabel="parameters N", ylabel="loss (nats per character)", xscale="log")
    right.set(title="Its lowest point", xlabel="FLOPs C = 6 N D", ylabel="loss (nats per character)", xscale="log")
    for axis, places in ((left, (3e3, 1e4, 3e4)), (right, (1e10, 1e11, 1e12))):
        axis.set_xticks(places, [f"{place:.0e}".replace("e+0", "e").replace("e+", "e") for place in places])
        axis.minorticks_off()
        axis.legend()
    return figure
