"""`minitransformer check`: what is right in a learner's exercise, and which mistake was made."""

import dataclasses
import json
import time

from minitransformer.cli.exercises_report import print_findings
from minitransformer.cli.workshop_options import add_workshop_arguments, chosen
from minitransformer.exercises.runner import LIMIT, check

HELP = "check an exercise, and name the mistake"
DESCRIPTION = """\
Check your copies of a lesson's exercises. Shapes, linearity and numerical derivatives tell what is wrong and where, and
some two hundred known mistakes are compared with yours, so that most are named:

  minitransformer check 06
  minitransformer check 06_attention_backward
  minitransformer check 06 --watch       again, whenever you save the file

The exit status is 0 if all is right, and else 1.
"""


def add_arguments(parser):
    """The command's own arguments."""
    add_workshop_arguments(parser)
    parser.add_argument("--watch", action="store_true", help="check again whenever a file changes, until Ctrl-C")


def run(arguments):
    """Check each file -> 0 if all functions pass."""
    exercises, workshop = chosen(arguments)
    missing = [exercise.name for exercise in exercises if not workshop.file(exercise).exists()]
    if len(missing) == len(exercises):
        raise ValueError(f"you have not begun {', '.join(missing)}: minitransformer start {exercises[0].lesson}")
    begun = [exercise for exercise in exercises if exercise.name not in missing]
    passed = check_all(begun, workshop, arguments.json)
    while arguments.watch:
        wait_for_change([workshop.file(exercise) for exercise in begun])
        print()
        passed = check_all(begun, workshop, arguments.json)
    return 0 if passed and not missing else 1


def check_all(exercises, workshop, as_json=False):
    """Check, print and count -> whether all passed."""
    rows = {}
    for exercise in exercises:
        findings, printed = check(exercise, workshop.file(exercise), LIMIT)
        workshop.count(exercise, findings)
        print_findings(exercise, findings, printed)
        rows[exercise.name] = [dataclasses.asdict(finding) for finding in findings]
    if as_json:
        print(json.dumps(rows))
    return all(row["status"] == "passed" for findings in rows.values() for row in findings)


def wait_for_change(paths, pause=0.3):
    """Until one of the files is saved anew."""
    before = [stamp(path) for path in paths]
    while [stamp(path) for path in paths] == before:
        time.sleep(pause)


def stamp(path):
    """When a file was changed last, or None while it is away, as some editors take it to save it."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None
