"""The training loop around the step of step.py.

    for each step:  plan, batch  ->  gradients, norm, clip, optimizer  ->  history, average, evaluation, saving

Each part has its own file: the gradient of a batch (gradients.py), the loss (layers/losses.py), the optimizer
(optimizers.py), the learning rate (schedules.py), and in the folders beside this file how to share a batch (parallel/),
averages and checkpoints (saving/), and checks for NaN (watching/). parallel/strategy.py puts the ways to share a batch
around `gradients`, once, before the loop. run.py holds the state of a run, which is saved and resumed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minitransformer.core import Layer
from minitransformer.data.task import EpochTask, Task
from minitransformer.layers.losses import loss_for
from minitransformer.system.process import limit_threads
from minitransformer.system.progress import tqdm
from minitransformer.system.signals import Postponed
from minitransformer.training.optimizers import Adam
from minitransformer.training.run import History, TrainingRun
from minitransformer.training.settings import Plan, TrainingSettings

if TYPE_CHECKING:
    from minitransformer.training.parallel.strategy import Strategy
    from minitransformer.training.saving.averaging import Averaging
    from minitransformer.training.saving.checkpointer import Checkpointer

LOG_INTERVAL = 20  # steps between two measurements of the accuracy: on a GPU, each one waits


def train(
    model: Layer,
    data: Task | EpochTask,
    optimizer: Adam | None = None,
    schedule: Callable[[int], float] | None = None,
    loss_fn: Any = None,
    settings: TrainingSettings | None = None,
    *,
    averaging: "Averaging | None" = None,
    plan: Plan | None = None,
    evaluate: Callable[[int, History], Any] | None = None,
    checkpointer: "Checkpointer | None" = None,
    resume: tuple[dict, dict] | None = None,
    num_threads: int | None = None,
    strategy: "Strategy | None" = None,
) -> History:
    """Train `model` on `data` -> History. Shows a progress bar on a terminal, and elsewhere a line now and then.

    Model and loss may be your own, if they follow the protocol of `core.Layer`: what is computed is `training_step`.
    data.batch(rng, batch_size) returns a batch with `inputs` for the model and `targets` for the loss; data with epochs
    has data.epoch(rng, batch_size) instead (see data/task.py). schedule(step) returns the learning rate of a step,
    counted from 1; without a schedule the optimizer keeps its own. The defaults are the paper's Adam and cross-entropy.

    Each call trains `settings.steps` steps, also with an optimizer that has taken steps before, whose running means go
    on. `averaging` averages the weights over the end of training. A `plan` replaces steps, schedule and averaging; only
    one that follows a clock is asked for them again before each step. evaluate(step, history) is called every
    `settings.eval_interval` steps. A `checkpointer` saves the run at intervals, and raises Stopped when the process is
    asked to end. `resume` is the state of a saved run (see `read_run`): training continues from there, and with the
    same settings the result is bit-identical to that of an uninterrupted run.

    `num_threads` threads share each batch: by default as many as the resumed run had, or as many as the model and its
    batches keep busy (see `default_threads`). A `strategy` may share it among processes as well: all of them call this
    function with the same arguments, and one alone shows progress, evaluates and saves. A `ShardedAdam` as the
    optimizer spreads its running means over them.

    Ctrl-C waits for the end of the step: model, optimizer and averages are those after a whole step when it raises
    KeyboardInterrupt. A second Ctrl-C ends the step at once; an optimizer that it left halfway refuses the next step.

    Raises NotFiniteError for a loss or gradient that is not finite, before it reaches the weights (on a GPU later, see
    Diagnostics).
    """
    settings, optimizer = settings or TrainingSettings(), optimizer or Adam(model.parameters())
    plan, strategy = plan or Plan(settings.steps, schedule, averaging), strategy or _threads(num_threads)
    if checkpointer:
        checkpointer.check(model)
    run = TrainingRun(model, data, optimizer, loss_fn or loss_for(model), settings, plan, strategy, resume)
    progress = tqdm(total=plan.steps, initial=run.step, unit="step", disable=None if strategy.is_root else True)
    with Postponed(to_take=checkpointer is not None) as signals, limit_threads(strategy.num_threads), progress:
        while (step := run.step + 1) <= plan.steps:
            with run.timed():
                batch = run.batches.next()
                plan = run.plan = plan.at(step)
                optimizer.lr = plan.schedule(step) if plan.schedule else optimizer.lr
                measure, progress.total = step % LOG_INTERVAL == 0 or step == plan.steps, plan.steps
                run.log(batch, *run.take_step(batch, measure=measure))
            progress.update()
            if measure:
                progress.set_postfix_str(run.history.latest())
            if evaluate and step % settings.eval_interval == 0:
                strategy.in_root(evaluate, step, run.history)
            if checkpointer:
                checkpointer.after_step(run, signals)
            elif not run.is_done:
                signals.deliver()
        return run.finish()


def _threads(num_threads: int | None) -> "Strategy":
    """The strategy of one process."""
    from minitransformer.training.parallel.strategy import Strategy

    return Strategy(num_threads)
