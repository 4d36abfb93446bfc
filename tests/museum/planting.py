"""The bugs of the museum: a piece of a function's code is replaced by another piece, or the function by a wrong one.

    with planted(softmax_backward, "ds *= p", "ds *= p / len(p)"):
        ...

Code is compared as Python reads it, not as it is laid out: both the function and the piece to replace are brought into
the form that `ast.unparse` gives them. So line breaks, comments, quotes and spare parentheses do not matter.
"""

import ast
import contextlib
import inspect
import pkgutil
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any, NamedTuple

from minitransformer.exercises.planting import FILE_NAME, planted_definition, replaced


@contextlib.contextmanager
def planted(function: Callable[..., Any], old: str, new: str) -> Iterator[None]:
    """Inside a `with` block, `function` (also a method) runs with `old` replaced by `new` in its code.

    Both are written as they would stand in a definition at the left edge: lines after the first are indented by four
    columns or more. Raises ValueError unless `old` occurs exactly once, and if the function already carries a bug.
    """
    plain = _plain(function)
    if plain.__code__.co_filename == FILE_NAME:
        raise ValueError(f"{plain.__qualname__} carries a bug already")
    with planted_definition(plain, _changed(plain, old, new)):
        yield


class Exhibit(NamedTuple):
    """A bug with its story."""

    name: str  # a sentence
    lesson: str  # how it arises, or the question that finds it
    # {function: (old, new) or a wrong function}; a function may be given by its name, such as "layers:Linear.forward"
    changes: Mapping[Any, Any]
    source: str = ""  # where it was published: a repository and the number of its issue or pull request

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """The functions or methods that carry the bug. Raises LookupError if there is none of such a name."""
        return [self._find(function) if isinstance(function, str) else function for function in self.changes]

    @property
    def level(self) -> str:
        """The part of the package that carries the bug, such as "functional" or "layers"."""
        return self.functions[0].__module__.split(".")[1]

    @contextlib.contextmanager
    def planted(self) -> Iterator[None]:
        """Inside a `with` block the library has this bug. Raises ValueError if its code is not there."""
        with contextlib.ExitStack() as stack:
            for function, change in zip(self.functions, self.changes.values(), strict=True):
                try:
                    bug = replaced(function, change) if callable(change) else planted(function, *change)
                    stack.enter_context(bug)
                except ValueError as error:
                    raise ValueError(f"the bug {self.name!r} cannot be planted: {error}") from None
            yield

    def _find(self, name: str) -> Any:
        full_name = name if name.startswith("support.") else f"minitransformer.{name}"  # or what the lessons share
        try:
            return pkgutil.resolve_name(full_name)
        except (ImportError, AttributeError):
            raise LookupError(f"the bug {self.name!r} cannot be planted: there is no {full_name}") from None


def _plain(function: Callable[..., Any]) -> FunctionType:
    """The formula itself, under decorators and in a method."""
    return inspect.unwrap(getattr(function, "__func__", function))


def _changed(function: FunctionType, old: str, new: str) -> Any:
    """The tree of the definition of `function`, with a piece of it changed."""
    definition: Any = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    definition.decorator_list = []
    source, wanted = ast.unparse(definition), _normal(old)
    if wanted not in source:
        wanted = old  # the middle of an expression, which may mean something else when it stands alone
    count = source.count(wanted)
    if count != 1:
        name = function.__qualname__
        raise ValueError(f"the code to replace must occur once in {name}, but occurs {count} times: {old!r}")
    return ast.parse(source.replace(wanted, new)).body[0]


def _normal(text: str) -> str:
    """`text` as `ast.unparse` writes it, if it is a whole expression or whole statements, otherwise as it is."""
    first, *rest = text.split("\n")
    if text.endswith(":"):  # the head of a compound statement
        with contextlib.suppress(SyntaxError):
            return ast.unparse(ast.parse(f"{text} pass")).removesuffix("\n    pass")
    columns = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    for margin in (columns, columns - 4):  # the lines after the first may be the block of a compound statement
        with contextlib.suppress(SyntaxError):
            lines = ast.unparse(ast.parse("\n".join([first, *(line[max(margin, 0) :] for line in rest)])))
            return lines.replace("\n", "\n" + " " * margin)
    return text
