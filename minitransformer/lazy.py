"""Names that are imported when they are used for the first time (PEP 562)."""

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any


def importer(package: str, names: Sequence[str], modules: Sequence[str]) -> Callable[[str], Any]:
    """The `__getattr__` of `package`: it looks for each of `names` in `modules` of the package, in their order.

    Whoever reads the core then loads nothing of the wings, and the command line prints its help at once.
    """

    def find(name: str) -> Any:
        for module in modules if name in names else ():
            found = getattr(importlib.import_module(f"{package}.{module}"), name, None)
            if found is not None:
                setattr(sys.modules[package], name, found)
                return found
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
