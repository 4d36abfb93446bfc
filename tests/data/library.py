"""A standard library of one module, for tests that cannot wait until the whole of it has been read."""

import functools
import itertools

from minitransformer.data import parsing

OPERANDS = ("a.b", "c(d)", "e[0]", "f + 1", "~g", "(h, i)", "'text'", "-j")


def small_library(monkeypatch):
    """Let the task read a module with about a hundred expressions."""
    pairs = itertools.product(OPERANDS, repeat=2)
    text = "\n".join(f"x = {one} {word} {other}" for one, other in pairs for word in ("or", "in"))
    monkeypatch.setattr(parsing, "library", lambda: [text])
    for name in ("examples", "encoded"):  # what was read before is kept for other tests
        monkeypatch.setattr(parsing, name, functools.cache(getattr(parsing, name).__wrapped__))
