"""Options of the suite: its three tiers, one thread for each process, and tests repeated on several array libraries.

`pytest` leaves out the tests with the marker `exhaustive` or `weekly`, `pytest --exhaustive`, which guards each change,
those marked `weekly`, and `pytest --weekly` nothing. The last line says how to run what was left out.
With `--rest`, what passed in the run before is left out, except for tests of random examples, which try more. With
`--first-of-each` one case of each test is enough, except for those marked `every_backend`: it finds what an older NumPy
lacks.

The tests of the model run on NumPy, with `--exhaustive` also on a stand-in stricter than CuPy, and on CuPy where it can
run. On the stand-in one case of each test is enough in most folders; the others run with `--weekly`. The test itself
does not mention this: `xp` is switched around it. It makes its values on the host, with NumPy, and moves them with
`device` and `host` of helpers.py. Tests that concern only the host (threads, files) are marked `host_only`; those
marked `every_backend` run on the stand-in by default too.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported: the workers share the processors

import contextlib
import re
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from minitransformer.backend import BackendUnavailableError, use_backend
from tests.strict.strict import strict

HERE = Path(__file__).parent
BACKENDS = {"numpy": "numpy", "strict": strict, "cupy": "cupy"}
ON_EVERY_BACKEND = (
    "functional/",
    "layers/",
    "models/",
    "evaluation/",
    "training/",
    "decoding/",
    "gradcheck/test_cases.py",
    "test_core.py",
    "test_properties.py",
)
ONCE_ON_THE_STAND_IN = ("functional/", "layers/", "models/", "decoding/", "training/", "evaluation/")
TIERS = ("exhaustive", "weekly")  # the markers, also the names of the options that run what carries them
EXAMPLES = {"exhaustive": 10, "weekly": 30}  # of Hypothesis, for a test that does not say how many it needs
LEFT_OUT = pytest.StashKey()  # whether some tests are
WHOLE_FILE = re.compile(rf"^pytestmark = pytest\.mark\.({'|'.join(TIERS)})\b", re.MULTILINE)
PASSED = "minitransformer/passed"  # in pytest's cache: the tests that passed when it ran without --rest


def pytest_addoption(parser):
    """The options `--exhaustive`, `--weekly`, `--rest` and `--first-of-each`."""
    parser.addoption("--exhaustive", action="store_true", help="run also what takes long: see tests/conftest.py")
    parser.addoption("--weekly", action="store_true", help="run everything, also what takes hours: see there")
    parser.addoption("--rest", action="store_true", help="leave out what passed in the run before: see there")
    parser.addoption("--first-of-each", action="store_true", help="run one case of each test: see there")


def tier(config):
    """The name of the largest tier that was asked for, "" for the default tests alone."""
    return next((name for name in reversed(TIERS) if config.getoption(name)), "")


def left_out(config):
    """The markers of the tests that this run leaves out."""
    return TIERS[TIERS.index(tier(config)) + 1 :] if tier(config) else TIERS


def pytest_configure(config):
    """No test has been left out yet; a test of Hypothesis that does not say how many examples it needs takes three."""
    config.stash[LEFT_OUT] = False
    examples = EXAMPLES.get(tier(config), 3)
    slow = [HealthCheck.too_slow]  # a busy machine is no failure
    settings.register_profile("suite", max_examples=examples, deadline=None, suppress_health_check=slow)
    settings.load_profile("suite")


@contextlib.contextmanager
def usual_signals():
    """Signals are handled as in a terminal, even where the tests run after nohup or in the background, and ignore them.

    The processes that a test starts inherit what is ignored.
    """
    usual = {"SIGINT": signal.default_int_handler, "SIGQUIT": signal.SIG_DFL, "SIGHUP": signal.SIG_DFL}
    numbers = [(getattr(signal, name), handler) for name, handler in usual.items() if hasattr(signal, name)]
    before = [(number, signal.signal(number, handler)) for number, handler in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@pytest.fixture
def signals_of_a_terminal():
    """The same around a test."""
    with usual_signals():
        yield


def cupy_runs():
    """Whether there is a GPU to run tests on."""
    try:
        with use_backend("cupy"):
            return True
    except BackendUnavailableError:
        return False


CUPY = ["cupy"] if cupy_runs() else []


def pytest_ignore_collect(collection_path, config):
    """A file whose tests all belong to a larger tier is not even imported."""
    if collection_path.name.startswith("test_"):
        mark = WHOLE_FILE.search(collection_path.read_text("utf-8"))
        if mark and mark[1] in left_out(config):
            config.stash[LEFT_OUT] = True
            return True
    return None


def pytest_generate_tests(metafunc):
    """Repeat the tests of the files above on every backend."""
    definition = metafunc.definition
    file = definition.path.relative_to(HERE).as_posix()
    if not file.startswith(ON_EVERY_BACKEND) or definition.get_closest_marker("host_only"):
        return
    marks = () if definition.get_closest_marker("every_backend") else pytest.mark.exhaustive
    there = [pytest.param("strict", marks=marks)] if tier(metafunc.config) or not marks else []
    metafunc.parametrize("backend", ["numpy", *there, *CUPY], indirect=True)


def one_case_on_the_stand_in(items):
    """Leave all cases of a test but one to `--weekly` on the stand-in, in the folders above."""
    begun = set()
    for item in items:
        is_there = getattr(item, "callspec", None) and item.callspec.params.get("backend") == "strict"
        if not is_there or not item.path.relative_to(HERE).as_posix().startswith(ONCE_ON_THE_STAND_IN):
            continue
        if item.function in begun and not item.get_closest_marker("every_backend"):
            item.add_marker(pytest.mark.weekly)
        if not item.get_closest_marker("weekly"):
            begun.add(item.function)


def first_of_each(items):
    """The first case of each test, and all of those marked `every_backend`."""
    first = {item.function: item for item in reversed(items)}
    return [item for item in items if item is first[item.function] or item.get_closest_marker("every_backend")]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave out what belongs to a larger tier, what has passed, or all cases of a test but one."""
    one_case_on_the_stand_in(items)
    if config.getoption("rest"):
        passed = set(config.cache.get(PASSED, ()))
        items[:] = [item for item in items if item.nodeid not in passed or hasattr(item.obj, "hypothesis")]
    kept = [item for item in items if not any(map(item.get_closest_marker, left_out(config)))]
    config.stash[LEFT_OUT] |= len(items) > len(kept)
    if hasattr(config, "workeroutput"):  # a process of pytest-xdist tells the one that prints
        config.workeroutput["left_out"] = config.stash[LEFT_OUT]
    items[:] = first_of_each(kept) if config.getoption("first_of_each") else kept


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Every process of pytest-xdist collects the same tests."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", False)


def pytest_terminal_summary(terminalreporter, config):
    """The command that runs the tests that were left out; and note which passed."""
    if config.pluginmanager.has_plugin("cacheprovider") and not config.getoption("rest"):
        passed = [report.nodeid for report in terminalreporter.stats.get("passed", ()) if report.when == "call"]
        config.cache.set(PASSED, passed)
    if config.stash[LEFT_OUT]:
        options = " or ".join(f"--{name}" for name in left_out(config))
        terminalreporter.write_line(f"more tests run with: pytest {options}")


@pytest.fixture(autouse=True)
def backend(request):
    """Inside the test `xp` is the library that the test is repeated on; tests that are not repeated run as they are."""
    with use_backend(BACKENDS[request.param]) if hasattr(request, "param") else contextlib.nullcontext():
        yield
