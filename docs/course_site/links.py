"""Links that work on GitHub also work on the site: to source files, to folders, and to pictures in HTML.

A source file gets a page of its own, with colors and numbered lines; the reference leads there, too. A link to a
folder becomes its text, or leads to the page that says what is in it.
"""

import importlib
import inspect
import re
from pathlib import Path

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util.osutil import relative_uri

from .percent import LESSONS, ROOT

FOLDERS = {"docs": "docs/contents", "lessons": "lessons/README", "lessons/exercises": "docs/exercises"}
FOLDERS["docs/records"] = RECORDS = "docs/records"  # the page that shows all of them
LESSON, NUMBER = re.compile(r"(\b[Ll]esson \d\d\b)"), re.compile(r"(\b\d\d\b(?=[\d, ]* · difficulty))")
SOURCE = re.compile(r'(?<=src=")([^":#]+)(?=")')  # of pictures: that of a task has a #


def source_page(path):
    """The name of the page that shows the source file at `path`, below the root."""
    return f"source/{path}"


def is_link(node):
    """Whether this is a link in Markdown that is not to the web."""
    return isinstance(node, addnodes.pending_xref | addnodes.download_reference) and node.get("reftype") == "myst"


class FileLinks(SphinxTransform):
    """Resolve links to files and folders of the project that are no pages, and pictures in HTML."""

    default_priority = 5

    def apply(self):
        """Change the links of one page."""
        here, root = Path(self.env.docname).parent, Path(self.env.srcdir)
        for link in list(self.document.findall(is_link)):
            target = link["reftarget"].partition("#")[0]
            if link["refdomain"] == "doc":  # a page, or a file that only looks like one
                path = target if target in self.env.found_docs else f"{target}.py"
            else:
                path = (root / here / target).resolve().relative_to(root.resolve()).as_posix()
            if (root / path).is_dir():
                self.to_folder(link, path)
            elif (root / path).is_file():
                self.to_source(link, path)
        for html in self.document.findall(nodes.raw):
            for source in SOURCE.findall(html.astext()):
                path = (root / here / source).resolve().relative_to(root.resolve()).as_posix()
                self.env.images.add_file(self.env.docname, path)

    def to_folder(self, link, path):
        """A page for the folder, or only its name."""
        if path in FOLDERS:
            uri = relative_uri(f"{self.env.docname}.html", f"{FOLDERS[path]}.html")
            link.replace_self(nodes.reference("", "", *link.children, refuri=uri, internal=True))
        else:
            link.replace_self(link.children)

    def to_source(self, link, path):
        """To the picture, to the record on its page, or to the page of the file, which is written at the end."""
        page, name = f"{self.env.docname}.html", Path(path)
        if name.suffix == ".png":
            uri = relative_uri(page, f"_images/{name.name}")
        elif name.parent == Path(RECORDS):
            uri = relative_uri(page, f"{RECORDS}.html") + f"#{name.stem}"
        else:
            self.env.__dict__.setdefault("linked_sources", {}).setdefault(path, set()).add(self.env.docname)
            uri = relative_uri(page, f"{source_page(path)}.html")
        link.replace_self(nodes.reference("", "", *link.children, refuri=uri, internal=True))


def name_pages(app, doctree, docname):
    """A link whose text is the name of a file, as on GitHub, gets the title of the page instead."""
    for link in doctree.findall(nodes.reference):
        text, uri = link.astext(), link.get("refuri", "")
        if text.endswith(".md") and not re.match(r"\w+:", uri):
            path = (Path("/") / docname).parent / uri.partition("#")[0]
            title = app.env.titles.get(path.resolve().relative_to("/").with_suffix("").as_posix())
            if title is not None:
                link[:] = [nodes.inline("", "", *(child.deepcopy() for child in title.children))]


def link_lessons(app, doctree, docname):
    """ "lesson 05" leads to lesson 05, and so do the numbers of the lessons that a lesson needs."""
    pages = {path.name[:2]: f"lessons/{path.stem}" for path in LESSONS.glob("[0-9]*.py")}
    for text in list(doctree.findall(nodes.Text)):
        if isinstance(text.parent, nodes.paragraph | nodes.emphasis | nodes.strong | nodes.list_item):
            pattern = NUMBER if "with a pencil" in text else LESSON
            parts = [
                nodes.reference(
                    "", part, refuri=relative_uri(f"{docname}.html", f"{pages[part[-2:]]}.html"), internal=True
                )
                if i % 2 and pages.get(part[-2:], docname) != docname
                else nodes.Text(part)
                for i, part in enumerate(pattern.split(text))
                if part
            ]
            if len(parts) > 1:
                text.parent.replace(text, parts)


def html_pictures(app, doctree, docname):
    """Let pictures in HTML show the copies that Sphinx makes of all pictures."""
    here, root = Path(docname).parent, Path(app.srcdir)

    def copied(match):
        path = (root / here / match[0]).resolve().relative_to(root.resolve()).as_posix()
        name = app.env.images[path][1]
        app.builder.images[path] = name
        return relative_uri(f"{docname}.html", f"_images/{name}")

    for html in doctree.findall(nodes.raw):
        html[:] = [nodes.Text(SOURCE.sub(copied, html.astext()))]


def file_of(module):
    """The file of a module of the package, below the root."""
    path = module.replace(".", "/")
    return f"{path}/__init__.py" if (ROOT / path).is_dir() else f"{path}.py"


def source_link(domain, info):
    """Where the source of a documented object is, as seen from the pages of the reference: a hook of linkcode."""
    found = importlib.import_module(info["module"])
    for name in info["fullname"].split("."):
        found = getattr(found, name, None)
    found = inspect.unwrap(getattr(found, "fget", None) or getattr(found, "func", None) or found)
    try:
        line = inspect.getsourcelines(found)[1]
    except (OSError, TypeError):  # a constant, or made by a decorator
        line = 1
    module = getattr(found, "__module__", None) or info["module"]  # a name may be offered in another room
    return f"../../{source_page(file_of(module))}.html#line-{line}"


def source_pages(app):
    """A page for each source file that is linked to."""
    modules = app.env.get_domain("py").modules
    documented = {file_of(module) for module in modules}
    for module in map(importlib.import_module, modules):  # also where the names are defined that a room offers
        found = (getattr(getattr(module, name), "__module__", "") for name in getattr(module, "__all__", ()))
        documented |= {file_of(name) for name in found if name.startswith("minitransformer.")}
    for path in sorted(documented | getattr(app.env, "linked_sources", {}).keys()):
        text = (Path(app.srcdir) / path).read_text("utf-8")
        try:
            lexer = get_lexer_for_filename(path)
        except ClassNotFound:
            lexer = get_lexer_for_filename("a.txt")
        body = highlight(text, lexer, HtmlFormatter(linenos="inline", cssclass="highlight", lineanchors="line"))
        yield source_page(path), {"title": path, "body": f"<h1>{path}</h1>\n{body}"}, "page.html"


def whole_picture(app, doctree, docname):
    """A figure leads to the figure in its full size, unless it leads elsewhere."""
    linked = {image for link in doctree.findall(nodes.reference) for image in link.findall(nodes.image)}
    for image in list(doctree.findall(nodes.image)):
        if image not in linked and image["uri"] in app.env.images:
            name = app.env.images[image["uri"]][1]
            uri = relative_uri(f"{docname}.html", f"_images/{name}")
            link = nodes.reference("", "", refuri=uri, internal=True, classes=["figure"])
            image.replace_self(link)
            link.append(image)
