"""Reads a lesson for MyST-NB: its cells, with the outputs of a recorded run. Nothing is run."""

import html
import re

from nbformat import NotebookNode, v4
from sphinx.util import logging

from .percent import SITTING, TASK, read_cells, read_outputs, stale_cells

NAME = re.compile(r'^lesson = begin\("(\w+)"', flags=re.MULTILINE)
# links to what stands on the site as it is: the explorer, with the cell to open, and the notebook of the sitting
AS_IT_IS = re.compile(
    r"\[([^\]]+)\]\((?:\.\./minitransformer/(explorer)/page/(index\.html#[^)]+)|(one_sitting\.ipynb))\)"
)
LOG = logging.getLogger(__name__)


def read(text: str) -> NotebookNode:
    """The lesson with this text as a notebook. A cell whose recorded output is out of date is a warning."""
    (name,) = NAME.findall(text) or [SITTING.stem]
    outputs = read_outputs(name)
    for cell in stale_cells(text, outputs):
        LOG.warning(
            "lessons/%s.py:%d: the recorded output is not of this cell: run python docs/record_outputs.py %s",
            *(name, cell.line, name[:2]),
        )
    printed = iter([cell["printed"] for cell in outputs["cells"]] if outputs else [])
    notebook = v4.new_notebook(metadata={"language_info": {"name": "python", "pygments_lexer": "python"}})
    for cell in read_cells(text):
        if cell.prose:
            prose = AS_IT_IS.sub(as_html, TASK.sub(embedded, cell.source))
            notebook.cells.append(v4.new_markdown_cell(prose))
        else:
            text = next(printed, "")
            stream = [v4.new_output("stream", name="stdout", text=text)] if text else []
            notebook.cells.append(v4.new_code_cell(cell.source, outputs=stream))
    return notebook


def embedded(task: re.Match[str]) -> str:
    """A task with its array, and a link to the array alone."""
    text, folder, page = task.groups()
    text, address = html.escape(" ".join(text.split())), html.escape(f"../{folder}/{page}")
    frame = f'<iframe src="{address}" title="{text}" loading="lazy"></iframe>'
    return f'<div class="task">\n<p>{text}</p>\n{frame}\n<p><a href="{address}">On a page of its own</a></p>\n</div>'


def as_html(link: re.Match[str]) -> str:
    """A link that Sphinx leaves alone, and whose anchor it keeps."""
    text, explorer, cell, file = link.groups()
    return f'<a href="{f"../{explorer}/{cell}" if explorer else file}">{text}</a>'
