"""The folder of a run, `runs/NAME/`: its name, the files in it, and the lock that lets one training at a time use it.

The system's own lock on the file `lock` decides. The system releases it when the process ends, however it ends. So the
file that a killed process leaves behind is no lock, even if another process has the same number by now. The text in the
file says whose lock it is. Some network file systems keep the locks of each computer apart, so a file from another
computer counts as a lock until somebody deletes it.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import platform
import re
import socket
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from minitransformer.backend import backend_name
from minitransformer.config import flat_fields
from minitransformer.recipes.options import LONGEST_NAME, TrainOptions
from minitransformer.recipes.processes import launcher
from minitransformer.system.files import (
    atomic_write,
    check_folder,
    delete,
    kind_of,
    make_folder,
    named_in_errors,
    names_in,
    read_text,
)
from minitransformer.system.terminal import quoted
from minitransformer.training import History
from minitransformer.training.parallel.connect import connect
from minitransformer.training.saving.checkpoint import save_checkpoint
from minitransformer.training.saving.checkpointer import read_run, saved_steps

if sys.platform == "win32":
    import msvcrt

    def _lock(file: TextIO) -> None:
        file.seek(2**30)  # beyond the text, because other processes cannot read a byte that is locked
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError from error

else:
    import fcntl

    def _lock(file: TextIO) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


OUTPUTS = (
    "log.csv",
    "loss.png",
    "attention.png",
    "bleu.png",
    "confusion.png",
    "sample.txt",
    "translations.tsv",
)  # of a finished run, besides its model


def run_name(task: str, options: TrainOptions, defaults: TrainOptions) -> str:
    """The task, the names of its text and of --from, and each option that changes what is learned, if not the default.

    Such as "reverse", "reverse-seed-3" or "text-mybook-from-old", for --from runs/text-old. Only letters, digits and
    ._- are used. A name that is too long is cut, and ends with a hash of the whole name.
    """
    own_text, start = (getattr(options, name, None) for name in ("text", "from_"))
    parts = [task] if own_text is None else [task, Path(own_text).stem]
    if start is not None:
        parts += ["from", Path(start).name.removeprefix(f"{task}-")]
    for field in sorted(dataclasses.fields(options), key=lambda field: field.name):
        value = getattr(options, field.name)
        if (
            field.metadata["identity"]
            and field.name not in ("text", "from_")
            and value != getattr(defaults, field.name)
        ):
            parts.append(field.name.replace("_", "-"))
            if value is not True:
                parts.append(str(value).removesuffix(".0"))
    name = re.sub(r"[^\w.-]+", "_", "-".join(parts))
    if len(name.encode()) <= LONGEST_NAME:
        return name
    code = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name.encode()[: LONGEST_NAME - 9].decode(errors='ignore')}-{code}"


class RunFolder:
    """The folder of one run. While it trains, it has `checkpoints/`; then `model.safetensors`, log, figures, samples.

    Then `checkpoint.safetensors` lets the finished run be continued. `config.json` has the options, the versions and
    the model's configuration, and the id of the run.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.model, self.checkpoints = path, path / "model.safetensors", path / "checkpoints"
        self.kept = path / "checkpoint.safetensors"

    def __str__(self) -> str:
        return str(self.path)

    def command_from(self, path: Path, steps: int | str = "N") -> str:
        """The command that resumes the run from `path`, one of its checkpoints; the newest one needs no name.

        The one that is kept with a finished model needs the number of `steps`.
        """
        more = f" --steps {steps}" if path == self.kept else ""
        path = self.path if path == (self.last_checkpoint or self.kept) else path
        return f"{launcher()}minitransformer train --resume {quoted(path)}{more}"

    @property
    def last_checkpoint(self) -> Path | None:
        """The newest checkpoint, or None."""
        return next(reversed(saved_steps(self.checkpoints)), None)

    def check_unused(self, overwrite: bool) -> None:
        """Raise ValueError for a run that must not be overwritten, finished or not, and for a foreign folder."""
        if self.last_checkpoint and not overwrite:
            raise ValueError(
                f"{self} holds an unfinished run: resume it with `{self.command_from(self.path)}`, "
                "or start again with --overwrite"
            )
        if kind_of(self.model) and not overwrite:
            raise ValueError(
                f"{self} holds a finished model: save this run elsewhere with --name NAME, "
                "or replace the model with --overwrite"
            )
        others = [name for name in names_in(self.path) if name != "lock" and not name.endswith(".partial")]
        if others and not (self.last_checkpoint or kind_of(self.kept) or "recipe" in self.read_config()):
            raise ValueError(
                f"{self} is not the folder of a run, and holds {others[0]}: choose another with --name NAME"
            )

    def write_config(self, about: dict[str, Any], model: Any) -> None:
        """Write config.json: `about` the run, the model's configuration, and the versions of the software."""
        package = sys.modules["minitransformer"]  # not imported, because it imports everything else
        config = {
            **about,
            "model": {"class": type(model).__name__, "config": flat_fields(model.config)},
            "versions": {
                "minitransformer": package.__version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
            "backend": backend_name(),
        }
        self._write_json(config)

    def _write_json(self, config: dict[str, Any]) -> None:
        with atomic_write(self.path / "config.json") as partial:
            partial.write_text(json.dumps(config, indent=2) + "\n", encoding="utf8")

    def read_config(self) -> dict[str, Any]:
        """What config.json says; {} if it is missing or damaged."""
        with contextlib.suppress(OSError, ValueError, RecursionError):
            config = json.loads(read_text(self.path / "config.json"))
            return config if isinstance(config, dict) else {}
        return {}

    def set_run_id(self, run_id: str) -> None:
        """Let config.json, which goes on describing a finished model, say whose checkpoints are in the folder now."""
        config = self.read_config()
        if config and config.get("run", "none") != run_id:
            self._write_json({**config, "run": run_id})

    def write_log(self, history: History) -> None:
        """Write log.csv: a line for each step with the loss, the norm of the gradient and the learning rate."""
        rows = zip(history.losses, history.norms, history.learning_rates, strict=True)
        lines = [f"{step},{loss:.6g},{norm:.6g},{rate:.6g}\n" for step, (loss, norm, rate) in enumerate(rows, start=1)]
        with atomic_write(self.path / "log.csv") as partial:
            partial.write_text("".join(["step,loss,grad_norm,learning_rate\n", *lines]), encoding="utf8")

    def delete_outputs(self) -> None:
        """Delete the log, the figures and the samples, and what a killed process has left of a file."""
        for path in (*(self.path / name for name in OUTPUTS), *self.path.glob("*.partial")):
            delete(path)

    def keep(self, checkpoint: Path) -> None:
        """Save the last `checkpoint` beside the finished model, without the sets of weights that were averaged.

        They can be many times as large as all else, and a run that is continued for long enough averages later ones.
        """
        model, (arrays, facts), about, _ = read_run(checkpoint)
        arrays = {name: array for name, array in arrays.items() if not name.startswith("snapshots.")}
        save_checkpoint(self.kept, model, arrays, training={**facts, "snapshot_steps": []}, about=about)

    def delete_checkpoints(self) -> None:
        """Delete the checkpoints of an unfinished run."""
        for path in (*saved_steps(self.checkpoints), *self.checkpoints.glob("*.partial")):
            delete(path)
        if kind_of(self.checkpoints) == "folder" and not names_in(self.checkpoints):
            with named_in_errors(f"cannot delete {self.checkpoints}"):
                self.checkpoints.rmdir()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """A `with` block in which no other training can use `folder`.

    It creates the folder, and removes it at the end if nothing was saved there. Raises ValueError, which says who uses
    the folder, if another training does, and OSError if the folder cannot be written. Of several processes the root
    does all this for the others.
    """
    if not connect().is_root:
        yield
        return
    check_folder(folder)
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    path = folder / "lock"
    try:
        with named_in_errors(f"cannot write into the folder {folder}"):
            make_folder(folder)
        file = _acquire(path)
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):
                _release(file, path)
            raise
        _release(file, path)
    finally:
        with contextlib.suppress(OSError):
            for each in missing:
                each.rmdir()


def _acquire(path: Path) -> TextIO:
    """The lock file, which is locked and says who we are."""
    with named_in_errors(f"cannot lock the folder {path.parent}"), contextlib.ExitStack() as stack:
        file = stack.enter_context(open(path, "a+", encoding="utf8", opener=_open_own))
        try:
            _lock(file)
        except BlockingIOError:
            hint = "end that training first, or use another folder (--name)"
            raise ValueError(f"{path.parent} is in use: {_owner(file)[1]}; {hint}") from None
        if not _is_at(file, path):  # its last owner has deleted it
            return _acquire(path)
        host, owner = _owner(file)
        if host != socket.gethostname():
            raise ValueError(f"{path.parent} is in use: {owner}; if it has ended, delete {path}")
        file.truncate(0)
        started = time.strftime("%Y-%m-%d %H:%M:%S")
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "started": started}))
        file.flush()
        stack.pop_all()
        return file


def _release(file: TextIO, path: Path) -> None:
    """Delete the lock file while it is ours, and close it: once released, it may be that of another process.

    Windows deletes no open file. The one that stays is no lock.
    """
    with file:
        if sys.platform != "win32":
            delete(path)


def _owner(file: TextIO) -> tuple[str, str]:
    """What a lock file says -> the name of the computer, and a description. An unreadable file is of this computer."""
    file.seek(0)
    try:
        lock = json.loads(file.read(1000))
        return lock["host"], f"process {lock['pid']} on {lock['host']} has trained there since {lock['started']}"
    except (ValueError, TypeError, KeyError):
        return socket.gethostname(), "another process trains there"


def _open_own(path: str, flags: int) -> int:
    """Open a lock file, but never through a link, soft or hard: the file at its other end would be emptied."""
    with contextlib.suppress(FileNotFoundError):
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise OSError(f"{path} is a link, or no file: delete it")
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)  # nor is a link followed that is made now


def _is_at(file: TextIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.lstat(path))
    except FileNotFoundError:
        return False
