"""Checks the free memory before training allocates anything large, and suggests options that need less."""

from collections.abc import Callable, Iterator
from typing import Any

from minitransformer.config import TransformerConfig
from minitransformer.inspection.memory_estimate import training_memory
from minitransformer.recipes.options import TrainOptions, option_name
from minitransformer.recipes.recipe import Recipe
from minitransformer.system.devices import free_memory
from minitransformer.training.parallel.connect import connect
from minitransformer.training.parallel.threads import useful_threads

SIZES = ("config", "length", "d_model", "num_layers", "vocab_size")  # options that make the model or its input smaller
SMALLEST = "tiny"
FLOATS_RESUMED = 3  # arrays as large as the weights that a resumed run has already read


def check_memory(
    recipe: Recipe, options: TrainOptions, data: Any, model_class: Any, config: Any, *, resumed: bool
) -> None:
    """Raise ValueError if training with `options.threads` needs more memory than is free, unless `options.force`.

    `resumed` says that the model has already been read. Nothing is checked if the free memory is unknown, nor for a
    recurrent model.
    """
    free = free_memory()
    if free is None or not isinstance(config, TransformerConfig):
        return
    whole_batch, lengths = recipe.largest_batch(options, data)
    sequences = -(-whole_batch // connect().size)
    averages = getattr(recipe.averaging(options), "count", 0)
    threads = options.threads or 1
    has_read = FLOATS_RESUMED if resumed else 1 if getattr(options, "from_", None) else 0

    def needed(parts: int, recompute: bool = options.recompute) -> int:
        micro_batch_size = -(-sequences // parts)
        num_threads = useful_threads(threads, micro_batch_size, sum(lengths), config.d_model)
        rows = num_threads * -(-micro_batch_size // num_threads)
        shards = connect().size if options.shard_optimizer else 1
        kind = recipe.memory_like or model_class
        memory = training_memory(config, rows, lengths, kind, num_threads, averages, shards, recompute)
        return connect().processes_here * (memory.total - has_read * memory.weights)

    whole = needed(options.grad_accumulation_steps)
    if whole <= free:
        return
    need = f"this training needs about {_gigabytes(whole)} of memory, and {_gigabytes(free)} are free"
    if options.force:
        print(f"{need}: training all the same (--force)", flush=True)
        return
    advice = [*_advice(options, needed, free, resumed), "--force trains all the same"]
    raise ValueError(f"{need}: {'; '.join(advice)}")


def _advice(options: TrainOptions, needed: Callable[..., int], free: int, resumed: bool) -> Iterator[str]:
    """What would need less: to recompute, more micro batches, or smaller sizes, unless the run is `resumed`."""
    if not options.recompute and (less := needed(options.grad_accumulation_steps, recompute=True)) <= free:
        yield f"--recompute computes the same with {_gigabytes(less)}, in more time"
    sizes = ("length",) if getattr(options, "from_", None) else SIZES  # a model to start from has the others
    smaller = [option_name(name) for name in sizes if getattr(options, name, None) not in (None, SMALLEST)]
    parts = options.grad_accumulation_steps * 2
    while parts < 2 * options.batch_size:
        parts = min(parts, options.batch_size)
        less = needed(parts)
        if less <= free:
            yield f"--grad-accumulation-steps {parts} computes the same with {_gigabytes(less)}"
            smaller.insert(0, "--batch-size")
            break
        parts *= 2
    if smaller and not resumed:  # with no number of micro batches, one sequence alone is too much
        yield f"a smaller {' or '.join(smaller)} needs less"


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"
