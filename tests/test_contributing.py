"""CONTRIBUTING.md's checklist for an activation, followed to the letter in a copy: its edits, then its commands."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEEDED = ("minitransformer", "lessons", "tests", "setup.cfg", "CHANGELOG.md")
CHECKLIST = re.search(
    r"^## Adding an activation\n(.*?)^## ", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.M | re.S
)[1]
AT_MOST = 6  # files
LONG = "tests.mutation"  # a command with this takes minutes
WRONG = ("return dy * share * share\n", "return dy * share\n")


def blocks(language):
    """The code blocks in one language, without their indentation."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", CHECKLIST, re.M | re.S)
    return [re.sub(rf"^{indentation}", "", block, flags=re.M) for indentation, block in found]


def changed(text, hunk):
    """The text after the lines of a hunk: those with + are new, those with - go, the others say where."""
    lines = hunk.splitlines()
    old, new = ("\n".join(line[1:] for line in lines if line[:1] != sign) + "\n" for sign in "+-")
    assert text.count(old) == 1, f"these lines are not there, or not once:\n{old}"
    return text.replace(old, new)


def follow(edit, root):
    """Change the file that a block of the checklist names, as it says."""
    head, _, hunks = edit.partition("\n")
    path = root / head.removeprefix("--- ")
    text = path.read_text("utf-8")
    for hunk in hunks.split("@@\n"):
        text = changed(text, hunk)
    path.write_text(text, "utf-8")


def run(root, line):
    """Run a command of the checklist in the copy, with this Python and without the workers of pytest."""
    program, *arguments = shlex.split(line)
    name = Path(program).name
    command = [sys.executable, *([] if name == "python" else ["-m", name]), *arguments]
    if name == "pytest":
        command += ["-p", "no:xdist", "-p", "no:cacheprovider", "-o", "addopts=-q"]
    environment = {**os.environ, "PYTHONPATH": str(root), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def contents(root):
    """{file: what is in it} of all that a commit would have."""
    files = (path for path in root.rglob("*") if path.is_file() and not {"__pycache__", "runs"} & {*path.parts})
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """A copy of the project in which the checklist has been followed up to its commands, and what it was before."""
    root = tmp_path_factory.mktemp("checkout")
    for name in NEEDED:
        copy = shutil.copy2 if (ROOT / name).is_file() else shutil.copytree
        copy(ROOT / name, root / name)
    before = contents(root)
    for edit in blocks("diff"):
        follow(edit, root)
    return root, before


def commands():
    return [line for block in blocks("sh") for line in block.splitlines()]


@pytest.mark.exhaustive
def test_an_activation_is_added_by_its_checklist_in_at_most_six_files(followed):
    root, before = followed
    for line in commands():
        if LONG not in line:
            done = run(root, line)
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    after = contents(root)
    files = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    assert len(files) <= AT_MOST, files
    assert {edit.partition("\n")[0].removeprefix("--- ") for edit in blocks("diff")} < {*files}


@pytest.mark.exhaustive
def test_a_wrong_derivative_of_the_new_activation_is_caught_by_each_proof(followed):
    root, _ = followed
    path = root / "minitransformer" / "functional" / "since_2017" / "activations.py"
    right = path.read_text("utf-8")
    path.write_text(changed(right, "-    {}+    {}".format(*WRONG)), "utf-8")
    try:
        for line in commands()[0], "pytest -k softsign tests/algebra", "pytest -k softsign tests/precision":
            done = run(root, line)
            assert done.returncode == 1, f"{line}\n{done.stdout}{done.stderr}"
            assert re.search(r"WRONG|^FAILED .*softsign", done.stdout, re.M)
    finally:
        path.write_text(right, "utf-8")


@pytest.mark.weekly
def test_the_tests_notice_every_small_change_of_the_new_activation(followed):
    root, _ = followed
    (line,) = (line for line in commands() if LONG in line)
    done = run(root, line)
    assert done.returncode == 0, done.stdout + done.stderr
