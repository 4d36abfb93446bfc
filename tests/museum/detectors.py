"""What looks for the bugs: the real tests, called one by one, and rows of the library's table of gradient checks.

A detector is a test file or a group of gradient checks. They stand in a fixed order, from the parts to the whole:
a bug of one level of the package cannot be seen by tests of the levels below, which never import it.
"""

import contextlib
import functools
import importlib
import inspect
import io
import itertools
import pkgutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

from minitransformer.gradcheck.subjects import SUBJECTS
from tests.oracle.reference_file import read

# of the package, as imported
LEVELS = (
    "process",
    "backend",
    "generators",
    "core",
    "functional",
    "layers",
    "decoding",
    "models",
    "evaluation",
    "training",
    "data",
)
STACKS = ("Encoder", "EncoderLayer", "Decoder", "DecoderLayer", "Transformer")  # only some rows of these
STACK_ROWS = (
    "EncoderLayer norm=post dropout=0.3 mask=both",
    "DecoderLayer norm=post dropout=0.3 mask=both",
    "DecoderLayer norm=pre dropout=0.3 mask=both",
    "Encoder norm=pre dropout=0.3 mask=both",
    "Decoder norm=pre dropout=0.3 mask=both",
    "Transformer norm=post tied=True smoothing=0.1 dropout=0.3",
    "Transformer norm=pre tied=False smoothing=0.1 dropout=0.3",
)
OFF = {"dropout=0.0", "mask=none", "mask=causal"}  # rows where the others have more switched on


class Detector(NamedTuple):
    """A named group of checks; each check is (name, function without arguments), and raises if it finds a bug."""

    level: str
    name: str
    checks: tuple
    cached: tuple = ()  # functions of the test file that keep their results

    def first_alarm(self):
        """The name of the first check that raises, or None."""
        with self._nothing_remembered():
            return next((name for name, check in self.checks if _raises(check)), None)

    def run(self):
        """All checks, letting through what they raise."""
        with self._nothing_remembered():
            for _, check in self.checks:
                _call(check)

    @contextlib.contextmanager
    def _nothing_remembered(self):
        """What is in a cache would be from before the bug, or stay when the bug has gone."""
        for function in self.cached:
            function.cache_clear()
        try:
            yield
        finally:
            for function in self.cached:
                function.cache_clear()


def detectors_for(exhibit):
    """Those that can see the bug; the gradient checks of its level and the tests of its own file come first."""
    level, file = exhibit.level, exhibit.function.__module__.split(".")[-1]
    likely = {(level, "gradient check"), (level, f"tests/{level}/test_{file}.py")}
    candidates = [detector for detector in DETECTORS if LEVELS.index(detector.level) >= LEVELS.index(level)]
    return sorted(candidates, key=lambda detector: (detector.level, detector.name) not in likely)


def _call(check):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        check()


def _raises(check):
    try:
        _call(check)
    except (Exception, pytest.fail.Exception):  # Failed, of pytest.raises, is no Exception
        return True
    return False


def _gradient_checks(level):
    """The rows of the table that prove the public names of one level, stacks of layers apart."""
    rows = [row for row in SUBJECTS.values() if row.covers.__module__.split(".")[1] == level]
    simple = [row for row in rows if row.group not in STACKS and not set(row.name.split()) & OFF]
    stacks = [row for row in rows if row.name in STACK_ROWS]
    for name, chosen in (("gradient check", simple), ("gradient check of stacks", stacks)):
        yield Detector(level, name, tuple((row.name, functools.partial(_prove, row)) for row in chosen))


def _prove(subject):
    report = subject.check()
    assert report.passed, str(report)


def _test_file(level, module_name):
    """The tests of one file, but for those that need pytest or hypothesis to run them."""
    module = importlib.import_module(module_name)
    own = {name: value for name, value in vars(module).items() if getattr(value, "__module__", None) == module_name}
    cached = {name: value for name, value in own.items() if hasattr(value, "cache_clear")}
    tests = [value for name, value in own.items() if name.startswith("test_") and _can_be_called(value)]
    # those that draw large samples, once for all of them, come last
    tests.sort(key=lambda test: any(f" {name}(" in inspect.getsource(test) for name in cached))
    checks = [(test.__name__, functools.partial(_run_test, test, case)) for test in tests for case in _cases(test)]
    return Detector(level, module_name.replace(".", "/") + ".py", tuple(checks), tuple(cached.values()))


@contextlib.contextmanager
def _temporary_folder():
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


# what tests ask for by the names of their arguments, each a context manager
FIXTURES = {
    "monkeypatch": pytest.MonkeyPatch.context,
    "tmp_path": _temporary_folder,
    "stored": lambda: contextlib.nullcontext(read()[0]),  # anew each time: a bug may write to it
    "record_property": lambda: contextlib.nullcontext(lambda *named_value: None),
}


def _can_be_called(test):
    parametrized = {name for mark in _marks(test) for name in _argument_names(mark)}
    missing = set(inspect.signature(test).parameters) - parametrized - FIXTURES.keys()
    return not missing and not hasattr(test, "hypothesis")


def _marks(test):
    return [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]


def _argument_names(mark):
    names = mark.args[0]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def _cases(test):
    """The arguments {name: value} of each case of a parametrised test."""
    axes = []
    for mark in _marks(test):
        names = _argument_names(mark)
        rows = [row if len(names) > 1 else (row,) for row in mark.args[1]]
        axes.append([dict(zip(names, row, strict=True)) for row in rows])
    return [{name: value for part in parts for name, value in part.items()} for parts in itertools.product(*axes)]


def _run_test(test, arguments):
    """One case of a test, with its fixtures."""
    wanted = set(inspect.signature(test).parameters) & FIXTURES.keys() - arguments.keys()
    with contextlib.ExitStack() as stack:
        test(**arguments, **{name: stack.enter_context(FIXTURES[name]()) for name in wanted})


def _test_files(level):
    package = importlib.import_module(f"tests.{level}")
    for file in pkgutil.iter_modules(package.__path__, f"tests.{level}."):
        if file.name.rpartition(".")[2].startswith("test_"):
            yield _test_file(level, file.name)


def _all_detectors():
    yield _test_file("backend", "tests.test_threads")
    yield _test_file("core", "tests.test_core")
    for level in LEVELS[LEVELS.index("functional") :]:
        simple, stacks = _gradient_checks(level)
        yield simple
        yield from _test_files(level)
        yield stacks
    yield _test_file("models", "tests.oracle.test_huggingface_reference")
    yield _test_file("training", "tests.oracle.test_pytorch_reference")


DETECTORS = tuple(detector for detector in _all_detectors() if detector.checks)
