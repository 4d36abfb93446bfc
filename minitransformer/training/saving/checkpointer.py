"""Saving a training run while it runs, and reading it to resume."""

import fnmatch
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from minitransformer.checks import check_integer, check_number, check_shape
from minitransformer.models import Transformer
from minitransformer.models.before_2017.recurrent import Seq2Seq
from minitransformer.models.since_2017.bert import BERT
from minitransformer.models.since_2017.gpt import GPT
from minitransformer.system.files import delete, kind_of, names_in
from minitransformer.system.signals import Postponed
from minitransformer.training.parallel.strategy import saved_threads
from minitransformer.training.run import TrainingRun
from minitransformer.training.saving.checkpoint import check_restorable, load_with_arrays, save_checkpoint

SUFFIX = ".safetensors"
COUNTS = {"step": 0, "adam_steps": 0, "ema_updates": 0, "tokens": 0, "position": 0, "processes": 1}  # and the least
MOST = 2**53  # more than any training counts


class Stopped(Exception):
    """Training was stopped. The run was saved to `path`. A recipe adds `advice` on how to resume it."""

    advice = ""

    def __init__(self, message: str, path: Path) -> None:
        super().__init__(message)
        self.path = path


class Checkpointer:
    """Saves a run in `folder` every `interval` steps, after the last one, and when the process is asked to end.

    The files are called step-00000400.safetensors and so on, and can be loaded as models like any other. Only the
    newest `keep` files are kept. `about` is saved with the run and returned by `read_run`; it must be
    what JSON can hold. `own_layers` as for `save_checkpoint`; without it, a model that could not be restored is refused
    before the training begins. The attribute `newest` is the file that was saved last.
    """

    def __init__(
        self, folder: str | Path, interval: int, keep: int = 2, about: dict | None = None, own_layers: bool = False
    ) -> None:
        self.folder = Path(folder)
        self.interval = check_integer("interval", interval, least=1)
        self.keep = check_integer("keep", keep, least=1)
        self.about = about or {}
        self.own_layers = own_layers
        self.newest: Path | None = None
        self.stop_requested = False

    def check(self, model: Any) -> None:
        """ValueError for a model whose files could not be loaded, before any step is spent on it."""
        if not self.own_layers:
            check_restorable(model)

    def after_step(self, run: TrainingRun, signals: Postponed) -> None:
        """Save the run if a checkpoint is due. After a signal, or with `stop_requested`, save it and raise Stopped.

        All processes of a run stop after the same step.
        """
        self.stop_requested |= signals.take()
        if run.strategy.any(self.stop_requested):
            self.stop_requested = False  # the next training with this checkpointer goes on
            path = self.save(run)
            raise Stopped(f"stopped after step {run.step:,}, saved {path}", path)
        if run.step % self.interval == 0 or run.is_done:
            self.save(run)

    def save(self, run: TrainingRun) -> Path:
        """Write the run, and once it is safely on the disk delete the oldest files -> the path.

        Later steps are deleted too: they are there if the run was resumed from an earlier file than the newest. Raises
        OSError if the file cannot be written, and no other file is deleted then, or if another cannot be deleted.
        """
        arrays, facts = run.state()
        path = self.folder / f"step-{run.step:08d}{SUFFIX}"
        if not run.strategy.is_root:
            return path
        save_checkpoint(path, run.model, arrays, own_layers=self.own_layers, training=facts, about=self.about)
        self.newest = path
        saved = saved_steps(self.folder)
        until_now = saved[: saved.index(path) + 1]
        for other in (*until_now[: -self.keep], *saved[len(until_now) :]):
            delete(other)
        return path


class SavedRun(NamedTuple):
    """A run that was read from a file."""

    model: Transformer | GPT | BERT | Seq2Seq
    state: tuple[dict, dict]  # arrays and facts, for `train(resume=...)`
    about: dict
    path: Path

    @property
    def step(self) -> int:
        """Steps taken."""
        return self.state[1]["step"]

    @property
    def num_threads(self) -> int | None:
        """Threads that shared a batch, or None if unknown."""
        return saved_threads(self.state[1])

    @property
    def processes(self) -> int:
        """Processes that shared a batch."""
        return self.state[1].get("processes", 1)


def saved_steps(folder: str | Path) -> list[Path]:
    """The checkpoints in `folder`, the oldest first. Raises OSError if there is a folder that cannot be read."""
    return [Path(folder, name) for name in fnmatch.filter(names_in(folder), f"step-*{SUFFIX}")]


def newest_checkpoint(path: str | Path) -> Path:
    """The newest checkpoint in the folder `path`, or `path` itself if it is no folder. FileNotFoundError if empty."""
    path = Path(path)
    if kind_of(path) == "folder":
        files = saved_steps(path)
        if not files:
            raise FileNotFoundError(f"there is nothing to resume in {path}: no file step-*{SUFFIX}")
        return files[-1]
    return path


def read_run(path: str | Path, model: Any = None) -> SavedRun:
    """Read a file that a Checkpointer has saved; `model` as for `load_checkpoint`. ValueError if it has no open run."""
    model, metadata, arrays = load_with_arrays(path, model)
    if "training" not in metadata:
        raise ValueError(f"{path} is a model whose training is finished: there is nothing to resume")
    for name in ("training", "about"):
        if not isinstance(metadata.get(name), dict):
            raise ValueError(f"{path} does not hold the state of its training: its {name} must be a JSON object")
    if not isinstance(metadata["training"].get("step"), int):
        raise ValueError(f"{path} does not say how many steps were taken")
    try:
        _check_state(arrays, metadata["training"])
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} does not hold the state of a training: {error}") from error
    return SavedRun(model, (arrays, metadata["training"]), metadata["about"], Path(path))


def _check_state(arrays, facts):
    """ValueError or TypeError for numbers that no training has counted: a resumed one would rely on them."""
    for name, least in COUNTS.items():
        if check_integer(name, facts.get(name, least), least) > MOST:
            raise ValueError(f"{name} must be at most {MOST}, got {facts[name]}")
    if not 0 <= check_number("seconds", facts.get("seconds", 0.0)) < math.inf:
        raise ValueError(f"seconds must be at least 0 and finite, got {facts['seconds']}")
    for name in ("losses", "norms", "learning_rates"):
        check_shape(name, arrays.get(name, np.zeros(0)), (facts["step"],))
    for name in ("snapshot_steps", "dropout_rngs"):
        if not isinstance(facts.get(name, []), list):
            raise TypeError(f"{name} must be a list, got {facts[name]!r}")
