"""Runs lessons in fast mode and as their reader would."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from minitransformer.course import find_lessons, read_record, record_path

LESSONS = find_lessons()
CHECKED = Path(__file__).with_name("checked.py")
TIMEOUT = 600  # seconds; a lesson that needs them hangs


@pytest.fixture
def run_fast(tmp_path):
    """run_fast(lesson): its run, from another folder than its own, which must end well, and its record.

    A figure that cannot be read is an error.
    """

    def run(lesson):
        record_path(lesson, fast=True).unlink(missing_ok=True)
        environment = dict(os.environ, MINITRANSFORMER_FAST="1", PYTHONWARNINGS="error", PYTHONIOENCODING="utf-8")
        command = [sys.executable, str(CHECKED), str(lesson.path)]
        options = {"env": environment, "cwd": tmp_path, "capture_output": True, "encoding": "utf-8"}
        finished = subprocess.run(command, timeout=TIMEOUT, **options)
        assert finished.returncode == 0, f"{finished.stdout}\n{finished.stderr}"
        return finished, read_record(lesson, fast=True)

    return run
