"""Why can a model know every training example for long, and only then find the rule?

A GPT of one layer learns (a + b) mod 59 from half of the pairs, with weight decay. Power et al. (2022, "Grokking") saw
that training is right long before anything else is, and Nanda et al. (2023, "Progress Measures for Grokking via
Mechanistic Interpretability") what is learned in the end: the sum of angles, with the embedding of a number as cosines
and sines of a few frequencies. a + b and b + a are one pair here, on the same side of the split: if each is drawn by
itself, most of what is tested has its mirror image in training, and this is measured, too.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.measuring.paired import compared, interval, plus_minus
from experiments.report import Figure, Options, Rows, Table
from minitransformer import GPT, Adam, CrossEntropyLoss, Parameter, gpt_config, mean_loss
from minitransformer.data.text import TextBatch
from minitransformer.gradcheck.holding import holding
from minitransformer.plotting import COLORS, GREY, pyplot
from minitransformer.training import step_with
from minitransformer.training.parallel.threads import DataParallel

SECONDS = {True: 25, False: 300}
SEEDS, SHARE, STEPS = {True: 1, False: 5}, {True: 0.7, False: 0.5}, {True: 1600, False: 6000}
P, BATCH, PEAK, DECAY = 59, 512, 2e-3, 1.0
EVERY, REACHED, ENOUGH = 50, 0.99, 0.998  # steps between two tests; accuracies
KEY = 5  # frequencies that are called the key frequencies
SIZES: dict[str, Any] = {"d_model": 64, "num_heads": 4, "d_ff": 128, "num_layers": 1, "max_len": 3}
LOSSES = {"as trained": "whole", "key left": "only", "key removed": "without", "others removed": "control"}


def sums() -> TextBatch:
    """All ordered pairs "a b =", with a + b to be predicted at the last token; number n is token n + 1."""
    a, b = np.divmod(np.arange(P * P), P)
    targets = np.zeros((P * P, 3), int)
    targets[:, 2] = (a + b) % P + 1
    return TextBatch(np.stack([a + 1, b + 1, np.full(P * P, P + 1)], axis=1), targets)


def split(share: float, mirrored: bool, rng: np.random.Generator) -> np.ndarray:
    """Which pairs are trained on (P P,): `share` of all pairs, with their mirror images if `mirrored`."""
    a, b = np.divmod(np.arange(P * P), P)
    names = np.minimum(a, b) * P + np.maximum(a, b) if mirrored else a * P + b
    chosen = rng.permutation(np.unique(names))
    return np.isin(names, chosen[: round(share * len(chosen))])


def correct(model: GPT, rows: TextBatch) -> np.ndarray:
    """Whether each sum (N,) is right."""
    return model(rows.ids)[:, 2].argmax(axis=-1) == rows.targets[:, 2]


def learn(seed: int, quick: bool, mirrored: bool = True) -> tuple[GPT, np.ndarray, dict[str, Any]]:
    """Train until the test is passed -> (model, which pairs were trained on, the accuracies on the way).

    Without `mirrored`, only until training is right.
    """
    rng = np.random.default_rng([seed, 11])
    everything, trained = sums(), split(SHARE[quick], mirrored, rng)
    train, test = (TextBatch(*(ids[chosen] for ids in everything)) for chosen in (trained, ~trained))
    config = gpt_config(P + 2, **SIZES, dropout=0.0, activation="relu", tie_embeddings=False)
    model = GPT(config, seed=seed)
    optimizer = Adam(model.parameters(), weight_decay=DECAY)
    gradients = DataParallel(model, CrossEntropyLoss(), 1)
    about: dict[str, Any] = {"seed": seed, "steps": [], "train": [], "test": []}
    about["before"] = energies(embedding(model).data)
    start = time.process_time()
    for step in range(1, STEPS[quick] + 1):
        chosen = rng.integers(len(train.ids), size=BATCH)
        optimizer.lr = PEAK * min(1.0, step / 10)
        step_with(gradients, optimizer, TextBatch(*(ids[chosen] for ids in train)))
        if step % EVERY == 0:
            about["steps"].append(step)
            about["train"].append(float(correct(model, train).mean()))
            about["test"].append(float(correct(model, test).mean()))
            if about["test"][-1] >= ENOUGH or (not mirrored and about["train"][-1] >= REACHED):
                break
    return model, trained, {**about, "seconds": time.process_time() - start}


def embedding(model: GPT) -> Parameter:
    """E (P + 2, C), whose rows 1 to P are the numbers."""
    return dict(model.named_parameters())["embedding.tokens.E"]


def energies(E: np.ndarray) -> list[float]:
    """The share of each frequency 1, 2, ... P // 2 in the numbers' vectors, whose mean is left out."""
    found = (abs(np.fft.rfft(E[1 : P + 1].astype(float), axis=0)) ** 2).sum(axis=1)[1:]
    return (found / found.sum()).tolist()


def without(E: np.ndarray, frequencies: Sequence[int]) -> np.ndarray:
    """E with these frequencies removed from the vectors of the numbers."""
    waves = np.fft.rfft(E[1 : P + 1].astype(float), axis=0)
    waves[list(frequencies)] = 0
    changed = E.copy()
    changed[1 : P + 1] = np.fft.irfft(waves, P, axis=0)
    return changed


def rows(options: Options) -> Rows:
    """For each seed the accuracies while it learns, its frequencies, and what a naive split leaks."""
    return {"seeds": [measure(seed, options.quick) for seed in options.seeds]}


def measure(seed: int, quick: bool) -> dict[str, Any]:
    """The row of a seed."""
    model, trained, row = learn(seed, quick)
    E, shares = embedding(model), energies(embedding(model).data)
    order = [int(i) + 1 for i in np.argsort(shares)[::-1]]
    rest = sorted(np.random.default_rng([seed, 12]).choice(order[KEY:], KEY, replace=False).tolist())
    tested = TextBatch(*(ids[~trained] for ids in sums()))
    changes = {"whole": [], "only": order[KEY:], "without": order[:KEY], "control": rest}
    for name, removed in changes.items():
        with holding(E, without(E.data, removed)):
            row[name] = mean_loss(model, [tested])
    row |= {"after": shares, "key": sorted(order[:KEY])}
    row |= {f"{side} reached": reached(row, side) for side in ("train", "test")}
    model, trained, _ = learn(seed, quick, mirrored=False)
    leaked, is_right = trained.reshape(P, P).T.reshape(-1)[~trained], correct(model, sums())[~trained]
    row["naive"] = [float(x) for x in (leaked.mean(), is_right[leaked].mean(), is_right[~leaked].mean())]
    print(f"seed {seed}: {row['steps'][-1]:,} steps, {row['seconds']:.0f} s", flush=True)
    return row


def reached(row: dict[str, Any], side: str) -> int | None:
    """The first tested step at which 99 % of the sums on this side are right."""
    return next((step for step, share in zip(row["steps"], row[side], strict=True) if share >= REACHED), None)


def top(shares: Sequence[float]) -> float:
    """The share of the largest frequencies."""
    return sum(sorted(shares)[-KEY:])


def tables(rows: Rows) -> list[Table]:
    """When each seed learns what, its frequencies, and the losses without them."""
    columns = ["seed", "training 99 %", "test 99 %", "CPU s", "share of five, untrained", "trained", "key frequencies"]
    names = ["seed", *(f"loss, {name}" for name in LOSSES), "leaked", "right of leaked", "right of others"]
    cells, losses = [], []
    for row in rows["seeds"]:
        steps = [row[f"{side} reached"] for side in ("train", "test")]
        shares = [f"{top(row[when]):.2f}" for when in ("before", "after")]
        times = ["never" if step is None else f"step {step:,}" for step in steps]
        cells.append([str(row["seed"]), *times, f"{row['seconds']:.0f}", *shares, ", ".join(map(str, row["key"]))])
        each = [f"{row[key]:.3f}" for key in LOSSES.values()]
        losses.append([str(row["seed"]), *each, *(f"{share:.1%}" for share in row["naive"])])
    return [Table("learning", columns, cells), Table("without frequencies, and a naive split", names, losses)]


def findings(rows: Rows) -> list[str]:
    """How late the rule comes, how few frequencies it has, whether it needs them, and what a naive split leaks."""
    found = rows["seeds"]
    ratios = [row["test reached"] / row["train reached"] for row in found if row["test reached"]]
    lines = [f"The test reaches 99 % in {len(ratios)} of {len(found)} seeds."]
    if ratios:
        later = interval(ratios)[0] - interval(ratios)[1] > 1
        verdict = "later than training, as Power et al. found" if later else "which decides nothing"
        lines.append(f"That takes {plus_minus(ratios, '.1f')} times the steps of training: {verdict}.")

    after, before = ([top(row[when]) for row in found] for when in ("after", "before"))
    losses = {key: [row[key] for row in found] for key in LOSSES.values()}
    lines += [
        compared(f"Share of {KEY} frequencies in the energy, trained against untrained", after, before),
        compared(f"Loss without these {KEY} against without {KEY} others", losses["without"], losses["control"]),
        compared("Loss with these alone against with all", losses["only"], losses["whole"]),
    ]
    leaked, mirrored, others = np.mean([row["naive"] for row in found], axis=0)
    lines.append(
        f"If ordered pairs are drawn, {leaked:.0%} of the test has its mirror image in training. When training is "
        f"right, so are {mirrored:.0%} of these, and {others:.0%} of the others."
    )
    return lines


def draw(rows: Rows) -> Figure:
    """The accuracies of all seeds, the frequencies of the first, and the losses without frequencies."""
    figure, (left, middle, right) = pyplot().subplots(1, 3, figsize=(12, 4.2))
    for row in rows["seeds"]:
        for side, color in (("train", COLORS[0]), ("test", COLORS[1])):
            left.semilogx(row["steps"], row[side], color=color, linewidth=1, marker=".", markevery=[0], label=side)
        losses = [row[key] for key in LOSSES.values()]
        right.plot(range(len(losses)), losses, "o", color=COLORS[2], markersize=4)
    left.set(title="Known by heart, and understood later", xlabel="step", ylabel="share of right sums")
    left.set_ylim(-0.03, 1.05)
    row, frequencies = rows["seeds"][0], np.arange(1, P // 2 + 1)
    is_key = np.isin(frequencies, row["key"])
    bars = [
        middle.bar(frequencies[chosen], np.array(row["after"])[chosen], color=color)
        for chosen, color in ((is_key, COLORS[4]), (~is_key, COLORS[5]))
    ]
    middle.plot(frequencies, row["before"], "_", color=GREY)
    middle.set(title=f"Frequencies in the embedding, seed {row['seed']}", xlabel=f"frequency (turns in {P} numbers)")
    middle.set_ylabel("share of the energy")
    guess = right.axhline(np.log(P), color=GREY, linewidth=1, linestyle="--")
    right.set_xticks(range(len(LOSSES)), [name.replace(" ", "\n") for name in LOSSES])
    right.set(title="Without some of the frequencies", xlabel="frequencies")
    right.set(ylabel="loss of the test (nats)", yscale="log")
    handles = [*left.lines[:2], *bars, middle.lines[0], right.lines[0], guess]
    names = ["training", "test", "key frequency", "other frequency", "untrained", "a seed", "loss of a guess"]
    figure.legend(handles, names, ncols=7, loc="outside lower center")
    return figure
