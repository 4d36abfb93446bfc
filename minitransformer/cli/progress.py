"""`minitransformer progress`: a list of all exercises with your progress."""

import argparse
import json

from minitransformer.exercises.collection import find_exercises
from minitransformer.exercises.options import add_workshop_arguments
from minitransformer.exercises.report import paint
from minitransformer.exercises.workshop import Workshop

DESCRIPTION = """\
List all exercises with their difficulty, the time they take, and your progress:

  minitransformer progress
  minitransformer progress --json       print the list as JSON, too
"""
COLOURS = {"passed": "green", "started": "yellow", "gave up": "grey", "not started": "grey"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    add_workshop_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """One line an exercise, and the sum."""
    workshop, exercises, rows = Workshop(arguments.folder), find_exercises(), []
    for exercise in exercises:
        title, difficulty, minutes = exercise.about()
        state, tries = workshop.state(exercise), workshop.noted(exercise, "tries", 0)
        times = f", {tries} {'try' if tries == 1 else 'tries'}" if tries else ""
        stars, mark = "*" * difficulty, paint(state, COLOURS[state])
        print(f"{exercise.name:<30} {stars:<5} {minutes:>3} min   {mark}{times}\n    {title}")
        rows.append({"exercise": exercise.name, "title": title, "state": state, "tries": tries, "minutes": minutes})
    passed = sum(row["state"] == "passed" for row in rows)
    print(f"\n{passed} of {len(rows)} passed")
    following = workshop.next_open(exercises)
    if following:
        verb = "check" if workshop.state(following) == "started" else "start"
        print(f"next: minitransformer {verb} {following.name}")
    if arguments.json:
        print(json.dumps(rows))
    return 0
