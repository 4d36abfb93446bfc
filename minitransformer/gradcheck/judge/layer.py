"""Judging a layer: its gradients, at the given inputs and at others, and the promises of the layer protocol."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minitransformer.core import Layer
from minitransformer.gradcheck.check import randomize_parameters
from minitransformer.gradcheck.judge.explain import explain
from minitransformer.gradcheck.judge.gradients import check_gradients, float64_values
from minitransformer.gradcheck.judge.promises import examine_promises, restored
from minitransformer.gradcheck.judge.report import CANNOT_TELL, COMPLEX_STEP, RICHARDSON, WRONG, Report
from minitransformer.gradcheck.judge.use import LayerError, Use, named, placed_errors


def check_layer(
    layer: Layer,
    *inputs: np.ndarray,
    context: Iterable[Any] = (),
    dropout_seed: int | None = None,
    randomize: bool = True,
    vary: bool = True,
    explained: bool = True,
    name: str | None = None,
    names: Sequence[str] = (),
    **options: Any,
) -> Report:
    """Check every input and every parameter of `layer`, and what the layer protocol promises -> Report.

    `inputs` are the float64 arrays that backward returns gradients for, `context` are forward's other
    arguments (masks, ids). The layer must be float64. With `dropout_seed` each forward draws from a fresh generator
    with that seed, so all draw the same dropout. `randomize` first fills the parameters with order-one random numbers,
    because initial weights (gamma = 1, b = 0) hide mistakes. With `vary` the gradients are also checked with other
    numbers of sequences and tokens, with axes of one length, and with inputs five times as large, as far as the layer
    takes them. `explained` looks for clues to what is wrong, entry by entry. `names` are what the inputs are called.
    `options` go to `check_gradients`. Afterwards weights and gradients are what they were.

    Raises LayerError, which has the file and the line, if the layer's own code fails, and what `check_gradients` does.
    """
    given, name = Use(layer, named(inputs, names), tuple(context), dropout_seed), name or type(layer).__name__
    with placed_errors(), restored(layer):
        if randomize:
            randomize_parameters(layer)
        notes, doubts = [given.summary()], list[str]()
        float64_values(given.inputs, given.parameters)
        promises = examine_promises(given, options.get("seed", 0))
        if promises.moves:
            return Report(
                name or type(layer).__name__, (), "no derivative was tried", promises.broken, (), (), tuple(notes)
            )
        backward = "adding" if promises.assigned else "backward"
        report = _check(given, getattr(given, backward), name, **options)
        uses = [given]
        if vary and report.verdict != CANNOT_TELL:
            tried = [(use, use.fits(given)) for use in given.variations()]
            fitting, left_out = ([use for use, fits in tried if fits is taken] for taken in (True, False))
            uses += fitting
            if report.passed:
                report, uses = _first_wrong(report, fitting, backward, options, doubts) or (report, uses)
            for text, some in (("also with {}", fitting), ("not with {}: the layer does not take that", left_out)):
                notes += [text.format(", ".join(use.label for use in some))] if some else []
        with np.errstate(all="ignore"):
            wrong = report.failures if explained else ()
            clues = explain(uses, backward, wrong, options.get("seed", 0)) if wrong else []
    clues = [f"right with the inputs as given, but not with {uses[0].label}"] * bool(uses[0].label) + clues
    doubts = [*promises.doubts, *doubts]
    return Report(name, report.checks, report.reason, promises.broken, tuple(doubts), tuple(clues), tuple(notes))


def _first_wrong(
    report: Report, uses: list[Use], backward: str, options: dict, doubts: list[str]
) -> tuple[Report, list[Use]] | None:
    """The report for the first of several uses in which a gradient is WRONG, and that use; None if there is none.

    A use whose forward works and whose backward fails becomes one of the `doubts`: the layer may not be meant for it.
    """
    exact = all(check.method == COMPLEX_STEP for check in report.checks)
    quick = {"method": COMPLEX_STEP} if exact else {"method": RICHARDSON, "directions": 1}
    quick |= {**options, "max_entries": 0, "together": True}
    for use in uses:
        try:
            with placed_errors(label=use.label), np.errstate(all="ignore"):
                verdict = _check(use, getattr(use, backward), report.name, **quick).verdict
        except LayerError as error:
            doubts.append(f"forward takes other sizes, and backward fails: {error}")
            continue
        if verdict == WRONG:
            whole = _check(use, getattr(use, backward), report.name, **options)
            if whole.verdict == WRONG:
                return whole, [use]
    return None


def _check(use: Use, backward: Callable[..., Any], name: str, **options: Any) -> Report:
    return check_gradients(use.forward, backward, use.inputs, use.parameters, name=name, **options)
