"""All mutants of a module, and how one is planted in the running program.

Mutated are the functions and methods of the module. Left out are its constants, the defaults of the fields of classes
and decorators: they have done their work when the module is imported. So is what runs under MPI alone: the tests of it
start processes, in which no bug is planted.
"""

import ast
import contextlib
import difflib
import functools
import importlib
import inspect
import pkgutil
from pathlib import Path
from typing import Any, NamedTuple

from minitransformer.exercises.planting import planted_definition
from tests.mutation.operators import changes, is_left_out, number_of

PACKAGE = "minitransformer"
UNDER_MPI = "minitransformer.training.parallel.mpi"
NOT_MUTATED = ("__init__", "__main__", "kernels", "gradcheck.subjects")  # no check is measured on a GPU, or on rows
NOT_WALKED = {"decorator_list", "annotation", "returns", "type_comment", "ctx", "targets"}


class Key(NamedTuple):
    """A mutant by its content, so that it is known again after other lines have moved it."""

    function: str  # such as functional.softmax.softmax_backward
    line: str  # of the source, without the indentation
    change: str  # "old -> new"
    number: int  # 1, or more if the same change can be made several times in this line or in equal ones


class Mutant(NamedTuple):
    """One change of one function."""

    key: Key
    function: Any  # the function object that carries it
    file: str
    lines: range  # of the file: if none of them is run, neither is the change
    definition: ast.FunctionDef  # the whole function
    parent: ast.AST  # has the changed node
    field: str
    index: int | None  # if the field is a list
    new: ast.AST

    @contextlib.contextmanager
    def planted(self):
        """Inside a `with` block the library has this bug."""
        old = self._replace_node(self.new)
        try:
            with planted_definition(self.function, self.definition):
                yield
        finally:
            self._replace_node(old)

    def _replace_node(self, new):
        value = getattr(self.parent, self.field)
        if self.index is None:
            setattr(self.parent, self.field, new)
            return value
        old, value[self.index] = value[self.index], new
        return old

    @property
    def line(self):
        """The number of the first of its lines."""
        return self.lines.start


@functools.cache
def all_names():
    """{full name: the file, as a module} of each folder and file of the package, and of what the files define."""
    names, root = {}, Path(importlib.import_module(PACKAGE).__file__).parent
    for path in sorted(root.rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        if not module.startswith(NOT_MUTATED):
            defined = [node.name for node in ast.parse(path.read_text("utf-8")).body if hasattr(node, "name")]
            names |= {module: module, **{f"{module}.{name}": module for name in defined}}
    return names


def full_name(name):
    """The full name of a folder, file, class or function, of which parts may be left out: functional.gelu, or gelu.

    Raises LookupError, with what it may have meant, for a name that nothing has, or several things.
    """
    names, (*path, last) = all_names(), name.split(".")
    found = [name] if name in names else [each for each in names if is_shortened([*path, last], each.split("."))]
    found = [each for each in found if each.rpartition(".")[0] not in found]  # a file, not what it has of its name
    if len(found) == 1:
        return found[0]
    if found:
        raise LookupError(f"{name} may be any of {', '.join(found)}")
    ends = sorted({each.rpartition(".")[2] for each in names if set(path) <= set(each.split("."))})
    near = [".".join([*path, end]) for end in difflib.get_close_matches(last, ends, 1)]
    raise LookupError(f"nothing is called {name}{f'; did you mean {near[0]}?' if near else ''}")


def is_shortened(some, parts):
    """Whether `some` is `parts`, or what is left when some are left out, except for the last."""
    rest = iter(parts)
    return some[-1] == parts[-1] and all(part in rest for part in some)


def mutants_called(name):
    """Every mutant of a folder, a file, a class or a function, by its full name; of a function also its backward's."""
    for module in modules_of(all_names()[name]):
        for mutant in mutants_of(module):
            if mutant.key.function == f"{name}_backward" or f"{mutant.key.function}.".startswith(f"{name}."):
                yield mutant


def modules_of(name):
    """The full names of a module or of all modules in a folder: "layers", "functional.softmax"."""
    module = importlib.import_module(f"{PACKAGE}.{name}")
    if not hasattr(module, "__path__"):
        return [module.__name__]
    inside = [module.__name__, *(found.name for found in pkgutil.walk_packages(module.__path__, module.__name__ + "."))]
    return sorted(set(inside) - {UNDER_MPI})


def mutants_of(module_name):
    """Every mutant of one module, in the order of its source."""
    module = importlib.import_module(module_name)
    source = Path(module.__file__).read_text("utf-8")
    return [
        mutant
        for prefix, definition in definitions(ast.parse(source).body)
        for mutant in mutants_of_function(module, prefix, definition, source.splitlines())
    ]


def definitions(statements, prefix=""):
    """(qualified name, definition) of the functions and methods."""
    for node in statements:
        if isinstance(node, ast.ClassDef):
            yield from definitions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and not is_left_out(node):
            yield prefix + node.name, node


def live_function(module, name, definition):
    """The function object that runs the definition, under its decorators; None if nothing does any more."""
    owner = module
    for part in name.split("."):
        owner = vars(owner)[part]
    if isinstance(owner, property):
        owner = (
            owner.fset
            if any(ast.unparse(each).endswith(".setter") for each in definition.decorator_list)
            else owner.fget
        )
    owner = inspect.unwrap(getattr(owner, "func", getattr(owner, "__func__", owner)))
    first = min(node.lineno for node in (definition, *definition.decorator_list))
    return owner if getattr(owner, "__code__", None) and owner.__code__.co_firstlineno == first else None


def mutants_of_function(module, name, definition, source_lines):
    """Every mutant of one definition."""
    function = live_function(module, name, definition)
    if function is None:
        return
    full_name = f"{module.__name__.removeprefix(PACKAGE + '.')}.{name}"
    seen = {}
    for parent, field, index, node, lines in places(definition, header(definition)):
        for new in changes(node, parent):
            old_text, new_text = difference(node, new)
            line = source_lines[getattr(node, "lineno", lines.start) - 1].strip()
            content = (full_name, line, f"{old_text} -> {new_text}")
            seen[content] = seen.get(content, 0) + 1
            key = Key(*content, seen[content])
            yield Mutant(key, function, module.__file__, lines, definition, parent, field, index, new)


def header(statement):
    """The lines of a statement, without those of the statements in it."""
    first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
    body = getattr(statement, "body", None)
    end = max(statement.lineno, body[0].lineno - 1) if body else statement.end_lineno
    return range(first, end + 1)


def places(node, lines):
    """(parent, field, index or None, node, lines of its statement) of all that may be changed inside `node`."""
    for field, value in ast.iter_fields(node):
        if field in NOT_WALKED and not (field == "targets" and isinstance(node, ast.Assign)):
            continue
        several = isinstance(value, list)
        for index, child in enumerate(value if several else [value]):
            if not isinstance(child, ast.AST) or is_left_out(child):
                continue
            child_lines = header(child) if isinstance(child, ast.stmt) else lines
            yield node, field, index if several else None, child, child_lines
            if number_of(child) is None:  # a negative number is one constant
                yield from places(child, child_lines)


def difference(old, new):
    """The text of both, of a compound statement only its condition."""
    if isinstance(old, ast.If | ast.While | ast.IfExp):
        return ast.unparse(old.test), ast.unparse(new.test)
    if isinstance(old, ast.comprehension):
        return ast.unparse(old).strip(), ast.unparse(new).strip()
    texts = [ast.unparse(ast.fix_missing_locations(node)) for node in (old, new)]
    if isinstance(new, ast.Pass):
        texts[1] = "deleted"
    return tuple(" ".join(text.split()) for text in texts)
