"""Puts lessons, figures and exercises into the wheel, as data of the package: minitransformer/course_files.

setup.cfg names this class as its build_py. setuptools could map a package to this folder instead, but then an editable
install would be an import hook, which type checkers cannot follow.
"""

from pathlib import Path

from setuptools.command.build_py import build_py

ROOT = Path()  # setuptools builds in the root of the checkout
PATTERNS = (
    "lessons/*.py",
    "lessons/*.md",
    "lessons/one_sitting.ipynb",
    "lessons/mistakes.txt",
    "lessons/one_file/*.py",
    "lessons/checks/*.py",
    "lessons/experiments/**/*.py",
    "lessons/support/*.py",
    "lessons/support/*.json",
    "lessons/exercises/**/*.py",
    "plots/[0-9]*.png",
)


class BuildWithLessons(build_py):
    """build_py that copies the course too; in an editable install they stay where they are."""

    def run(self):
        """Copy the package, then the course."""
        super().run()
        if not self.editable_mode:
            for source, target in zip(self.lessons(), self.targets(), strict=True):
                self.mkpath(str(target.parent))
                self.copy_file(str(source), str(target))

    def lessons(self):
        """The files of the course."""
        return sorted(path for pattern in PATTERNS for path in ROOT.glob(pattern))

    def targets(self):
        """Where they are in the wheel."""
        folder = Path(self.build_lib) / "minitransformer" / "course_files"
        return [folder / path for path in self.lessons()]

    def get_source_files(self):
        """The files that an sdist needs."""
        return [*super().get_source_files(), *map(str, self.lessons())]

    def get_outputs(self, include_bytecode=True):
        """The files that are built."""
        return [*super().get_outputs(include_bytecode), *([] if self.editable_mode else map(str, self.targets()))]
