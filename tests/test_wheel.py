"""A wheel, built from a copy of the checkout and installed: its course works, and nothing is written into it.

An sdist gives the same wheel.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ("minitransformer", "lessons", "plots", "setup.cfg", "pyproject.toml", "README.md", "LICENSE")
SOLUTION = ROOT / "lessons/exercises/02_relu_backward/solution.py"

pytestmark = pytest.mark.exhaustive  # building and installing take long


def pip(*arguments):
    """Run pip, quietly."""
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *map(str, arguments)]
    subprocess.run(command, check=True)


def setuptools_can_build():
    """Whether wheels can be built with what is installed. Otherwise pip downloads setuptools."""
    try:
        major = int(importlib.metadata.version("setuptools").split(".")[0])
    except importlib.metadata.PackageNotFoundError:
        return False
    return major >= 71  # older ones need the package wheel


def copy_of_the_checkout(folder):
    """Copy what a wheel or an sdist is built from, so that nothing is written into the checkout -> the copy."""
    folder.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def build_wheel(source, folder):
    """Build a folder or an sdist -> the wheel."""
    isolation = ["--no-build-isolation"] if setuptools_can_build() else []
    pip("wheel", "--no-deps", *isolation, "--wheel-dir", folder, source)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    return build_wheel(copy_of_the_checkout(folder / "source"), folder)


@pytest.fixture(scope="module")
def site(wheel):
    """A folder that the wheel is installed in."""
    pip("install", "--no-deps", "--target", wheel.parent / "site", wheel)
    return wheel.parent / "site"


def tree(folder):
    """{path: bytes} of all files in a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_course_of_a_wheel_works_in_a_folder_of_ones_own_and_the_wheel_stays_as_it_was(site, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(site)}
    before = tree(site)

    def run(*arguments, folder=tmp_path, status=0):
        command = [sys.executable, "-m", "minitransformer", *arguments]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == status, done
        return done.stdout

    assert f"{site}" in run("lesson", "--json")
    assert "minitransformer init FOLDER" in run("lesson")
    assert "28 lessons, " in run("init", "course")
    course = tmp_path / "course"
    assert str(course / "lessons") in run("lesson", "--json", folder=course)
    assert sorted(path.name for path in (course / "lessons" / "one_file").iterdir()) == ["gpt.py", "transformer.py"]
    assert f"python {Path('lessons/one_file/transformer.py')}\n" in run("lesson", folder=course)
    run("start", "02_relu", folder=course / "lessons")
    mine = course / "my_exercises" / "02_relu_backward.py"
    assert "not written yet" in run("check", folder=course, status=1)
    mine.write_text(mine.read_text("utf-8") + "\n\n" + SOLUTION.read_text("utf-8"), "utf-8")
    assert "passed" in run("check", folder=course)
    assert "yours" in run("train", "copy", "--mine", "--steps", "1", folder=course)
    assert "ok" in run("lesson", "05", "--fast", folder=course)
    assert (course / "runs/lessons/fast/05_scaled_dot_product.png").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"course"}
    run("start", "02_relu")  # without a folder of one's own, the current directory is used
    assert (tmp_path / "my_exercises" / "02_relu_backward.py").exists()
    assert tree(site) == before


def test_an_sdist_has_all_that_the_wheel_is_built_from(wheel, tmp_path):
    pytest.importorskip("setuptools", reason="builds the sdist")
    code = "from setuptools import build_meta; build_meta.build_sdist('..')"
    subprocess.run([sys.executable, "-c", code], cwd=copy_of_the_checkout(tmp_path / "source"), check=True)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as expected, zipfile.ZipFile(build_wheel(sdist, tmp_path)) as found:
        assert set(found.namelist()) == set(expected.namelist())
        assert all(found.read(name) == expected.read(name) for name in expected.namelist())
