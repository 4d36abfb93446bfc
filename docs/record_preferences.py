"""Run the scripts of preferences.md with five seeds: records/preferences.json, its tables, and runs/preferences.png.

    python docs/record_preferences.py            about five minutes of processor time

Then `python docs/write_tables.py` writes the tables into the page.
"""

import datetime
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.course import FOLDER
from minitransformer.plotting import COLORS, GREY, pyplot, save_figure
from minitransformer.system.process import keep_freed_memory, limit_threads

sys.path.append(str(FOLDER))  # where the experiments are
from experiments.running import describe_machine

DOCS = Path(__file__).resolve().parent
PAGE, RECORD, FIGURE = DOCS / "preferences.md", DOCS / "records" / "preferences.json", Path("runs/preferences.png")
SEEDS = range(5)
CHANGES: dict[str, str] = {}  # of the scripts, for a test


def run(seed: int) -> dict[str, Any]:
    """The variables of both scripts after they have run one after another."""
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE))
    for old, new in {"SEED, GOAL, STEPS = 0,": f"SEED, GOAL, STEPS = {seed},", **CHANGES}.items():
        if code.count(old) != 1:
            raise ValueError(f"the scripts of {PAGE.name} must have {old!r} once")
        code = code.replace(old, new)
    variables: dict[str, Any] = {}
    exec(compile(code, PAGE.name, "exec"), variables)
    return variables


def spread(values: Any, form: str) -> str:
    """The mean, the lowest and the highest value."""
    return f"{np.mean(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def tables(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was reached and what it cost, and what DPO did to the two answers of a pair."""
    STEPS, GROUP, training = (runs[0][name] for name in ("STEPS", "GROUP", "training"))
    in_steps = STEPS * 32 * GROUP
    drawn = dict(zip(runs[0]["curves"], (in_steps, len(training) * GROUP, in_steps, 0), strict=True))
    begun = [run["curves"]["GRPO"][0] for run in runs]
    lines = [
        ["the start", *(spread([point[i] for point in begun], form) for i, form in ((1, ".1%"), (2, ".2f"))), "", ""]
    ]
    moves, ended = [], np.array([point[0] for point in begun])
    for number, (name, answers) in enumerate(drawn.items()):
        curves = np.array([run["curves"][name] for run in runs])
        seconds, ended = spread(curves[:, -1, 0] - ended, ".1f"), curves[:, -1, 0]  # with the pairs written before
        lines.append([name, spread(curves[:, -1, 1], ".1%"), spread(curves[:, -1, 2], ".2f"), f"{answers:,}", seconds])
        if name.startswith("DPO"):
            moved = np.array([run["moved"][(number - 1) * STEPS : number * STEPS][-25:] for run in runs]).mean(axis=1)
            moves.append([name, *(spread(moved[:, i], ".2f") for i in (2, 0, 3, 1))])
    return [
        {
            "columns": ["learnt from", "right", "log p of the right answer", "answers drawn", "processor (s)"],
            "cells": lines,
        },
        {
            "columns": ["log p", "chosen, reference", "chosen, model", "rejected, reference", "rejected, model"],
            "cells": moves,
        },
    ]


def draw(runs: list[dict[str, Any]]) -> None:
    """The share of right answers over the steps, and the log-probabilities of the pairs that DPO learns from."""
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(11.0, 4.4))
    names = list(runs[0]["curves"])
    for color, name in zip(COLORS, names, strict=False):
        shares = np.array([[point[1] for point in run["curves"][name]] for run in runs])
        steps = 25 * np.arange(shares.shape[1])
        left.plot(steps, 100 * shares.T, color=color, linewidth=0.6, alpha=0.5)
        left.plot(steps, 100 * shares.mean(axis=0), color=color, linewidth=2, label=name)
    left.set(
        title="Right answers to the test sums", xlabel="step", ylabel="% (thin: each seed; thick: mean)", ylim=(0, 101)
    )
    STEPS = runs[0]["STEPS"]
    for number in (1, 2):
        moved = np.array([run["moved"][(number - 1) * STEPS : number * STEPS] for run in runs]).mean(axis=0)
        for column, style, word in ((0, "-", "chosen"), (1, "--", "rejected")):
            window = min(10, STEPS)
            change = np.convolve(moved[:, column] - moved[:, column + 2], np.ones(window) / window, mode="valid")
            label = f"{names[number]}: {word}"
            right.plot(np.arange(len(change)) + window, change, style, color=COLORS[number], label=label)
    right.axhline(0, color=GREY, linewidth=1)
    right.set(
        title="What DPO does to log p of the answers",
        xlabel="step",
        ylabel="log p minus the reference's, mean of seeds",
    )
    figure.legend(ncols=4, loc="outside lower center")
    FIGURE.parent.mkdir(exist_ok=True)
    save_figure(figure, FIGURE)


def main() -> int:
    """Run all seeds, record and draw -> exit status."""
    keep_freed_memory()
    with limit_threads(1):
        runs = [run(seed) for seed in SEEDS]
    draw(runs)
    about = {"command": "python docs/record_preferences.py", "date": str(datetime.date.today())}
    record = {**about, "machine": describe_machine(), "tables": tables(runs)}
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
