"""What looks for bugs: the real tests, called one by one, and rows of the library's table of gradient checks.

A check has the name that pytest would give it ("tests/test_core.py::test_name[2-3]"), or "gradient check: row".
"""

import atexit
import contextlib
import functools
import importlib
import inspect
import io
import itertools
import pkgutil
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest

from minitransformer.backend import use_backend
from minitransformer.gradcheck.subjects import SUBJECTS
from tests.conftest import usual_signals
from tests.kernels.cuda_on_cpu import COMPILER, CudaOnCpu, forget_kernels
from tests.oracle.reference_file import read

# of the package, as imported: a bug of one level cannot be seen by tests of the levels before, which never import it
LEVELS = (
    "backend",
    "core",
    "functional",
    "layers",
    "decoding",
    "models",
    "evaluation",
    "training",
    "data",
    "tokenizers",
    "interop",
    "kernels",
    "recipes",
)
ROOT = Path(__file__).parents[2]
GRADIENT = "gradient check: "
# files of tests that are not in the folder of their level
ELSEWHERE = {
    "backend": ("tests.system.test_threads",),
    "core": ("tests.test_core",),
    "decoding": ("tests.test_own_layers",),
    "functional": ("tests.precision.test_precision",),
    "layers": ("tests.test_own_layers",),
    "models": ("tests.oracle.test_huggingface_reference",),
    "training": ("tests.oracle.test_pytorch_reference",),
}


STARTS_PROCESSES = "_mpi"  # the end of files whose tests start other processes, in which no bug is planted


class Check(NamedTuple):
    """One thing that can find a bug."""

    name: str
    level: str  # the part of the package that it checks
    function: object  # without arguments; raises if it finds a bug
    cached: tuple = ()  # functions of the test file that keep their results

    def run(self):
        """Do the check, and let through what it raises."""
        # what is in a cache would be from before the bug, or stay when the bug has gone
        for function in self.cached:
            function.cache_clear()
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("error")  # as in setup.cfg
                self.function()
        finally:
            for function in self.cached:
                function.cache_clear()

    def alarms(self):
        """Whether the check finds a bug."""
        try:
            self.run()
        # Failed, of pytest.raises, and Skipped are no Exception
        except (Exception, pytest.fail.Exception, pytest.skip.Exception):
            return True
        return False


def all_checks():
    """Every check there is."""
    return [
        *(_gradient_check(subject) for subject in SUBJECTS.values()),
        *(check for level in LEVELS for module in _test_modules(level) for check in _checks_of(level, module)),
    ]


def find_check(name):
    """The check of that name; imports its file only. Raises LookupError if there is none."""
    if name.startswith(GRADIENT):
        row = name.removeprefix(GRADIENT)
        if row in SUBJECTS:
            return _gradient_check(SUBJECTS[row])
    else:
        module = name.partition("::")[0].removesuffix(".py").replace("/", ".")
        for level in LEVELS:
            if module in _test_modules(level):
                for check in _checks_of(level, module):
                    if check.name == name:
                        return check
    raise LookupError(f"there is no check called {name!r}")


def _gradient_check(subject):
    def prove():
        report = subject.check()
        assert report.passed, str(report)

    return Check(GRADIENT + subject.name, subject.covers.__module__.split(".")[1], prove)


@functools.cache
def _test_modules(level):
    """The names of the files that test one level."""
    folder = ROOT / "tests" / level
    names = [file.name for file in pkgutil.iter_modules([folder]) if file.name.startswith("test_")]
    own = [f"tests.{level}.{name}" for name in names if not name.endswith(STARTS_PROCESSES)]
    return (*own, *ELSEWHERE.get(level, ()))


@functools.cache
def _checks_of(level, module_name, drawn=False):
    """The tests of one file, except those that need pytest to run them; with `drawn` also those of hypothesis."""
    module = importlib.import_module(module_name)
    own = {name: value for name, value in vars(module).items() if getattr(value, "__module__", None) == module_name}
    cached = tuple(value for value in own.values() if hasattr(value, "cache_clear"))
    used = _fixtures_used(getattr(module, "pytestmark", []))
    tests = [value for name, value in own.items() if name.startswith("test_") and _can_be_called(value, drawn, used)]
    file = module_name.replace(".", "/") + ".py"
    return [
        Check(f"{file}::{test.__name__}{label}", level, functools.partial(_run_test, test, arguments, used), cached)
        for test in tests
        for label, arguments in _cases(test)
    ]


@contextlib.contextmanager
def _temporary_folder():
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@functools.cache
def _cuda_on_cpu():
    """One for all checks, so that each source is compiled once."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    return CudaOnCpu(folder)


@contextlib.contextmanager
def _device():
    """The kernels run on the CPU, as in tests/kernels/conftest.py."""
    if COMPILER is None:
        pytest.skip("g++ is not here")
    forget_kernels()
    with use_backend(_cuda_on_cpu()):
        yield "cpu"
    forget_kernels()


# what tests ask for by the names of their arguments, each a context manager
FIXTURES = {
    "monkeypatch": pytest.MonkeyPatch.context,
    "tmp_path": _temporary_folder,
    "device": _device,
    "stored": lambda: contextlib.nullcontext(read()[0]),  # read again each time: a bug may write to it
    "record_property": lambda: contextlib.nullcontext(lambda *named_value: None),
    "signals_of_a_terminal": usual_signals,
}


def _can_be_called(test, drawn, used):
    marks = getattr(test, "pytestmark", [])
    if any(mark.name in ("exhaustive", "weekly") for mark in marks):
        return False  # the quick tests should find every bug
    parametrized = {name for mark in _marks(test) for name in _argument_names(mark)}
    wanted = {*inspect.signature(test).parameters, *used, *_fixtures_used(marks)}
    return wanted - parametrized <= FIXTURES.keys() and (drawn or not hasattr(test, "hypothesis"))


def _fixtures_used(marks):
    """The names that these marks of a test or of a file, one or a list, give to `usefixtures`."""
    marks = marks if isinstance(marks, list) else [marks]
    return {name for mark in marks if mark.name == "usefixtures" for name in mark.args}


def _marks(test):
    return [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]


def _argument_names(mark):
    names = mark.args[0]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def _cases(test):
    """("[label]", arguments {name: value}) of each case of a parametrized test."""
    cases = [("", {})]
    axes = [list(_rows(mark)) for mark in _marks(test)]
    if axes:
        cases = []
        for parts in itertools.product(*axes):
            label = "-".join(label for label, _ in parts)
            cases.append((f"[{label}]", {name: value for _, row in parts for name, value in row.items()}))
    labels = [label for label, _ in cases]
    return [
        (label if labels.count(label) == 1 else f"{label[:-1]}-{i}]", arguments)
        for i, (label, arguments) in enumerate(cases)
    ]


def _rows(mark):
    """(label, arguments) of each row of one `parametrize`."""
    names, ids = _argument_names(mark), mark.kwargs.get("ids")
    ids = list(ids) if ids is not None and not callable(ids) else ids
    for i, row in enumerate(mark.args[1]):
        given = getattr(row, "id", None)  # of pytest.param
        if hasattr(row, "marks"):
            if any(mark.name in ("exhaustive", "weekly") for mark in row.marks):
                continue
            row = row.values
        elif len(names) == 1:
            row = (row,)
        arguments = dict(zip(names, row, strict=True))
        if given is None and ids is not None:
            given = "-".join(str(ids(value)) for value in row) if callable(ids) else ids[i]
        yield given or "-".join(_label(name, value, i) for name, value in arguments.items()), arguments


def _label(name, value, i):
    """The value in a few characters, or the argument's name and the row's number."""
    text = getattr(value, "__name__", None) or repr(value)
    return text.strip("'") if len(text) <= 60 and " at 0x" not in text and "\n" not in text else f"{name}{i}"


def _run_test(test, arguments, used):
    """One case of a test, with its fixtures. Afterwards the backend is NumPy again, as a test may switch it."""
    wanted = set(inspect.signature(test).parameters) & FIXTURES.keys() - arguments.keys()
    with contextlib.ExitStack() as stack:
        stack.enter_context(use_backend("numpy"))
        for name in used | _fixtures_used(getattr(test, "pytestmark", [])):
            stack.enter_context(FIXTURES[name]())
        test(**arguments, **{name: stack.enter_context(FIXTURES[name]()) for name in wanted})
