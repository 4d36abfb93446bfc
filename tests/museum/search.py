"""Which check finds which bug: the table `caught_by.json`, and the search that fills it.

`python -m tests.museum` repairs the table: it searches for the bugs that have no entry, or one that no longer finds
them. With `--all` it searches for every bug again.
"""

import functools
import inspect
import json
import sys
import threading
import time
from pathlib import Path

from tests.museum.checks import GRADIENT, LEVELS, all_checks, find_check

TABLE = Path(__file__).with_name("caught_by.json")
COMMAND = "python -m tests.museum"


def read_table():
    """{name of an exhibit: name of the check that finds it}"""
    return json.loads(TABLE.read_text("utf-8"))


def write_table(table, exhibits):
    """Write the entries of the exhibits that there are, in their order."""
    table = {exhibit.name: table[exhibit.name] for exhibit in exhibits if exhibit.name in table}
    TABLE.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", "utf-8")


def plain(function):
    """The function object that carries the formula, under decorators and methods."""
    return inspect.unwrap(getattr(function, "__func__", function))


class StaleError(Exception):
    """An entry of the table that finds its bug no longer."""


def catch(exhibit, table):
    """The name of the check that finds the bug by the table. Raises StaleError if it does not."""
    name = table.get(exhibit.name)
    if name is None:
        raise StaleError(f"no entry in {TABLE.name}; repair the table: {COMMAND}")
    try:
        check = find_check(name)
    except LookupError as error:
        raise StaleError(f"{error}; repair the table: {COMMAND}") from None
    passes_without_a_bug(name)
    with exhibit.planted():
        caught = check.alarms()
    if not caught:
        raise StaleError(f"{name} does not see this bug; repair the table: {COMMAND}")
    return name


@functools.cache
def passes_without_a_bug(name):
    """Raises what the check raises on the library as it is."""
    find_check(name).run()


def search(exhibit, levels=LEVELS):
    """The checks of these levels that find the bug, the preferred first, one by one."""
    changed = {plain(function).__code__ for function in (exhibit.function, *(change[0] for change in exhibit.also))}
    candidates = [
        measured for measured in measured_checks() if measured.codes & changed and measured.check.level in levels
    ]
    with exhibit.planted():
        for measured in sorted(candidates, key=functools.partial(_preference, exhibit)):
            if measured.check.alarms():
                yield measured.check.name


def _preference(exhibit, measured):
    """Quick checks first; among them gradient checks of the level, then its own tests."""
    check, level = measured.check, exhibit.level
    own = f"tests/{level}/test_{exhibit.function.__module__.split('.')[-1]}.py"
    likely = 0 if check.level == level and check.name.startswith(GRADIENT) else 1 if check.name.startswith(own) else 2
    slow = next(i for i, limit in enumerate((0.02, 0.1, 0.5, 2, float("inf"))) if measured.seconds <= limit)
    return slow, likely, LEVELS.index(check.level), measured.seconds


class Measured:
    """A check, whether it passes without a bug, its seconds, and the code objects of the package that it runs."""

    def __init__(self, check, package):
        self.check, codes = check, set()

        def note(frame, event, argument):
            if event == "call":
                codes.add(frame.f_code)

        threading.setprofile(note)
        start = time.perf_counter()
        sys.setprofile(note)
        try:
            self.passes = not check.alarms()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        self.seconds = time.perf_counter() - start
        # a copy: a thread that has not ended yet may still add to the set
        self.codes = {code for code in codes.copy() if code.co_filename.startswith(package)}


@functools.cache
def measured_checks():
    """Every check that passes on the library as it is, run once to see which functions it calls."""
    import minitransformer

    package = str(Path(minitransformer.__file__).parent)
    return [measured for check in all_checks() if (measured := Measured(check, package)).passes]


def repair(exhibits, search_all, say=print):
    """Fill the table, and return the exhibits that no check finds, or that can no longer be planted."""
    table = {} if search_all or not TABLE.exists() else read_table()
    stale = [exhibit for exhibit in exhibits if not _is_caught(exhibit, table)]
    say(f"{len(stale)} of {len(exhibits)} bugs to search for")
    lost = []
    for exhibit in stale:
        table.pop(exhibit.name, None)
        try:
            name = next(search(exhibit), None)
        except ValueError as error:  # its text is not in the source
            name, reason = None, error
        else:
            reason = "NOT CAUGHT"
        say(f"{exhibit.name}\n    {name or reason}")
        if name:
            table[exhibit.name] = name
        else:
            lost.append(exhibit)
    write_table(table, exhibits)
    return lost


def _is_caught(exhibit, table):
    try:
        return bool(catch(exhibit, table))
    except Exception:  # a stale entry, a check that fails without a bug, a text that is not in the source
        return False
