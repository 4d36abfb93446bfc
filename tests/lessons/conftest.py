"""Runs every lesson once, in fast mode and as its reader would, two at a time."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from minitransformer.course import find_lessons, record_path

LESSONS = find_lessons()
TIMEOUT = 600  # seconds; a lesson that needs them hangs


def run_fast(lesson, folder):
    """Run the lesson in fast mode, from another folder than its own -> subprocess.CompletedProcess."""
    record_path(lesson, fast=True).unlink(missing_ok=True)
    environment = dict(os.environ, MINITRANSFORMER_FAST="1", PYTHONWARNINGS="error", PYTHONIOENCODING="utf-8")
    command = [sys.executable, str(lesson.path)]
    options = {"env": environment, "cwd": folder, "capture_output": True, "encoding": "utf-8", "timeout": TIMEOUT}
    return subprocess.run(command, **options)


@pytest.fixture(scope="session")
def fast_runs(tmp_path_factory):
    """{name of a lesson: a future of its run}."""
    folder = tmp_path_factory.mktemp("elsewhere")
    with ThreadPoolExecutor(2) as pool:
        yield {lesson.name: pool.submit(run_fast, lesson, folder) for lesson in LESSONS}
