"""The learner's folder: a copy of each exercise that was started, and notes. No copy is ever overwritten."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from minitransformer.course import lessons_folder
from minitransformer.exercises.exercise import Exercise, load
from minitransformer.exercises.judging import Diagnosis
from minitransformer.system.files import atomic_write, kind_of, read_bytes

NOTED: dict[str, Any] = {"hints": int, "tries": int, "passed": bool, "gave_up": bool, "stations": list}
SITTING = "one_sitting"  # whose notes have the numbers of the "stations" that were right at the last look


def check_notes(notes: Any) -> None:
    """ValueError unless these are notes as a Workshop makes them."""
    if not isinstance(notes, dict) or not all(isinstance(note, dict) for note in notes.values()):
        raise ValueError("it must be a JSON object of one object for each exercise")
    for exercise, note in notes.items():
        for name, value in note.items():
            if name in NOTED and (type(value) is not NOTED[name] or value < NOTED[name]()):
                raise ValueError(f"{exercise} has {name} = {value!r}")


def my_exercises() -> Path:
    """The learner's folder, unless another one is asked for: where the reader is, or the nearest one above.

    In a checkout, or in a folder that `minitransformer init` has made, there is one for all of it.
    """
    course, here = lessons_folder().parent, Path.cwd()
    if here.is_relative_to(course):
        return course / "my_exercises"
    places = (folder / "my_exercises" for folder in (here, *here.parents))
    return next(filter(Path.is_dir, places), here / "my_exercises")


class Workshop:
    """The folder at `path`, by default `my_exercises()`. ValueError, naming the file, if its notes cannot be read."""

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = my_exercises() if path is None else Path(path)
        self.notes_path = self.path / "progress.json"
        self.notes: dict[str, dict[str, Any]] = {}
        if kind_of(self.notes_path):
            try:
                self.notes = json.loads(read_bytes(self.notes_path).decode("utf-8"))
                check_notes(self.notes)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{self.notes_path} cannot be read ({error}): move it away to start again") from None
        elif kind_of(self.path) not in ("", "folder"):
            raise NotADirectoryError(f"{self.path} is a file, not a folder for your exercises")

    def file(self, exercise: Exercise) -> Path:
        """Where the learner's copy of an exercise is, or will be."""
        return self.path / f"{exercise.name}.py"

    def start(self, exercise: Exercise) -> tuple[Path, bool]:
        """Copy the exercise as it is handed out, unless there is a copy -> (path, whether it is new)."""
        path = self.file(exercise)
        if kind_of(path):
            return path, False
        with atomic_write(path) as partial:
            shutil.copyfile(exercise.path, partial)
        return path, True

    def note(self, exercise: str, **what: Any) -> None:
        """Save `what` {name: value} in the notes on an exercise."""
        self.notes[exercise] = {**self.notes.get(exercise, {}), **what}
        with atomic_write(self.notes_path) as partial:
            partial.write_text(json.dumps(self.notes, indent=1), "utf-8")

    def noted(self, exercise: str, what: str, default: Any = None) -> Any:
        """A value that `note` has saved, or `default`."""
        return self.notes.get(exercise, {}).get(what, default)

    def state(self, exercise: Exercise) -> str:
        """How far the learner is: "passed", "gave up", "started" or "not started"."""
        if self.noted(exercise.name, "passed"):
            return "passed"
        if self.noted(exercise.name, "gave_up"):
            return "gave up"
        return "started" if kind_of(self.file(exercise)) else "not started"

    def next_open(self, exercises: Sequence[Exercise]) -> Exercise | None:
        """The first of `exercises` that is started and neither passed nor given up, or else not started; or None."""
        for state in ("started", "not started"):
            for exercise in exercises:
                if self.state(exercise) == state:
                    return exercise
        return None

    def count(self, exercise: Exercise, diagnoses: Sequence[Diagnosis]) -> None:
        """Note one more try, unless all functions are still stubs, and whether all of them passed."""
        passed = all(diagnosis.status == "passed" for diagnosis in diagnoses)
        tries = self.noted(exercise.name, "tries", 0) + any(diagnosis.status != "open" for diagnosis in diagnoses)
        self.note(exercise.name, tries=tries, passed=passed or self.noted(exercise.name, "passed", False))

    def load(self, exercise: Exercise) -> ModuleType:
        """The learner's file as a module."""
        return load(self.file(exercise), f"my_{exercise.name}")
