"""What a resumed run loses by other options, or another number of processes, than those that it was started with."""

import dataclasses
from collections.abc import Iterator

from minitransformer.recipes.options import TrainOptions, option_name
from minitransformer.recipes.recipe import Recipe
from minitransformer.training.parallel.connect import connect
from minitransformer.training.saving.averaging import AverageOfLast
from minitransformer.training.saving.checkpointer import SavedRun

CHANGE_ROUNDING = ("threads", "grad_accumulation_steps")  # options that divide the same sums in another way
CHANGE_ORDER = ("deterministic", "shard_optimizer")  # these, too, if the order matters
OTHER_BITS = "the results are not bit-identical to those of an uninterrupted run"


def changes(recipe: Recipe, before: TrainOptions, options: TrainOptions, saved: SavedRun) -> Iterator[str]:
    """What other `options` than those `before` change in a resumed run: its learning rate, its average, its bits.

    Of other --steps it says how the run differs from one that was started with them. Each change is one line.
    """
    step, taken = saved.step + 1, range(1, saved.step + 1)
    started = dataclasses.replace(before, steps=options.steps)
    old, new, wanted = (recipe.schedule(each, saved.model.config) for each in (before, options, started))
    if new(step) != old(step) and step <= options.steps:
        rates = f"{new(step):.6g} instead of {old(step):.6g}"
        yield f"from step {step:,} on, the learning rate is that of the new options: {rates}"
    lost = ["it would have had other learning rates until now"] if any(old(n) != wanted(n) for n in taken) else []
    averaging, kept = recipe.averaging(options), saved.state[1].get("snapshot_steps", ())
    if isinstance(averaging, AverageOfLast):
        missing = sum(averaging.includes(n) and n not in kept for n in taken)
        if missing and options.steps != before.steps:
            lost.append(f"{missing} of the sets of weights that it would average were not kept")
    if lost:
        yield f"not the same as a run started with --steps {options.steps}: {', and '.join(lost)}"
    yield from other_bits(before, options, saved)


def threads_as_before(saved: SavedRun) -> int | None:
    """The threads of each process if a run is resumed: those it had, but not more in total than before."""
    if saved.num_threads is None:
        return None
    return max(1, min(saved.num_threads, saved.num_threads * saved.processes // connect().size))


def other_bits(before: TrainOptions, options: TrainOptions, saved: SavedRun) -> Iterator[str]:
    """What changes the bits of a resumed run: other options, or another number of processes, in one line each."""
    processes = connect().size
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
