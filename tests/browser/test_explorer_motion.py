"""What changes is drawn where it is: elements stay, and pictures show what the page shows after a reload."""

import pytest

from tests.browser.explorer import address, drawn, open_explorer, until, weekly

pytestmark = pytest.mark.exhaustive
KEEP = "window.kept = [...document.querySelectorAll('main canvas, header, .inputs, footer, .place')]"
ALL_STAY = "return kept.length > 0 && kept.every(element => element.isConnected)"
PICTURES = "return [...document.querySelectorAll('main canvas')].map(canvas => canvas.toDataURL())"
HREFS = "return [...document.querySelectorAll('main a')].map(a => a.href)"
OTHER_ARRAYS = ("{mistake: 'no-scale'}", "{padding: 1}")  # or formulas: these are drawn again
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
        assert first[1] < 900  # all of the encoder is to be seen at once


# --- the ten stops ---

STOP = """
const bar = document.querySelector(".play"), data = (list, name) => [...list].map(({dataset}) => dataset[name]);
return {said: bar.querySelector("output").innerText, pale: data(document.querySelectorAll(".stacks .pale"), "array"),
  now: data(document.querySelectorAll(".stacks .box.now"), "place"),
  kinds: [...new Set([...document.querySelectorAll(".stacks .box.now")].map(({className}) => className))],
  listed: [...document.querySelectorAll(".stops li")].findIndex(item => item.ariaCurrent === "step")};
"""
DRAWN = "return [...document.querySelectorAll('.stacks [data-array]')].map(part => part.dataset.array)"
FORWARD = "return App.machine.definitions.filter(({phase}) => phase === 'forward').map(({name}) => name)"
PLACES = [
    {"source"}, {"encoder.self", "encoder.norm1"}, {"encoder.ffn", "encoder.norm2"},
    {"target", "decoder.self", "decoder.norm1"}, {"cross", "decoder.norm2"}, {"decoder.ffn", "decoder.norm3"},
    {"output"}, {"output", "decoder.norm3", "decoder.ffn", "decoder.norm2"},
    {"cross", "decoder.norm1", "decoder.self", "target"},
    {"encoder.norm2", "encoder.ffn", "encoder.norm1", "encoder.self", "source"},
]  # fmt: skip
FAST = "const every = window.setInterval; window.setInterval = (act) => every(act, 60);"


def test_ten_stops_go_through_the_computation_and_say_what_happens(page):
    open_explorer(page, "view=model", reload=True, width=1440)
    drawn, forward = page.script(DRAWN), page.script(FORWARD)
    said = set()
    page.script("document.querySelector('.play .forward').focus()")
    for n, places in enumerate(PLACES):
        page.press("ENTER")
        stop = page.script(STOP)
        assert (set(stop["now"]), stop["listed"]) == (places, n)
        assert set(stop["kinds"][0].split()) == {"box", "now", "value" if n < 7 else "gradient"}
        assert stop["said"].startswith(f"{n + 1}. ")
        said.add(stop["said"])
        later = {place for after in PLACES[n + 1 : 7] for place in after}
        waiting = {name for name in drawn if name in forward and name.rpartition(".")[0] in later}
        assert {name for name in stop["pale"] if name in forward and "." in name} == waiting
        assert n < 7 or not set(stop["pale"]) & set(forward)
    assert len(said) == 10
    assert stop["pale"] == []


def test_playing_goes_from_stop_to_stop_and_changes_no_state(page):
    open_explorer(page, "view=model", reload=True, width=1440)
    page.script("window.kept = [...document.querySelectorAll('main canvas, main a, .play button')]")
    before = page.script("return [location.href, history.length, JSON.stringify(App.state)]")
    page.script(FAST)
    page.click(".play .start")
    until(page, "document.querySelector('.play .start').textContent === Strings.play.play")
    assert page.script(STOP)["listed"] == 9  # it ends at the last one
    assert page.script(ALL_STAY)
    assert page.script("return [location.href, history.length, JSON.stringify(App.state)]") == before


def test_keys_step_play_and_pause(page):
    open_explorer(page, "view=model", reload=True, width=1440)
    page.script("document.querySelector('.play .back').focus()")
    for key, listed in (("ENTER", 9), ("ARROW_LEFT", 8), ("ARROW_LEFT", 7), ("ARROW_RIGHT", 8)):
        page.press(key)
        assert page.script(STOP)["listed"] == listed
    label = "return document.querySelector('.play .start').textContent"
    page.script("document.querySelector('.play .start').focus()")
    page.press("ENTER")
    assert page.script(label) == "pause"
    page.press("ARROW_LEFT")  # stepping ends the playing
    assert page.script(label) == "play"


def test_nothing_plays_by_itself_if_motion_is_not_wanted(page):
    open_explorer(page, "view=model", reload=True, width=1440, reduced_motion=True)
    assert page.script("return document.querySelectorAll('.play .start').length") == 0
    page.script("document.querySelector('.play .back').focus()")
    page.press("ARROW_RIGHT")
    page.wait("setTimeout(arguments[0], 400)")
    assert page.script(STOP)["listed"] == 0


@pytest.mark.parametrize("width", [360, 1440])
def test_what_a_stop_is_about_is_to_be_seen_below_the_bar(page, width):
    open_explorer(page, "view=model", reload=True, width=width, height=800)
    covered = page.script("""
        return Array.from({length: 10}, () => {
          document.querySelector(".play .forward").click();
          const box = document.querySelector(".box.now").getBoundingClientRect();
          return box.bottom > innerHeight || box.top < document.querySelector(".play").getBoundingClientRect().bottom;
        }).some(Boolean);
    """)
    assert not covered
