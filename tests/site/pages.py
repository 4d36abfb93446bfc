"""What the tests look for in a page of the site."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"src", "srcset", "poster", "data"}  # attributes whose files a browser loads
SILENT = {"script", "style"}
VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}


class Page(HTMLParser):
    """A page: its ids, links, loaded files, frames, images, folds and text."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.path = path
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.frames: list[dict[str, str]] = []
        self.images: list[dict[str, str]] = []
        self.folds: list[str] = []  # their classes
        self.folded: list[str] = []  # the text in them
        self.parts: list[str] = []
        self.open: list[str] = []
        self.feed(path.read_text("utf-8"))

    @property
    def text(self) -> str:
        """All text, as it stands."""
        return "".join(self.parts)

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        if tag not in VOID:
            self.open.append(tag)
        if "id" in attributes:
            self.ids.add(attributes["id"])
        if tag == "img":
            self.images.append(attributes)
        if tag == "iframe":
            self.frames.append(attributes)
        if tag == "details":
            self.folds.append(attributes.get("class", ""))
        if "href" in attributes:
            is_load = tag == "link" and attributes.get("rel") in ("stylesheet", "shortcut icon", "prefetch", "preload")
            (self.loads if is_load else self.links).append(attributes["href"])
        self.loads += [attributes[name] for name in LOADED & attributes.keys()]

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data):
        if not SILENT & set(self.open[-1:]):
            self.parts.append(data)
            if "details" in self.open:
                self.folded.append(data)


def is_foreign(link: str) -> bool:
    """Whether a link leaves the site."""
    parts = urlsplit(link)
    return bool(parts.scheme or parts.netloc) and parts.scheme != "data"


def dead(link: str, page: Page, pages: dict[Path, Page]) -> bool:
    """Whether a link of a page leads to no file, or to no place in a page; the explorer reads its fragment itself."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
    target = target / "index.html" if target.is_dir() else target
    fragment = unquote(parts.fragment)
    return not target.is_file() or bool(fragment and target in pages and fragment not in pages[target].ids)


def foreign_addresses(style: str) -> list[str]:
    """The addresses of other hosts that a style sheet loads."""
    return re.findall(r"""(?:url\(|@import\s+)\s*["']?((?:https?:)?//[^"')\s]+)""", style)
