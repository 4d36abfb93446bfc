"""What a run that is resumed with other options, or in another number of processes, keeps of its results."""

from collections.abc import Iterator

from minitransformer.recipes.options import TrainOptions, option_name
from minitransformer.recipes.recipe import Recipe
from minitransformer.training.checkpointer import SavedRun

CHANGE_ROUNDING = ("threads", "grad_accumulation_steps")  # options that divide the same sums in another way
CHANGE_ORDER = ("deterministic", "shard_optimizer")  # these, too, if the order matters
OTHER_BITS = "the results are not bit-identical to those of an uninterrupted run"


def shared_threads(saved: SavedRun, processes: int) -> int | None:
    """The threads of each process if a run goes on in so many: those it had, but not more in total than before."""
    if saved.num_threads is None:
        return None
    return max(1, min(saved.num_threads, saved.num_threads * saved.processes // processes))


def changes(
    recipe: Recipe, before: TrainOptions, options: TrainOptions, saved: SavedRun, processes: int
) -> Iterator[str]:
    """What the changes do to a resumed run, in one line each."""
    step, config = saved.step + 1, saved.model.config
    old, new = (recipe.schedule(each, config)(step) for each in (before, options))
    if new != old and step <= options.steps:
        yield f"from step {step:,} on, the learning rate is that of the new options: {new:.6g} instead of {old:.6g}"
    summands = _summands(options, processes)
    if summands is not None and summands == _summands(before, saved.processes):
        return
    if processes != saved.processes:
        yield f"number of processes {processes} instead of {saved.processes}: {OTHER_BITS}"
    for name in CHANGE_ROUNDING:
        old, new = getattr(before, name), getattr(options, name)
        if new != old:
            yield f"{option_name(name)} {new} instead of {old}: {OTHER_BITS}"
    if _orders(options, processes) != _orders(before, saved.processes):
        for name in CHANGE_ORDER:
            if getattr(options, name) != getattr(before, name):
                yield f"{'with' if getattr(options, name) else 'without'} {option_name(name)}: {OTHER_BITS}"


def _summands(options: TrainOptions, processes: int) -> tuple[int, int | None] | None:
    """How many gradients are added up in each step, one after another, and the threads that compute each of them.

    Runs that agree in this have the same bits. None if more matters: which process draws the dropout masks, or which
    sums are taken first.
    """
    steps = options.grad_accumulation_steps
    if not options.deterministic or options.dropout or min(steps, processes) > 1:
        return None
    return steps * processes, options.threads


def _orders(options: TrainOptions, processes: int) -> tuple[bool, bool]:
    """Whether the gradients of more than two processes, and those of micro batches, are added up in a fixed order.

    The order of two numbers does not matter.
    """
    of_processes = processes > 2 and (options.deterministic or options.shard_optimizer)
    return of_processes, options.grad_accumulation_steps > 1 and options.deterministic
