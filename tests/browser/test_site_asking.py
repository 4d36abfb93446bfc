"""The fields of the lessons: a guess opens what was measured, a line is judged by the engine, and all is kept."""

import pytest

from docs.course_site.asking import LINES
from docs.course_site.percent import LESSONS
from tests.browser.chromium import axe_script
from tests.browser.explorer import until, weekly
from tests.browser.page import ABOUT_COLORS
from tests.site.conftest import site

__all__ = ["site"]  # the fixture that builds it
pytestmark = pytest.mark.exhaustive
NAMES = {path.name[:2]: path.stem for path in LESSONS.glob("[0-9]*.py")}
JUDGED = {  # field: (a right line, {a wrong one: words of what is said})
    "02.dW_1": ("dW_1 = sum[t](x*da)", {"sum[t](x*dr)": "the gate is forgotten", "x*da": "Put it into sum[t](…)"}),
    "02.gated": ("1[a > 0]*dr", {"relu(dr)": "a opens and closes the gate"}),
    "03.dz_row": ("p - p_star", {"p_star - p": "sign", "share*(p − p_star)": "already divided by N"}),
    "04.dE_output": ("sum[t](DZ*Y)", {"2*sum[t](DZ*Y)": "dE is off by up to 0.19."}),
    "05.s_row": ("sum[d](q*k)/sqrt(D)", {"sum[d](q·k)": "not yet divided by √D", "sum[d](q*k)/D": "D instead of √D"}),
    "06.ds_row": (
        "p*(dp - sum[i](p*dp))",
        {"p*dp": "the average is forgotten", "p*(1 - p)*dp": "its own weight alone"},
    ),
    "07.row_weights": (
        "1[allowed[t,i] == 1]*exp(s)/sum[i](1[allowed[t,i] == 1]*exp(s))",
        {"exp(s)/sum[i](exp(s))": "without a mask"},
    ),
    "10.through_sigma": (
        "-x_hat*sum[c](dx_hat*x_hat)/C/sigma",
        {"x_hat*sum[c](dx_hat*x_hat)/C/sigma": "the sign", "-x_hat*sum[c](dx_hat*x_hat)/sigma": "where is the 1/C of"},
    ),
    "11.dx_of_x": ("SKIP_DY + DY", {"DY": "around the sub-layer is forgotten", "(DY + SKIP_DY)/2": "does not divide"}),
    "12.dM": ("sum[h,d](dk*W_k) + sum[h,d](dv*W_v)", {"sum[h,d](dk*W_k)": "the use as values is forgotten"}),
}
GATED = "return document.querySelector(`form[data-key='${arguments[0]}']`).closest('.gate').nextElementSibling?.open"


def open_lesson(page, site, number, **look):
    page.open(site, f"lessons/{NAMES[number]}.html", over="http", **look)


def write(page, key, text, *, last=False):
    """Write into a field, the first or the last of this key, and press Enter."""
    fields = page.driver.find_elements("css selector", f"form[data-key='{key}'] input")
    field = fields[-1 if last else 0]
    page.script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].select()", field)
    field.send_keys(text, "\n")


def said(page, key):
    """What is said about a line."""
    return page.script("return document.querySelector(`form[data-key='${arguments[0]}'] .said`).innerText", key)


def judge(page, key, line):
    """What the page says about a line."""
    page.script("document.querySelector(`form[data-key='${arguments[0]}'] .said`).replaceChildren()", key)
    write(page, key, line)
    until(page, f"document.querySelector(`form[data-key='{key}'] .said`).textContent")
    return said(page, key)


def test_each_line_of_the_explorer_is_tried():
    assert JUDGED.keys() == LINES.keys()


SOME = ("05", "10", "12")


@pytest.mark.parametrize("number", [*SOME, *weekly(sorted({key[:2] for key in JUDGED} - {*SOME}))])
def test_wrong_lines_get_their_clue_and_right_ones_open_the_answer(page, site, number):
    open_lesson(page, site, number)
    for key in [key for key in JUDGED if key.startswith(number)]:
        right, wrong = JUDGED[key]
        for line, clue in wrong.items():
            assert clue in judge(page, key, line), line
            assert page.script(GATED, key) is not True
            assert page.script("return document.activeElement.ariaInvalid") == "true"
        assert judge(page, key, right).startswith("Right. Every number of "), right
    if number not in ("07", "12"):  # a mask is no array of the explorer's; nothing follows in the section
        assert page.script(GATED, key) is True


def test_a_line_that_cannot_be_read_has_its_place_and_a_wrong_one_leads_to_the_explorer(page, site):
    open_lesson(page, site, "10")
    key = "10.through_sigma"
    assert judge(page, key, "x_hat*sigmas").startswith("Character 7: There is no sigmas here.")
    field = "const f = document.activeElement; return f.value.slice(f.selectionStart, f.selectionEnd)"
    assert page.script(field) == "sigmas"
    assert "Sums that must hold" in judge(page, key, "x_hat")
    link = page.script("return document.querySelector('form.line .said a').href")
    page.go(link.removeprefix(page.base))
    until(page, "App.state.mistake === 'own'")
    assert page.script("return App.state.line") == ("decoder.norm3.dx = (dx_hat - dx_hat_mean) / sigma + (x_hat)")


def test_a_guess_opens_what_was_measured_and_says_how_far_off_it_is(page, site):
    open_lesson(page, site, "06")
    key, shown = "06.guess_steps", "form[data-key='06.guess_steps']"
    gate = "return document.querySelector('.gate:has(.guess)').nextElementSibling.open"
    assert page.script(gate) is False
    write(page, key, "")
    assert page.script(gate) is False
    for guess, words in {
        "200": "5 times too small",
        "1,010": "exactly right",
        "1000": "0.99 % too small",
        "many": "many.",
    }.items():
        write(page, key, guess)
        assert page.script(gate) is True
        assert page.text(".measured").startswith("steps from a lead of 8: 1,010 Your guess: ")
        assert words in page.text(".measured")
    assert "average price before each step" in page.text("details.gated:has(> .measured)")
    page.reload()
    assert page.script(gate) is True
    assert page.script(f'return document.querySelector("{shown} input").value') == "many"
    assert page.script(f'return [...document.querySelectorAll("{shown}")].map(form => form.hidden)') == [False, True]


def test_a_guess_of_the_beginning_is_compared_later_and_can_still_be_made_there(page, site):
    open_lesson(page, site, "02")
    write(page, "02.guess_bos", "97 %")
    assert "further down" in said(page, "02.guess_bos")
    shown = page.script("return document.querySelector(`.measured[data-key='02.guess_bos']`).textContent")
    assert "Your guess: 97 %, 8.6 % too large." in shown  # inside the fold of a line
    write(page, "02.guess_words", "0", last=True)
    measured = ".measured[data-key='02.guess_words']"
    assert "Your guess: 0, off by 100." in page.text(measured)
    assert page.script("return document.activeElement.dataset.value") == "100"


def test_words_are_compared_by_the_reader(page, site):
    open_lesson(page, site, "08")
    write(page, "08.q_heads", "q_flat.reshape(5, 2, 3)")
    assert "Compare it with the answer" in said(page, "08.q_heads")
    assert page.script(GATED, "08.q_heads") is True


def test_without_scripts_answers_are_folded_and_no_field_is_shown(page, site):
    page.open(site, "index.html", over="http")
    page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page.driver.get(f"{page.base}lessons/{NAMES['06']}.html")
        seen = page.driver.find_elements("css selector", "form.ask, details.gated > .measured")
        assert len(seen) >= 4
        assert [element for element in seen if element.is_displayed()] == []
        fold = page.driver.find_elements("css selector", "details.gated > summary")[-1]
        fold.send_keys("\n")
        assert "1,010" in page.driver.find_element("css selector", ".measured").text
    finally:
        page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_answers_work_where_nothing_may_be_stored(page, site):
    open_lesson(page, site, "06")
    page.script("Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') }")
    write(page, "06.guess_steps", "12")
    assert "84 times too small" in page.text(".measured")


@pytest.mark.parametrize("dark", [False, True])
def test_fields_and_what_they_say_can_be_read_by_everybody(page, site, dark):
    open_lesson(page, site, "06", width=390, dark=dark)
    judge(page, "06.ds_row", "p*dp")
    write(page, "06.guess_steps", "200")
    page.driver.find_element("css selector", "form.line summary").send_keys("\n")
    until(page, "document.querySelector('form.line details p').textContent")
    assert "dp_mean[h,t]" in page.text("form.line details")
    assert page.overflow() == []
    named = page.script(
        "return [...document.querySelectorAll('form.ask:not([hidden]) input')].map(i => i.labels.length)"
    )
    assert set(named) == {1}
    if axe_script():
        assert (page.axe(ABOUT_COLORS) if dark else page.axe()) == []


def test_what_is_too_wide_shows_on_which_side_there_is_more(page, site):
    open_lesson(page, site, "06", width=390)
    box = page.driver.find_element("css selector", ".mathematics.more-right")
    seen = "const b = arguments[0]; return [b.matches('.more-left'), b.matches('.more-right'), b.tabIndex]"
    assert page.script(seen, box) == [False, True, 0]
    assert "gradient" in page.script("return getComputedStyle(arguments[0]).maskImage", box)
    page.script("arguments[0].scrollLeft = 1e4", box)
    page.settle()
    assert page.script(seen, box) == [True, False, 0]
    page.resize(1440)
    page.settle()
    assert page.script(seen, box)[:2] == [False, False]
