"""The explorer opens everywhere, is operated with any device, and shows the same for the same address."""

import shutil

import pytest

from tests.browser.explorer import (
    CELL,
    FINISH,
    FOLDER,
    UNFOLD,
    VIEWS,
    address,
    chosen,
    drawn,
    needs_axe,
    open_explorer,
    read_by_everybody,
    show,
    type_into,
    weekly,
)

pytestmark = pytest.mark.exhaustive
LONG_WORD = "word=stopstop&answer=potspots&padding=3&smoothing=0.1"
EDITED = "edits=cross.s:6:0.5,cross.allowed:2:-1"
WITH_SETTINGS = [view for view in VIEWS if view not in ("home", "tour")]

# A gradient of 0, a cell under a mask, and one of each other sort
CELLS = ["decoder.ffn.da[0,5]", "decoder.self.p[0,0,3]", "E[3,1]", "output.loss[1]", "cross.allowed[0,0]"]
TRAINED = ["view=model&steps=10&weights=untrained", "view=compare&compare=E"]
STATES = [*(f"view={view}" for view in VIEWS), f"{CELL}&{LONG_WORD}&{EDITED}"]


def test_folder_is_smaller_than_a_megabyte():
    assert sum(file.stat().st_size for file in FOLDER.rglob("*")) < 1e6


@pytest.mark.parametrize("state", [*STATES, *weekly(TRAINED)])
def test_state_is_loaded_at_once_and_can_be_read_and_operated_by_everybody(page, state):
    """From a server in the light, from a file in the dark: at every width, with the keyboard, and by axe's rules."""
    open_explorer(page, state, over="http", reload=True, width=1440)
    assert page.script("return performance.getEntriesByName('ready').length") == 1
    asked_for = page.script("return document.querySelectorAll('script[src], link[rel=stylesheet]').length")
    assert page.requests() == 1 + asked_for
    current = "return document.querySelector('header nav [aria-current]').innerText === Strings.views[App.state.view]"
    assert page.script(current)
    read_by_everybody(page, least_stops=10)


@needs_axe
def test_axe_finds_nothing_serious_in_any_sort_of_cell(page):
    open_explorer(page, CELL, width=1440)
    for cell in CELLS:
        show(page, f"view=cell&cell={cell}")
        page.script(UNFOLD)
        page.settle()
        assert page.axe() == [], cell


@needs_axe
def test_axe_finds_nothing_serious_with_a_mistake_and_a_refused_word(page):
    open_explorer(page, f"{CELL}&mistake=residual-forgotten", dark=True, width=360)
    type_into(page, "word", "xyz")
    assert page.axe() == []


# Each number that is drawn, the color behind it and its width: [contrast, what exceeds its cell]
SPY = """
const drawn = [], {fillText} = CanvasRenderingContext2D.prototype;
const parts = (color) => color.startsWith("#") ? [1, 3, 5].map(at => parseInt(color.slice(at, at + 2), 16)) : null;
const linear = (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
CanvasRenderingContext2D.prototype.fillText = function (text, x, y, most) {
  const scale = this.getTransform().a;
  const width = Math.min(this.measureText(text).width, most ?? Infinity);
  const from = x - (this.textAlign === "center" ? width / 2 : this.textAlign === "right" ? width : 0);
  if (/\\d/.test(text) && this.textAlign === "center") {
    const {data} = this.getImageData(from * scale, (y - 4) * scale, Math.max(1, width * scale), 8 * scale);
    const ratios = [];
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3] < 255) continue; // labels beside the cells stand on the page
      const [a, b] = [light(data.slice(at, at + 3)), light(parts(this.fillStyle))];
      ratios.push((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
    }
    if (ratios.length) drawn.push([text, Math.min(...ratios), from, from + width]);
  }
  fillText.call(this, text, x, y, most);
};
App.set({mistake: "no-scale"});
App.set({mistake: ""});
Object.assign(CanvasRenderingContext2D.prototype, {fillText});
return drawn;
"""


@pytest.mark.parametrize(("width", "dark"), [(360, True), pytest.param(1440, False, marks=pytest.mark.weekly)])
def test_numbers_on_heat_maps_can_be_read(page, width, dark):
    open_explorer(page, "view=cell", dark=dark, width=width)
    counted = 0
    for place in ("cross.s", "cross.W_q", "decoder.norm1.x", "output.z", "E", "encoder.ffn.W_1"):
        show(page, f"view=cell&cell={place}")
        numbers = page.script(SPY)
        counted += len(numbers)
        assert [number for number in numbers if number[1] < 4.49] == []
        assert max(end - start for _, _, start, end in numbers) <= 42
    assert counted > 1000


# --- the keyboard ---


def test_skip_link_is_first_and_leads_to_the_content(page):
    open_explorer(page, "view=cell")
    page.press("TAB")
    assert page.script("return document.activeElement.innerText === Strings.skip")
    page.press("ENTER")
    assert page.script("return document.activeElement.id") == "content"


def focus_map(page, array):
    """Press Tab until the focus is on the heat map of an array."""
    for _ in range(100):
        page.press("TAB")
        if page.script("return document.activeElement.dataset.array") == array:
            return
    raise AssertionError(f"Tab does not reach {array}")


def test_arrow_keys_move_the_chosen_number_and_it_is_said(page):
    open_explorer(page, "view=cell&cell=cross.s", width=1440)
    focus_map(page, "cross.s")
    for key, cell in (
        ("ARROW_DOWN", "0,0,0"),  # the first key chooses the first number
        ("ARROW_LEFT", "0,0,0"),  # at the border it stays
        ("ARROW_UP", "0,0,0"),
        ("ARROW_RIGHT", "0,0,1"),
        ("ARROW_DOWN", "0,1,1"),
        ("ARROW_DOWN", "0,2,1"),
        ("ARROW_UP", "0,1,1"),
        ("ARROW_LEFT", "0,1,0"),
        ("END", "1,4,3"),
        ("ARROW_RIGHT", "1,4,3"),
        ("ARROW_DOWN", "1,4,3"),
        ("HOME", "0,0,0"),
    ):
        page.press(key)
        assert chosen(page) == f"cross.s[{cell}]"
        head, row, column = map(int, cell.split(","))
        value = page.script(
            "return Show.number(App.machine.data('cross.s')[arguments[0]])", (head * 5 + row) * 4 + column
        )
        place = f"cross s [head {head}, {['bos→p', 'p→o', 'o→t', 't→s', 's→eos'][row]}, {'stop'[column]}]"
        assert page.script("return document.activeElement.dataset.array") == "cross.s"
        assert page.driver.switch_to.active_element.accessible_name.startswith(f"{place}: {value}")
        assert page.text(".inspector h2") == place
        assert page.text(".inspector .result strong") == value


def test_enter_leads_from_a_map_to_the_panel_and_escape_back(page):
    open_explorer(page, "view=cell&cell=cross.s", width=1440)
    focus_map(page, "cross.s")
    page.press("ENTER")
    assert chosen(page) == "cross.s[0,0,0]"
    page.press("ENTER")
    panel = page.driver.switch_to.active_element
    assert (panel.aria_role, panel.get_attribute("class")) == ("complementary", "inspector")
    assert panel.accessible_name.startswith("cross s [head 0, bos→p, s]: ")
    page.press("TAB", "TAB", "ENTER")  # past "close" to the first number of the derivation
    assert chosen(page) == "cross.q[0,0,0]"
    assert page.script("return document.activeElement.className") == "inspector"
    page.press("ESCAPE")
    assert page.script("return document.activeElement.dataset.array") == "cross.q"
    assert chosen(page) == "cross.q"


def test_chosen_number_is_not_hidden_by_the_panel_of_a_narrow_page(page):
    open_explorer(page, "view=cell&cell=encoder.self.x[0,0]", width=360)
    for name in ("decoder.ffn.dW_2[7,5]", "E[6,5]", "encoder.self.x[0,0]"):
        page.script("App.select({name: arguments[0], flat: 0})", name.split("[")[0])
        page.settle()
        covered = page.script(
            "const panel = document.querySelector('.inspector').getBoundingClientRect();"
            "const map = document.querySelector(`canvas[data-array='${arguments[0]}']`).getBoundingClientRect();"
            "return map.top < 0 || map.top > panel.top - 20",
            name.split("[")[0],
        )
        assert not covered


@pytest.mark.parametrize("view", ["cell", *weekly(view for view in WITH_SETTINGS if view != "cell")])
def test_focus_stays_when_a_setting_changes(page, view):
    open_explorer(page, f"view={view}&weights=trained", width=1440)
    for field, keys, change in (
        ("word", ["END", "s", "ENTER"], "word=stops"),
        ("answer", ["END", "t", "ENTER"], "answer=spotst"),
        ("weights", ["ARROW_DOWN"], "weights=untrained"),
    ):
        page.script("document.querySelector(arguments[0]).focus()", f"[data-focus={field}]")
        page.press(*keys)
        page.settle()
        assert change in address(page)
        assert page.script("return document.activeElement.dataset.focus") == field


def test_tab_or_a_click_after_typing_is_not_lost(page):
    open_explorer(page, "view=model")
    page.script("document.querySelector('[data-focus=word]').focus()")
    page.press("END", "s", "TAB")
    page.settle()
    assert "word=stops" in address(page)
    assert page.script("return document.activeElement.dataset.focus") == "answer"
    page.script("document.querySelector('[data-focus=word]').focus()")
    page.press("END", "t")
    page.click(f"header nav a:nth-child({VIEWS.index('cell') + 1})")
    page.settle()
    assert address(page).startswith("view=cell&word=stopst")


@pytest.mark.parametrize(
    ("state", "selector"),
    [
        ("view=model", "a.box"),
        ("view=cell&" + EDITED, ".status button:not([disabled])"),
        (CELL, ".inspector .close"),
        (CELL, ".inspector button.number"),
        (CELL, "header nav a:not([aria-current])"),
    ],
)
def test_focus_is_not_lost_when_its_element_goes(page, state, selector):
    open_explorer(page, state, width=1440)
    before = address(page)
    page.script("document.querySelector(arguments[0]).focus()", selector)
    page.press("ENTER")
    page.settle()
    assert address(page) != before
    assert page.script("return document.activeElement !== document.body && document.activeElement.isConnected")


def test_change_of_the_loss_is_said_by_a_line_that_stays(page):
    open_explorer(page)
    page.script("window.line = document.querySelector('[role=status]')")
    before = page.text("[role=status]")
    page.script("App.set({word: 'tops'})")
    assert page.script("return window.line.isConnected && window.line === document.querySelector('[role=status]')")
    assert page.text("[role=status]") != before


# --- the address ---

ROUND_TRIPS = [
    "",
    f"{CELL}&word=tops&{EDITED}",
    "view=cell&cell=output.p_star[0,2]&smoothing=0.1&padding=2",
    f"view=cell&cell=dE[3,1]&{LONG_WORD}&weights=untrained&steps=3",
    f"{CELL}&mistake=softmax-entry-by-entry",
    *weekly(f"view={view}&word=pots&steps=2" for view in VIEWS if view != "cell"),
]
FILLED_IN = """
const done = arguments[0];
const waits = (element) => element.innerText === Strings.break.running;
(function look() {
  const missing = [...document.querySelectorAll(".detectors .head span")].some(waits);
  if (missing || document.querySelector(".witnesses output:empty")) setTimeout(look, 20);
  else done();
})();
"""
SHOWN = (
    FINISH
    + """
return [document.title, document.body.innerText,
  [...document.querySelectorAll("input, select")].map(field => [field.value, field.checked]),
  [...document.querySelectorAll("canvas")].map(canvas => canvas.toDataURL()), App.machine.loss, App.state];
"""
)


def shown_on(page):
    """Everything that is shown, once the tests of a mistake and the witnesses of a gradient have been filled in."""
    page.wait(FILLED_IN)
    return page.script(SHOWN)


@pytest.mark.parametrize("state", ROUND_TRIPS)
def test_address_says_what_is_shown(page, state):
    open_explorer(page, state, width=1440)
    shown = shown_on(page)
    page.reload()
    assert shown_on(page) == shown
    written = page.script("return App.link()")
    show(page, "view=cell&cell=E[0,0]&word=sos&padding=1&weights=untrained&edits=PE:0:1&steps=1")
    page.go(f"index.html{written}")
    assert shown_on(page) == shown


def test_back_and_forward_return_to_the_views(page):
    open_explorer(page, f"view={VIEWS[0]}", width=1440)
    visited = []
    for view in VIEWS[1:] + VIEWS[:1]:
        page.click(f"header nav a:nth-child({VIEWS.index(view) + 1})")
        visited.append((view, shown_on(page)))
    page.driver.back()
    for n, (view, shown) in reversed(list(enumerate(visited[:-1]))):
        page.settle()
        assert page.script("return App.state.view") == view
        assert shown_on(page) == shown
        if n:
            page.driver.back()
    page.driver.forward()
    page.settle()
    assert shown_on(page) == visited[1][1]


NONSENSE = [
    "view=xyz", "view=toString", "view=__proto__", "weights=toString", "weights=none", "mistake=none",
    "mistake=toString", "look=none", "view=cell&cell=nothing", "view=cell&cell=nothing[0]",
    "view=cell&cell=constructor[0]", "view=cell&cell=cross.s[9,9,9]", "view=cell&cell=cross.s[-1,0,0]",
    "view=cell&cell=cross.s[0,0]", "view=cell&cell=cross.s[0,0,0,0]", "view=cell&cell=cross.s[a,b,c]",
    "view=cell&cell=cross.s[,,]", "view=cell&cell=cross.s[", "view=cell&cell=cross.s[1.5,0,0]",
    "view=cell&cell=[0,0]", "view=cell&cell=%00%ff%", "word=xyz", "word=stopxstop", "word=stopstopstopstopstop",
    "word=%20", "answer=1", "word=\U0001f600", "padding=99", "padding=-3", "padding=NaN", "padding=1e400",
    "smoothing=lots", "steps=1e9&weights=trained", "steps=-5", "steps=1.5", "steps=NaN", "edits=abc", "edits=cross.s",
    "edits=cross.s:0", "edits=cross.s:0:abc", "edits=cross.s:99999:1", "edits=cross.s:-1:1", "edits=cross.s:0.5:1",
    "edits=cross.s:0:1e400", "edits=nothing:0:1", "edits=source.ids:0:100", "edits=source.ids:0:0.5",
    "edits=constructor:0:1", "edits=:::,,,", "cell", "=", "&&&", "[]", "view=cell&view=model", "<b>bold</b>",
    "view=cell&cell=cross.s[0,0,0]&edits=cross.s:0:1e308,cross.s:1:-1e308,E:3:1e200", "edits=output.L:0:1",
    "view=cell&cell=cross.s[0,0,0]&edits=cross.allowed:0:-1,cross.allowed:1:-1,cross.allowed:2:-1,cross.allowed:3:-1",
]  # fmt: skip


CHANGES = ("1e308", "cross.allowed:0", "output.L")  # what of it are numbers to add
GO = "history.replaceState(null, '', `#${arguments[0]}`); dispatchEvent(new PopStateEvent('popstate'))"
SAID = """
return [document.querySelector("main h1").innerText, document.querySelector("[role=status]").innerText,
  App.state.view, App.state.steps, document.body.innerText];
"""


def test_nonsense_in_the_address_shows_the_page(page):
    open_explorer(page, NONSENSE[0], reload=True)
    everywhere = "cell=cross.s[9,9,9]&edits=nothing:0:1,cross.s:99999:1&steps=2&word=x&padding=9"
    for state in [*NONSENSE, *(f"view={view}&{everywhere}" for view in VIEWS)]:
        page.script(GO, state)
        drawn(page)
        heading, status, view, steps, text = page.script(SAID)
        assert heading, state
        assert "Loss " in status, state
        assert ("by hand" in status) == any(each in state for each in CHANGES), state
        assert view in VIEWS, state
        assert steps <= 100, state
        assert "undefined" not in text, state


# --- texts, motion, paper ---

# every text of strings.js between marks, and what a function of it makes, too
MARKED = """
const mark = (value) => {
  if (typeof value === "string") return /^\\d\\d_/.test(value) ? value : `\\u27e6${value}\\u27e7`; // but lessons' files
  if (typeof value === "function") return (...parts) => mark(value(...parts));
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, mark(part)]));
};
const {language, ...marked} = Strings;
Object.assign(Strings, mark(marked), {title: (name) => mark(marked.title(name))});
"""

# the words of all texts that are outside of marks, with the text that they stand in
UNMARKED = """
const known = new Set(["exp", "log", "max", "sum", "ReLU", "last", "NaN"]);
const learn = (text) => text.match(/[\\p{L}\\p{M}]+/gu)?.forEach(word => known.add(word));
for (const {name, place, symbol} of App.machine.arrays.values()) {
  const {text, sub} = Show.symbol(symbol);
  [name, place.name, symbol, Show.nameText(name), text, sub ?? ""].forEach(learn);
}
[...MODEL.tokens, App.title()].forEach(learn);
const found = [];
const check = (text, formula) => {
  let rest = text;
  while (rest !== (rest = rest.replace(/\\u27e6[^\\u27e6\\u27e7]*\\u27e7/g, " ")));
  for (const word of rest.match(/[\\p{L}\\p{M}]{2,}/gu) ?? [])
    if (!known.has(word) && !(formula && /^[htidcfwjgCHDFVTS]+$/.test(word))) found.push(`${word} in ${text}`);
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const parent = walker.currentNode.parentElement;
  if (!parent.closest("script")) check(walker.currentNode.data, parent.closest(".formula, .derivation"));
}
for (const element of document.querySelectorAll("*"))
  for (const name of ["aria-label", "aria-roledescription", "title", "alt", "placeholder"])
    if (element.hasAttribute(name)) check(element.getAttribute(name), false);
check(document.title, false);
return [...new Set(found)];
"""


def test_every_text_can_be_translated(page, tmp_path):
    folder = shutil.copytree(FOLDER, tmp_path / "page")
    with (folder / "strings.js").open("a", encoding="utf-8") as file:
        file.write(MARKED)
    open_explorer(page, folder=folder, width=1440)
    for state in (*STATES, *TRAINED, *(f"view=cell&cell={cell}" for cell in CELLS), f"{CELL}&mistake=no-scale&steps=2"):
        show(page, state)
        page.script(UNFOLD)
        page.settle()
        assert "\u27e6" in page.text(), state
        assert page.script(UNMARKED) == [], state


MOVING = """
const moves = ({animationDuration, transitionDuration, transitionDelay, scrollBehavior}) => scrollBehavior === "smooth"
  || `${animationDuration} ${transitionDuration} ${transitionDelay}`.match(/[\\d.]+/g).some(Number);
const moving = (element) => [null, "::before", "::after"].some(part => moves(getComputedStyle(element, part)));
return [...document.querySelectorAll("*")].filter(moving).map(({outerHTML}) => outerHTML.slice(0, 80));
"""


def test_nothing_moves_if_motion_is_not_wanted(page):
    open_explorer(page, reduced_motion=True)
    for view in VIEWS:
        show(page, f"view={view}&cell=cross.ds[0,1,2]&steps=2")
        assert page.script(MOVING) == []
        assert page.script("return document.getAnimations().length") == 0
