"""Which lines of the package each check runs, and how long it takes: measured once and kept in runs/mutation/measured.

The checks are those of checks.py, and besides them the refusals, the tests with drawn
examples and those of the gradient checks. A file of tests is measured again if it has changed itself, or anything of
the package or of what tests import.
"""

import collections
import contextlib
import functools
import hashlib
import importlib
import json
import os
import pkgutil
import resource
import signal
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, settings

from minitransformer.gradcheck.subjects import SUBJECTS
from minitransformer.system.progress import tqdm
from tests.mutation import checks

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "minitransformer"
KEPT = ROOT / "runs" / "mutation" / "measured"
GRADIENT_CHECKS = "gradient checks of "  # with a level: groups of checks, as every file of tests is one
INPUT_ERRORS = "tests.refusals.test_refusals"
ELSEWHERE = (
    INPUT_ERRORS,
    "tests.oracle.test_pytorch_reference",
    "tests.test_properties",
    "tests.gradcheck.test_cases",
    "tests.gradcheck.test_check",
    "tests.gradcheck.test_derivatives",
)
ENOUGH_CALLS = 300  # of one function in one check: their lines are taken for all that it runs
LONGEST = 30  # seconds: a check that takes longer is not used


class Measured(NamedTuple):
    """What is known of a check."""

    name: str
    group: str  # the file of tests, or GRADIENT_CHECKS
    level: str
    seconds: float  # of the processor
    lines: dict  # {file of the package: an integer in which bit n stands for line n}

    def runs(self, mutant):
        """Whether it runs a line of the mutant."""
        return self.lines.get(mutant.file, 0) & mask(mutant.lines) != 0


def mask(lines):
    """Numbers of lines as the bits of one integer."""
    return functools.reduce(lambda bits, line: bits | 1 << line, lines, 0)


def all_groups():
    """{name of a group: level of the package} in the order of the levels; without the kernels, which need a GPU."""
    modules = {module: level for level in checks.LEVELS if level != "kernels" for module in checks._test_modules(level)}
    rows = {GRADIENT_CHECKS + level: level for level in ("functional", "layers", "models")}
    return {**rows, **modules, **dict.fromkeys(ELSEWHERE, "recipes")}


def groups_of(levels, which):
    """The groups that try the mutants of these levels: "own", "near" or "all"."""
    groups = all_groups()
    own = [group for group, level in groups.items() if level in levels and group not in ELSEWHERE]
    rows = [group for group in groups if group.startswith(GRADIENT_CHECKS) and group not in own]
    return {"own": [*own, INPUT_ERRORS], "near": [*own, *rows, *ELSEWHERE], "all": list(groups)}[which]


@functools.cache
def checks_of(group):
    """{name: Check} of one group; imports its file."""
    if group.startswith(GRADIENT_CHECKS):
        rows = [checks._gradient_check(subject) for subject in SUBJECTS.values()]
        found = [row for row in rows if GRADIENT_CHECKS + row.level == group]
    else:
        found = checks._checks_of(all_groups()[group], group, drawn=True)
    if group == INPUT_ERRORS:  # those of the command line run whole programs
        found = [check for check in found if "::test_library_raises" in check.name]
    return {check.name: check for check in found}


def measure(groups):
    """Every Measured of these groups; each group is measured in a process of its own."""
    everything = []
    before = digest([*sorted(PACKAGE.rglob("*.py")), *helpers()])
    with tqdm(groups, desc="measuring the checks", unit="file", disable=None, leave=False) as bar:
        for group in bar:
            own = [] if group.startswith(GRADIENT_CHECKS) else [ROOT / (group.replace(".", "/") + ".py")]
            path = KEPT / f"{group.replace(' ', '-')}-{digest(own, before)}.json"
            if not path.exists():
                bar.set_postfix_str(group)
                for old in KEPT.glob(f"{group.replace(' ', '-')}-*.json"):
                    old.unlink()
                in_child(lambda group=group, path=path: write(path, group))
            everything += read(path)
    return everything


def helpers():
    """The files of tests that other tests import."""
    return sorted(
        path
        for path in (ROOT / "tests").rglob("*.py")
        if not path.name.startswith("test_") and path.parent != Path(__file__).parent
    )


def digest(paths, start=""):
    """A short text that stands for the content of files."""
    content = hashlib.sha256(start.encode())
    for path in paths:
        content.update(path.read_bytes())
    return content.hexdigest()[:12]


def in_child(function):
    """Run a function in a copy of this process, and wait. Raises RuntimeError if it does not end well."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            silence()
            function()
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError("the checks could not be measured")


def silence():
    """Nothing is printed by this process from here on, and it cannot take all memory."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 4 * 2**30,) * 2)


def read(path):
    """The group that was written to a file."""
    return [
        Measured(*row[:4], {str(PACKAGE / file): int(bits, 16) for file, bits in row[4].items()})
        for row in json.loads(path.read_text("utf-8"))
    ]


def write(path, group):
    """Measure one group and write it to a file."""
    found = [measured for check in checks_of(group).values() if (measured := measured_check(group, check))]
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [[*measured[:4], {file: hex(bits) for file, bits in measured.lines.items()}] for measured in found]
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(rows), "utf-8")
    partial.replace(path)


class TooLongError(Exception):
    """A check has taken too long."""


def stop(*signal_and_frame):
    """What happens then."""
    raise TooLongError


def measured_check(group, check):
    """Run a check twice -> Measured, or None if it fails or takes too long."""
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST)
    try:
        started = time.process_time()
        if alarms(check):
            return None
        seconds = time.process_time() - started
        signal.alarm(20 * LONGEST)
        lines = traced(check)
    except TooLongError:
        return None
    finally:
        signal.alarm(0)
    return Measured(check.name, group, check.level, seconds, lines)


def alarms(check):
    """Whether a check alarms, also by a Ctrl-C that it sends or by an attempt to end the program."""
    clear_caches()
    try:
        return check.alarms()
    except BaseException:
        return True


def traced(check):
    """{file inside the package: bits of the lines that the check runs}, also in threads; a `def` stands for a call."""
    lines, calls, package = {}, collections.Counter(), str(PACKAGE)

    def on_call(frame, event, argument):
        code = frame.f_code
        if not code.co_filename.startswith(package):
            return None
        calls[code] += 1
        if calls[code] > ENOUGH_CALLS:
            return None
        seen = lines.setdefault(code.co_filename, set())
        seen.add(code.co_firstlineno)

        def on_line(frame, event, argument):
            seen.add(frame.f_lineno)
            return on_line

        return on_line

    threading.settrace(on_call)
    sys.settrace(on_call)
    try:
        alarms(check)
    finally:
        sys.settrace(None)
        threading.settrace(None)
    return {str(Path(file).relative_to(PACKAGE)): mask(seen.copy()) for file, seen in lines.copy().items()}


@functools.cache
def caches():
    """The functions of the package that keep their results."""
    modules = [module for name, module in sys.modules.items() if name.startswith("minitransformer.")]
    owners = [*modules, *(value for module in modules for value in vars(module).values() if isinstance(value, type))]
    return list(
        {
            id(value): value for owner in owners for value in vars(owner).values() if hasattr(value, "cache_clear")
        }.values()
    )


def clear_caches():
    """The package forgets all results that it keeps: they may be from before the bug."""
    for function in caches():
        function.cache_clear()


def import_tests(groups):
    """Import files of tests and the whole package, so that the processes of the mutants need not."""
    # always the same examples, and none is made smaller after an alarm
    settings.register_profile(
        "mutation",
        max_examples=10,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("mutation")
    for group in groups:
        checks_of(group)
    for module in pkgutil.walk_packages([str(PACKAGE)], "minitransformer."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError, RuntimeError):  # PyTorch or MPI is missing, and no check needs it
                importlib.import_module(module.name)  # what a check imports only when it runs
