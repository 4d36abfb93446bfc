"""The explorer's page for the tests: its folder and views, how a test opens a state, and what every state keeps."""

import re

import pytest

from minitransformer.explorer import page_folder
from tests.browser.chromium import NEEDS_AXE, axe_script
from tests.browser.page import ABOUT_COLORS

FOLDER = page_folder()
VIEWS = re.findall(
    r"(\w+): ", re.search(r"\n  views: \{(.*?)\}", (FOLDER / "strings.js").read_text("utf-8"), re.DOTALL)[1]
)
CELL = "view=cell&cell=cross.ds[0,1,2]"
UNFOLD = "document.querySelectorAll('details').forEach(details => { details.open = true })"
ONE_OF_EACH_KIND = """
const oneOfEachKind = () => { // the arrays of the first attention, the first norm, and so on
  const arrays = [...App.machine.arrays.values()];
  const places = new Map([...arrays].reverse().map(({place}) => [place.kind, place.name]));
  return arrays.filter(({place}) => places.get(place.kind) === place.name).map(({name}) => name);
};
"""
STILL = "document.dispatchEvent(new Event('pointermove'));"  # somebody is there: the first view stops moving
FINISH = f"{STILL} document.getAnimations().forEach(animation => animation.finish());"
needs_axe = pytest.mark.skipif(not axe_script(), reason=NEEDS_AXE)


def weekly(values):
    """These parameters of a test in the weekly run alone: the others are enough to notice what breaks all of them."""
    return [pytest.param(value, marks=pytest.mark.weekly) for value in values]


def open_explorer(page, state="", folder=FOLDER, *, reload=False, over="file", alone=False, **look):
    """Show a state; `reload` loads the page, for a test that depends on more than the state or changes more.

    `alone`: no pointer comes, and the first view touches its letters by itself.
    """
    if reload or page.opened != (folder, over):
        page.open(folder, f"index.html#{state}", over=over, **look)
    else:
        page.visit(state, **look)
    if reload:
        page.opened = None
    drawn(page)
    if not alone:
        page.script(STILL)


def show(page, state):
    """Go to another state of the page that is open, as a link does: faster than opening it, and nothing is loaded."""
    page.go(f"index.html#{state}")
    drawn(page)


def drawn(page):
    """Wait until the page has computed and drawn its state; many steps of Adam and the witnesses take it a while."""
    until(
        page,
        "document.querySelector('main h1') && !document.querySelector('#working, .witnesses output:empty')"
        " && document.getElementById('loading')?.textContent !== Strings.models.loading",
    )


def until(page, condition):
    """Wait until a condition of the page holds."""
    page.wait(f"const [done] = arguments; (function look() {{ ({condition}) ? done() : setTimeout(look, 20) }})()")


def read_by_everybody(page, widths=(320, 360, 768, 1440), least_stops=1):
    """Each Tab stop has a name and a visible focus, the page fits each width and follows the colors, and axe agrees."""
    stops = page.tab_stops()
    assert len(stops) >= least_stops
    assert [stop.element for stop in stops if not (stop.name and stop.visible)] == []
    for width in widths:
        page.resize(width)
        page.settle()
        page.script(UNFOLD)
        page.settle()
        assert page.overflow() == [], width
    for dark in (False, True):
        page.prefer(dark)
        page.settle()
        page.script(FINISH)
        assert page.lightness() < 0.3 if dark else page.lightness() > 0.7
        if axe_script():
            assert (page.axe(ABOUT_COLORS) if dark else page.axe()) == [], dark
    assert "undefined" not in page.text()


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


def number(page, value):
    """A number as the page writes it."""
    return page.script("return Show.number(arguments[0])", value)


def count(page, selector):
    """How many elements there are."""
    return page.script("return document.querySelectorAll(arguments[0]).length", selector)
