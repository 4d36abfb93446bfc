"""The Sphinx extension: when each of the other files of this folder does its work."""

import hashlib
import html
import re
from pathlib import Path

from docutils import nodes
from sphinx.util.osutil import relative_uri

from . import beside, docstrings, exercises, explorer, folds, formulas, links, mathml, notebook, reference, written
from .percent import read_outputs

CAPTION = '<p class="caption" role="heading" aria-level="2">'
HERE = Path(__file__).resolve().parent
TOKEN = re.compile(r"«[^»]+»|\b(?:[stop]|bos)→(?:[stop]|eos)\b")
MARKED = re.compile(f"({TOKEN.pattern}|{mathml.INLINE.pattern})")


def digest() -> str:
    """Changes with these files and with the outputs, after which all pages must be read again."""
    paths = sorted([*HERE.glob("*.py"), *(HERE.parent / "outputs").glob("*.json")])
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def number_of(docname: str) -> str | None:
    """The number of the lesson that a page shows, or None."""
    folder, _, name = docname.rpartition("/")
    return name[:2] if folder == "lessons" and name[:2].isdecimal() else None


def set_formulas(app, doctree):
    """Indented blocks of the prose are formulas: MathML where they can be read, and text in colors where not."""
    for block in list(doctree.findall(nodes.literal_block)):
        if block.get("language") == "none":
            block["language"] = "formula"
            if mathematics := mathml.block(block.astext()):
                block.replace_self(nodes.raw("", mathematics, format="html"))


def set_sentences(app, doctree):
    """In the sentences of lessons, tokens look like keys (p→o is a row's name), and a name with an index is MathML."""
    if number_of(app.env.docname) is None:
        return
    for text in list(doctree.findall(nodes.Text)):
        if not isinstance(text.parent, nodes.literal | nodes.literal_block | nodes.raw | nodes.title):
            pieces = [piece for piece in MARKED.split(text) if piece]
            if len(pieces) > 1 or MARKED.fullmatch(text):
                text.parent.replace(text, [marked(piece) for piece in pieces])


def marked(text):
    """A piece of a sentence: keys, MathML, or text as it is."""
    if TOKEN.fullmatch(text):
        keys = [f"<kbd>{html.escape(token)}</kbd>" for token in text.strip("«»").split("→")]
        return nodes.raw("", f'<span class="token">{"→".join(keys)}</span>', format="html")
    if mathml.INLINE.fullmatch(text):
        return nodes.raw("", mathml.formula(text, display=False), format="html")
    return nodes.Text(text)


def finish_lesson(app, doctree, docname):
    """Links to the exercises and the explorer, then the folds."""
    number, name = number_of(docname), docname.rpartition("/")[2]
    if number is None or read_outputs(name) is None:
        return
    about = next(text for text in doctree.findall(nodes.paragraph) if "with a pencil" in text.astext())
    about["classes"].append("about")
    about += [nodes.Text(" · "), explorer.link_to_box(), nodes.Text(" · "), notebook.link_to_download(name)]
    for section in list(doctree.findall(nodes.section)):
        title = section[0].astext()
        if title == "Going deeper":
            section.parent.insert(section.parent.index(section), explorer.box_for(docname))
        if title == "Exercise" and (found := exercises.of_lesson(number)):
            text = nodes.paragraph("", "On this site: ")
            for i, (name, about) in enumerate(found):
                uri = relative_uri(f"{docname}.html", f"docs/exercises.html#{name}")
                text += [nodes.Text(", " if i else ""), nodes.reference("", about, refuri=uri, internal=True)]
            text += nodes.Text(".")
            section += text
    folds.fold_lesson(doctree)


def finish_page(app, pagename, template, context, doctree):
    """The brand leads to the front page, which is not written in Markdown; captions are headings of second order."""
    context["master_doc"] = "index"
    if pagename == "index":
        context.update(furo_hide_toc=True, title="Forward and backward by hand")
    for part in ("furo_navigation_tree", "body"):
        if part in context:
            context[part] = context[part].replace('<p class="caption" role="heading">', CAPTION)


def setup(app):
    """Register everything."""
    app.add_config_value("course_site_digest", digest(), "env", [str])
    app.add_lexer("formula", formulas.FormulaLexer)
    app.add_node(folds.Fold, html=(folds.visit_fold, folds.depart_fold))
    app.add_directive("beside", beside.Beside)
    app.add_directive("exercises", exercises.ExercisePage)
    app.add_directive("reference", reference.Reference)
    app.add_directive("written", written.Written)
    app.add_transform(links.FileLinks)
    app.connect("autodoc-process-docstring", docstrings.rewrite)
    app.connect("autodoc-process-signature", docstrings.shorten)
    app.connect("autodoc-skip-member", reference.skip)
    app.connect("doctree-read", set_formulas)
    app.connect("doctree-read", set_sentences)
    app.connect("doctree-resolved", finish_lesson)
    app.connect("doctree-resolved", links.name_pages)
    app.connect("doctree-resolved", links.link_lessons)
    app.connect("doctree-resolved", links.html_pictures)
    app.connect("doctree-resolved", links.whole_picture)
    app.connect("html-collect-pages", links.source_pages)
    app.connect("html-page-context", finish_page, priority=900)  # after the theme
    app.connect("build-finished", explorer.copy_page)
    app.connect("build-finished", notebook.write_downloads)
    return {"parallel_read_safe": False}
