"""Let one system call of a training fail, and see that nothing is lost and nothing is concealed.

    pytest --weekly tests/cli/test_faults.py     every call of a training, with each error: about ten minutes

The training runs in this process. Each of its calls that changes the run's folder (mkdir, open, write, close, fsync,
rename, unlink) fails once, or from some call on. A write that fails has written half, and a file whose fsync fails has
lost half, because what it holds is unknown. Then the command that the error message names must lead to the same weights
as a training that was left alone.
"""

import builtins
import contextlib
import errno
import io
import os
import re
import shlex
import stat
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

from minitransformer.cli import main as minitransformer
from minitransformer.system.files import read_safetensors
from tests.drawing import leave_undrawn
from tests.kills import same_weights

RUN = Path("runs/copy")
TRAIN = ("train", "copy", "--steps", "4", "--batch-size", "2", "--name", "copy")
TRAIN += ("--checkpoint-interval", "1", "--keep-checkpoints", "2")
ALWAYS = ("ENOSPC", "EIO", "EDQUOT")
ERRORS = {
    "mkdir": (*ALWAYS, "EROFS", "EACCES"),
    "open file": (*ALWAYS, "EROFS", "EACCES"),
    "write": ALWAYS,
    "fsync file": ALWAYS,
    "close": ALWAYS,
    "rename": (*ALWAYS, "EROFS", "EACCES"),
    "open folder": ("EIO", "EACCES"),
    "fsync folder": ALWAYS,
    "unlink": ("EIO", "EROFS", "EACCES"),
    "rmdir": ("EIO", "EROFS", "EACCES"),
}
NOT_BEGUN = re.compile(r"no checkpoint has been saved|train: cannot (write into|lock) the folder runs")
NAMED = re.compile(r"resume with: minitransformer (.*)$")
PICTURE = b"a figure"


class Call(NamedTuple):
    """A system call: what it does, and to which file."""

    kind: str
    path: Path


class Disk:
    """Inside a `with` block, the calls for files in the current folder are noted in `calls`.

    Before each of them comes before(call). An OSError that it raises is the failure of this call.
    """

    def __init__(self, before):
        self.before, self.calls, self.paths, self.here = before, [], {}, Path.cwd()

    def call(self, kind, path):
        """Note a call, which may fail, for a file in the current folder."""
        path = Path(path).absolute()
        if path.is_relative_to(self.here):
            call = Call(kind, path.relative_to(self.here))
            self.before(call)
            self.calls.append(call)

    def __enter__(self):
        self.patch = pytest.MonkeyPatch()
        for owner, name in ((os, "open"), (os, "fsync"), (os, "replace"), (builtins, "open")):
            self.patch.setattr(
                owner, name, self.wrapped(getattr(self, f"_{owner.__name__}_{name}"), getattr(owner, name))
            )
        for name in ("open", "mkdir", "unlink", "rmdir"):
            self.patch.setattr(Path, name, self.wrapped(getattr(self, f"_path_{name}"), getattr(Path, name)))
        return self

    def __exit__(self, *exception):
        self.patch.undo()

    @staticmethod
    def wrapped(ours, plain):
        """A function that calls `ours` with the plain function as first argument. It can be a method."""
        return lambda *arguments, **options: ours(plain, *arguments, **options)

    def _os_open(self, plain, path, flags, *mode, **options):
        if flags & getattr(os, "O_DIRECTORY", 0):
            self.call("open folder", path)
        descriptor = plain(path, flags, *mode, **options)
        self.paths[descriptor] = path
        return descriptor

    def _os_fsync(self, plain, descriptor):
        state = os.fstat(descriptor)
        try:
            self.call("fsync folder" if stat.S_ISDIR(state.st_mode) else "fsync file", self.paths[descriptor])
        except OSError:
            if stat.S_ISREG(state.st_mode):
                os.truncate(self.paths[descriptor], state.st_size // 2)
            raise
        plain(descriptor)

    def _os_replace(self, plain, source, target):
        self.call("rename", target)
        plain(source, target)

    def _path_mkdir(self, plain, path, *arguments, **options):
        self.call("mkdir", path)
        plain(path, *arguments, **options)

    def _path_unlink(self, plain, path, missing_ok=False):
        if path.exists():
            self.call("unlink", path)
        plain(path, missing_ok)

    def _path_rmdir(self, plain, path):
        if path.name == "checkpoints":  # the others are folders that were made to try whether that is possible
            self.call("rmdir", path)
        plain(path)

    def _path_open(self, plain, path, mode="r", buffering=-1, encoding=None, errors=None, newline=None):
        return builtins.open(path, mode, buffering, encoding, errors, newline)

    def _builtins_open(self, plain, file, mode="r", *arguments, **options):
        if isinstance(file, int) or not set(mode) & set("wax"):
            return plain(file, mode, *arguments, **options)
        self.call("open file", file)
        raw = File(self, file, mode)
        self.paths[raw.fileno()] = file
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding="utf8", newline="")


class File(io.FileIO):
    """A file whose write and close may fail."""

    def __init__(self, disk, path, mode):
        super().__init__(path, mode.replace("b", ""))
        self.disk, self.path = disk, path

    def write(self, data):
        """Write all, or half and fail."""
        try:
            self.disk.call("write", self.path)
        except OSError:
            super().write(memoryview(data).cast("B")[: len(data) // 2])
            raise
        return super().write(data)

    def close(self):
        """Close the file; an error, as of a network file system, comes when it is closed."""
        was_open = not self.closed
        super().close()
        if was_open:
            self.disk.call("close", self.path)


@contextlib.contextmanager
def inside(folder):
    """A `with` block in another current folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield


class Outcome(NamedTuple):
    """What a command does."""

    status: int
    out: str
    err: str


def run(*words):
    """`minitransformer *words` in this process, without drawing."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
        leave_undrawn(patch, PICTURE)
        patch.setattr("minitransformer.recipes.toy.TESTED", 4)
        patch.setattr("minitransformer.system.progress.LINE_INTERVAL", float("inf"))
        status = minitransformer(list(words))
    return Outcome(status, out.getvalue(), err.getvalue())


def weights(path=RUN / "model.safetensors"):
    """The weights of a finished model."""
    return read_safetensors(path)[0]


def is_finished(whole):
    """Whether the run has a model with these weights."""
    try:
        return same_weights(weights(), whole)
    except (OSError, ValueError):
        return False


def saved_before(calls):
    """The files of checkpoints and of the model that `calls` have put safely on the disk."""
    safe, renamed = [], None
    for call in calls:
        if call.kind == "rename":
            renamed = call.path
        elif call.kind == "fsync folder" and renamed and call.path == renamed.parent:
            safe, renamed = [*safe, renamed], None
    return [path for path in safe if path.suffix == ".safetensors"]


def fail_in(folder, number, error, for_good):
    """Train in `folder`, where call `number` fails with `error`, and if `for_good` all later ones do -> calls, Outcome.

    `calls` are those that were made before.
    """
    made = []

    def fail(call):
        if len(made) == number or (for_good and len(made) > number):
            made.append(call)
            raise OSError(getattr(errno, error), os.strerror(getattr(errno, error)), str(call.path))
        made.append(call)

    with inside(folder):
        with Disk(fail):
            outcome = run(*TRAIN)
        return made[:number], outcome


def judge(folder, calls, outcome, whole):
    """What is wrong after a failure -> a list of sentences, which should be empty.

    `calls` are those before the failure, and `whole` is the model of a training that was left alone.
    """
    wrong = []
    if outcome.status == 0:
        wrong.append("status 0")
    if outcome.status != 2 or not re.fullmatch(r"minitransformer train: [^\n]+\n", outcome.err):
        wrong.append(f"not one plain line: status {outcome.status}, {outcome.err!r}")
    with inside(folder):
        safe = saved_before(calls)
        if outcome.status == 0 or RUN / "model.safetensors" in safe:
            return wrong if is_finished(whole) else [*wrong, "lost: the model"]
        named = NAMED.search(outcome.err)
        if safe and not named:
            wrong.append(f"not named: {safe[-1]}")
        if not safe and not named and not NOT_BEGUN.search(outcome.err):
            wrong.append("not said that nothing was saved")
        words = shlex.split(named[1]) if named else ("train", "--resume", str(RUN)) if safe else (*TRAIN, "--overwrite")
        again = run(*words)
        if again.status or not is_finished(whole):
            return [*wrong, f"lost: {again.err}"]
        if safe and int(safe[-1].stem[-8:]) > int(re.search(r"after step (\d+)", again.out)[1]):
            wrong.append("lost: steps that were saved")
        left = [path.name for path in RUN.rglob("*.partial")]
        if left:
            wrong.append(f"left: {left}")
    return wrong


def plain_training(folder, before=lambda call: None):
    """Train without a failure -> calls, the weights."""
    with inside(folder):
        with Disk(before) as disk:
            outcome = run(*TRAIN)
        assert outcome.status == 0, outcome.err
        return disk.calls, weights()


def trials(calls):
    """All failures there can be: (number of the call, error, whether all later calls fail, too)."""
    return [(n, error, good) for n, call in enumerate(calls) for error in ERRORS[call.kind] for good in (False, True)]


def attempt(number, error, for_good, whole):
    """One failure in a folder of its own -> what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        return judge(folder, *fail_in(folder, number, error, for_good), whole)
