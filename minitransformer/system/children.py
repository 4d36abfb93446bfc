"""Programs in processes of their own, which end with all that they have started, however this process ends."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from minitransformer.system.signals import blocked

MINDER = Path(__file__).with_name("minder.py")
PATIENCE = 0.5  # seconds that a child has to clean up
GRACE = 5.0  # seconds to end its processes
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
        self.reader.join(GRACE)  # not for ever: where daemons live on, they may hold the pipe

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
    """Run a program -> its exit status, or minus the signal that ended it. All processes that it started end with it.

    They end, too, if this process ends or is interrupted: the program gets SIGTERM, and is killed `patience` seconds
    later. After `seconds` it is stopped in the same way: TimeoutExpired. `limits` are those of the module `resource`,
    {"RLIMIT_AS": bytes}. On Windows there are none, and only the program itself is ended.
    """
    lifeline, held = os.pipe()
    child = None
    try:
        if sys.platform != "win32":
            minder = [sys.executable, "-IS", str(MINDER), str(lifeline), str(patience), json.dumps(limits or {})]
            command = [*minder, *command]
            options.update(pass_fds=[lifeline], start_new_session=True)
        with blocked(signal.SIGINT):
            child = subprocess.Popen(command, **options)
        return child.wait(seconds)
    finally:
        os.close(lifeline)
        os.close(held)  # the minder notices
        if child:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(patience + GRACE if sys.platform != "win32" else 0)
            child.kill()  # does nothing if it has ended
            child.wait()


def last_line(command: Sequence[str], **options: Any) -> str:
    """Run a program -> the last line that it prints. RuntimeError, with its last line on stderr, if it fails."""
    with Tail() as out, Tail() as err:
        status = run_child(command, stdout=out, stderr=err, **options)
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with status {status}: {err.last_line}")
    return out.last_line
