"""Planting a bug: one piece of source text is replaced by another.

    with planted(softmax_backward, "ds *= p", "ds *= p / len(p)"):
        ...

The function object itself gets the changed code while the program runs, and its own code back afterwards. So every
module that imported it, under any name, runs the bug, and no file changes.
"""

import ast
import contextlib
import copy
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, NamedTuple

PARTS = ("__code__", "__defaults__", "__kwdefaults__")  # of a function object: all that its source text decides
FILE_NAME = "<planted bug>"  # shown in tracebacks; the bug cannot be looked up there


def replace_once(text: str, old: str, new: str, name: str) -> str:
    """`text` with `old` replaced by `new`. Raises ValueError, naming `name`, unless `old` occurs exactly once."""
    count = text.count(old)
    if count != 1:
        raise ValueError(f"the text to replace must occur once in {name}, but occurs {count} times: {old!r}")
    return text.replace(old, new)


@contextlib.contextmanager
def planted(function: Callable[..., Any], old: str, new: str) -> Iterator[None]:
    """Inside a `with` block, `function` (also a method) runs with `old` replaced by `new` in its source.

    The text is that of the whole definition, without its decorators and moved to the left edge, so that the first
    line of the body is indented by four columns. Raises ValueError unless `old` occurs in it exactly once, and if the
    function already carries a bug.
    """
    plain: Any = inspect.unwrap(getattr(function, "__func__", function))  # the formula itself under a decorator
    with planted_definition(plain, _changed(plain, old, new)):
        yield


@contextlib.contextmanager
def planted_definition(function: FunctionType, definition: ast.FunctionDef) -> Iterator[None]:
    """Inside a `with` block, `function` runs what `definition` says: the tree of its own definition, with a bug.

    Decorators in the tree are ignored: what they made of the function calls the function object, which stays the same.
    """
    changed = _compiled(function, definition)
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
    function: Any  # the function or method that carries it
    old: str  # the text there
    new: str  # what the bug makes of it
    also: tuple = ()  # (function, old, new) of further places: a bug that is wrong consistently needs two
    source: str = ""  # where it was published: a repository and the number of its issue or pull request

    @property
    def level(self) -> str:
        """The part of the package that carries the bug, such as "functional" or "layers"."""
        return self.function.__module__.split(".")[1]

    @contextlib.contextmanager
    def planted(self) -> Iterator[None]:
        """Inside a `with` block the library has this bug."""
        with contextlib.ExitStack() as stack:
            for change in ((self.function, self.old, self.new), *self.also):
                stack.enter_context(planted(*change))
            yield


def _changed(function: FunctionType, old: str, new: str) -> Any:
    """The tree of the definition of `function`, with its source changed."""
    if function.__code__.co_filename == FILE_NAME:
        raise ValueError(f"{function.__qualname__} carries a bug already")
    source = replace_once(textwrap.dedent(inspect.getsource(function)), old, new, function.__qualname__)
    return ast.parse(source).body[0]


def _compiled(function: FunctionType, definition: ast.FunctionDef) -> FunctionType:
    """A new function like `function`, from its definition; its globals are the same, its closure is empty."""
    definition = copy.copy(definition)
    definition.decorator_list = []
    free = function.__code__.co_freevars  # such as __class__, which super() reads
    body: list[ast.stmt] = [definition]
    if free:
        # these names must be those of an enclosing function; their values stay in the closure of `function`. The new
        # function mentions all of them, also those that it no longer uses
        enclosing: Any = ast.parse(f"def enclosing({', '.join(free)}): return {definition.name}").body[0]
        definition.body = [*definition.body, *ast.parse(f"if False: {', '.join(free)}").body]
        enclosing.body.insert(0, definition)
        body = [enclosing]
    module = ast.fix_missing_locations(ast.Module(body, []))
    namespace: dict[str, Any] = {}
    exec(compile(module, FILE_NAME, "exec", dont_inherit=True), function.__globals__, namespace)
    return namespace["enclosing"](*free) if free else namespace[definition.name]
