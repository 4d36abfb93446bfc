"""One array of the explorer inside a lesson: it answers the lesson's task, as the library does, and is small."""

import re
import shutil

from support.example_numbers import Trace, numbers

import numpy as np
import pytest

from docs.course_site.percent import LESSONS, TASK, read_cells
from minitransformer import functional, training
from minitransformer.example import load_example
from minitransformer.example.names import by_lesson_names
from tests.browser.cases import EDITED_SCORES, MISTAKES, SCORES, edit
from tests.browser.explorer import (
    FOLDER,
    address,
    drawn,
    number,
    open_explorer,
    read_by_everybody,
    show,
    type_into,
    until,
    weekly,
)

pytestmark = pytest.mark.exhaustive
WITH_A_TASK = "00 01 02 03 04 05 06 07 08 10 12 13 14 15 16 20 21"
USUAL = "embed=cross.ds[0,1,2]&turn=cross.s[0,1,3]"
SIZES = [(280, 526), (1200, 326)]  # of the frames on the site, the narrowest and the widest
TOO_LONG = {"15": 620, "16": 320}  # a task, and the width below which what follows its long formula must be scrolled to
POSITIONS = 'get["PE"][: len(ids)]'
NORM_INPUT = 'get[f"{at}.x"] = x'
COMPUTED = {  # an array that a task turns, and how the library adds SPOT to it; the others are weights
    "cross.s": (Trace.attend, SCORES, EDITED_SCORES),
    "decoder.self.s": (Trace.attend, SCORES, EDITED_SCORES),
    "decoder.norm3.x": (Trace.norm, NORM_INPUT, f"x = x + SPOT\n    {NORM_INPUT}"),
    "target.x": (Trace.embed, POSITIONS, f"{POSITIONS} + SPOT"),
    "output.z": (Trace.forward, 'get["E"].T', 'get["E"].T + SPOT'),
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


ANSWERS = {  # lesson: amounts to type, the chosen number before and after the last one, how many numbers that one moves
    "00": ([6], 0.697, 0.390, 7),
    "01": ([6.45], -0.0605, -0.0302, 7),  # half the gradient at half the doubt
    "02": ([-0.1], 0, -0.0589, 21),
    "04": ([-0.15], 0.297, 0.542, 1),
    "05": ([8], -0.169, -0.0000176, 8),
    "06": ([8], -0.169, -0.00159, 8),
    "08": ([1.5], 1.418, 1.221, 4),
    "10": ([1.53], 0.619, 0.678, 6),
    "12": ([0.5], 5.559, -1.365, 35),
    "14": ([3], 5.559, 5.559, 14),  # no earlier logit
    "16": ([3], -3.505, -3.505, 6),  # no earlier key
    "20": ([3, 5, 8, 12], 12.03, 12.72, 8),
    "21": ([-9, -3, 0, 3, 6, 10], -0.277, 2.512, 3),
}


@pytest.mark.parametrize("lesson", ANSWERS)
def test_answer_of_a_task_is_that_of_the_library_and_the_lesson(page, lesson):
    amounts, first, last, moved = ANSWERS[lesson]
    found = re.findall(r"([\w.]+)\[([\d,]+)\]", TASKS[lesson])
    (shown, cell), (turned, place) = [(name, tuple(map(int, index.split(",")))) for name, index in found]
    open_task(page, lesson)
    results = [numbers(load_example())[shown]]
    for amount in amounts:
        type_into(page, "exactly", str(amount))
        results.append(with_number(turned, place, amount)[shown])
        assert watched(page)["all"] == pytest.approx(list(results[-1].ravel()), abs=1e-12)
    assert (results[0][cell], results[-1][cell]) == pytest.approx((first, last), rel=2e-3, abs=5e-5)
    assert (results[-1] != results[0]).sum() == moved
    seen = [result[cell] for result in results[1:]]
    assert seen == sorted(set(seen))
    assert number(page, results[-1][cell]) in watched(page)["text"]


def test_each_task_is_known_and_its_arrays_exist():
    assert " ".join(TASKS) == WITH_A_TASK
    names = numbers(load_example()).keys() | {"decoder.self.allowed"}
    for state in TASKS.values():
        arrays = re.findall(r"([\w.]+)\[", state) or ["output.L"]
        assert set(arrays) <= names, state


# --- the answer of each task, by the page and by the library ---


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


def test_row_that_may_look_ahead_gives_less_weight_to_bos(page):
    open_task(page, "07")
    assert watched(page)["value"] == pytest.approx(0.701, abs=5e-4)
    page.click("[data-focus=turn]")
    allowed = np.tril(np.ones((5, 5), dtype=bool))
    allowed[1, 2] = True
    right = numbers(load_example(), allowed={"decoder.self": allowed})["decoder.self.p"]
    assert watched(page)["all"] == pytest.approx(list(right.ravel()), abs=1e-12)
    assert right[1, 1, 0] == pytest.approx(0.351, abs=5e-4)


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


# --- what it is like ---


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
    assert [count_shown(page, each) for each in ("header, .inputs, .status, footer", "canvas")] == [0, 1]
    before = page.script("return history.length")
    type_into(page, "exactly", "much")
    assert page.text(".turn [role=alert]") == page.script("return Strings.cell.invalid")
    assert page.script("return App.state.edits") == ""
    type_into(page, "exactly", "8")
    page.click("canvas")
    assert (page.script("return history.length"), address(page)) == (before, USUAL)
    page.click(".turn button")
    assert page.script("return [App.state.edits, App.state.embed]") == ["", "cross.ds[0,1,2]"]
    assert page.script("return App.machine.value('cross.s', 7)") == pytest.approx(0.664, abs=5e-4)
    page.script("document.querySelector('canvas').focus()")
    page.press("ARROW_RIGHT")
    assert page.text("h1") == "cross ds [head 0, p→o, p]"
    assert page.script("return document.activeElement.dataset.array") == "cross.ds"


def count_shown(page, selector):
    seen = "[...document.querySelectorAll(arguments[0])].filter((each) => each.getClientRects().length)"
    return page.script(f"return {seen}.length", selector)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_all_of_it_fits_into_its_frame(page, width, height):
    open_explorer(page, USUAL, width=width, height=height)
    for lesson, state in TASKS.items():
        show(page, state)
        assert page.overflow() == []
        last = ".turn" if width < TOO_LONG.get(lesson, 0) else "html"
        bottom = page.script("return document.querySelector(arguments[0]).getBoundingClientRect().bottom", last)
        assert bottom <= height, (lesson, width)


@pytest.mark.parametrize("lesson", ["06", *weekly(["07", "13", "15"])])
def test_task_can_be_read_and_operated_by_everybody(page, lesson):
    open_task(page, lesson, height=900)
    read_by_everybody(page, least_stops=3)


@pytest.mark.parametrize("width", [390, 1000])
def test_frame_of_the_same_site_is_as_high_as_what_it_shows(page, tmp_path, width):
    shutil.copytree(FOLDER, tmp_path / "page")
    frames = "".join(f'<iframe src="page/index.html#{TASKS[lesson]}" width="90%"></iframe>' for lesson in ("06", "13"))
    (tmp_path / "index.html").write_text(f"<!doctype html><link rel=icon href='data:,'>{frames}", "utf-8")
    page.open(tmp_path, over="http", width=width)
    heights = """[...document.querySelectorAll("iframe")].map(({offsetHeight, contentDocument: inside}) =>
        offsetHeight - (inside.querySelector(".effect")?.getBoundingClientRect().bottom ?? 0))"""
    until(page, f"{heights}.every(band => band >= 0 && band < 40)")
    assert page.script(f"return {heights}.length") == 2


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


@pytest.mark.parametrize("state", ["embed=nothing.here[1]&turn=nor.here", "embed=cross.ds[9,9,9]&turn=cross.s"])
def test_unknown_arrays_are_left_out(page, state):
    open_explorer(page, state)
    assert page.text("h1").startswith("cross ds [head 0")
    told = "There’s no array “nothing.here[1]” here, so this shows cross ds [head 0, bos→p, s]."
    assert (told in page.text("main")) == ("nothing" in state)
    assert page.script("return document.querySelectorAll('[type=range]').length") == 0
