"""A lesson as a notebook: for MyST-NB with the outputs of a recorded run, and to download without. Nothing is run."""

import base64
import html
import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from nbformat import NotebookNode, v4
from sphinx.util import logging

from minitransformer.cli.init import as_notebook
from minitransformer.course import FIGURE, find_lessons

from . import asking
from .percent import LESSONS, ROOT, SITTING, TASK, Cell, read_cells, read_outputs, stale_cells

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
    notebook = v4.new_notebook(metadata={"language_info": {"name": "python", "pygments_lexer": "python"}})
    printed = iter([cell["printed"] for cell in outputs["cells"]] if outputs else [])
    hands = outputs.get("hands", {}) if outputs else {}
    for cell in read_cells(text):
        if cell.prose:
            prose = AS_IT_IS.sub(as_html, TASK.sub(embedded, cell.source))
            notebook.cells.append(v4.new_markdown_cell(prose))
        else:
            notebook.cells += code_cells(name[:2], cell, next(printed, ""), hands)
    return notebook


def code_cells(number: str, cell: Cell, printed: str, hands: dict[str, Any]) -> list[NotebookNode]:
    """A cell of code with its output. If it asks, fields come after it; if it answers, its output after a gate."""
    tags = [cell.title.lower()] if cell.title else []
    code = v4.new_code_cell(cell.source, metadata={"tags": tags} if tags else {})
    gate, said = asking.gate(number, cell, printed, hands), asking.rest(printed)
    output = [v4.new_output("stream", name="stdout", text=said)] if said else []
    answer = asking.measured(number, cell, printed)
    parts = [asking.guess_fields(number, cell), gate, answer]
    made = [code, *(v4.new_markdown_cell(part) for part in parts if part)]
    if answer and output:
        made.append(v4.new_code_cell("...", outputs=output, metadata={"tags": ["remove-input"]}))
    else:
        code.outputs = output
    return made


def embedded(task: re.Match[str]) -> str:
    """A task with its array, and a link to the array alone."""
    text, folder, page = task.groups()
    text, address = html.escape(" ".join(text.split())), html.escape(f"../{folder}/{page}")
    frame = f'<iframe src="{address}" title="{text}" loading="lazy"></iframe>'
    return f'<div class="task">\n<p>{text}</p>\n{frame}\n<p><a href="{address}">On a page of its own</a></p>\n</div>'


def as_html(link: re.Match[str]) -> str:
    """A link that Sphinx leaves alone, and whose anchor it keeps."""
    text, explorer, cell, file = link.groups()
    return f'<a href="../{explorer}/{cell}">{text}</a>' if explorer else f'<a href="{file}" download>{text}</a>'


def link_to_download(name: str) -> nodes.raw:
    """The link from a lesson's header to its notebook."""
    return nodes.raw("", f'<a href="{name}.ipynb" download>as a notebook</a>', format="html")


def write_downloads(app, problem):
    """Put the notebooks of the lessons beside their pages, with the pictures in them."""
    for lesson in find_lessons(LESSONS) if problem is None else []:
        notebook = json.loads(as_notebook(lesson.path.read_text("utf-8")))
        for cell in notebook["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown" and (names := FIGURE.findall(source)):
                cell["source"] = FIGURE.sub(r"](attachment:\1)", source)
                cell["attachments"] = {name: {"image/png": encoded(ROOT / "plots" / name)} for name in names}
        target = Path(app.outdir) / "lessons" / f"{lesson.name}.ipynb"
        target.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


def encoded(path: Path) -> str:
    """A file's content in base64."""
    return base64.b64encode(path.read_bytes()).decode()
