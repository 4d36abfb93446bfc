"""The ladder on the first view: eight lines of the backward pass, the alarms that ring, and what is kept of it."""

import json

import numpy as np
import pytest

from minitransformer.explorer.export import model_data
from minitransformer.explorer.folder import write_page
from minitransformer.explorer.writing import toy_writing
from minitransformer.models import GPT, TransformerConfig
from tests.browser.cases import scrambled
from tests.browser.explorer import address, count, open_explorer, read_by_everybody, show, type_into, until

pytestmark = pytest.mark.exhaustive
LINES = {  # right ones, and wrong ones with the tests that ring
    "dz": ("share*(p - p_star)", "p - p_star", {"complex", "padding"}),
    "ds": ("p*(dp - sum[i](p*dp))", "p*dp", {"complex", "rows"}),
    "dv": ("sum[t](p*do)", "sum[t](do)", {"complex", "padding"}),
    "dq": ("sum[i](ds*k)/sqrt(D)", "sum[i](ds*k)", {"complex"}),
    "da": ("1[a > 0]*dr", "1[dr > 0]*dr", {"complex"}),
    "dx": ("(dx_hat - sum[c](dx_hat)/C - x_hat*sum[c](dx_hat*x_hat)/C)/sigma", "dx_hat/sigma", {"complex", "rows"}),
    "dW_q": ("sum[t](x*dq)", "sum[t](q*dq)", {"complex"}),
    "dE": (
        "sum[t](DZ*Y) + sum[t: TARGET_IDS == w](DE_TARGET) + sum[i: SOURCE_IDS == w](DE_SOURCE)",
        "sum[t](DZ*Y) + sum[t: TARGET_IDS == w](DE_TARGET)",
        {"complex"},
    ),
}
JUDGED = "document.querySelector('.verdict-of-line').textContent"
RINGS = "return [...document.querySelectorAll('.alarms li:has(.ring)')].map(item => item.dataset.alarm)"
KEPT = "return localStorage.getItem('minitransformer ladder')"


def judged(page):
    until(page, JUDGED)
    return page.text(".verdict-of-line")


def test_each_right_line_is_solved_and_each_wrong_one_rings(page):
    open_explorer(page, reload=True)
    for rung, (symbol, (right, wrong, ringing)) in enumerate(LINES.items(), 1):
        show(page, f"rung={rung}")
        assert page.text(".ladder h3").startswith("Your line: ")
        type_into(page, "write", wrong)
        assert judged(page).startswith("✗"), symbol
        assert set(page.script(RINGS)) >= ringing, symbol
        assert count(page, ".verdict-of-line .note") == count(page, ".alarms li:has(.ring)"), symbol  # what each asks
        assert symbol not in json.loads(page.script(KEPT) or "[]")
        type_into(page, "write", right)
        assert judged(page).startswith("✓ No alarm rings"), symbol
        assert page.script(RINGS) == []
        assert json.loads(page.script(KEPT))[-1] == symbol
        assert f"You’ve written {rung} of 8." in page.text(".ladder .intro")
    assert count(page, ".rungs .done") == 8
    page.reload()
    assert count(page, ".rungs .done") == 8
    assert "You’ve written 8 of 8." in page.text(".ladder")


def test_names_that_may_be_used_are_listed_on_each_rung(page):
    open_explorer(page, reload=True)
    for rung, symbol in enumerate(LINES, 1):
        show(page, f"rung={rung}")
        page.click("[data-focus=ladder-names]")
        until(page, "document.querySelector('.ladder details[open] p').textContent")
        listed = page.text(".ladder details[open] p")
        assert listed.startswith(f"In the line of {symbol}: ")
        for given in page.text(".ladder code").split(", "):
            assert f" {given}[" in listed, given


def test_a_problem_has_its_place_in_what_was_typed_and_the_left_side_may_be_repeated(page):
    open_explorer(page, "rung=2", reload=True)
    type_into(page, "write", "p*dpp")
    assert page.text("#ladder-problem").startswith("Character 3: There is no dpp here.")
    assert page.text(".ladder mark") == "dpp"
    type_into(page, "write", "ds = p*(dp - dp_mean)")
    assert judged(page).startswith("✓")
    assert "write=p*(dp+-+dp_mean)" in address(page)
    type_into(page, "write", "")
    assert count(page, ".alarms li") == 0


def test_link_leads_another_reader_to_the_line_or_to_the_task_if_it_is_solved(page):
    open_explorer(page, "rung=4&write=sum[i](ds*k)", reload=True)
    page.script(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { window.sent = text }}})"
    )
    judged(page)
    page.click("[data-focus=share]")
    until(page, "window.sent")
    assert page.script("return decodeURIComponent(sent)").endswith("#rung=4&write=sum[i](ds*k)")
    assert page.text("[data-focus=share]") == "Copied"
    type_into(page, "write", "sum[i](ds*k)/sqrt(D)")
    judged(page)
    page.click("[data-focus=share]")
    until(page, "sent.endsWith('#rung=4')")


def test_rungs_are_reached_from_the_main_buttons_and_from_one_another(page):
    open_explorer(page, "view=tour&station=11", reload=True)
    page.script("document.querySelector('.end li a').click()")
    assert page.script("return [App.state.view, document.activeElement.dataset.focus]") == ["home", "write"]
    page.click("[data-focus=rung3]")
    assert page.script("return [App.state.rung, document.activeElement.dataset.focus]") == [3, "write"]
    page.press(*"sum[t](p*do)", "ENTER")
    judged(page)
    page.click("[data-focus=next-rung]")
    assert page.script("return [App.state.rung, document.activeElement.dataset.focus]") == [4, "write"]


def test_a_browser_that_keeps_nothing_or_rubbish_does_no_harm(page):
    open_explorer(page, "rung=3", reload=True)
    page.script("Storage.prototype.getItem = Storage.prototype.setItem = () => { throw new Error('forbidden'); }")
    type_into(page, "write", "sum[t](p*do)")
    assert judged(page).startswith("✓")
    page.script("App.set({rung: 1, write: ''})")
    assert count(page, ".rungs .done") == 1
    for rubbish in ('"a', "{}", "3", '["ds"]'):
        page.script(
            "Storage.prototype.getItem = () => arguments[0]; App.set({})".replace("arguments[0]", json.dumps(rubbish))
        )
        assert "Eight lines" in page.text(".ladder")


def test_model_of_ones_own_has_the_same_rungs(page, tmp_path):
    writing = toy_writing("reverse")
    config = TransformerConfig(
        len(writing.tokens), d_model=8, num_heads=2, d_ff=8, num_layers=2, dropout=0.0, max_len=20
    )
    model = scrambled(3, GPT(config, seed=0, dtype=np.float64))
    write_page(model_data(model, writing, writing.encode("stop")), tmp_path / "page")
    open_explorer(page, "rung=2&write=p*(dp - dp_mean)", folder=tmp_path / "page")
    assert judged(page).startswith("✓")
    show(page, "rung=8&write=sum[t](DZ*Y)")
    assert judged(page).startswith("✗")


@pytest.mark.parametrize("state", ["rung=2&write=p*dp", "rung=6&write=p*"])
def test_ladder_can_be_read_and_operated_by_everybody(page, state):
    open_explorer(page, state, width=1440)
    until(page, f"{JUDGED} || document.querySelector('#ladder-problem').textContent")
    read_by_everybody(page, least_stops=20)
