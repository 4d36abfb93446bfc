"""`minitransformer lengths`: which position encodings still work beyond the lengths that a toy task was trained on."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.bench.figures import plot_lengths
from minitransformer.bench.training import train_toy_task
from minitransformer.config import POSITIONS
from minitransformer.data import get_task
from minitransformer.evaluation import decode_and_score
from minitransformer.system.process import limit_threads
from minitransformer.system.progress import tqdm
from minitransformer.system.signals import blocked

TASKS = ("copy", "reverse")
LONGEST_TRAINED = 12  # symbols of a source in training
LENGTHS = (6, 9, 12, 13, 14, 16, 20, 24, 32, 48)  # symbols of a source in the tests
TESTED = 200  # sequences of each length


def run(seed: int, steps: int | None, processes: int, folder: Path) -> dict[str, Any]:
    """Train and test every task with every position encoding -> {"lengths", "rows"}.

    Prints a table, and draws lengths.png into `folder`.

    Args:
        seed: of the weights, the batches and the tests.
        steps: of training; None for those of each task's recipe.
        processes: trainings that run at the same time.
        folder: for the figure.
    """
    todo = jobs()
    rows = train_all(partial(train_and_test, seed=seed, steps=steps), todo, processes)
    rows.sort(key=lambda row: todo.index((row["task"], row["positions"])))
    print(f"exact match on {TESTED} held-out sequences of each length\n")
    print(f"{'task':<8} {'positions':<11}" + "".join(f"{length:>6}" for length in LENGTHS))
    for row in rows:
        print(f"{row['task']:<8} {row['positions']:<11}" + "".join(f"{score:>6.2f}" for score in row["exact_match"]))
    figure = folder / "lengths.png"
    plot_lengths(rows, TASKS, LENGTHS, LONGEST_TRAINED, figure)
    print(f"\nsaved {figure}")
    return {"lengths": LENGTHS, "rows": rows}


def train_all(
    work: Callable[..., dict[str, Any]], todo: Sequence[tuple[str, ...]], processes: int
) -> list[dict[str, Any]]:
    """[work(*job) for job in todo] in any order, computed by several processes. An interruption ends them at once."""
    with ProcessPoolExecutor(processes, initializer=prepare_worker) as pool:
        try:
            with blocked(signal.SIGINT, signal.SIGTERM):  # the workers leave both to this process
                futures = [pool.submit(work, *job) for job in todo]
            return [future.result() for future in tqdm(as_completed(futures), total=len(todo), unit="training")]
        except BaseException:
            for worker in multiprocessing.active_children():
                worker.kill()  # or they would do all jobs before the pool ends
            raise


def prepare_worker() -> None:
    """Run this in a new process: it ends with its parent, however that ends, and leaves the progress bar to it."""
    parent: Any = multiprocessing.parent_process()
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (it is used until the process ends)

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def jobs() -> list[tuple[str, str]]:
    """(task, positions) of every training."""
    return [(task, positions) for task in TASKS for positions in POSITIONS]


def train_and_test(task_name: str, positions: str, seed: int = 0, steps: int | None = None) -> dict[str, Any]:
    """Train the tiny model on one thread, as `train` does -> a row with the share of exact answers at LENGTHS."""
    with limit_threads(1):
        model, _, history = train_toy_task(task_name, seed, steps, positions=positions, max_len=max(LENGTHS) + 8)
        scores = [score_at(model, task_name, length, seed) for length in LENGTHS]
    return {"task": task_name, "positions": positions, "exact_match": scores, "seconds": history.seconds}


def score_at(model: Any, task_name: str, length: int, seed: int) -> float:
    """The share of exact answers to sources of `length` symbols."""
    task = get_task(task_name)
    task.max_len = length
    batch = task.batch(np.random.default_rng([seed, 4, length]), TESTED, held_out=True, min_len=length)
    return decode_and_score(model, batch)[1]
