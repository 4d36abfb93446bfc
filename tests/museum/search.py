"""Which test finds which bug: the table `caught_by.json`, and the search that repairs it."""

import functools
import json
from pathlib import Path

from tests.mutation.checks import GRADIENT, all_checks, find_check

TABLE = Path(__file__).with_name("caught_by.json")
COMMAND = "python -m tests.museum"


def read_table():
    """{name of an exhibit: name of the check that finds it}"""
    return json.loads(TABLE.read_text("utf-8"))


@functools.cache
def passes_without_a_bug(name):
    """Raises what the check raises on the library as it is."""
    find_check(name).run()


def catch(exhibit, table):
    """The name of the check that finds the bug by the table. Raises LookupError if there is none, or it does not."""
    name = table.get(exhibit.name)
    if name is None:
        raise LookupError(f"{TABLE.name} names no test for this bug; repair it: {COMMAND}")
    check = find_check(name)
    passes_without_a_bug(name)
    with exhibit.planted():
        if not check.alarms():
            raise LookupError(f"{name} does not see this bug; repair {TABLE.name}: {COMMAND}")
    return name


def search(exhibit):
    """The name of a check that finds the bug, None if none does: gradients and the tests of its own file come first."""
    own = f"tests/{exhibit.level}/test_{exhibit.functions[0].__module__.split('.')[-1]}.py"

    def how_far(check):
        return not check.name.startswith((own, GRADIENT)), check.level != exhibit.level

    for check in sorted(all_checks(), key=how_far):
        with exhibit.planted():
            alarm = check.alarms()
        if alarm and not check.alarms():
            return check.name
    return None


def repair(exhibits, say=print):
    """Write the table again, with a search for each bug that it does not find -> the bugs that no test finds."""
    table, lost = read_table(), []
    for exhibit in exhibits:
        try:
            catch(exhibit, table)
        except Exception:  # a test that has gone or changed
            table[exhibit.name] = search(exhibit)
            say(f"{exhibit.name}\n    {table[exhibit.name] or 'NOT CAUGHT'}")
            lost += [exhibit] * (table[exhibit.name] is None)
    found = {exhibit.name: table[exhibit.name] for exhibit in exhibits if table[exhibit.name]}
    TABLE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return lost
