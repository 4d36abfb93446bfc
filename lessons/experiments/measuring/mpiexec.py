"""Starts processes with `mpiexec` for the benchmarks of many processes."""

import importlib.util
import shutil
import sys
from pathlib import Path

from experiments.measuring import environment
from minitransformer.system.children import last_line


def find_mpiexec(command: str) -> str:
    """The path of `mpiexec`: the one beside this Python, else the one in the search path.

    Raises ValueError, which names the command that needs it, if it is missing, or mpi4py.
    """
    found = shutil.which("mpiexec", path=Path(sys.executable).parent) or shutil.which("mpiexec")
    if found is None or importlib.util.find_spec("mpi4py") is None:
        raise ValueError(f"{command} needs mpi4py and mpiexec: pip install -e '.[mpi]'")
    return found


def call_in_processes(launcher: str, count: int, module: str, call: str) -> str:
    """Call a function of `module` in `count` processes -> the last line that they print; RuntimeError if they fail."""
    command = [launcher, "-n", str(count), sys.executable, "-m", "mpi4py", "-c", f"from {module} import *; {call}"]
    return last_line(command, env=environment())
