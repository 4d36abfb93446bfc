"""The folder of a run, `runs/NAME/`: its name, and the files in it."""

import dataclasses
import hashlib
import json
import platform
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.backend import backend_name
from minitransformer.recipes.options import LONGEST_NAME, TrainOptions
from minitransformer.system.files import atomic_write
from minitransformer.training import History
from minitransformer.training.checkpointer import saved_steps

OUTPUTS = (
    "log.csv",
    "loss.png",
    "attention.png",
    "bleu.png",
    "sample.txt",
    "translations.tsv",
)  # of a finished run, besides its model


def run_name(task: str, options: TrainOptions, defaults: TrainOptions) -> str:
    """The task, and each option that changes what is learned and differs from the recipe's default.

    Such as "reverse", "reverse-seed-3" or "shakespeare-text-mybook". Only letters, digits and ._- are used. A name that
    is too long is cut, and ends with a hash of the whole name.
    """
    parts = [task]
    for field in sorted(dataclasses.fields(options), key=lambda field: field.name):
        value = getattr(options, field.name)
        if field.metadata["identity"] and value != getattr(defaults, field.name):
            parts.append(field.name.replace("_", "-"))
            if value is not True:
                parts.append(Path(value).stem if field.name == "text" else str(value).removesuffix(".0"))
    name = re.sub(r"[^\w.-]+", "_", "-".join(parts))
    if len(name.encode()) <= LONGEST_NAME:
        return name
    code = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name.encode()[: LONGEST_NAME - 9].decode(errors='ignore')}-{code}"


class RunFolder:
    """The folder of one run. While it trains, it has `checkpoints/`; then `model.safetensors`, log, figures, samples.

    `config.json` has the options, the versions and the model's configuration.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.model, self.checkpoints = path, path / "model.safetensors", path / "checkpoints"

    def __str__(self) -> str:
        return str(self.path)

    @property
    def resume_command(self) -> str:
        """The command that resumes the run in one process."""
        return f"minitransformer train --resume {shlex.quote(str(self))}"

    @property
    def last_checkpoint(self) -> Path | None:
        """The newest checkpoint, or None."""
        return next(reversed(saved_steps(self.checkpoints)), None)

    def check_unused(self) -> None:
        """Raise ValueError if there is a run, finished or not."""
        if self.last_checkpoint:
            raise ValueError(
                f"{self} holds an unfinished run: resume it with `{self.resume_command}`, "
                "or start again with --overwrite"
            )
        if self.model.exists():
            raise ValueError(
                f"{self} holds a finished model: save this run elsewhere with --name NAME, "
                "or replace the model with --overwrite"
            )

    def write_config(self, about: dict[str, Any], model: Any) -> None:
        """Write config.json: `about` the run, the model's configuration, and the versions of the software."""
        package = sys.modules["minitransformer"]  # not imported, because it imports everything else
        config = {
            **about,
            "model": {"class": type(model).__name__, "config": dataclasses.asdict(model.config)},
            "versions": {
                "minitransformer": package.__version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
            "backend": backend_name(),
        }
        with atomic_write(self.path / "config.json") as partial:
            partial.write_text(json.dumps(config, indent=2) + "\n", encoding="utf8")

    def write_log(self, history: History) -> None:
        """Write log.csv: a line for each step with the loss, the norm of the gradient and the learning rate."""
        rows = zip(history.losses, history.norms, history.learning_rates, strict=True)
        lines = [f"{step},{loss:.6g},{norm:.6g},{rate:.6g}\n" for step, (loss, norm, rate) in enumerate(rows, start=1)]
        with atomic_write(self.path / "log.csv") as partial:
            partial.write_text("".join(["step,loss,grad_norm,learning_rate\n", *lines]), encoding="utf8")

    def delete_outputs(self) -> None:
        """Delete the log, the figures and the samples, and what a killed process has left of a file."""
        for path in (*(self.path / name for name in OUTPUTS), *self.path.glob("*.partial")):
            path.unlink(missing_ok=True)

    def delete_checkpoints(self) -> None:
        """Delete the checkpoints."""
        for path in (*saved_steps(self.checkpoints), *self.checkpoints.glob("*.partial")):
            path.unlink()
        if self.checkpoints.is_dir() and not any(self.checkpoints.iterdir()):
            self.checkpoints.rmdir()
