"""The reference of one room of the package: every module with what is public in it, from the docstrings."""

import importlib
import pkgutil

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective


def modules_of(name: str) -> list[str]:
    """The names of a module and of all below it, each before those below it."""
    names = [name]
    for found in pkgutil.iter_modules(getattr(importlib.import_module(name), "__path__", [])):
        inner = f"{name}.{found.name}"
        names += modules_of(inner) if found.ispkg else [inner]
    return names


class Reference(SphinxDirective):
    """`.. reference:: functional`: what is in minitransformer.functional."""

    required_arguments = 1

    def run(self):
        """Its own docstring, then a section for each of its modules."""
        first, *others = modules_of(f"minitransformer.{self.arguments[0]}")
        return [*self.module(first, nodes.container()).children, *(self.section(name) for name in others)]

    def section(self, name):
        """A module under its name."""
        short = name.removeprefix("minitransformer.")
        section = nodes.section(ids=[f"module-of-{short.replace('.', '-')}"], names=[short])
        section += nodes.title("", short)
        return self.module(name, section)

    def module(self, name, parent):
        """Append the module's docstring and members, except what it has from others."""
        lines = [f".. automodule:: {name}", "   :members:", "   :ignore-module-all:"]
        self.state.nested_parse(StringList(lines, source=self.env.docname), self.content_offset, parent)
        return parent


def skip(app, what, name, obj, skipped, options):
    """Leave out the fields of a NamedTuple, which are in its signature."""
    return True if type(obj).__name__ == "_tuplegetter" else None
