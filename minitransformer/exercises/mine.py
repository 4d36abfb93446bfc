"""The learner's own functions inside the real model, and the library's functions where an exercise is open.

`own_layers` is for `minitransformer train TASK --mine`. Before training, it prints whose layers are used, and what the
wrong ones do to the gradient.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import to_device, to_host
from minitransformer.exercises.collection import find_exercises
from minitransformer.exercises.exercise import Exercise, Replacement
from minitransformer.exercises.judging import Diagnosis
from minitransformer.exercises.planting import replaced
from minitransformer.exercises.report import paint, print_indented
from minitransformer.exercises.runner import check
from minitransformer.exercises.workshop import Workshop
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.system.files import kind_of

BATCH = 16  # sequences on which the gradients are compared


class Part(NamedTuple):
    """One function of an exercise, and whose version of it is used in training."""

    exercise: Exercise
    function: str
    diagnosis: Diagnosis | None  # None if the exercise has not been started
    replacement: Replacement
    mine: Callable[..., Any] | None  # the learner's function, or None if the library's is used


def own_layers(make_model: Callable[[], Any], task: Any) -> contextlib.AbstractContextManager[None]:
    """Print the table of whose layers are used -> a context in which the library calls the learner's.

    `make_model()` returns the same new model each time; `task.batch(rng, size)` returns a batch.
    """
    parts = collect_parts(Workshop())
    print("whose layers are used:\n")
    for part in parts:
        print(f"  {part.exercise.name:<30} {part.function:<28} {verdict(part)}")
        for name, question in part.diagnosis.mistakes if part.diagnosis else ():
            print_indented(f"= {name}: {question}")
    print()
    batch = task.batch(np.random.default_rng(0), BATCH)
    wrong = [part for part in parts if part.mine and part.diagnosis and part.diagnosis.status == "wrong"]
    if wrong:
        print_consequences(make_model, batch, parts, wrong)
    return installed(parts)


def collect_parts(workshop: Workshop) -> list[Part]:
    """Check every exercise that the learner has started, and choose the functions that can be used.

    A function that passes is used, and so is one with wrong numbers, because training shows what its mistake does. A
    function that is not written, fails, or returns other shapes is not used.
    """
    parts = []
    for exercise in find_exercises():
        if not exercise.replaces:
            continue
        path = workshop.file(exercise)
        diagnoses = {one.function: one for one in check(exercise, path)[0]} if kind_of(path) else {}
        usable = {name for name, diagnosis in diagnoses.items() if can_be_used(diagnosis)}
        module = workshop.load(exercise) if usable else None
        for name, replacement in exercise.replaces.items():
            mine = getattr(module, name) if name in usable else None
            parts.append(Part(exercise, name, diagnoses.get(name), replacement, mine))
    return parts


def can_be_used(diagnosis: Diagnosis) -> bool:
    """Whether a function runs and returns arrays of the right shapes, with right or wrong numbers."""
    return diagnosis.status == "passed" or (bool(diagnosis.outputs) and None not in diagnosis.outputs.values())


@contextlib.contextmanager
def installed(parts: Sequence[Part]) -> Iterator[None]:
    """Inside a `with` block the library calls the learner's functions."""
    with contextlib.ExitStack() as stack:
        for part in parts:
            if part.mine is not None:
                stack.enter_context(replaced(part.replacement.original, part.replacement.adapt(part.mine)))
        yield


def gradient_of(model: Any, batch: Any, label_smoothing: float = 0.1) -> np.ndarray:
    """All gradients of the mean loss on a batch, as one float64 vector. The smoothing is that of the toy tasks."""
    with np.errstate(all="ignore"):  # a wrong layer may overflow
        model.zero_grad()
        logits, cache = model.forward(*batch.inputs)
        _, cache_loss = cross_entropy(logits, to_device(batch.targets), label_smoothing)
        model.backward(cross_entropy_backward(1.0, cache_loss), cache)
    return np.concatenate([to_host(parameter.grad).reshape(-1) for parameter in model.parameters()]).astype(np.float64)


def compare_gradients(make_model: Callable[[], Any], batch: Any, parts: Sequence[Part]) -> tuple[float, float]:
    """How the learner's functions change the first gradient of a model -> (cosine, ratio of lengths) to the right one.

    `make_model()` returns the same new model each time. NaN if a gradient is not finite.
    """
    right = gradient_of(make_model(), batch)
    with installed(parts):
        mine = gradient_of(make_model(), batch)
    lengths = np.linalg.norm(right), np.linalg.norm(mine)
    if not np.isfinite(lengths[1]):
        return np.nan, np.nan
    return float(right @ mine / (lengths[0] * lengths[1] or 1.0)), float(lengths[1] / lengths[0])


def verdict(part: Part) -> str:
    """Whose function is used, and why."""
    if part.diagnosis is None or part.diagnosis.status == "open":
        return paint("the library's (yours is not written yet)", "grey")
    if part.mine is None:
        return paint("the library's (yours cannot be used)", "red")
    return paint("yours", "green") if part.diagnosis.status == "passed" else paint("yours, but it is WRONG", "red")


def print_consequences(make_model: Callable[[], Any], batch: Any, parts: Sequence[Part], wrong: Sequence[Part]) -> None:
    """Print what the wrong functions do to the gradient of the whole model, measured on one batch."""
    for part in wrong:
        cosine, ratio = compare_gradients(make_model, batch, [part])
        print(f"{part.function} ({part.exercise.name}) is wrong. {consequence(cosine, ratio)}")
    if len(wrong) > 1:
        print(f"All of them together: {consequence(*compare_gradients(make_model, batch, parts))}")
    print("Training uses what you have written, so that you can see what happens.\n", flush=True)


def consequence(cosine: float, ratio: float) -> str:
    """What to expect from a gradient with this cosine to the right one, and `ratio` times as long."""
    if not np.isfinite(cosine):
        return "The model's gradient is not finite: the first step will ruin it."
    if cosine > 1 - 1e-6 and abs(ratio - 1) < 1e-6:
        return "The model's first gradient is the same: this mistake shows only later, or not at all."
    angle = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
    text = f"The model's first gradient is {angle:.0f} degrees off, and {ratio:.2f} times as long."
    if cosine <= 0.1:
        return f"{text} It does not point downhill: expect the loss to stay where it is, or to rise."
    if cosine < 0.99:
        return f"{text} It still points downhill: expect the model to learn, but more slowly and less well."
    return f"{text} It points downhill: expect the model to learn nearly as well. A falling loss finds no bugs."
