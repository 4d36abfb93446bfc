"""The training loop: forward, loss and backward of a batch; one step; and the loop around it.

Each part of a step has its own file: the loss (layers/losses.py), the optimizer (optimizers.py), the learning rate
(schedules.py), the threads and the processes that share a batch (parallel/), gradient accumulation (accumulation.py),
averaging of the weights (averaging.py), checks for NaN (diagnostics.py) and checkpoints (checkpointer.py). run.py holds
the state of a run, which is saved and resumed.
"""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minitransformer.backend import xp
from minitransformer.core import Layer
from minitransformer.data.task import EpochTask, Task, TrainingBatch
from minitransformer.layers.losses import CrossEntropyLoss, blockwise_loss, features_and_head
from minitransformer.system.process import keep_freed_memory, limit_threads
from minitransformer.system.progress import tqdm
from minitransformer.training.accumulation import GradientAccumulation
from minitransformer.training.anomaly_hooks import SILENT
from minitransformer.training.averaging import Averaging
from minitransformer.training.checkpointer import Checkpointer
from minitransformer.training.clipping import clip_factor
from minitransformer.training.diagnostics import Diagnostics
from minitransformer.training.optimizers import Adam
from minitransformer.training.parallel.communicator import ONE_PROCESS, Communicator
from minitransformer.training.parallel.processes import ProcessParallel
from minitransformer.training.parallel.threads import DataParallel
from minitransformer.training.run import History, TrainingRun
from minitransformer.training.settings import TrainingSettings

LOG_INTERVAL = 20  # steps between two measurements of the accuracy: on a GPU, each one waits


def forward_backward(
    model: Any,
    loss_fn: CrossEntropyLoss,
    batch: TrainingBatch,
    rng: np.random.Generator | None = None,
    weight: float = 1.0,
    measure: bool = False,
) -> tuple[xp.ndarray, xp.ndarray | None]:
    """Forward, loss, backward: add `weight` times the gradient of the loss to the model's gradients.

    With a model that has `features` and a `head`, as those of the package have, the logits of all tokens are never held
    at one time. `rng` draws the dropout masks; None means no dropout. Returns two 0-d arrays: the loss, and the
    accuracy if `measure`, else None.
    """
    features, features_backward, _ = features_and_head(model)
    y, cache = features(*batch.inputs, rng=rng)
    loss, dy, accuracy = blockwise_loss(model, y, batch.targets, loss_fn, weight, rng, measure)
    features_backward(dy, cache)
    return loss, accuracy


@np.errstate(**SILENT)  # diagnostics check the numbers and explain more than a warning
def training_step(
    batch: TrainingBatch,
    optimizer: Adam,
    workers: DataParallel | GradientAccumulation | ProcessParallel,
    max_norm: float = 1.0,
    diagnostics: Diagnostics | None = None,
    measure: bool = False,
) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray | None]:
    """Forward, loss, backward, clip, optimizer step -> loss, norm of the gradient, and accuracy if `measure`.

    Raises NotFiniteError, and moves no weight, if the loss or the gradient is not finite (on a GPU later, see
    Diagnostics).
    """
    compute = partial(workers.map, forward_backward, batch)  # in one thread or in several
    optimizer.zero_grad()
    with workers.sharing_errors() if isinstance(workers, ProcessParallel) else contextlib.nullcontext():
        with diagnostics.recording(optimizer) if diagnostics else contextlib.nullcontext():
            loss, accuracy = compute(measure)
        norm = optimizer.grad_norm()
        if diagnostics and isinstance(workers, ProcessParallel):
            workers.check(diagnostics, forward_backward, batch, loss, norm)
        elif diagnostics:
            diagnostics.check(compute, loss, norm)
    optimizer.step(scale=clip_factor(norm, max_norm))  # scaling here saves a pass over all gradients
    return loss, norm, accuracy


def train(
    model: Layer,
    data: Task | EpochTask,
    optimizer: Adam | None = None,
    schedule: Callable[[int], float] | None = None,
    loss_fn: CrossEntropyLoss | None = None,
    settings: TrainingSettings | None = None,
    *,
    averaging: Averaging | None = None,
    evaluate: Callable[[int, History], Any] | None = None,
    checkpointer: Checkpointer | None = None,
    resume: tuple[dict, dict] | None = None,
    num_threads: int | None = None,
    communicator: Communicator = ONE_PROCESS,
) -> History:
    """Train `model` on `data` -> History. Shows a progress bar on a terminal, and elsewhere a line now and then.

    data.batch(rng, batch_size) returns a batch with `inputs` for the model and `targets` for the loss; data with epochs
    has data.epoch(rng, batch_size) instead (see data/task.py). schedule(step) returns the learning rate of a step,
    counted from 1; without a schedule the optimizer keeps its own. By default the optimizer is Adam as in the paper,
    and the loss is cross-entropy without label smoothing.

    `averaging` averages the weights over the end of training. evaluate(step, history) is called every
    `settings.eval_interval` steps. A `checkpointer` saves the run at intervals, and raises Stopped when the process is
    asked to end. `resume` is the state of a saved run (see `read_run`): training continues from there, and with the
    same settings the result is bit-identical to that of an uninterrupted run. `num_threads` threads share each batch:
    by default as many as the resumed run had, or as many as the model and its batches keep busy (see
    `default_threads`). With a `communicator` of several processes, all call this function with the same arguments; each
    computes its part of every batch, and the root alone shows progress, evaluates and saves. A `ShardedAdam` as the
    optimizer spreads its running means over them.

    Raises NotFiniteError for a loss or gradient that is not finite, before it reaches the weights (on a GPU later, see
    Diagnostics).
    """
    keep_freed_memory()
    settings, optimizer = settings or TrainingSettings(), optimizer or Adam(model.parameters())
    run = TrainingRun(
        model, data, optimizer, loss_fn or CrossEntropyLoss(), settings, averaging, num_threads, resume, communicator
    )
    signals = checkpointer.handling_signals() if checkpointer else contextlib.nullcontext()
    progress = tqdm(total=settings.steps, initial=run.step, unit="step", disable=None if communicator.is_root else True)
    with limit_threads(run.num_threads), signals, progress:
        for step in range(run.step + 1, settings.steps + 1):
            with run.timed():
                batch = run.batches.next()
                optimizer.lr = schedule(step) if schedule else optimizer.lr
                measure = step % LOG_INTERVAL == 0 or step == settings.steps
                measured = training_step(batch, optimizer, run.sharers, settings.max_norm, run.diagnostics, measure)
                if averaging:
                    averaging.update(step, optimizer.weights)
                run.log(batch, *measured, optimizer.lr)
            progress.update()
            if measure:
                progress.set_postfix_str(run.history.latest())
            if evaluate and step % settings.eval_interval == 0:
                evaluate_in_root(evaluate, run)
            if checkpointer:
                checkpointer.after_step(run)
    return run.finish()


def evaluate_in_root(evaluate: Callable[[int, History], Any], run: TrainingRun) -> None:
    """Call evaluate(step, history). Of several processes the root calls it, and the others wait."""
    if run.communicator.is_root:
        with np.errstate(**SILENT):  # as in training_step: diagnostics check the weights
            evaluate(run.step, run.history)
    run.communicator.wait()
