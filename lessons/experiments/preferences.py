"""How far do GRPO and DPO get, and what do they cost, from sums that a model gets right in 40 % of the cases?

The two scripts of docs/preferences.md are run one after another, with one seed after another.
"""

import re
from typing import Any

import numpy as np

from experiments.measuring.paired import spread
from experiments.report import Figure, Options, Rows, Table
from minitransformer.course import PACKAGE
from minitransformer.plotting import COLORS, GREY, moving_average, pyplot

SECONDS = {True: 90, False: 600}
SEEDS = {True: 1, False: 5}
PAGE = PACKAGE.parent / "docs" / "preferences.md"
CHANGES: dict[bool, dict[str, str]] = {True: {"0.4, 200": "0.1, 25"}, False: {}}  # of the scripts


def run(seed: int, changes: dict[str, str]) -> dict[str, Any]:
    """The variables of both scripts after they have run one after another."""
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE))
    for old, new in {"SEED, GOAL, STEPS = 0,": f"SEED, GOAL, STEPS = {seed},", **changes}.items():
        if code.count(old) != 1:
            raise ValueError(f"the scripts of {PAGE.name} must have {old!r} once")
        code = code.replace(old, new)
    variables: dict[str, Any] = {}
    exec(compile(code, PAGE.name, "exec"), variables)
    return variables


def rows(options: Options) -> Rows:
    """The curves of every seed, and what happened to the pairs. Raises ValueError without the page."""
    if not PAGE.exists():
        raise ValueError(f"the scripts are those of docs/{PAGE.name}, which a checkout has")
    found = []
    for seed in options.seeds:
        made = run(seed, CHANGES[options.quick])
        about = {"seed": seed, "steps": made["STEPS"], "group": made["GROUP"], "training": len(made["training"])}
        curves = {name: np.array(curve).tolist() for name, curve in made["curves"].items()}
        found.append({**about, "curves": curves, "moved": np.array(made["moved"]).tolist()})
    return {"seeds": found}


def tables(rows: Rows) -> list[Table]:
    """What was reached and what it cost, and what DPO did to the two answers of a pair."""
    runs = rows["seeds"]
    steps, group, training = (runs[0][name] for name in ("steps", "group", "training"))
    in_steps = steps * 32 * group
    drawn = dict(zip(runs[0]["curves"], (in_steps, training * group, in_steps, 0), strict=True))
    begun = [run["curves"]["GRPO"][0] for run in runs]
    first = (spread([point[i] for point in begun], form) for i, form in ((1, ".1%"), (2, ".2f")))
    lines = [["the start", *first, "", ""]]
    moves, ended = [], np.array([point[0] for point in begun])
    for number, (name, answers) in enumerate(drawn.items()):
        curves = np.array([run["curves"][name] for run in runs])
        seconds, ended = spread(curves[:, -1, 0] - ended, ".1f"), curves[:, -1, 0]  # with the pairs written before
        lines.append([name, spread(curves[:, -1, 1], ".1%"), spread(curves[:, -1, 2], ".2f"), f"{answers:,}", seconds])
        if name.startswith("DPO"):
            moved = np.array([run["moved"][(number - 1) * steps : number * steps][-25:] for run in runs]).mean(axis=1)
            moves.append([name, *(spread(moved[:, i], ".2f") for i in (2, 0, 3, 1))])
    reached = ["learned from", "right", "log p of the right answer", "answers drawn", "processor (s)"]
    pairs = ["log p", "chosen, reference", "chosen, model", "rejected, reference", "rejected, model"]
    return [Table("what was reached", reached, lines), Table("the pairs of DPO", pairs, moves)]


def findings(rows: Rows) -> list[str]:
    """What each way reaches."""
    names = rows["seeds"][0]["curves"]
    ends = {name: [run["curves"][name][-1][1] for run in rows["seeds"]] for name in names}
    return [f"{name}: {spread(shares, '.1%')} of the test sums are right." for name, shares in ends.items()]


def draw(rows: Rows) -> Figure:
    """The share of right answers over the steps, and the log-probabilities of the pairs that DPO learns from."""
    runs = rows["seeds"]
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(11.0, 4.4))
    names, steps = list(runs[0]["curves"]), runs[0]["steps"]
    for color, name in zip(COLORS, names, strict=False):
        shares = np.array([[point[1] for point in run["curves"][name]] for run in runs])
        places = 25 * np.arange(shares.shape[1])
        left.plot(places, 100 * shares.T, color=color, linewidth=0.6, alpha=0.5)
        left.plot(places, 100 * shares.mean(axis=0), color=color, linewidth=2, label=name)
    left.set(title="Right answers to the test sums", xlabel="step", ylim=(0, 101))
    left.set_ylabel("% (thin: each seed; thick: mean)")
    for number in (1, 2):
        moved = np.array([run["moved"][(number - 1) * steps : number * steps] for run in runs]).mean(axis=0)
        for column, style, word in ((0, "-", "chosen"), (1, "--", "rejected")):
            window = min(10, steps)
            change = moving_average(moved[:, column] - moved[:, column + 2], window)
            label = f"{names[number]}: {word}"
            right.plot(np.arange(len(change)) + window, change, style, color=COLORS[number], label=label)
    right.axhline(0, color=GREY, linewidth=1)
    right.set(title="What DPO does to log p of the answers", xlabel="step")
    right.set_ylabel("log p minus the reference's, mean of seeds")
    figure.legend(ncols=4, loc="outside lower center")
    return figure
