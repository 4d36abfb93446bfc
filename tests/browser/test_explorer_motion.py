"""What changes is drawn where it is: elements stay, and pictures show what the page shows after a reload."""

import pytest

from tests.browser.explorer import open_explorer

pytestmark = pytest.mark.exhaustive
KEEP = "window.kept = [...document.querySelectorAll('main canvas, header, .inputs, footer, .places, .place')]"
ALL_STAY = "return kept.length > 0 && kept.every(element => element.isConnected)"
PICTURES = "return [...document.querySelectorAll('main canvas')].map(canvas => canvas.toDataURL())"
PAINTED = """
const {fillRect} = CanvasRenderingContext2D.prototype;
window.painted = 0;
CanvasRenderingContext2D.prototype.fillRect = function (...box) { painted++; fillRect.apply(this, box); };
"""


def test_arrow_key_keeps_all_maps_and_paints_no_number_again(page):
    open_explorer(page, "view=cell&cell=cross.s", width=1440)
    page.script("document.querySelector(`canvas[data-array='cross.s']`).focus()")
    page.script(KEEP.replace("header, ", ""))  # the links of the header hold the chosen cell
    page.script(PAINTED)
    page.press("ARROW_RIGHT", "ARROW_RIGHT", "ARROW_DOWN")
    assert page.script("return App.state.cell") == "cross.s[0,1,1]"
    assert page.script(ALL_STAY)
    assert page.script("return painted") == 0
    assert page.script("return document.activeElement.dataset.array") == "cross.s"
    moved = page.script(PICTURES)
    page.reload()
    assert page.script(PICTURES) == moved


@pytest.mark.parametrize("view", ["model", "cell"])
@pytest.mark.parametrize(
    "change",
    ["{edits: 'cross.s:3:2'}", "{steps: 3}", "{word: 'tops'}", "{weights: 'untrained'}", "{lr: 0.1, steps: 1}"],
)
def test_other_numbers_are_painted_into_the_same_maps(page, view, change):
    open_explorer(page, f"view={view}&cell=cross.s[0,0,3]", width=1440)
    page.script("window.kept = [...document.querySelectorAll('main canvas')]")
    before = page.script(PICTURES)
    page.script(f"App.set({change})")
    assert page.script(ALL_STAY)
    text, pictures = page.text("main"), page.script(PICTURES)
    links = page.script("return [...document.querySelectorAll('main a')].map(a => a.href)")
    assert pictures != before
    page.reload()
    assert (page.text("main"), page.script(PICTURES)) == (text, pictures)
    assert page.script("return [...document.querySelectorAll('main a')].map(a => a.href)") == links


@pytest.mark.parametrize("change", ["{show: 'values'}", "{mistake: 'no-scale'}", "{word: 'to'}", "{padding: 1}"])
@pytest.mark.parametrize("view", ["model", "cell"])
def test_other_arrays_or_formulas_are_drawn_anew(page, view, change):
    open_explorer(page, f"view={view}&cell=cross.s[0,0,0]", width=1440)
    page.script(f"App.set({change})")
    text, pictures = page.text("main"), page.script(PICTURES)
    page.reload()
    assert (page.text("main"), page.script(PICTURES)) == (text, pictures)


def test_chosen_number_is_told_to_a_screen_reader_though_the_map_stays(page):
    open_explorer(page, "view=cell&cell=cross.s", width=1440)
    page.script("window.line = document.querySelector('main output.unseen')")
    page.script("App.set({cell: 'cross.s[1,2,3]'})")
    assert page.script("return line.isConnected && line.textContent").startswith("cross s [head 1, o→t, p]: ")
