"""Starts processes with `mpiexec`, as a user does."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from experiments.measuring.mpiexec import find_mpiexec

ROOT = Path(__file__).parents[2]
PATHS = os.pathsep.join(filter(None, [str(ROOT), str(ROOT / "lessons"), os.environ.get("PYTHONPATH")]))
PATIENCE = 120.0  # seconds, on a busy machine
try:
    MPIEXEC, MISSING = find_mpiexec("this test"), ""
except ValueError as error:
    MPIEXEC, MISSING = None, str(error)  # why tests with several processes are skipped


class Ended(NamedTuple):
    """How all processes ended."""

    status: int | None  # None if they had to be killed
    out: str
    err: str
    seconds: float


class Processes:
    """`python -m tests.training.failing ...` in `count` processes, started in `folder`."""

    def __init__(self, count, folder, *arguments, what="nothing", rank=0):
        folder.mkdir(parents=True, exist_ok=True)
        self.count, self.folder, self.start = count, folder, time.monotonic()
        for path in folder.glob("pid-*"):
            path.unlink()
        words = [MPIEXEC, "-n", str(count), sys.executable, "-m", "tests.training.failing", what, str(rank)]
        self.launcher = subprocess.Popen(
            [*words, *map(str, arguments)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": PATHS, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def pids(self):
        """{rank: number of its process} of those that have begun."""
        return {int(path.name[4:]): int(path.read_text()) for path in self.folder.glob("pid-?")}

    def wait_for(self, condition):
        """Until condition() is true -> whether it is, or the processes have ended instead."""
        while not condition():
            if self.launcher.poll() is not None:
                return False
            assert time.monotonic() < self.start + PATIENCE, "the processes do not come so far"
            time.sleep(0.001)
        return True

    def end(self, patience=PATIENCE):
        """Wait for the end -> Ended. No process is left."""
        start = time.monotonic()
        try:
            out, err = self.launcher.communicate(timeout=patience)
            status = self.launcher.returncode
        except subprocess.TimeoutExpired:
            self.launcher.kill()
            status, (out, err) = None, self.launcher.communicate()
        while any(map(is_alive, self.pids().values())) and time.monotonic() < start + patience:
            time.sleep(0.01)
        seconds = time.monotonic() - start
        left = [pid for pid in self.pids().values() if is_alive(pid)]
        for pid in left:
            os.kill(pid, 9)
        assert not left, f"{len(left)} of {self.count} processes are still alive"
        return Ended(status, out, err, seconds)


def is_alive(pid):
    """Whether a process has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def launch(count, folder, *arguments, **options):
    """Run `minitransformer ARGUMENTS` in `count` processes -> Ended."""
    return Processes(count, folder, *arguments, **options).end()
