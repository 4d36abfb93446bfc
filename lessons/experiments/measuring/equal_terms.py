"""Training models of different kinds for an equal number of parameters and an equal time, several at the same time."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

import numpy as np

from experiments.measuring.steps import make_training_step
from minitransformer import Layer, Seq2Seq, Seq2SeqConfig, Transformer, TransformerConfig
from minitransformer.config import special_ids
from minitransformer.data import ToyTask
from minitransformer.data.task import EpochTask, Task
from minitransformer.evaluation import decode_and_score
from minitransformer.system.process import keep_freed_memory, limit_threads
from minitransformer.system.progress import tqdm
from minitransformer.system.signals import blocked
from minitransformer.training.batches import Batches

PARAMETERS = 150_000  # of each model, or as many fewer as the next smaller even width has
WARM_UP = 100  # steps
BATCH = 64
TESTED = 200  # held-out sequences of each length
PEAK = 6e-3  # of the learning rate: of 1e-3, 3e-3 and 6e-3 the best for each of these models on reverse, after 12 s
MODELS = {"fixed vector": "none", "additive": "additive", "dot": "dot", "Transformer": None}  # {name: attention}


def make_model(
    name: str, vocab_size: int, seed: int | None, parameters: int = PARAMETERS, dropout: float = 0.0, **lstm: Any
) -> Any:
    """A new model: a Seq2Seq of one layer on each side, or a Transformer of two, with at most so many parameters.

    `lstm` are further fields of the Seq2Seq.
    """
    attention, common = MODELS[name], {"max_len": 64, "dropout": dropout}

    def make(width: int, seed: int | None) -> Any:
        sizes: dict[str, Any] = {**common, "d_model": width}
        if attention is None:
            sizes |= {"num_heads": 4, "d_ff": 4 * width, "num_layers": 2}
            return Transformer(TransformerConfig(vocab_size, **sizes), seed=seed)
        sizes |= {"hidden_size": width, "num_layers": 1, "attention": attention}
        return Seq2Seq(Seq2SeqConfig(vocab_size, **sizes, **lstm), seed=seed)

    return make(widest(lambda width: make(width, None), parameters), seed)


def widest(make: Callable[[int], Layer], parameters: int) -> int:
    """The largest multiple of 4 for which make(width) has at most so many parameters."""
    width = 4
    while make(width + 4).num_parameters() <= parameters:
        width += 4
    return width


def train_for(
    model: Any,
    task: Task | EpochTask,
    seconds: float,
    seed: int,
    peak: float = PEAK,
    batch_size: int | None = None,
    label_smoothing: float = 0.0,
    warmup: int = WARM_UP,
) -> dict[str, Any]:
    """Train on one thread for so many seconds of this process's CPU time -> {"steps", "tokens", "loss"}.

    The learning rate rises to `peak` in `warmup` steps, and falls in a straight line to 0 as the time runs out. CPU
    time is what the model itself uses: other work on the machine takes none of it. "tokens" are those that the model
    has read, without padding, and the loss is the mean of the last 50 steps. The default of `batch_size` is BATCH.
    """
    batches = Batches(task, batch_size or BATCH, seed)
    losses: list[float] = []
    tokens = 0
    with limit_threads(1):
        step = make_training_step(model, label_smoothing, threads=1)
        start = time.process_time()
        while (used := (time.process_time() - start) / seconds) < 1.0:
            rate = peak * min(1.0, (len(losses) + 1) / warmup) * (1.0 - used)
            batch = next(batches)
            losses.append(float(step(batch, rate)))
            tokens += sum(int(special_ids(model).tokens(ids).sum()) for ids in batch.inputs)
    return {"steps": len(losses), "tokens": tokens, "loss": float(np.mean(losses[-50:]))}


def train_all(
    work: Callable[..., dict[str, Any]], todo: Sequence[tuple[Any, ...]], processes: int = 2
) -> list[dict[str, Any]]:
    """[work(*job) for job in todo], computed by several processes. An interruption ends them at once."""
    with ProcessPoolExecutor(min(processes, len(todo)), initializer=prepare_worker) as pool:
        try:
            with blocked(signal.SIGINT, signal.SIGTERM):  # the workers leave both to this process
                futures = [pool.submit(work, *job) for job in todo]
            for future in tqdm(as_completed(futures), total=len(todo), unit="training"):
                future.result()
            return [future.result() for future in futures]
        except BaseException:
            for worker in multiprocessing.active_children():
                worker.kill()  # or they would do all jobs before the pool ends
            raise


def prepare_worker() -> None:
    """Run this in a new process: it ends with its parent, however that ends, and leaves the progress bar to it.

    It computes on one thread, and keeps freed memory.
    """
    keep_freed_memory()
    limit_threads(1)
    parent: Any = multiprocessing.parent_process()
    sys.stderr = open(os.devnull, "w", encoding="utf8")  # noqa: SIM115 (it is used until the process ends)

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def score_at(model: Any, task: ToyTask, length: int, seed: int | list[int], count: int | None = None) -> float:
    """The share of exact answers to `count` (by default TESTED) held-out sources of `length` symbols."""
    task.max_len = length
    rng = np.random.default_rng(seed if isinstance(seed, list) else [seed, 4, length])
    return decode_and_score(model, task.batch(rng, count or TESTED, held_out=True, min_len=length))[1]
