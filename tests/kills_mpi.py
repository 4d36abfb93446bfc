"""Kill one of several processes that train together, again and again, and see that all end and that nothing is lost.

    python -m tests.kills_mpi                50 kills, about four minutes
    python -m tests.kills_mpi --count 5 --processes 3

A random process is killed by SIGKILL, which cannot be caught, at a random time between its start and the end of the
training. All others must end within ten seconds. Then the training is resumed, until it is finished, with the bits of
one that was left alone.
"""

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from minitransformer.system.files import read_safetensors
from minitransformer.system.progress import tqdm
from tests.kills import same_weights
from tests.training.launching import MISSING, Processes, is_alive

TRAIN = ("train", "copy", "--steps", "60", "--checkpoint-interval", "5", "--dropout", "0.1", "--batch-size", "4")
TRAIN += ("--name", "copy", "--overwrite")
RESUME = ("train", "--resume", "runs/copy")


class Report(NamedTuple):
    """What the kills have done."""

    kills: int
    in_steps: int  # kills after the first checkpoint of that start
    seconds: list  # between each kill and the end of all processes
    alone: dict  # the weights of a training that was left alone
    endings: list  # the weights of all others


def kill_again_and_again(folder, count, rng, size=2, progress=lambda: None):
    """Kill `count` times, resuming in between, and starting again whenever a training is finished -> Report.

    Raises AssertionError where a training fails that was not killed, or a process does not end.
    """
    run, model = folder / "runs" / "copy", folder / "runs" / "copy" / "model.safetensors"
    start = time.monotonic()
    assert Processes(size, folder, *TRAIN).end().status == 0
    usual = time.monotonic() - start
    alone = read_safetensors(model)[0]
    model.unlink()
    seconds, endings, in_steps = [], [], 0
    while len(seconds) < count or any(run.glob("checkpoints/step-*.safetensors")) or not endings:
        before = set(run.glob("checkpoints/step-*.safetensors"))
        processes = Processes(size, folder, *(RESUME if before else TRAIN))
        victim, killed = int(rng.integers(size)), False
        if len(seconds) < count and processes.wait_for(lambda victim=victim, each=processes: victim in each.pids()):
            moment = time.monotonic() + rng.uniform(0.0, usual)
            if processes.wait_for(lambda moment=moment: time.monotonic() >= moment):
                killed = is_alive(processes.pids()[victim])
                with contextlib.suppress(ProcessLookupError):  # it has ended just now
                    os.kill(processes.pids()[victim], signal.SIGKILL)
        ended = processes.end()
        if killed and ended.status != 0:
            seconds.append(ended.seconds)
            in_steps += bool(set(run.glob("checkpoints/step-*.safetensors")) - before)
            progress()
        else:
            assert ended.status == 0, ended
        if model.exists() and not any(run.glob("checkpoints/step-*.safetensors")):
            endings.append(read_safetensors(model)[0])
            model.unlink()
    return Report(len(seconds), in_steps, seconds, alone, endings)


def main():
    """Kill, resume, compare -> exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=50, help="kills (default 50)")
    parser.add_argument("--processes", type=int, default=2, help="that train together (default 2)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (default 0)")
    arguments = parser.parse_args()
    if MISSING:
        parser.error(MISSING)
    with tempfile.TemporaryDirectory() as name, tqdm(total=arguments.count, unit="kill", disable=None) as bar:
        rng = np.random.default_rng(arguments.seed)
        report = kill_again_and_again(Path(name), arguments.count, rng, arguments.processes, bar.update)
    equal = sum(same_weights(report.alone, weights) for weights in report.endings)
    print(f"{report.kills} kills of one of {arguments.processes} processes, {report.in_steps} after a new checkpoint")
    print(f"all processes ended {np.median(report.seconds):.2f} s later (median), {max(report.seconds):.2f} s at most")
    print(f"{len(report.endings)} trainings reached their end, {equal} of them with the bits of one left alone")
    return 0 if equal == len(report.endings) and max(report.seconds) < 10 else 1


if __name__ == "__main__":
    sys.exit(main())
