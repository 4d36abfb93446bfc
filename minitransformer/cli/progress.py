"""`minitransformer progress`: your exercises, lessons and the sitting, and three questions to remember."""

import argparse
import time
from typing import Any

from minitransformer.course import due_questions, find_lessons, read_record
from minitransformer.exercises.collection import find_exercises
from minitransformer.exercises.options import add_workshop_arguments
from minitransformer.exercises.report import paint
from minitransformer.exercises.workshop import SITTING, Workshop
from minitransformer.system.terminal import wrap

DESCRIPTION = """\
List all exercises with their difficulty, the time they take, and your progress, and say which lessons you have run and
how far you are in the sitting. A day after you have run a lesson, its questions about earlier ones come back here,
three a day: answer them before you look.

  minitransformer progress
  minitransformer progress --answers    the answers to today's questions
  minitransformer progress --json       print the list as JSON, too
"""
COLOURS = {"passed": "green", "started": "yellow", "gave up": "grey", "not started": "grey"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    add_workshop_arguments(parser)
    parser.add_argument("--answers", action="store_true", help="also answer today's questions")


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Two lines an exercise, and the sums; then what is due to be remembered."""
    workshop, exercises, rows = Workshop(arguments.folder), find_exercises(), []
    for exercise in exercises:
        title, difficulty, minutes = exercise.about()
        state, tries = workshop.state(exercise), workshop.noted(exercise.name, "tries", 0)
        times = f", {tries} {'try' if tries == 1 else 'tries'}" if tries else ""
        stars, mark = "*" * difficulty, paint(state, COLOURS[state])
        print(f"{exercise.name:<28} {stars:<4} {minutes:>3} min  {mark}{times}\n{wrap(title, '    ', '    ')}")
        rows.append({"exercise": exercise.name, "title": title, "state": state, "tries": tries, "minutes": minutes})
    passed = sum(row["state"] == "passed" for row in rows)
    print(f"\nexercises: {passed} of {len(rows)} passed")
    lessons = find_lessons()
    seen = [lesson for lesson in lessons if read_record(lesson) or read_record(lesson, fast=True)]
    print(wrap(f"lessons: {len(seen)} of {len(lessons)} run  {' '.join(lesson.number for lesson in seen)}", "", "    "))
    print(f"the sitting: {len(workshop.noted(SITTING, 'stations', []))} of 10 stations are right")
    following = workshop.next_open(exercises)
    if following:
        verb = "check" if workshop.state(following) == "started" else "start"
        print(f"next: minitransformer {verb} {following.name}")
    questions = due_questions(time.time())
    if questions:
        print("\nDo you remember? (The answers: minitransformer progress --answers)")
    for number, question, answer in questions:
        print(wrap(f"{question} [asked in lesson {number}]", "  ", "  "))
        if arguments.answers:
            print(paint(wrap(answer, "    ", "    "), "green"))
    return 0, rows
