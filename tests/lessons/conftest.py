"""Runs lessons in fast mode and as their reader would, and lessons' tools in a checkout of their own."""

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from minitransformer.course import FOLDER, find_lessons, read_record, record_path

LESSONS = find_lessons()
CHECKED = Path(__file__).with_name("checked.py")
TIMEOUT = 600  # seconds; a lesson that needs them hangs


def every_lesson(check):
    """One test that goes through all lessons, and names the one that fails."""

    @functools.wraps(check)
    def test():
        for lesson in LESSONS:
            try:
                check(lesson)
            except AssertionError as error:
                raise AssertionError(f"{lesson.name}: {error}") from error

    del test.__wrapped__  # in which pytest would look for fixtures
    return test


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A fresh lab in a checkout of its own, which has no lessons yet."""
    folder = tmp_path / "lessons"
    (folder / "checks").mkdir(parents=True)
    (folder / "support").mkdir()
    shutil.copy(FOLDER / "support" / "lab.py", folder / "support")
    spec = importlib.util.spec_from_file_location("lab_of_a_test", folder / "support" / "lab.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setenv("MINITRANSFORMER_FAST", "")
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run_fast(tmp_path):
    """run_fast(lesson): its run, from another folder than its own, which must end well, and its record.

    A figure that cannot be read is an error.
    """

    def run(lesson):
        record_path(lesson, fast=True).unlink(missing_ok=True)
        environment = dict(os.environ, PYTHONWARNINGS="error", PYTHONIOENCODING="utf-8")
        command = [sys.executable, str(CHECKED), str(lesson.path), "--fast"]
        options = {"env": environment, "cwd": tmp_path, "capture_output": True, "encoding": "utf-8"}
        finished = subprocess.run(command, timeout=TIMEOUT, **options)
        assert finished.returncode == 0, f"{finished.stdout}\n{finished.stderr}"
        return finished, read_record(lesson, fast=True)

    return run
