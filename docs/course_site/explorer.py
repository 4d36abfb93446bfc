"""From a lesson to the explorer: links to the arrays of the running example that the lesson computes.

The star of the course is the row p→o, in which the model has read "p" and must write "o".
"""

import functools
import shutil
from pathlib import Path

from support.example_numbers import numbers

import numpy as np
from docutils import nodes
from sphinx.util.osutil import relative_uri

from minitransformer.example import load_example

from .percent import ROOT, SITTING, read_outputs

PAGE = ROOT / "minitransformer" / "explorer" / "page"
SECTIONS = Path(__file__).with_name("lessons.js")
# tells the page that it stands among the others, and where, and which section of which lesson derives an array
HOME = '<meta name="site" content="../">\n<script src="lessons.js"></script>\n</head>'
BOX = "in-the-explorer"
ADDRESS = "explorer/index.html"
# by the length of an axis, which says what it counts: row p→o of 5, key o of 4, token o of 7; otherwise the first
STAR = {5: 1, 4: 2, 7: 3}


LETTERS = "stop"


def star_row() -> list[dict[str, object]]:
    """The row for the front page: for each letter, how much head 0 looks at it, and the gradient of its score."""
    found = numbers(load_example())
    p, ds = found["cross.p"][0, 1], found["cross.ds"][0, 1]
    return [{"letter": LETTERS[j], "p": float(p[j]), "ds": float(ds[j])} for j in range(len(LETTERS))]


@functools.cache
def shapes() -> dict[str, tuple[int, ...]]:
    """The shapes of all arrays of the running example."""
    return {name: np.shape(values) for name, values in numbers(load_example()).items()}


def cell_of(example: str) -> str:
    """The cell to open for an array or for one head of it: "cross.p" -> "cross.p[0,1,2]"."""
    name, _, head = example.partition("[")
    place = [STAR.get(length, 0) for length in shapes()[name]]
    if head:
        place[0] = int(head.removesuffix("]"))
    return f"{name}[{','.join(map(str, place))}]" if place else name


def spoken(example: str) -> str:
    """How a link calls it: "cross.p[0]" -> "cross p, head 0"."""
    name, _, head = example.partition("[")
    return name.replace(".", " ") + (f", head {head.removesuffix(']')}" if head else "")


def address(docname: str, example: str | None = None) -> str:
    """The explorer, or one cell in it, as seen from a page."""
    uri = relative_uri(f"{docname}.html", ADDRESS)
    return uri if example is None else f"{uri}#view=cell&cell={cell_of(example)}"


def link(docname: str, text: str, example: str | None = None) -> nodes.reference:
    """A link to the explorer."""
    return nodes.reference("", text, refuri=address(docname, example), internal=True)


def box_for(docname: str) -> nodes.container:
    """A lesson's links."""
    outputs = read_outputs(docname.rpartition("/")[2])
    text = nodes.paragraph("", "See these numbers in the explorer, forward and backward: ")
    for i, example in enumerate(dict.fromkeys(outputs["examples"])):
        text += [nodes.Text(", " if i else ""), link(docname, spoken(example), example)]
    text += nodes.Text(".")
    return nodes.container("", text, classes=["to-explorer"], ids=[BOX])


def link_to_box() -> nodes.reference:
    """The link from a lesson's header to them."""
    return nodes.reference("", "its numbers in the explorer", refid=BOX, internal=True)


def copy_page(app, problem):
    """Put the explorer and the notebook of the sitting beside the pages."""
    if problem is None and PAGE.is_dir():
        copy = shutil.copytree(PAGE, Path(app.outdir) / "explorer", dirs_exist_ok=True) / "index.html"
        shutil.copy(SECTIONS, copy.parent)
        copy.write_text(copy.read_text("utf-8").replace("</head>", HOME, 1), "utf-8")
        shutil.copy(SITTING.with_suffix(".ipynb"), Path(app.outdir) / "lessons")
