"""Checks the free memory before training allocates anything large, and suggests options that need less."""

from collections.abc import Callable, Iterator
from typing import Any

from minitransformer.devices import free_memory
from minitransformer.inspection.memory_estimate import training_memory
from minitransformer.recipes.options import TrainOptions
from minitransformer.training.parallel import default_team_size, useful_threads

FLOATS_RESUMED = 3  # arrays as large as the weights that a resumed run has already read


def check_memory(
    options: TrainOptions,
    model_class: Any,
    config: Any,
    lengths: list[int],
    *,
    averages: int,
    resumed: bool,
    smaller: tuple[str, ...],
) -> None:
    """Raise ValueError if training needs more memory than is free, unless `options.force`.

    `lengths` are those of the sequences in a batch (see `training_memory`), `averages` is the number of copies of the
    weights that are kept. `resumed` says that the model has already been read. `smaller` names the options, besides
    --batch-size, that make the model or its input smaller. Nothing is checked if the free memory is unknown. Call it
    with the threads limited as in training.
    """
    free = free_memory()
    if free is None:
        return

    def needed(parts: int) -> int:
        micro_batch_size = -(-options.batch_size // parts)
        num_threads = useful_threads(default_team_size(), micro_batch_size, lengths[-1], config.d_model)
        rows = num_threads * -(-micro_batch_size // num_threads)
        memory = training_memory(config, rows, lengths, model_class, num_threads, averages)
        return memory.total - (FLOATS_RESUMED * memory.weights if resumed else 0)

    whole = needed(options.grad_accumulation_steps)
    if whole <= free:
        return
    need = f"this training needs about {_gigabytes(whole)} of memory, and {_gigabytes(free)} are free"
    if options.force:
        print(f"{need}: training all the same (--force)", flush=True)
        return
    advice = [*_advice(options, needed, free, None if resumed else smaller), "--force trains all the same"]
    raise ValueError(f"{need}: {'; '.join(advice)}")


def _advice(
    options: TrainOptions, needed: Callable[[int], int], free: int, smaller: tuple[str, ...] | None
) -> Iterator[str]:
    """What would need less: more micro batches, or the `smaller` options (None if the model cannot change)."""
    parts = options.grad_accumulation_steps * 2
    while parts < 2 * options.batch_size:
        parts = min(parts, options.batch_size)
        less = needed(parts)
        if less <= free:
            yield f"--grad-accumulation-steps {parts} computes the same with {_gigabytes(less)}"
            smaller = None if smaller is None else ("--batch-size", *smaller)
            break
        parts *= 2
    if smaller:  # with no number of micro batches, one sequence alone is too much
        yield f"a smaller {' or '.join(smaller)} needs less"


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"
