"""What changes is drawn where it is: elements stay, and pictures show what the page shows after a reload."""

import pytest

from tests.browser.explorer import address, drawn, open_explorer, until, weekly

pytestmark = pytest.mark.exhaustive
KEEP = "window.kept = [...document.querySelectorAll('main canvas, header, .inputs, footer, .places, .place')]"
ALL_STAY = "return kept.length > 0 && kept.every(element => element.isConnected)"
PICTURES = "return [...document.querySelectorAll('main canvas')].map(canvas => canvas.toDataURL())"
HREFS = "return [...document.querySelectorAll('main a')].map(a => a.href)"
OTHER_ARRAYS = ("{show: 'values'}", "{mistake: 'no-scale'}", "{padding: 1}")  # or formulas: these are drawn again
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


@pytest.mark.parametrize("view", ["cell", *weekly(["model"])])
def test_what_changes_is_painted_as_on_a_new_page_and_other_numbers_into_the_same_maps(page, view):
    for change in ("{edits: 'cross.s:3:2'}", "{steps: 3}", "{word: 'tops'}", *OTHER_ARRAYS):
        open_explorer(page, f"view={view}&cell=cross.s[0,0,3]", width=1440)
        page.script("window.kept = [...document.querySelectorAll('main canvas')]")
        before = page.script(PICTURES)
        page.script(f"App.set({change})")
        drawn(page)
        assert change in OTHER_ARRAYS or page.script(ALL_STAY)
        shown = page.text("main"), page.script(PICTURES), page.script(HREFS)
        assert shown[1] != before
        open_explorer(page, address(page), width=1440)
        assert (page.text("main"), page.script(PICTURES), page.script(HREFS)) == shown


def test_chosen_number_is_told_to_a_screen_reader_though_the_map_stays(page):
    open_explorer(page, "view=cell&cell=cross.s", width=1440)
    page.script("window.line = document.querySelector('main output.unseen')")
    page.script("App.set({cell: 'cross.s[1,2,3]'})")
    assert page.script("return line.isConnected && line.textContent").startswith("cross s [head 1, o→t, p]: ")


# --- the model runs upwards ---

CENTERS = """
return [...document.querySelectorAll(".stack")].map(stack => [...stack.querySelectorAll(".box")].map(box => {
  const {left, top, height} = box.getBoundingClientRect();
  return [box.dataset.place ?? "loss", top + height / 2, left];
}));
"""


@pytest.mark.parametrize("width", [360, 1440])
def test_forward_runs_upwards_though_the_elements_are_in_the_order_of_the_computation(page, width):
    open_explorer(page, "view=model", width=width)
    stacks = page.script(CENTERS)
    names = [name for stack in stacks for name, _, _ in stack]
    assert names == [*page.script("return App.machine.places.map(place => place.name).filter(Boolean)"), "loss"]
    for stack in stacks:
        heights = [height for _, height, _ in stack]
        assert heights == sorted(heights, reverse=True)
    (first, second) = ([stack[0][2], stack[0][1], stack[-1][1]] for stack in stacks)
    if width < 700:  # the decoder goes on where the encoder ends
        assert second[1] < first[2]
    else:
        assert first[0] < second[0]
        assert first[1] == pytest.approx(second[1], abs=10)


# --- the play bar ---

STEP = """
const bar = document.querySelector(".play"), pale = document.querySelectorAll(".stacks .pale");
return {name: bar.querySelector("output a")?.dataset.cell, box: document.querySelector(".box.now")?.dataset.place,
  pale: [...pale].map(({dataset}) => dataset.array), slider: Number(bar.querySelector("input").value),
  formula: bar.querySelector("math")?.textContent, kind: document.querySelector(".box.now")?.className,
  picture: bar.querySelector("canvas")?.dataset.array};
"""
NAMES = "return App.machine.definitions.map(({name}) => name)"


def focus_slider(page):
    page.script("document.querySelector('.play input').focus()")


def test_steps_are_the_arrays_in_the_order_in_which_they_are_computed(page):
    open_explorer(page, "view=model", reload=True, width=1440)
    names = page.script(NAMES)
    drawn = page.script("return [...document.querySelectorAll('.stacks [data-array]')].map(part => part.dataset.array)")
    focus_slider(page)
    page.press("HOME")
    assert page.script(STEP)["pale"] == drawn
    for n, name in enumerate(names):
        step = page.script("document.querySelector('.play .forward').click();" + STEP)
        assert (step["name"], step["picture"], step["slider"]) == (name, name, n + 1)
        assert set(step["pale"]) == set(drawn) & set(names[n + 1 :])
        place, _, symbol = name.rpartition(".")
        assert step["box"] == (place or None)
        if place:
            assert set(step["kind"].split()) == {"box", "now", "gradient" if symbol.startswith("d") else "value"}
    assert step["pale"] == []
    for show, phase in (("values", "forward"), ("gradients", "backward")):
        page.script("App.set({show: arguments[0]})", show)
        played = page.script(f"return App.machine.definitions.filter(d => d.phase === '{phase}').map(d => d.name)")
        focus_slider(page)
        page.press("HOME", "ARROW_RIGHT")
        assert page.script(STEP)["name"] == played[0]
        assert page.script("return Number(document.querySelector('.play input').max)") == len(played)


def test_playing_shows_one_array_after_the_other_and_changes_no_state(page):
    open_explorer(page, "view=model", reload=True, width=1440)
    page.script("window.kept = [...document.querySelectorAll('main canvas, main a, .play button')]")
    before = page.script("return [location.href, history.length, JSON.stringify(App.state)]")
    page.script(
        "window.seen = [];"
        "new MutationObserver(() => seen.push(document.querySelector('.play output a')?.dataset.cell))"
        ".observe(document.querySelector('.play output'), {childList: true})"
    )
    page.script("const speed = document.querySelector('.play select'); speed.value = '30';")
    page.script("document.querySelector('.play select').dispatchEvent(new Event('change'))")
    focus_slider(page)
    page.press("SPACE")
    until(page, "seen.length > 12")
    page.press("SPACE")
    seen = page.script("return seen.filter(Boolean)")
    assert [name for n, name in enumerate(seen) if n == 0 or name != seen[n - 1]] == page.script(NAMES)[
        : len(set(seen))
    ]
    at = page.script(STEP)["slider"]
    page.wait("setTimeout(arguments[0], 150)")
    assert page.script(STEP)["slider"] == at  # it has stopped
    assert page.script(ALL_STAY)
    assert page.script("return [location.href, history.length, JSON.stringify(App.state)]") == before


def test_keys_step_play_and_pause(page):
    open_explorer(page, "view=model", reload=True, width=1440)
    page.script("document.querySelector('.play .back').focus()")
    for key, slider in (("ENTER", 189), ("ARROW_LEFT", 188), ("ARROW_LEFT", 187), ("ARROW_RIGHT", 188)):
        page.press(key)
        assert page.script(STEP)["slider"] == slider
    focus_slider(page)
    page.press("HOME", "ARROW_RIGHT", "ARROW_RIGHT")
    assert page.script(STEP)["name"] == page.script(NAMES)[1]
    label = "return document.querySelector('.play .start').textContent"
    page.press("SPACE")
    assert page.script(label) == "pause"
    page.press("ARROW_LEFT")  # stepping ends the playing
    assert page.script(label) == "play"


def test_nothing_plays_by_itself_if_motion_is_not_wanted(page):
    open_explorer(page, "view=model", reload=True, width=1440, reduced_motion=True)
    assert page.script("return document.querySelectorAll('.play .start, .play select').length") == 0
    focus_slider(page)
    page.press("HOME", "SPACE")
    page.wait("setTimeout(arguments[0], 400)")
    assert page.script(STEP)["slider"] == 0
    page.press("ARROW_RIGHT")
    assert page.script(STEP)["name"] == page.script(NAMES)[0]


@pytest.mark.parametrize("width", [360, 1440])
def test_array_of_the_step_is_to_be_seen_below_the_bar(page, width):
    open_explorer(page, "view=model", reload=True, width=width, height=800)
    covered = page.script("""
        return Array.from({length: 19}, () => {
          for (let n = 0; n < 10; n++) document.querySelector(".play .forward").click();
          const box = document.querySelector(".box.now")?.getBoundingClientRect();
          return box && (box.bottom > innerHeight
            || box.top < document.querySelector(".play").getBoundingClientRect().bottom);
        }).some(Boolean);
    """)
    assert not covered
