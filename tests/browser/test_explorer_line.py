"""A line that a reader has written: what is wrong with it and where; and a link that plants it, as lessons have it."""

import re

import pytest

from tests.browser.explorer import open_explorer, read_by_everybody, show, until
from tests.browser.test_explorer_break import ALL_SHOWN, results, ringing

pytestmark = pytest.mark.exhaustive

PROBLEMS = [  # a line with the marked part between bars, and words of the sentence
    ("||", "begins with an array"),
    ("ds| |", "An = belongs here"),
    ("ds =| |", "ends too early"),
    ("ds = p*|dpp|", "There is no dpp here."),
    ("ds = p*|alert|(1)", "alert isn’t a function here. Is a * missing after it? Functions are sqrt,"),
    ("ds = p*|mean|[i](dp)", "mean isn’t a function here."),
    ("ds = |div|(p, dp)", "div isn’t a function here"),
    ("ds = p*dp|;| alert(1)", "“;” means nothing"),
    ("ds = p*|\N{GRINNING FACE}|", "means nothing in these formulas"),
    ("ds = p |dp|", "Is a * missing before it?"),
    ("ds = p*dp|)|", "“)” can’t follow here."),
    ("ds = p*(dp - dp_mean| |", "A “)” is missing here."),
    ("ds = p*sum[i](p |dp|)", "Is a * missing before “dp”? Otherwise a “)” belongs here."),
    ("ds = p*|sum|(p*dp)", "as in sum[i](…)"),
    ("ds = p*sum[|k|](p*dp)", "“k” isn’t an index. The indices are t, i, j, h, d, c, f, w, g."),
    ("ds = p*sum[|constructor|](p)", "“constructor” isn’t an index"),
    ("ds = p*|q|", "q means q[h,t,d], and d has no value here. Put it into sum[d](…)"),
    ("ds = p*|kind|", "There is no kind here."),
    ("ds = p*|f|", "The index f has no value here."),
    ("ds = p*|p[h,t]|", "it is p[h,t,i], and here are 2"),
    ("ds = p*q[h,t,|i|]", "This counts something other than index 3 of q[h,t,d]."),
    ("ds = p*|p[h,t+1,i]|", "An index of p is a letter, or h*D+d."),
    ("|ds[t,h,i]| = p", "The indices of ds are [h,t,i]."),
    ("ds = p*|dq|", "dq is computed after ds"),
    ("ds = |ds|", "ds can’t be computed from itself."),
    ("ds = p^|dp|", "whole number from 2 to 9"),
    ("ds = p^|99|", "whole number from 2 to 9"),
    ("ds = 1[p|]|", "A comparison belongs here"),
    ("|dds| = p", "No array is called dds."),
    ("|W_q| = 0", "W_q is given"),
    ("|crss.ds| = p*dp", "No place is called crss."),
    ("|cross.dss| = p*dp", "No array is called dss."),
    ("|__proto__| = p", "No array is called __proto__."),
    ("ds = " + "p+" * 147 + "p|+|", "too many terms"),
    ("|ds = sum[c,f,w,g](sum[c,f,w,g](1))|", "too many terms"),
]


def test_each_problem_has_its_place_and_says_what_was_expected(page):
    open_explorer(page, "view=break")
    script = """return arguments[0].map((line) => {
      const {problem: {kind, at, length, facts}} = OwnLine.read(line);
      return [at, length, Strings.line.problems[kind](facts)];
    });"""
    found = page.script(script, [line.replace("|", "") for line, _ in PROBLEMS])
    for (line, words), (at, length, said) in zip(PROBLEMS, found, strict=True):
        assert words in said, line
        before, marked, _ = line.split("|")
        assert (at, length) == (len(before), max(1, len(marked))), line
    for line in ("ds = p*", "alert(1)", ""):  # of a link, which shows the right model then
        show(page, f"view=break&mistake=own&line={line}")
        assert page.script("return App.state.mistake") == ""


def test_a_line_of_a_link_is_planted_and_tested(page):
    open_explorer(page, "view=break&mistake=own&line=ds = p*dp", width=1440)
    until(page, ALL_SHOWN)
    assert ringing(results(page)) == {"falls", "complex", "rows"}
    assert "Your own line is planted: ds = p*dp." in page.text(".status")
    assert page.text("#planted") == "Your own line: ds = p*dp"
    assert "3 of 6 notice" in page.text(".moral")
    show(page, "view=break&mistake=own&line=ds = p*(dp - sum[i](p*dp))")
    until(page, ALL_SHOWN)
    assert ringing(results(page)) == set()
    assert "Nobody notices, and nobody can" in page.text(".moral")


def test_a_difference_too_small_to_ring_is_said(page):
    open_explorer(page, "view=break&mistake=own&line=ds = 1.0000000001*p*(dp - dp_mean)", width=1440)
    until(page, ALL_SHOWN + " && document.querySelector('.moral')")
    assert "1.0000000001" in page.script("return document.querySelector('.changed .bad + dd').textContent")
    assert re.search(r"more than 1\.14e−10", page.text(".trail"))
    assert "That is still a difference, but below 1e−9" in page.text(".trail")


def test_the_right_line_is_shown_to_those_who_ask(page):
    open_explorer(page, "view=break&mistake=own&line=ds = p*dp*2")
    assert "✓ right" not in page.text(".experiment")
    page.click(".changed summary")
    assert "✓ right" in page.text(".changed")
    assert page.script("return document.querySelector('.changed dd').textContent").startswith("ds")


def test_own_line_can_be_read_and_operated_by_everybody(page):
    open_explorer(page, "view=break&mistake=own&line=ds = 2*p*dp&cell=cross.ds", width=1440)
    results(page)
    read_by_everybody(page)
