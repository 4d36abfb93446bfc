"""The explorer's page for the tests: its folder, its views, and how a test opens a state of it."""

import re

from minitransformer.explorer import page_folder

FOLDER = page_folder()
VIEWS = re.findall(
    r"(\w+): ", re.search(r"\n  views: \{(.*?)\}", (FOLDER / "strings.js").read_text("utf-8"), re.DOTALL)[1]
)
CELL = "view=cell&cell=cross.ds[0,1,2]"
UNFOLD = "document.querySelectorAll('details').forEach(details => { details.open = true })"


def open_explorer(page, state="", folder=FOLDER, **options):
    page.open(folder, f"index.html#{state}", **options)
    drawn(page)


def drawn(page):
    """Wait until the page has computed and drawn its state; many steps of Adam and the witnesses take it a while."""
    page.wait(
        "const done = arguments[0];"
        "const isDone = () => document.querySelector('main h1') && !document.querySelector('.witnesses output:empty');"
        "(function look() { isDone() ? done() : setTimeout(look, 20); })()"
    )


def address(page):
    """The state in the URL."""
    return page.script("return decodeURIComponent(location.hash.slice(1))")


def chosen(page):
    """The chosen cell, as it stands in the URL."""
    return re.search(r"cell=(\S+?)(&|$)", address(page).replace("view=cell", ""))[1]


def type_into(page, field, text):
    """Replace the text of a field, and press Enter."""
    page.script("const f = document.querySelector(arguments[0]); f.focus(); f.select()", f"[data-focus={field}]")
    page.press("BACKSPACE", *text, "ENTER")
    page.settle()
