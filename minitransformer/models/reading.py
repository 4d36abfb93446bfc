"""Reading with a model, where no backward pass follows: evaluation, features, decoding that reads again."""

import copy
from collections.abc import Callable
from typing import Any

from minitransformer.backend import backend_name, xp
from minitransformer.layers.since_2017.blockwise import has_features
from minitransformer.layers.stack import LayerStack
from minitransformer.models.changed import changed_layers
from minitransformer.system.process import MIN_NUMBERS, keep_freed_memory, team_of_blas

SLICE = 2048  # tokens that are read at a time: of 512 to 8,192, a BERT of 384 features was read fastest by so many


def read(method: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
    """The output of a model's `forward`, `features`, `encode` or `decode`, where no backward pass follows.

    No stack keeps what backward would need, so the arrays of one layer exist at a time. On a CPU they are those of
    about SLICE tokens, or of one sequence, for each thread: a larger batch goes through all layers slice by slice. This
    is also faster, because a smaller part of the arrays falls out of the processor's caches, and because threads that
    read different slices share all of the work, where in one slice they share the matrix products. What comes out of
    one slice is bit-equal to what `method` returns; with several, matrix products have other sizes, which may be
    rounded otherwise.
    Models without a stack, and models of a class that is not the library's, are called as they are. The batch stays
    whole with `options`, such as the `rng` of dropout, and in a model with changed layers: an intervention, or a layer
    of a reader's own, may look at all sequences.
    """
    model: Any = getattr(method, "__self__", None)
    parts = vars(model) if has_features(model) else {}
    stacks = {name: part for name, part in parts.items() if isinstance(part, LayerStack)}
    if not stacks:
        return method(*inputs, **options)[0]
    reader = copy.copy(model)
    vars(reader).update((name, stack.without_caches()) for name, stack in stacks.items())
    method = method.__func__.__get__(reader)  # type: ignore[attr-defined]
    keep_freed_memory()
    team = team_of_blas()
    rows = 0 if options or backend_name() != "numpy" else _rows_at_a_time(inputs, model.config, team.size)
    if not rows or changed_layers(model):
        return method(*inputs, **options)[0]
    results: dict[str, Any] = {}

    def fill(start: int) -> None:
        part = method(*(array[start : start + rows] for array in inputs))[0]
        y = results.setdefault("y", xp.empty((len(inputs[0]), *part.shape[1:]), part.dtype))  # of the first to arrive
        y[start : start + rows] = part

    team.map(fill, range(0, len(inputs[0]), rows))
    return results["y"]


def _rows_at_a_time(inputs, config, threads):
    """How many sequences are a slice, or 0 if the batch is not larger or cannot be cut."""
    shapes = [getattr(array, "shape", ())[:2] for array in inputs]
    B = len(inputs[0])
    if any(len(shape) < 2 or len(array) != B for shape, array in zip(shapes, inputs, strict=True)):
        return 0
    tokens = max(1, min(max(length for _, length in shapes), config.max_len))
    of_a_thread = max(-(-B // threads), MIN_NUMBERS // (tokens * config.d_model))
    rows = max(1, min(SLICE // tokens, of_a_thread))
    return rows if rows < B else 0
