"""Programs in processes of their own, which end with all that they have started."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from minitransformer.system.signals import blocked

PATIENCE = 0.5  # seconds that a child has to clean up
GRACE = 2.0  # seconds until all that it has printed is read
KEPT = 1 << 16  # bytes of what it prints


class Tail:
    """The end of what children print, for their stdout or stderr: a pipe that is read without end, and kept in part."""

    def __enter__(self) -> "Tail":
        self.kept = b""
        reading, self.writing = os.pipe()
        self.reader = threading.Thread(target=self._read, args=(reading,), daemon=True)
        self.reader.start()
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self.writing)
        self.reader.join(GRACE)  # not for ever: a process that has left its session may hold the pipe

    def _read(self, reading: int) -> None:
        with open(reading, "rb", buffering=0) as stream:
            while piece := stream.read(KEPT):
                self.kept = (self.kept + piece)[-KEPT:]

    def fileno(self) -> int:
        """Where to write."""
        return self.writing

    @property
    def last_line(self) -> str:
        """The last line that was printed."""
        return (self.kept.decode("utf-8", "replace").strip().splitlines() or [""])[-1]


class Head(Tail):
    """The beginning of what children print. After `most` bytes the pipe is closed: printing more is an error."""

    def __init__(self, most: int) -> None:
        self.most = most

    def _read(self, reading: int) -> None:
        with open(reading, "rb", buffering=0) as stream:
            while len(self.kept) < self.most and (piece := stream.read(self.most - len(self.kept))):
                self.kept += piece


def run_child(
    command: Sequence[str],
    seconds: float | None = None,
    patience: float = PATIENCE,
    limits: Mapping[str, int] | None = None,
    **options: Any,
) -> int:
    """Run a program -> its exit status, or minus the signal that ended it.

    It gets a session of its own, which ends with it: all processes that it has started, except for those that have left
    the session. If this process is interrupted, the program gets SIGTERM, and `patience` seconds later all are killed.
    After `seconds` they are ended in the same way: TimeoutExpired. On Windows only the program itself is ended.

    `limits` are those of the module `resource`, {"RLIMIT_AS": bytes}, each for every process of the session, in Linux.
    They are what ends the program if this process is killed.
    """
    child = None
    try:
        with blocked(signal.SIGINT):
            child = subprocess.Popen(command, start_new_session=sys.platform != "win32", **options)
        _limit(child.pid, limits or {})
        return child.wait(seconds)
    finally:
        if child:
            _end_all(child, patience)


def _limit(pid: int, limits: Mapping[str, int]) -> None:
    """Lower the limits of a process that has just been started, where the system has them; those lower already stay."""
    if not sys.platform.startswith("linux"):
        return
    import resource

    for name, value in limits.items():
        kind = getattr(resource, name)
        with contextlib.suppress(ProcessLookupError):  # it has ended
            soft, hard = (sys.maxsize if old == resource.RLIM_INFINITY else old for old in resource.prlimit(pid, kind))
            if value < soft:
                resource.prlimit(pid, kind, (value, min(value, hard)))


def _end_all(child: subprocess.Popen, patience: float) -> None:
    """End a program and its session, and wait for it."""
    try:
        if child.poll() is None and patience:
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(patience)
    finally:
        if sys.platform == "win32":
            child.kill()
        else:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left
                os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def last_line(command: Sequence[str], **options: Any) -> str:
    """Run a program -> the last line that it prints. RuntimeError, with its last line on stderr, if it fails."""
    with Tail() as out, Tail() as err:
        status = run_child(command, stdout=out, stderr=err, **options)
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with status {status}: {err.last_line}")
    return out.last_line
