"""Planting a bug: one piece of a function's source text is replaced while the program runs, and put back afterwards.

    with planted(softmax_backward, "ds *= p", "ds *= p / len(p)"):
        ...

The function object itself gets the changed code. So every module that imported it, under whatever name, runs the bug,
and no file is touched.
"""

import ast
import contextlib
import inspect
import textwrap
from typing import NamedTuple

PARTS = ("__code__", "__defaults__", "__kwdefaults__")  # of a function object: all that its source text decides
FILE_NAME = "<museum of wrong gradients>"  # stands in tracebacks; nobody can look the bug up there


@contextlib.contextmanager
def planted(function, old, new):
    """Inside a `with` block, run `function` (also a method) as if `new` stood in its source in place of `old`.

    The text is that of the whole definition, without its decorators and moved to the left edge, so that the first
    line of the body stands four columns in. Raises ValueError unless `old` occurs in it exactly once, and if the
    function already carries a bug.
    """
    function = inspect.unwrap(getattr(function, "__func__", function))  # the plain formula under a decorator
    changed = _changed(function, old, new)
    kept = {part: getattr(function, part) for part in PARTS}
    try:
        for part in PARTS:
            setattr(function, part, getattr(changed, part))
        yield
    finally:
        for part, value in kept.items():
            setattr(function, part, value)


class Exhibit(NamedTuple):
    """A bug with its story."""

    name: str  # a sentence
    lesson: str  # how it arises, or the question that finds it
    function: object  # the function or method that carries it
    old: str  # what stands there
    new: str  # what the bug makes of it
    also: tuple = ()  # (function, old, new) of further places: a bug that is wrong consistently needs two

    @property
    def level(self):
        """The part of the package that carries the bug, such as "functional" or "layers"."""
        return self.function.__module__.split(".")[1]

    @contextlib.contextmanager
    def planted(self):
        """Inside a `with` block the library has this bug."""
        with contextlib.ExitStack() as stack:
            for change in ((self.function, self.old, self.new), *self.also):
                stack.enter_context(planted(*change))
            yield


def _changed(function, old, new):
    """A new function like `function` with its source changed; its globals are the same, its closure is empty."""
    definition = ast.parse(_replace_once(function, old, new)).body[0]
    definition.decorator_list.clear()
    free = function.__code__.co_freevars  # such as __class__, which super() reads
    body = [definition]
    if free:
        # these names must be those of a function around; what they stand for stays in the closure of `function`
        around = ast.parse(f"def around({', '.join(free)}): return {definition.name}").body[0]
        around.body.insert(0, definition)
        body = [around]
    module = ast.fix_missing_locations(ast.Module(body, []))
    namespace = {}
    exec(compile(module, FILE_NAME, "exec", dont_inherit=True), function.__globals__, namespace)
    return namespace["around"](*free) if free else namespace[definition.name]


def _replace_once(function, old, new):
    name = function.__qualname__
    if function.__code__.co_filename == FILE_NAME:
        raise ValueError(f"{name} carries a bug already")
    source = textwrap.dedent(inspect.getsource(function))
    count = source.count(old)
    if count != 1:
        raise ValueError(f"the text to replace must occur once in {name}, but occurs {count} times: {old!r}")
    return source.replace(old, new)
