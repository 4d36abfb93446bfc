"""`minitransformer init`: a folder of one's own with the lessons and exercises."""

import argparse
import json
import re
from pathlib import Path
from typing import Any

from minitransformer.cli.sit import COMMAND, EXPLORER
from minitransformer.course import FOLDED, FOLDER, INSTALLED, MARKER
from minitransformer.system.files import atomic_write, check_folder, kind_of, read_bytes
from minitransformer.system.terminal import quoted, shown

DESCRIPTION = """\
Copy the lessons, their figures and the exercises to a folder, where you can read, run and change them. Inside this
folder all commands use it: lessons write to its runs/, and `minitransformer start` puts your exercises into its
my_exercises/. In a checkout you need this command for notebooks alone.

  minitransformer init course
  cd course
  minitransformer lesson 00

With --notebooks the lessons are there as notebooks, too, for Jupyter or an editor that opens notebooks. Their first
code cell installs the package where a notebook finds none.

Files that are already there are never overwritten. To get a fresh copy of a file, delete yours and run the command
again.
"""
ROOT = FOLDER.parent
FILES = {  # what is copied: patterns
    "lessons": ("lessons/[0-9]*.py",),
    "figures": ("plots/[0-9]*.png",),
    "exercises": ("lessons/exercises/*/exercise.py",),
    "other files": (
        "lessons/*.md",
        "lessons/one_sitting.*",
        "lessons/one_file/*.py",
        "lessons/checks/*.py",
        "lessons/experiments/**/*.py",
        "lessons/support/*.py",
        "lessons/support/*.json",
    ),
}
SETUP = """\
# Where minitransformer is missing, this installs it from CHECKOUT, a folder with the whole project: ".." for a notebook
# in the project's own folder lessons
CHECKOUT = {}
try:
    import minitransformer
except ModuleNotFoundError:
    %pip install "{{CHECKOUT}}"

import sys

from minitransformer.course import lessons_folder

sys.path.append(str(lessons_folder()))  # where the other files are that the lessons import"""
PAGE = re.compile(r"\[([^]]+)\]\(\.\./minitransformer/explorer/[^)]+\)")
NOTE = "The lessons and exercises of minitransformer. Its commands find this folder by this file.\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="a new folder, or one made by this command")
    parser.add_argument("--notebooks", action="store_true", help="also write the lessons as notebooks (needs jupytext)")


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Copy what is missing, and say what was copied and what was kept."""
    folder = arguments.folder
    check_folder(folder)
    if FOLDER != INSTALLED and folder.resolve() == ROOT:
        raise ValueError(f"{folder} is the checkout itself: its lessons are in {shown(FOLDER)}")
    sources = [
        (what, path, path.read_bytes())
        for what, patterns in FILES.items()
        for path in (path for pattern in patterns for path in sorted(ROOT.glob(pattern)))
    ]
    if arguments.notebooks:
        checkout = ".." if FOLDER == INSTALLED else ROOT.as_posix()
        for path in [path for what, path, _ in sources if what == "lessons"]:
            text = as_notebook(path.read_text("utf-8"), checkout)
            sources.append(("notebooks", path.with_suffix(".ipynb"), text.encode()))
    counts, changed = dict.fromkeys((*FILES, "notebooks"), 0), []
    for what, path, content in sources:
        target = folder / path.relative_to(ROOT)
        if not kind_of(target):
            copy(content, target)
            counts[what] += 1
        elif read_bytes(target) != content:
            changed.append(str(target))
    copy(NOTE.encode(), folder / MARKER)
    copied = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    print(f"copied to {folder}: {copied or 'nothing, everything is there'}")
    for name in changed:
        print(f"kept your own {name}, which differs from ours")
    print("\nGo on in that folder:\n")
    if folder.resolve() != Path.cwd():
        print(f"  cd {quoted(folder)}")
    print("  minitransformer lesson\n  minitransformer start")
    if arguments.notebooks:
        print("  jupyter notebook lessons/00_reverse.ipynb")
    return 0, {"folder": str(folder), "copied": counts, "kept": changed}


def as_notebook(text: str, checkout: str = "..") -> str:
    """A lesson's text -> a notebook without outputs, as JSON, whose first code cell installs from `checkout`.

    The explorer, to which a lesson links, is named by its command. ValueError if jupytext is missing.
    """
    try:
        import jupytext
        import nbformat
    except ModuleNotFoundError:
        raise ValueError("notebooks need jupytext, which is not installed: pip install -e '.[notebook]'") from None
    notebook = jupytext.reads(EXPLORER.sub(COMMAND, text), "py:percent")
    notebook.cells.insert(1, nbformat.v4.new_code_cell(SETUP.format(json.dumps(checkout, ensure_ascii=False))))
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # the same in every conversion
        if cell.metadata.get("title") in FOLDED:
            cell.metadata = {"jupyter": {"source_hidden": True}}
        if cell.cell_type == "markdown":
            cell.source = PAGE.sub(r"\1 (`minitransformer explore`)", cell.source)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return nbformat.writes(notebook) + "\n"


def copy(content: bytes, path: Path) -> None:
    """Write a file, completely or not at all."""
    with atomic_write(path) as partial:
        partial.write_bytes(content)
