"""The reference of one room of the package: every module with what is public in it, from the docstrings."""

import importlib
import pkgutil

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective


def modules_of(room: str) -> list[str]:
    """The names of the modules of a room, itself first, without those that only hold others."""
    names = [f"minitransformer.{room}"]
    for name in names:
        module = importlib.import_module(name)
        names += [f"{name}.{found.name}" for found in pkgutil.iter_modules(getattr(module, "__path__", []))]
    return names


class Room(SphinxDirective):
    """`.. room:: functional`: the modules of minitransformer.functional."""

    required_arguments = 1

    def run(self):
        """A section for each module."""
        found = []
        for name in modules_of(self.arguments[0]):
            short = name.removeprefix("minitransformer.")
            section = nodes.section(ids=[f"module-of-{short.replace('.', '-')}"], names=[short])
            section += nodes.title("", short)
            lines = [f".. automodule:: {name}", "   :members:", "   :ignore-module-all:"]
            self.state.nested_parse(StringList(lines, source=self.env.docname), self.content_offset, section)
            found.append(section)
        return found


def skip(app, what, name, obj, skipped, options):
    """Fields of a NamedTuple have no docstring of their own: "Alias for field number 0"."""
    return True if type(obj).__name__ == "_tuplegetter" else None
