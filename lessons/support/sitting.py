"""The judge of one_sitting.py: it says whether a function is right, and if not, which mistake was made.

    judge(softmax_backward)                  at a station
    hint(softmax_backward)                   one more hint each time
    judge_half(forward, half_backward)       134 gradients against the complex step, after five stations
    judge_all(forward, backward)             all 826, at the end

It compares with the running example's true numbers, and with each known mistake computed from them (stations.py).
"""

import ast
import atexit
import builtins
import contextlib
import copy
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from types import FrameType
from typing import Any, NamedTuple

from support.stations import EXAMPLE, NUMBERS, SOURCE_IDS, STATIONS, TARGET_IN_IDS, TARGET_OUT_IDS, Station, Task
from support.tables import ROWS, SOURCE, VOCABULARY, show

import numpy as np

from minitransformer.example.names import named_weights
from minitransformer.gradcheck.judge.clues import (
    Output,
    crash,
    error_of,
    ratio_clue,
    shape_clue,
    transpose_clue,
    worst_clue,
    wrong_entries,
)
from minitransformer.system.terminal import print_in_any_encoding, wrap

__all__ = [
    "PE",
    "ROWS",
    "SOURCE",
    "STOP",
    "VOCABULARY",
    "WEIGHTS",
    "hint",
    "judge",
    "judge_all",
    "judge_half",
    "show",
    "true",
]

WEIGHTS = named_weights(EXAMPLE.model)  # the 826 numbers of the model, 43 arrays by name
TOTAL = sum(array.size for array in WEIGHTS.values())
PE = NUMBERS["PE"]
true = NUMBERS  # values and gradients, such as true["cross.ds"]
STOP = SOURCE_IDS, TARGET_IN_IDS, TARGET_OUT_IDS  # "stop"; bos and "pots"; "pots" and eos
SAME = 1e-9  # relative difference of results that are the same
SIZES = {"C": 6.0, "H": 2.0, "D": 3.0, "T": 5.0, "S": 4.0, "F": 8.0, "V": 7.0}
RATIOS = {"sqrt(C)": 6**0.5, "sqrt(D)": 3**0.5}
passed: set[str] = set()  # titles of stations
hints: dict[str, int] = {}  # how many a function has had
stopped = ["its beginning"]  # where a script stops if nothing follows; empty once it has come to judge_all

print_in_any_encoding()


def missing(name: str) -> Callable[..., Any]:
    """What stands for a station's function that was renamed or deleted: names are looked up in builtins last."""

    def function(*arguments: Any) -> None:
        raise NameError(no_function(name))

    function.__name__ = name
    setattr(builtins, name, function)
    return function


def no_function(name: str) -> str:
    """What is said about a missing function."""
    return f"no function {name} found. Keep the names: the rest of the file calls them."


def say_where_it_stopped() -> None:
    """Print it if a script ends before judge_all, for whatever reason."""
    for place in stopped:
        print(f"the file stopped after {place}, and never came to judge_all")


if str(getattr(sys.modules["__main__"], "__file__", "")).endswith("one_sitting.py"):
    atexit.register(say_where_it_stopped)
MISSING = [missing(name) for station in STATIONS for name in station.tasks]


class Verdict(NamedTuple):
    """What is said about one output, or about a whole function."""

    status: str  # "ok", "open" or "wrong"
    lines: tuple[str, ...]


def judge(*functions: Callable[..., Any]) -> bool:
    """Say whether the functions of one station are right -> whether all of them are."""
    try:
        number, station = find_station([function.__name__ for function in functions])
    except ValueError as error:
        print(error)
        return False
    stopped[:] = [f"station {number}, judged in line {sys._getframe(1).f_lineno}"]
    examined = {function.__name__: examine(function, station.tasks[function.__name__]) for function in functions}
    verdicts = [verdict for each in examined.values() for verdict in each]
    statuses = {verdict.status for verdict in verdicts}
    summary = "ok" if statuses == {"ok"} else "WRONG" if "wrong" in statuses else "not written yet"
    if statuses == {"ok", "open"}:
        summary = "not finished"
    print(f"station {number} of {len(STATIONS)}, {station.title}: {summary}")
    untouched = statuses == {"open"} and all(len(verdict.lines) == 1 for verdict in verdicts)
    again = summary == "ok" and station.title in passed
    for line in () if untouched else (line for verdict in verdicts for line in verdict.lines):
        if not again or line.startswith("note:"):
            say(line)
    (passed.add if summary == "ok" else passed.discard)(station.title)
    if summary == "ok" and not again:
        say(f"Pencil: {station.pencil()}.")
        say(f"Remember: {station.remember}")
    elif summary == "WRONG":
        first = next(name for name, each in examined.items() if any(verdict.status == "wrong" for verdict in each))
        say(f"Stuck? hint({first})")
    return summary == "ok"


def hint(function: Callable[..., Any]) -> None:
    """Print the function's next hint; after the last one, the first again."""
    _, station = find_station([function.__name__])
    found = station.tasks[function.__name__].hints
    number = hints.get(function.__name__, 0) % len(found)
    hints[function.__name__] = number + 1
    say(f"hint {number + 1} of {len(found)} for {function.__name__}: {found[number]}")


def find_station(names: list[str]) -> tuple[int, Station]:
    """The station whose functions these are, and its number."""
    for number, station in enumerate(STATIONS, 1):
        if set(names) <= set(station.tasks):
            return number, station
    known = ", ".join(name for station in STATIONS for name in station.tasks)
    raise ValueError(f"no station has {' and '.join(names)}: the functions are {known}")


def examine(function: Callable[..., Any], task: Task) -> list[Verdict]:
    """Call the function on the true numbers, and judge each of its outputs."""
    if function in MISSING:
        return [Verdict("wrong", (no_function(function.__name__),))]
    arguments = copy.deepcopy(task.arguments)
    try:
        with np.errstate(all="ignore"):
            returned = function(*arguments)
    except (Exception, SystemExit) as error:
        unfinished = ... in function.__code__.co_consts
        left = (f"{function.__name__}: there is still a ... in it",) if unfinished else ()
        return [Verdict("open" if left else "wrong", (*left, *crash_lines(function, task, error)))]
    outputs = (returned,) if len(task.right) == 1 and not isinstance(returned, tuple) else returned
    if not isinstance(outputs, tuple | list) or len(outputs) != len(task.right):
        nothing = ": it returns None" if returned is None else ""
        return [Verdict("wrong", (f"{function.__name__} must return {', '.join(task.right)}{nothing}",))]
    swapped = swapped_outputs(outputs, task)
    if swapped:
        return [Verdict("wrong", (f"{' and '.join(swapped)} are swapped in the return",))]
    verdicts: list[Verdict] = []
    for name, got in zip(task.right, outputs, strict=True):
        if task.in_turn and verdicts and verdicts[-1].status != "ok":
            verdicts.append(Verdict("open", (f"{name} comes after {next(iter(task.right))}",)))
        else:
            verdicts.append(compare(name, got, task))
    for changed in changed_arguments(function, task, arguments):
        text = f"note: it changes its argument {changed}, which others still need. Begin with {changed}.copy()."
        verdicts.append(Verdict("ok", (text,)))
    return verdicts


def swapped_outputs(outputs: Any, task: Task) -> tuple[str, ...]:
    """The names of two outputs that the return statement swaps, or () if it swaps none."""
    for (a, first), (b, second) in combinations(zip(task.right, outputs, strict=True), 2):
        if is_right(first, task.right[b]) and is_right(second, task.right[a]):
            return a, b
    return ()


def is_right(got: Any, right: np.ndarray) -> bool:
    """Whether an output is an array of the right numbers."""
    if not isinstance(got, np.ndarray) or got.shape != right.shape or got.dtype.kind not in "fiu":
        return False
    return not wrong_entries(got, right, SAME).any()


def compare(name: str, got: Any, task: Task) -> Verdict:
    """Judge one output."""
    if got is ...:
        return Verdict("open", (f"{name}: not written yet",))
    if got is None:
        why = "either nothing is returned, or a result of a function that returns nothing, such as np.add.at"
        return Verdict("wrong", (f"{name} is None: {why}",))
    right, output = task.right[name], Output(name, task.axes[name])
    try:
        if np.iscomplexobj(got):
            return Verdict("wrong", (f"{name} is complex, should be real",))
        got = np.asarray(got, dtype=np.float64)
    except (TypeError, ValueError):
        return Verdict("wrong", (f"{name} must be an array of numbers, not {type(got).__name__}",))
    if got.shape == right.shape and not wrong_entries(got, right, SAME).any():
        return Verdict("ok", (f"{name} ok ({error_of(got, right):.0e})",))
    unreal = np.argwhere(~np.isfinite(got))
    if len(unreal) and got.shape == right.shape:
        place = ",".join(map(str, unreal[0]))
        return Verdict("wrong", (f"{name} has {got[tuple(unreal[0])]} in it, first at {name}[{place}]",))
    lines = [f"{name} WRONG"]
    mistakes = [mistake for mistake in task.mistakes if mistake.output == name and explains(mistake, got, task)]
    for mistake in mistakes:
        lines += [f"  = {mistake.name}", f"  -> {mistake.question}"]
    if not mistakes and got.shape != right.shape:
        lines.append(f"  {shape_clue(got, right, output)}")
    elif not mistakes:
        clues = (ratio_clue(got, right, RATIOS, SIZES), transpose_clue(got, right, output))
        found = [clue for clue in clues if clue] or [worst_clue(got, right, output), "not one of the known mistakes"]
        lines += [f"  {clue}" for clue in found]
    return Verdict("wrong", tuple(lines))


def explains(mistake: Any, got: np.ndarray, task: Task) -> bool:
    """Whether a known mistake gives just this."""
    theirs = np.asarray(mistake.formula(*copy.deepcopy(task.arguments)))
    return theirs.shape == got.shape and not wrong_entries(got, theirs, SAME).any()


def crash_lines(function: Callable[..., Any], task: Task, error: BaseException) -> tuple[str, ...]:
    """An exception, where it was raised, and the shapes that the function was given."""
    names = function.__code__.co_varnames
    shapes = [f"{name} {np.shape(value)}" for name, value in zip(names, task.arguments, strict=False) if np.ndim(value)]
    said = crash(error, lambda path: path == function.__code__.co_filename)
    if "core dimension" in said:
        fit = misfit(error) or "the inner sizes of @ do not fit"
        said = re.sub(r": .*?(?= in line \d|$)", f": {fit}", said, count=1)
    return f"{function.__name__}: {said}", f"  it was given {', '.join(shapes)}"


def misfit(error: BaseException) -> str:
    """The shapes of a matrix product in the line that failed, if they do not fit; "" if none is found."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    line = traceback.extract_tb(error.__traceback__)[-1].line or ""
    with contextlib.suppress(Exception):
        products = [node for node in ast.walk(ast.parse(line)) if isinstance(getattr(node, "op", None), ast.MatMult)]
        for product in reversed(products):
            a, b = (np.shape(value_of(side, frames[-1])) for side in (product.left, product.right))
            if a[-1] != b[-2:][0]:
                return f"these do not fit: {a} @ {b}, the inner sizes are {a[-1]} and {b[-2:][0]}"
    return ""


def value_of(expression: ast.expr, frame: FrameType) -> Any:
    """What an expression of a function's line was worth in its frame."""
    return eval(compile(ast.Expression(expression), "", "eval"), frame.f_globals, frame.f_locals)


def changed_arguments(function: Callable[..., Any], task: Task, arguments: tuple[Any, ...]) -> list[str]:
    """The names of the arrays that the function was given and has changed."""
    pairs = zip(function.__code__.co_varnames, task.arguments, arguments, strict=False)
    return [name for name, before, after in pairs if np.ndim(before) and not np.array_equal(before, after)]


def say(text: str) -> None:
    """Print a line, wrapped and indented."""
    inner = text[: len(text) - len(text.lstrip())]
    print(wrap(text.lstrip(), f"    {inner}", f"      {inner}"))


def judge_half(forward: Callable[..., Any], half_backward: Callable[..., Any]) -> bool:
    """Compare the gradients that the first five stations give with the complex step -> whether all are right."""
    if any_open(STATIONS[:5], "half of it"):
        return False
    grads = half_backward(WEIGHTS, forward(WEIGHTS, *STOP), TARGET_OUT_IDS)
    if any_wrong(grads, complex_steps(forward, grads), "half of it"):
        return False
    count = sum(array.size for array in grads.values())
    print(f"half done: {count} of the {TOTAL} gradients are right")
    say("You can derive any network now that has no attention. This is a good place to stop for today.")
    return True


def judge_all(forward: Callable[..., Any], backward: Callable[..., Any]) -> bool:
    """Compare all gradients with the complex step of the forward -> whether all are right."""
    stopped.clear()
    if any_open(STATIONS, "the whole"):
        return False
    grads = backward(WEIGHTS, forward(WEIGHTS, *STOP), *STOP)
    if any_wrong(grads, complex_steps(forward, WEIGHTS), "the whole"):
        return False
    nonzero = sum(int((np.abs(grad) > 1e-12).sum()) for grad in grads.values())
    print(f"the whole: all {TOTAL} gradients are right, and {nonzero} of them are not 0")
    return True


def any_open(stations: Sequence[Station], what: str) -> bool:
    """Whether any of these stations has not passed, which is printed."""
    numbers = [number for number, station in enumerate(stations, 1) if station.title not in passed]
    if numbers:
        print(f"{what}: not yet. Open stations: {', '.join(map(str, numbers))}")
    return bool(numbers)


def any_wrong(grads: Mapping[str, Any], true: Mapping[str, np.ndarray], what: str) -> bool:
    """Whether any of the gradients is wrong, which is printed, with the first of them."""
    wrong = wrong_arrays(grads, true)
    if wrong:
        print(f"{what}: WRONG in {len(wrong)} of {len(true)} arrays")
        say(f"Going back from the loss, the first wrong one is {next(iter(wrong))}: look there.")
        say("What comes after it on the way back is wrong as a consequence.")
        for line in wrong.values():
            say(line)
    return bool(wrong)


def complex_steps(forward: Callable[..., Any], names: Iterable[str], h: float = 1e-30) -> dict[str, np.ndarray]:
    """The gradients of the weights `names`: the imaginary part of the loss after a step of ih, divided by h."""
    weights = {name: array.astype(complex) for name, array in WEIGHTS.items()}
    slopes = {name: np.zeros(WEIGHTS[name].shape) for name in names}
    for name, slope in slopes.items():
        for index in np.ndindex(slope.shape):
            weights[name][index] += 1j * h
            slope[index] = forward(weights, *STOP)["L"].imag / h
            weights[name][index] = weights[name][index].real
    return slopes


def wrong_arrays(grads: Mapping[str, Any], true: Mapping[str, np.ndarray]) -> dict[str, str]:
    """A line about each array that is missing, of a wrong shape, or off, in the order of the way back."""
    found = {}
    for name in [name for name in dict.fromkeys((*grads, *true)) if name in true]:
        got, right = grads.get(name), true[name]
        if got is None or got is ...:
            found[name] = f"{name}: there is none"
        elif np.shape(got) != right.shape:
            found[name] = f"{name} has the shape {np.shape(got)}, not {right.shape}"
        elif wrong_entries(np.asarray(got), right, SAME).any():
            found[name] = f"{name} is off by {error_of(np.asarray(got), right):.0%} of its largest entry"
    return found
