"""Let one of two processes fail before they train, in five ways, and see that both end soon and with one message.

python -m tests.fails_mpi                each failure 20 times, about four minutes
python -m tests.fails_mpi --count 3 --rank 0
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.training.launching import MISSING, MPIEXEC, ROOT

TRAIN = (sys.executable, "-m", "minitransformer", "train", "copy", "--steps", "3", "--overwrite", "--name", "copy")
PATIENCE = 30.0  # seconds until all are killed
FAILURES = {  # what the process does that fails
    "--backend cupy": (*TRAIN, "--backend", "cupy"),
    "MINITRANSFORMER_BACKEND": ("-env", "MINITRANSFORMER_BACKEND", "cupy", *TRAIN),
    "unwritable --runs": (*TRAIN, "--runs", "file"),
    "unknown option": (*TRAIN, "--fly"),
    "exit 3": (sys.executable, "-c", "raise SystemExit(3)"),
}


class Ended(NamedTuple):
    """How all processes ended."""

    status: int | None  # None if they had to be killed
    lines: list  # on stderr
    seconds: float
    left: int  # processes that outlived mpiexec


def command_of(*ranks):
    """The command that starts one process for each of the commands."""
    words = [MPIEXEC]
    for command in ranks:
        words += [*([":"] if len(words) > 1 else []), "-n", "1", *command]
    return words


def processes_with(tag):
    """The numbers of the processes that have `tag` in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if tag.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:  # it has just ended
            continue
    return found


def end_of(folder, *ranks, signal_after=None):
    """Start one process for each of the commands in `folder`, which gets a file `file` -> Ended.

    `signal_after` is (number, seconds): a signal for mpiexec.
    """
    (folder / "file").touch()
    (folder / "cupy.py").write_text("raise ImportError('not installed')\n")  # even on a machine that has it
    tag, start = uuid.uuid4().hex, time.monotonic()
    env = {**os.environ, "TAG": tag, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), "OMP_NUM_THREADS": "1"}
    options = {"cwd": folder, "env": env, "stdin": subprocess.DEVNULL, "text": True}
    launcher = subprocess.Popen(command_of(*ranks), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)
    if signal_after:
        time.sleep(signal_after[1])
        start = time.monotonic()
        launcher.send_signal(signal_after[0])
    try:
        err, status = launcher.communicate(timeout=PATIENCE)[1], launcher.returncode
        deadline = time.monotonic() + 1.0  # mpiexec does not wait until the system has removed the last one
        while processes_with(tag) and time.monotonic() < deadline:
            time.sleep(0.02)
    except subprocess.TimeoutExpired:
        launcher.kill()
        err, status = launcher.communicate()[1], None
    seconds, left = time.monotonic() - start, processes_with(tag)
    for pid in left:
        os.kill(pid, 9)
    return Ended(status, [line for line in err.splitlines() if line], seconds, len(left))


def main():
    """Let each failure happen again and again, and print a table -> exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20, help="repetitions of each failure (default 20)")
    parser.add_argument("--rank", type=int, default=1, choices=(0, 1), help="the process that fails (default 1)")
    arguments = parser.parse_args()
    if MISSING:
        parser.error(MISSING)
    good = True
    print(f"{'rank ' + str(arguments.rank) + ' fails by':<24} {'median':>8} {'longest':>8}  messages  left")
    for name, failing in FAILURES.items():
        ranks = (failing, TRAIN) if arguments.rank == 0 else (TRAIN, failing)
        with tempfile.TemporaryDirectory() as folder:
            ends = [end_of(Path(folder), *ranks) for _ in range(arguments.count)]
        seconds, messages = [end.seconds for end in ends], {len(end.lines) for end in ends}
        left = sum(end.left for end in ends)
        print(f"{name:<24} {np.median(seconds):6.2f} s {max(seconds):6.2f} s  {messages!s:<8}  {left}", flush=True)
        good &= messages == {1} and not left and max(seconds) < 5
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
