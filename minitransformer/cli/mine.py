"""`minitransformer train TASK --mine`: says whose layers are used, and what a wrong one will do, before it trains."""

import time

import numpy as np

from minitransformer.cli.exercises_report import paint, print_indented
from minitransformer.exercises.mine import collect_parts, compare_gradients, gradient_of, installed
from minitransformer.exercises.workshop import Workshop

BATCH = 16  # sequences on which the gradients are compared


def own_layers(make_model, task):
    """Print the table of whose layers are used -> a context in which the learner's are."""
    parts = collect_parts(Workshop())
    print("whose layers are used:\n")
    for part in parts:
        print(f"  {part.exercise.name:<30} {part.function:<28} {verdict(part)}")
        for name, question in part.finding.mistakes if part.finding else ():
            print_indented(f"= {name}: {question}")
    print()
    batch = task.batch(np.random.default_rng(0), BATCH)
    wrong = [part for part in parts if part.mine and part.finding.status == "wrong"]
    if wrong:
        foretell(make_model, batch, parts, wrong)
    if any(part.mine for part in parts):
        own, librarys = step_seconds(make_model(), batch, parts), step_seconds(make_model(), batch, [])
        print(f"A gradient takes {own / librarys:.1f} times as long with your layers as with the library's.\n")
    return installed(parts)


def step_seconds(model, batch, parts):
    """How long a gradient takes with these parts, the second time."""
    with installed(parts):
        gradient_of(model, batch)
        started = time.perf_counter()
        gradient_of(model, batch)
        return time.perf_counter() - started


def verdict(part):
    """Whose function is used, and why."""
    if part.finding is None or part.finding.status == "open":
        return paint("the library's, as yours is not written yet", "grey")
    if part.mine is None:
        return paint("the library's, as yours cannot be used", "red")
    return paint("yours", "green") if part.finding.status == "passed" else paint("yours, and it is WRONG", "red")


def foretell(make_model, batch, parts, wrong):
    """Say what the wrong ones do to the gradient of the whole model, measured on one batch."""
    for part in wrong:
        cosine, ratio = compare_gradients(make_model, batch, [part])
        print(f"{part.exercise.name} fails, {part.function} is wrong. {consequence(cosine, ratio)}")
    if len(wrong) > 1:
        print(f"All of them together: {consequence(*compare_gradients(make_model, batch, parts))}")
    print("It trains with what you have written, so that you can see it.\n", flush=True)


def consequence(cosine, ratio):
    """What to expect of a gradient at this angle to the right one, and so many times as long."""
    if not np.isfinite(cosine):
        return "The model's gradient is not finite: the first step will ruin it."
    if cosine > 1 - 1e-6 and abs(ratio - 1) < 1e-6:
        return "The model's first gradient is the same: this may show later, or in the loss alone, or not at all."
    angle = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
    text = f"The model's first gradient is {angle:.0f} degrees off, and {ratio:.2f} times as long."
    if cosine <= 0.1:
        return f"{text} It points nowhere near downhill: expect the loss to stay where it is, or to rise."
    if cosine < 0.99:
        return f"{text} It still points downhill: expect it to learn, more slowly and less well."
    return f"{text} It points downhill: expect it to learn nearly as well, which is why losses find no bugs."
