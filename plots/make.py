"""Make the committed figures again: run the command of each, and copy its figure from runs/ to plots/.

    python plots/make.py --list               show every figure, its command and the file that is copied
    python plots/make.py bench lengths        make these figures
    python plots/make.py                      make all of them (about half an hour)

The README, the lessons' table and the documentation show the figures in this folder. No command writes here, so they
change only through this script. A command that draws several figures runs once.
"""

import argparse
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from minitransformer.course import find_lessons

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent


class Source(NamedTuple):
    """Where a figure comes from."""

    command: str  # the arguments of `minitransformer`
    path: str  # what the command writes, below ROOT

    @property
    def words(self) -> list[str]:
        """What Python runs."""
        return ["-m", "minitransformer", *shlex.split(self.command)]


SENTENCE = "Am dritten Tag kamen die Boten des Königs zurück."  # the attention of its translation is drawn
FIGURES = {
    **{
        name: Source(f"lesson {lesson.number}", f"runs/lessons/full/{name}")
        for lesson in find_lessons(ROOT / "lessons")
        for name in lesson.figures
    },
    **{
        name: Source(f"experiment {command}", f"runs/experiments/{command.partition(' --')[0].replace(' ', '-')}.png")
        for name, command in {
            "bench.png": "speed",
            "bench_attention.png": "attention-cost",
            "bench_curves.png": "curves",
            "bench_decoding.png": "decoding",
            "bench_speculative.png": "speculative",  # of the two runs that docs/benchmarks.md trains
            "bench_scaling.png": "step-growth",
            "scaling.png": "communication --seconds 20",
            "preferences.png": "preferences",
            "compare_attention.png": "attention-kinds",
            "compare_sharpness.png": "sharpness",
            "lengths.png": "lengths --steps 2000",
            "compare_table3.png": "table3 --seeds 4",
            "compare_one_vector.png": "one-vector copy reverse",
            "compare_alignment.png": "one-vector alignment",
            "compare_recall.png": "one-vector recall",
            "compare_scaling_law.png": "scaling-law --predict 1.25e12",
            "compare_since_2017.png": "since-2017",
            "compare_table4.png": "table4 --longer 64",
            "compare_heads.png": "heads --run runs/translation-steps-4000",  # `train translation --steps 4000`
            **{
                f"compare_{name.replace('-', '_')}.png": name
                for name in (
                    "table1",
                    "gradient-reach",
                    "translation",
                    "sharpness",
                    "knock-out",
                    "faithfulness",
                    "adversary",
                    "coreference",
                    "superposition",
                    "experts",
                    "induction",
                    "grokking",
                    "speedrun",
                )
            },
        }.items()
    },
    "bench_curves_translation.png": Source(
        "experiment curves translation --runs runs/plots", "runs/plots/experiments/curves.png"
    ),
    **{
        f"train_{task}_{figure}.png": Source(
            f"train {task} --runs runs/plots --overwrite", f"runs/plots/{task}/{figure}.png"
        )
        for task in ("addition", "copy", "reverse", "sort")
        for figure in ("attention", "loss")
    },
    "train_digits_attention.png": Source(
        "train digits --threads 1 --runs runs/plots --overwrite", "runs/plots/digits/attention.png"
    ),
    "train_reverse_lstm_attention.png": Source(
        "train reverse --model lstm-attention --steps 1000 --factor 0.3 --cooldown 0 --name lstm"
        " --runs runs/plots --overwrite",
        "runs/plots/lstm/attention.png",
    ),
    "train_shakespeare_loss.png": Source(
        "train shakespeare --name plays --overwrite",
        "runs/plays/loss.png",
    ),
    **{
        f"train_translation_{figure}.png": Source(
            "train translation --runs runs/plots --overwrite", f"runs/plots/translation/{figure}.png"
        )
        for figure in ("bleu", "loss")
    },
    **{
        f"translate_attention{suffix}.png": Source(
            f"translate runs/plots/translation '{SENTENCE}' --attention runs/plots/attention{suffix}.png {options}",
            f"runs/plots/attention{suffix}.png",
        )
        for suffix, options in (("", "--layer 2"), ("_encoder", "--attention-of encoder --layer 1"))
    },
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the figures that are named, or list all -> exit status."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="plots/make.py", description=__doc__, formatter_class=raw)
    parser.add_argument("names", nargs="*", metavar="NAME", help="figures, with or without .png (default: all)")
    parser.add_argument("--list", action="store_true", help="list the figures and make none")
    options = parser.parse_args(arguments)
    names = [f"{name.removesuffix('.png')}.png" for name in options.names] or list(FIGURES)
    for name in names:
        if name not in FIGURES:
            parser.error(f"unknown figure {name}; known figures: {', '.join(FIGURES)}")
    if options.list:
        for name in names:
            shown = shlex.join(FIGURES[name].words).removeprefix("-m ")
            print(f"{name:<30} {shown:<63} {FIGURES[name].path}")
        return 0
    return make(names)


def make(names: Sequence[str]) -> int:
    """Run the commands of the figures and copy what they draw -> exit status: that of a command that fails, else 0."""
    for words in dict.fromkeys(tuple(FIGURES[name].words) for name in names):
        shown = shlex.join(words).removeprefix("-m ")
        print(shown, flush=True)
        status = subprocess.run([sys.executable, *words], cwd=ROOT).returncode
        if status:
            print(f"{shown} ended with status {status}; no figure was copied", file=sys.stderr)
            return status
        for name in names:
            if tuple(FIGURES[name].words) == words:
                shutil.copyfile(ROOT / FIGURES[name].path, FOLDER / name)
                print(f"made plots/{name}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
