"""One array of the explorer inside a lesson: it answers the lesson's task, as the library does, and is small."""

import re

import numpy as np
import pytest

from docs.course_site.percent import LESSONS, TASK, read_cells
from minitransformer import functional, training
from minitransformer.example import load_example, numbers
from minitransformer.example.numbers import _Trace, by_lesson_names
from tests.browser import chromium
from tests.browser.cases import EDITED_SCORES, MISTAKES, SCORES, edit
from tests.browser.explorer import address, drawn, open_explorer, type_into

pytestmark = pytest.mark.exhaustive
needs_axe = pytest.mark.skipif(not chromium.axe_script(), reason=chromium.NEEDS_AXE)
WITH_A_TASK = "00 01 02 03 04 05 06 07 08 10 12 13 14 15 16 20 21"
USUAL = "embed=cross.ds[0,1,2]&turn=cross.s[0,1,3]"
SIZES = [(280, 526), (360, 526), (686, 326), (1200, 326)]  # of the frames on the site
TOO_LONG = {"15": 620, "16": 320}  # a task, and the width below which what follows its long formula must be scrolled to
POSITIONS = 'get["PE"][: len(ids)]'
COMPUTED = {  # an array that a task turns, and how the library adds SPOT to it; the others are weights
    "cross.s": (_Trace.attend, SCORES, EDITED_SCORES),
    "decoder.self.s": (_Trace.attend, SCORES, EDITED_SCORES),
    "target.x": (_Trace.embed, POSITIONS, f"{POSITIONS} + SPOT"),
    "output.z": (_Trace.forward, 'get["E"].T', 'get["E"].T + SPOT'),
}
WATCHED = """
const {name, flat} = App.cell(App.state.embed);
const {machine} = App;
const text = document.querySelector("main").innerText;
return {value: machine.value(name, flat ?? 0), all: [...machine.data(name)], text};
"""

CHOOSE = """
const select = document.querySelector("main select");
select.value = arguments[0];
select.dispatchEvent(new Event("change"));
"""


def tasks():
    """{number of a lesson: state of the explorer} of all tasks."""
    found = {}
    for path in sorted(LESSONS.glob("[0-9]*.py")):
        prose = [cell.source for cell in read_cells(path.read_text("utf-8")) if cell.prose]
        states = [match[3].partition("#")[2] for source in prose for match in TASK.finditer(source)]
        found |= {path.name[:2]: state for state in states}
    return found


TASKS = tasks()


def open_task(page, number, **size):
    open_explorer(page, TASKS[number], **{"width": 720, "height": 326, **size})


def watched(page):
    page.settle()
    return page.script(WATCHED)


def with_number(name, place, wanted):
    """All numbers of the library if one of them is set."""
    before = numbers(load_example())[name]
    weight = (by_lesson_names, "return found", f'found["{name}"] = found["{name}"] + SPOT\n    return found')
    flat = np.ravel_multi_index(place, before.shape)
    with edit(name, before.shape, flat, wanted - before[place], *COMPUTED.get(name, weight))[3].planted():
        return numbers(load_example())


def turn_to(page, number, *amounts):
    """Open a task and type these amounts -> the array before, and after each, by page and library."""
    found = re.findall(r"([\w.]+)\[([\d,]+)\]", TASKS[number])
    (shown, _), (turned, place) = [(name, tuple(map(int, index.split(",")))) for name, index in found]
    open_task(page, number)
    results = [numbers(load_example())[shown]]
    for amount in amounts:
        type_into(page, "exactly", str(amount))
        results.append(with_number(turned, place, amount)[shown])
        assert watched(page)["all"] == pytest.approx(list(results[-1].ravel()), abs=1e-12)
    return results


def test_each_task_is_known_and_its_arrays_exist():
    assert " ".join(TASKS) == WITH_A_TASK
    names = numbers(load_example()).keys() | {"decoder.self.allowed"}
    for state in TASKS.values():
        arrays = re.findall(r"([\w.]+)\[", state) or ["output.L"]
        assert set(arrays) <= names, state


# --- the answer of each task, by the page and by the library ---


def test_a_higher_logit_takes_probability_from_the_right_token(page):
    before, after = turn_to(page, "00", 6)
    assert (before[1, 3], after[1, 3]) == pytest.approx((0.697, 0.390), abs=5e-4)
    assert "0.390" in watched(page)["text"]


def test_gradient_is_half_where_the_doubt_is_half(page):
    z, p = (numbers(load_example())[f"output.{name}"][1, 3] for name in "zp")
    doubt = (1 - p) / 2
    half = z + np.log((1 - doubt) / doubt) - np.log(p / (1 - p))
    before, after = turn_to(page, "01", round(half, 6))
    assert after[1, 3] == pytest.approx(before[1, 3] / 2, rel=1e-6)
    assert half == pytest.approx(6.45, abs=5e-3)  # the slider has steps of 0.01


def test_unit_whose_bias_rises_opens_its_gate(page):
    assert numbers(load_example())["decoder.ffn.b_1"][0] == -0.18
    before, after = turn_to(page, "02", -0.1)
    assert before[1, 0] == 0
    assert after[1, 0] == pytest.approx(-0.0589, abs=5e-5)
    assert "−0.0589" in watched(page)["text"]


def test_gradient_of_a_logit_is_at_most_its_share(page):
    open_task(page, "03")
    page.script("document.querySelector('[type=range]').focus()")
    page.press("HOME")
    lowest = float(page.script("return document.querySelector('[type=range]').min"))
    z = numbers(load_example())["output.z"].copy()
    z[1, 3] = lowest
    _, cache = functional.cross_entropy(z, load_example().target_out[0])
    right = functional.cross_entropy_backward(1.0, cache)[1, 3]
    assert watched(page)["value"] == pytest.approx(right, abs=1e-12)
    assert right == pytest.approx(-1 / 5, abs=1e-4)
    assert "−0.200" in watched(page)["text"]


def test_the_way_in_makes_a_row_of_embeddings_longer(page):
    before, after = turn_to(page, "04", -0.15)
    assert numbers(load_example())["E"][3, 0] == -0.25
    assert after[2, 0] - before[2, 0] == pytest.approx(0.1 * 6**0.5, abs=1e-12)
    assert [tuple(cell) for cell in np.argwhere(after != before)] == [(2, 0)]


@pytest.mark.parametrize("number", ["05", "06"])
def test_a_sure_row_gets_nearly_no_gradient_right_or_wrong(page, number):
    before, after = turn_to(page, number, 8)
    assert abs(after[0, 1, 2] / before[0, 1, 2]) < 0.03


def test_row_that_may_look_ahead_gives_less_weight_to_bos(page):
    open_task(page, "07")
    assert watched(page)["value"] == pytest.approx(0.701, abs=5e-4)
    page.click("[data-focus=turn]")
    allowed = np.tril(np.ones((5, 5), dtype=bool))
    allowed[1, 2] = True
    right = numbers(load_example(), allowed={"decoder.self": allowed})["decoder.self.p"]
    assert watched(page)["all"] == pytest.approx(list(right.ravel()), abs=1e-12)
    assert right[1, 1, 0] == pytest.approx(0.351, abs=5e-4)


def test_a_column_of_the_keys_matrix_moves_one_feature_of_one_head(page):
    open_task(page, "08")
    type_into(page, "exactly", "1.5")
    values = numbers(load_example())
    W = values["cross.W_k"].copy()
    W[0, 4] = 1.5
    right = (values["M"] @ W + values["cross.b_k"]).reshape(4, 2, 3).swapaxes(0, 1)
    assert watched(page)["all"] == pytest.approx(list(right.ravel()), abs=1e-12)
    assert {tuple(cell) for cell in np.argwhere(right != values["cross.k"])} == {(1, i, 1) for i in range(4)}
    assert "4 of the 24 numbers" in watched(page)["text"]


def test_one_feature_moves_all_six_of_its_row(page):
    open_task(page, "10")
    type_into(page, "exactly", "1.53")
    values = numbers(load_example())
    x = values["decoder.norm3.x"].copy()
    x[1, 0] = 1.53
    right, _ = functional.layer_norm(x, np.ones(6), np.zeros(6))
    assert watched(page)["all"] == pytest.approx(list(right.ravel()), abs=1e-12)
    assert "6 of the 30 numbers" in watched(page)["text"]


def test_one_entry_of_the_shared_matrix_moves_all_logits(page):
    open_task(page, "12")
    type_into(page, "exactly", "0.5")
    example = load_example()
    dict(example.model.named_parameters())["source_embedding.tokens.E"].data[3, 0] = 0.5
    moved = numbers(example)["output.z"]
    assert watched(page)["all"] == pytest.approx(list(moved.ravel()), abs=1e-12)
    assert (moved != numbers(load_example())["output.z"]).all()
    assert "35 of the 35 numbers" in watched(page)["text"]


def test_the_shortest_of_the_steps_is_the_best(page):
    open_task(page, "13")
    losses = {}
    for rate in page.script("return App.rates"):
        example = load_example()
        logits, cache = example.model.forward(example.source, example.target_in)
        _, loss_cache = functional.cross_entropy(logits, example.target_out)
        example.model.zero_grad()
        example.model.backward(functional.cross_entropy_backward(1.0, loss_cache), cache)
        training.Adam(example.model.parameters(), lr=rate).step()
        page.script(CHOOSE, rate)
        losses[rate] = float(numbers(example)["output.L"])
        assert watched(page)["value"] == pytest.approx(losses[rate], abs=1e-12)
    assert min(losses, key=losses.get) == min(losses) == 0.001
    assert (losses[0.001], losses[0.01]) == pytest.approx((0.070, 2.15), abs=0.005)


def test_row_that_reads_another_token_moves_no_earlier_logit(page):
    before, after = turn_to(page, "14", 3)
    assert page.text(".turned") == "target x [t→s, 0]"
    assert set(np.argwhere(after != before)[:, 0]) == {3, 4}
    assert "14 of the 35 numbers" in watched(page)["text"]


def test_lost_gradient_shows_where_the_letter_comes_twice_alone(page):
    open_task(page, "15")
    for word, agrees in (("toot", False), ("pop", True)):
        type_into(page, "word", word)
        drawn(page)
        with MISTAKES["token-twice"].planted():
            planted = numbers(load_example(word))["dE"]
        assert watched(page)["all"] == pytest.approx(list(planted.ravel()), abs=1e-12)
        wrong = (abs(planted - numbers(load_example(word))["dE"]) > 1e-12).any(axis=1)
        assert wrong[3] != agrees
        assert wrong.any()  # in "pop" the gradient of «p» is
        assert page.script("return document.querySelector('.computed .verdict').classList.contains('right')") == agrees


def test_last_token_moves_no_earlier_key(page):
    before, after = turn_to(page, "16", 3)
    assert page.text(".turned") == "target x [s→eos, 0]"
    assert set(np.argwhere(after != before)[:, 1]) == {4}
    assert "6 of the 30 numbers" in watched(page)["text"]


def test_score_of_the_first_letter_rises_with_what_self_attention_brings(page):
    assert numbers(load_example())["decoder.self.p"][1, 4].argmax() == 2
    scores = [array[0, 4, 0] for array in turn_to(page, "20", 3, 5, 8, 12)]
    assert scores == sorted(set(scores))
    assert (scores[0], scores[-1]) == pytest.approx((12.03, 12.72), abs=5e-3)


def test_no_two_values_of_a_score_give_the_same_output(page):
    outputs = [array[0, 1, 0] for array in turn_to(page, "21", -9, -3, 0, 3, 6, 10)[1:]]
    assert outputs == sorted(set(outputs))


# --- what it is like ---


def test_nothing_stands_around_the_array(page):
    open_explorer(page, USUAL)
    seen = "return [...document.querySelectorAll(arguments[0])].filter((each) => each.getClientRects().length).length"
    assert page.script(seen, "header, .inputs, .status, footer") == 0
    assert page.script(seen, "canvas") == 1
    open_explorer(page, "view=cell")
    assert page.script(seen, "header, .inputs, .status, footer") == 4


def test_slider_repaints_the_array_in_place(page):
    open_explorer(page, USUAL)
    page.script("window.kept = document.querySelector('canvas'); window.before = kept.toDataURL()")
    page.script("document.querySelector('[type=range]').focus()")
    page.press(*["ARROW_RIGHT"] * 3)
    page.settle()
    assert page.script("return kept.isConnected && kept.toDataURL() !== before")
    assert page.script("return document.activeElement.type") == "range"
    score = page.script("return App.machine.value('cross.s', 7)")
    assert score == pytest.approx(0.66 + 0.03, abs=0.006)
    assert page.script(
        "return document.querySelector('[data-focus=exactly]').value === Show.number(arguments[0])", score
    )


def test_page_around_keeps_its_address_and_its_history(page):
    open_explorer(page, USUAL)
    before = page.script("return history.length")
    type_into(page, "exactly", "8")
    page.click("canvas")
    assert (page.script("return history.length"), address(page)) == (before, USUAL)
    page.click(".turn button")
    assert page.script("return [App.state.edits, App.state.embed]") == ["", "cross.ds[0,1,2]"]
    assert page.script("return App.machine.value('cross.s', 7)") == pytest.approx(0.664, abs=5e-4)


def test_nonsense_is_refused(page):
    open_explorer(page, USUAL)
    type_into(page, "exactly", "much")
    assert page.text(".turn [role=alert]") == page.script("return Strings.cell.invalid")
    assert page.script("return App.state.edits") == ""


def test_arrow_keys_choose_another_number_of_the_array(page):
    open_explorer(page, USUAL)
    page.script("document.querySelector('canvas').focus()")
    page.press("ARROW_RIGHT")
    assert page.text("h1") == "cross ds [head 0, p→o, p]"
    assert page.script("return document.activeElement.dataset.array") == "cross.ds"


def test_link_leads_to_all_numbers_with_what_was_turned(page):
    open_explorer(page, USUAL)
    type_into(page, "exactly", "8")
    value = watched(page)["value"]
    link = page.script("const a = document.querySelector('main a'); return [a.getAttribute('href'), a.target]")
    assert link[1] == "_blank"
    page.go(f"index.html{link[0]}")
    drawn(page)
    assert page.script("return [App.state.view, App.state.cell, App.state.embed]") == ["cell", "cross.ds[0,1,2]", ""]
    assert page.script("return App.machine.value('cross.ds', 6)") == value


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_all_of_it_fits_into_its_frame(page, width, height):
    for number, state in TASKS.items():
        open_explorer(page, state, width=width, height=height)
        assert page.overflow() == []
        last = ".turn" if width < TOO_LONG.get(number, 0) else "html"
        bottom = page.script("return document.querySelector(arguments[0]).getBoundingClientRect().bottom", last)
        assert bottom <= height, (number, width)


@needs_axe
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("number", ["07", "13", "15"])
def test_axe_finds_nothing_serious(page, number, dark):
    open_task(page, number, dark=dark)
    assert page.axe() == []
    assert (page.lightness() < 0.3) == dark


def test_tab_reaches_control_map_and_link(page):
    open_explorer(page, USUAL)
    stops = page.tab_stops()
    assert [stop.role for stop in stops] == ["slider", "textbox", "button", "application", "link"]
    assert all(stop.name and stop.visible for stop in stops)


@pytest.mark.parametrize("state", ["embed=nothing.here[1]&turn=nor.here", "embed=cross.ds[9,9,9]&turn=cross.s"])
def test_unknown_arrays_are_left_out(page, state):
    open_explorer(page, state)
    assert page.text("h1").startswith("cross ds [head 0")
    assert page.script("return document.querySelectorAll('[type=range]').length") == 0
