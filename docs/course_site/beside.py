"""The pages of lessons/one_file: the code on the left, and its notes on the right."""

import itertools

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from . import notes


class Beside(SphinxDirective):
    """A file, section by section, each few lines beside their note."""

    required_arguments = 1

    def run(self):
        """A section for each of the notes."""
        name = self.arguments[0]
        for ending in (".py", ".notes.md"):
            self.env.note_dependency(str(notes.FOLDER / f"{name}{ending}"))
        grouped = itertools.groupby(notes.read(name), key=lambda block: block.section)
        return [self.section(title, list(blocks)) for title, blocks in grouped]

    def section(self, title, blocks):
        """A part of the file under its title."""
        section = nodes.section(ids=[nodes.make_id(title)])
        section += nodes.title("", title)
        grid = nodes.container(classes=["beside"])
        for block in blocks:
            grid += nodes.literal_block("", block.code, language="python")
            note = nodes.container(classes=["note"])
            self.state.nested_parse(StringList(block.note.splitlines(), source=self.env.docname), 0, note)
            grid += note
        section += grid
        return section
