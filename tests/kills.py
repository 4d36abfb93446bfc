"""Kill a training again and again, at moments that nobody chose, and see that it ends with the same bits.

    python -m tests.kills                200 kills, about five minutes
    python -m tests.kills --count 20

Each training runs in a process of its own and is killed by SIGKILL, which cannot be caught, between the start of its
first step and its last; in a quarter of the cases at once when a half-written checkpoint is seen. After each kill it is
resumed. Counted is how many kills left half a checkpoint behind.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from minitransformer.system.files import read_safetensors
from minitransformer.system.progress import tqdm

STEPS = 60
TRAIN = ("train", "copy", "--steps", str(STEPS), "--checkpoint-interval", "5", "--dropout", "0.1", "--batch-size", "4")
TRAIN += ("--name", "copy")


def start(folder, resume):
    """Start the run, or resume it, in a process of its own."""
    arguments = ("train", "--resume", "runs/copy") if resume else TRAIN
    command = [sys.executable, "-m", "minitransformer", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def names_in(folder):
    """The names of what is in a folder; none if it does not exist, as when training has ended in this moment."""
    try:
        return set(os.listdir(folder))
    except FileNotFoundError:
        return set()


def wait_for_work(process, folder, in_writing):
    """Until the process has begun to train (a checkpoint is new), or is just writing one -> whether it still runs."""
    checkpoints = folder / "runs" / "copy" / "checkpoints"
    before = names_in(checkpoints)
    while process.poll() is None:
        names = names_in(checkpoints)
        if any(name.endswith(".partial") for name in names) if in_writing else names - before:
            return True
        time.sleep(0.0005)
    return False


def kill_again_and_again(folder, count, rng, progress=lambda: None):
    """Kill `count` times, resuming in between, and starting again whenever a training is finished.

    -> (kills, how many of them left half a checkpoint behind, the weights of each ending). Raises AssertionError where
    a resumed training fails.
    """
    run, kills, halves, endings, resume = folder / "runs" / "copy", 0, 0, [], False
    while kills < count or not endings or resume:
        process, in_writing = start(folder, resume), rng.random() < 0.25
        if kills < count and wait_for_work(process, folder, in_writing):
            time.sleep(0.0 if in_writing else rng.uniform(0.0, 0.15))
            process.kill()
        complaint = process.communicate()[1]
        if process.returncode == 0:
            endings.append(read_safetensors(run / "model.safetensors")[0])
            (run / "model.safetensors").unlink()
            resume = False
            continue
        assert process.returncode < 0, complaint.decode()
        kills += 1
        halves += any(str(process.pid) in path.name for path in (run / "checkpoints").glob("*.partial"))
        progress()
        resume = any((run / "checkpoints").glob("step-*.safetensors"))
    return kills, halves, endings


def same_weights(a, b):
    """Whether two models have the same bits."""
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def main():
    """Kill, resume, compare -> exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="kills (default 200)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (default 0)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, tqdm(total=arguments.count, unit="kill", disable=None) as bar:
        (whole,) = kill_again_and_again(Path(name), 0, np.random.default_rng(0))[2]
        rng = np.random.default_rng(arguments.seed)
        kills, halves, endings = kill_again_and_again(Path(name), arguments.count, rng, bar.update)
    equal = sum(same_weights(whole, weights) for weights in endings)
    print(f"{kills} kills, {halves} of them left half a checkpoint behind")
    print(f"{len(endings)} trainings reached their end, {equal} of them with the bits of one left alone")
    return 0 if equal == len(endings) else 1


if __name__ == "__main__":
    sys.exit(main())
