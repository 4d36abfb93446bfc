"""Parts of pages that code writes when the site is built, so that what the tests hold is not committed twice.

    ```{written} tests.precision.page:table
    ```

is what the function `table` of that module returns: Markdown, with headings if it has some.
"""

import importlib
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective


class Written(SphinxDirective):
    """The Markdown that a function returns."""

    required_arguments = 1

    def run(self):
        """Its nodes. The page is read again when a file beside the function's, or a record below it, has changed."""
        module, _, function = self.arguments[0].partition(":")
        found = importlib.import_module(module)
        folder = Path(found.__file__).parent
        for path in sorted({*folder.glob("*.py"), *folder.rglob("*.json")}):
            self.env.note_dependency(str(path))
        lines = getattr(found, function)().splitlines()
        node = nodes.Element()
        self.state.nested_parse(
            StringList(lines, source=self.env.docname), self.content_offset, node, match_titles=True
        )
        return node.children
