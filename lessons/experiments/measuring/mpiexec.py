"""Starts processes with `mpiexec` for the benchmarks of many processes."""

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from experiments.measuring import environment
from minitransformer.system.children import last_line
from minitransformer.training.parallel.connect import connect


def find_mpiexec(command: str) -> str:
    """The path of `mpiexec`: the one beside this Python, else the one in the search path.

    Raises ValueError, which names the command that needs it, if it is missing, or mpi4py.
    """
    found = shutil.which("mpiexec", path=Path(sys.executable).parent) or shutil.which("mpiexec")
    if found is None or importlib.util.find_spec("mpi4py") is None:
        raise ValueError(f"{command} needs mpi4py and mpiexec: pip install -e '.[mpi]'")
    return found


def call_in_processes(launcher: str, count: int, module: str, call: str) -> Any:
    """What a function of `module` returns in the root of `count` processes that call it; RuntimeError if they fail.

    `call` may use `connect()`, and the result must be such that JSON can hold it.
    """
    code = f"from {module} import *; from {__name__} import connect, tell; tell({call})"
    command = [launcher, "-n", str(count), sys.executable, "-m", "mpi4py", "-c", code]
    return json.loads(last_line(command, env=environment()))


def tell(found: Any) -> None:
    """Print what was found, as JSON, in the root."""
    if connect().is_root:
        print(json.dumps(found))
