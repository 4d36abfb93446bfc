"""Planting a bug: a function of the library is replaced by a wrong one.

    with replaced(softmax_backward, a_wrong_function):
        ...

The function object itself gets the changed code while the program runs, and its own code back afterwards. So every
module that imported it, under any name, runs the bug, and no file changes.
"""

import ast
import contextlib
import copy
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

PARTS = ("__code__", "__defaults__", "__kwdefaults__")  # of a function object: all that its source text decides
FILE_NAME = "<planted bug>"  # shown in tracebacks; the bug cannot be looked up there


@contextlib.contextmanager
def replaced(function: Callable[..., Any], wrong: Callable[..., Any]) -> Iterator[None]:
    """Inside a `with` block, calling `function` (also a method) calls `wrong` with the same arguments.

    A decorator is replaced with what it decorates, so that no kernel takes the place of `wrong` on a GPU.
    """
    plain: Any = inspect.unwrap(getattr(function, "__func__", function), stop=lambda f: isinstance(f, FunctionType))
    name = f"_instead_of_{plain.__name__}"
    returns = "yield from" if inspect.isgeneratorfunction(plain) else "return"  # Python wants code of the same kind
    call: Any = ast.parse(f"def {plain.__name__}(*args, **options): {returns} {name}(*args, **options)").body[0]
    plain.__globals__[name] = wrong
    try:
        with planted_definition(plain, call):
            yield
    finally:
        del plain.__globals__[name]


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
