"""Every link to a file of this project leads to a file that a clone has."""

import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
FENCED = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)


def files_of_a_clone():
    """The files that git tracks, or is about to: those that it does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return {ROOT / name for name in listed.splitlines() if (ROOT / name).exists()}


def links_in(text):
    """The targets of all links outside code blocks, without those to the web."""
    links = ("".join(found) for found in LINK.findall(FENCED.sub("", text)))
    return [link for link in links if not re.match(r"[a-z]+:", link)]


def anchors_in(text):
    """The anchors that a page's headings get on the web."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", text), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def is_alive(link, page, files):
    """Whether a link of a page leads to a file, to a folder with files, or to a heading of a page."""
    path, _, anchor = unquote(link).partition("#")
    target = (page.parent / path).resolve() if path else page
    if anchor:
        return target in files and anchor in anchors_in(target.read_text("utf-8"))
    return target in files or any(target in file.parents for file in files)


def dead_links(page, files):
    """The links of a page that lead nowhere."""
    return [link for link in links_in(page.read_text("utf-8")) if not is_alive(link, page, files)]


def test_no_page_has_a_dead_link():
    files = files_of_a_clone()
    pages = sorted(file for file in files if file.suffix == ".md")
    assert ROOT / "README.md" in pages
    dead = [f"{page.relative_to(ROOT)}: {link}" for page in pages for link in dead_links(page, files)]
    assert not dead, "\n".join(["", *dead])
