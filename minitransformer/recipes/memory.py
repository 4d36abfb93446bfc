"""Before training allocates anything large: does it fit, and if not, which options would make it fit?"""

from collections.abc import Callable, Iterator
from typing import Any

from minitransformer.backend import backend_name
from minitransformer.devices import free_memory
from minitransformer.inspection.memory_estimate import training_memory
from minitransformer.process import num_threads
from minitransformer.recipes.options import TrainOptions
from minitransformer.training.parallel import threads_that_pay

FLOATS_RESUMED = 3  # arrays as long as the weights, which have been read when a run is resumed


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

    `lengths` are those of the sequences in a batch (see `training_memory`), `averages` the copies of the weights that
    are kept. `smaller` names the options, besides --batch-size, that make the model or its input smaller. Nothing is
    checked where the free memory is unknown. Call it with the threads limited as in training.
    """
    free = free_memory()
    if free is None:
        return

    def needed(parts: int) -> int:
        threads = num_threads() if backend_name() == "numpy" else 1
        micro_batch_size = -(-options.batch_size // parts)
        members = threads_that_pay(threads, micro_batch_size, lengths[-1], config.d_model)
        rows = members * -(-micro_batch_size // members)
        memory = training_memory(config, rows, lengths, model_class, members, averages)
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
    """What would make it fit: more micro batches, or something smaller (None if the model is given)."""
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
