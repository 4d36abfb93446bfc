"""`minitransformer init`: a folder of one's own with the lessons and exercises."""

import argparse
import json
from pathlib import Path

from minitransformer.course import FOLDER, INSTALLED, MARKER
from minitransformer.system.files import atomic_write, check_folder
from minitransformer.system.terminal import quoted, shown

DESCRIPTION = """\
Copy the lessons, their figures and the exercises to a folder, where you can read, run and change them. Inside this
folder all commands use it: lessons write to its runs/, and `minitransformer start` puts your exercises into its
my_exercises/. In a checkout you do not need this command.

  minitransformer init course
  cd course
  minitransformer lesson 00

Files that are already there are never overwritten. To get a fresh copy of a file, delete yours and run the command
again.
"""
ROOT = FOLDER.parent
# what the lessons import
HELPERS = ("architecture", "chart", "graph", "lab", "noise", "patients", "pictures", "sitting", "stations", "tables")
FILES = {  # what is copied: patterns
    "lessons": ("lessons/[0-9]*.py",),
    "figures": ("plots/[0-9]*.png",),
    "exercises": ("lessons/exercises/*/exercise.py",),
    "other files": (
        "lessons/*.md",
        "lessons/one_sitting.*",
        "lessons/one_file/*.py",
        "lessons/checks/*.py",
        *(f"lessons/{name}.py" for name in HELPERS),
    ),
}
NOTE = "The lessons and exercises of minitransformer. Its commands find this folder by this file.\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="a new folder, or one that this command has made")


def run(arguments: argparse.Namespace) -> int:
    """Copy what is missing, and say what was copied and what was kept."""
    folder = arguments.folder
    check_folder(folder)
    if FOLDER != INSTALLED and folder.resolve() == ROOT:
        raise ValueError(f"{folder} is the checkout itself: its lessons are in {shown(FOLDER)}")
    counts, changed = dict.fromkeys(FILES, 0), []
    for what, patterns in FILES.items():
        for source in (path for pattern in patterns for path in sorted(ROOT.glob(pattern))):
            target = folder / source.relative_to(ROOT)
            if not target.exists():
                copy(source.read_bytes(), target)
                counts[what] += 1
            elif target.read_bytes() != source.read_bytes():
                changed.append(str(target))
    copy(NOTE.encode(), folder / MARKER)
    copied = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    print(f"copied to {folder}: {copied or 'nothing, everything is there'}")
    for path in changed:
        print(f"kept your own {path}, which differs from ours")
    print("\nGo on in that folder:\n")
    if folder.resolve() != Path.cwd():
        print(f"  cd {quoted(folder)}")
    print("  minitransformer lesson\n  minitransformer start")
    if arguments.json:
        print(json.dumps({"folder": str(folder), "copied": counts, "kept": changed}))
    return 0


def copy(content: bytes, path: Path) -> None:
    """Write a file, completely or not at all."""
    with atomic_write(path) as partial:
        partial.write_bytes(content)
