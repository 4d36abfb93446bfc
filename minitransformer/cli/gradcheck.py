"""`minitransformer gradcheck`: check the library's backward passes, or a layer of your own."""

import argparse
import functools
import math
import time
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from minitransformer.checks import check_integer
from minitransformer.core import Layer
from minitransformer.gradcheck import Report, SecondOrderReport, check_layer, check_layer_second_order
from minitransformer.gradcheck.judge.report import CANNOT_TELL, WRONG
from minitransformer.gradcheck.judge.use import LayerError, placed_errors, takes_rng
from minitransformer.gradcheck.subjects import BASE, select_subjects
from minitransformer.system.files import load_module
from minitransformer.system.progress import tqdm
from minitransformer.system.terminal import blamed_for_memory, wrap

AnyReport = Report | SecondOrderReport
DESCRIPTION = """\
Compare every gradient that a backward pass computes with a derivative of the forward pass alone. The derivative is
found with the complex step, which is exact to rounding. All functions, layers and models are checked, with all their
settings. The table shows the largest error of an entry, relative to the largest entry of its tensor.

  minitransformer gradcheck                         the whole table
  minitransformer gradcheck softmax SelfAttention   some rows of the table
  minitransformer gradcheck --quick                 the whole table along random directions (faster)
  minitransformer gradcheck base                    all 63 million gradients of the paper's base model at once
  minitransformer gradcheck --second-order          the Hessians: is the derivative of each backward symmetric?
  minitransformer gradcheck path/to/file.py:MyLayer a layer of your own
  minitransformer gradcheck path/to/file.py         which layers there are in a file of your own

Your layer is created with MyLayer(), and its input is a random float64 array of the shape --shape. If your layer needs
arguments, name a function that returns it: path/to/file.py:make. If it needs other inputs, let that function, or a
static method example() of the class, return (layer, inputs), where inputs is a tuple of float64 arrays. Integer and
boolean arrays (ids, masks) may follow them; they have no gradient. The output may be an array, a number, or a tuple of
them. What else is checked is in docs/library.md, "Checking a layer".

For a WRONG gradient, what it looks like is said too: the transpose, a constant factor and its name, a path that is
missing, float32, only some entries. The verdict is "cannot tell" where neither complex steps nor real differences give
a derivative: the output is random or computed in float32, or there are kinks everywhere.

--second-order applies the complex step to the backward pass. A Hessian is symmetric, u.Hv = v.Hu, so a backward pass
whose derivative is not symmetric is the gradient of no function.

Exit status: 0 if all gradients are right, 1 if any is WRONG, 3 if none is WRONG but the check cannot tell for some,
2 for bad input.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="a row of the table, base, or path/to/file.py:MyLayer")
    parser.add_argument(
        "--shape",
        type=int,
        nargs="+",
        metavar="N",
        default=[2, 3, 4],
        help="shape of your layer's input (default 2 3 4)",
    )
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument(
        "--quick", action="store_true", help="check three random directions per tensor instead of all its entries"
    )
    kinds.add_argument(
        "--second-order", action="store_true", help="check that the Hessian is symmetric, instead of the gradients"
    )
    parser.add_argument("--verbose", action="store_true", help="show every tensor of every row")


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Check and print the table -> 1 if a gradient is wrong, else 3 if the check cannot tell."""
    checks = collect(arguments)
    start = time.perf_counter()
    reports = []
    with tqdm(checks, unit="check", leave=False) as bar:
        for name, check in bar:
            bar.set_postfix_str(name)
            report = check()
            reports.append(report)
            said = str(report) if arguments.verbose or not report.passed else report.row()
            tqdm.write("\n".join(wrap(line, "", "    ") for line in said.splitlines()))
    seconds = time.perf_counter() - start
    failed = sum(report.verdict == WRONG for report in reports)
    unclear = sum(report.verdict == CANNOT_TELL for report in reports)
    errors = [report.error for report in reports if report.is_measured]
    worst = max(errors, key=lambda error: (error != error, error), default=math.nan)
    counts = [f"{failed} WRONG"] * bool(failed) + [f"cannot tell for {unclear}"] * bool(unclear)
    count = f"{len(reports)} check{'s' if len(reports) != 1 else ''}"
    shown = f"worst {'asymmetry' if arguments.second_order else 'relative error'} {worst:.1e}; " if errors else ""
    print(f"\n{count}, {', '.join(counts) or 'all passed'}; {shown}{seconds:.1f} s")
    result = {"checks": len(reports), "failed": failed, "unclear": unclear, "worst": worst, "seconds": seconds}
    result["reports"] = [report.as_dict() for report in reports]
    return 1 if failed else 3 if unclear else 0, result


def collect(arguments: argparse.Namespace) -> list[tuple[str, Callable[[], AnyReport]]]:
    """(name, check) for everything that the command line names."""
    own = [name for name in arguments.names if ":" in name or name.endswith(".py")]
    names = [name for name in arguments.names if name not in own and name != "base"]
    subjects = select_subjects(names) if names or not arguments.names else []
    options = {"max_entries": 0} if arguments.quick else {}
    checks: list[tuple[str, Callable[[], AnyReport]]] = []
    for subject in subjects:
        check = subject.check_second_order if arguments.second_order else functools.partial(subject.check, **options)
        checks.append((subject.name, check))
    if "base" in arguments.names:
        seed = arguments.seed
        second_order = functools.partial(BASE.check_second_order, differences=False, seed=seed)  # they take a minute
        first_order = functools.partial(BASE.check, together=True, seed=seed)
        checks.append(("base", second_order if arguments.second_order else first_order))
    return checks + [(name, load_own(name, arguments)) for name in own]


def load_own(name: str, arguments: argparse.Namespace) -> Callable[[], AnyReport]:
    """The check of a layer in a user's own file, given as path/to/file.py:name, of a class or of a function."""
    path, maker_name = (name, "") if name.endswith(".py") else name.rpartition(":")[::2]
    with placed_errors("the file"):
        module = load_module(path)
    maker = getattr(module, maker_name, None)
    if not isinstance(maker, type | FunctionType):
        lacks = f"{path} has no class or function {maker_name}: " if maker_name else f"which class of {path}? "
        raise ValueError(lacks + choices(module, path))
    for length in arguments.shape:
        check_integer("--shape", length, least=1)
    layer, arrays, context, note = make_layer(maker, arguments)
    if not isinstance(layer, Layer):
        raise TypeError(f"{type(layer).__name__} is not a subclass of minitransformer.core.Layer")
    seed = arguments.seed if takes_rng(layer) else None
    check = check_layer_second_order if arguments.second_order else check_layer

    def carry_out() -> AnyReport:
        try:
            return check(layer, *arrays, context=context, dropout_seed=seed, name=name)
        except LayerError as error:
            raise LayerError(f"{error}{note}") from error

    return carry_out


def choices(module: ModuleType, path: str) -> str:
    """The commands that check the layers of a file."""
    layers = [
        name
        for name, cls in vars(module).items()
        if isinstance(cls, type) and issubclass(cls, Layer) and cls.__module__ == module.__name__
    ]
    commands = "minitransformer gradcheck " + ", or ".join(f"{path}:{name}" for name in layers)
    return f"type {commands}" if layers else "there is no subclass of minitransformer.core.Layer in it"


def make_layer(maker: Callable, arguments: argparse.Namespace) -> tuple[Any, list, list, str]:
    """A user's class or function -> (layer, inputs with gradients, further arguments, what to say of the inputs)."""
    make = getattr(maker, "example", maker)
    try:
        with placed_errors("__init__" if isinstance(make, type) else make.__name__):
            made = make()
    except TypeError as error:  # of the call: an error inside is a LayerError
        raise TypeError(f"{error}: write a function make() that returns it, and check FILE.py:make") from error
    if make is maker and not isinstance(made, tuple):
        shape = " ".join(map(str, arguments.shape))
        with blamed_for_memory(f"--shape {shape}"):
            x = np.random.default_rng([arguments.seed, 103]).standard_normal(arguments.shape)
        return made, [x], [], f" (the input has the shape {shape}: --shape changes it)"
    if not isinstance(made, tuple) or len(made) != 2:
        raise TypeError(f"{make.__qualname__}() must return (layer, inputs), got {type(made).__name__}")
    layer, inputs = made
    floats: list = []
    others: list = []
    for array in inputs if isinstance(inputs, tuple | list) else (inputs,):
        is_float = isinstance(array, np.ndarray) and array.dtype.kind not in "iub"
        (floats if is_float else others).append(array)
    return layer, floats, others, ""
