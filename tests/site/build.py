"""Builds the site as CI does."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def build_site(folder: Path) -> Path:
    """Build the site in `folder`, without MPI as it is published -> the folder of its pages, with index.html.

    AssertionError, with the log, if it fails; a warning is a failure. It takes about 20 seconds.
    """
    pages = folder / "site"
    options = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(folder / "doctrees"), "-c", "docs"]
    command = [sys.executable, "-m", "sphinx", *options, ".", str(pages)]
    (folder / "without").mkdir()
    (folder / "without" / "mpi4py.py").write_text("raise ModuleNotFoundError('the extra [docs] has no mpi4py')\n")
    paths = os.pathsep.join(filter(None, [str(folder / "without"), os.environ.get("PYTHONPATH")]))
    built = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True)
    assert built.returncode == 0, f"the site cannot be built:\n{built.stdout}{built.stderr}"
    return pages
