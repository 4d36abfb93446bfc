"""The reader's own line in the view of mistakes: what is wrong with it and where, who rings, and the link to share."""

import re

import pytest

from tests.browser.explorer import address, open_explorer, read_by_everybody, show, type_into, until, weekly
from tests.browser.test_explorer_break import ALL_SHOWN, results, ringing

pytestmark = pytest.mark.exhaustive

PROBLEMS = [  # a line with the marked part between bars, and words of the sentence
    ("||", "begins with an array"),
    ("ds| |", "An = belongs here"),
    ("ds =| |", "ends too early"),
    ("ds = p*|dpp|", "There is no dpp here."),
    ("ds = p*|alert|(1)", "alert is not available here; use sqrt,"),
    ("ds = p*|mean|[i](dp)", "mean is not available here; use sqrt,"),
    ("ds = |div|(p, dp)", "div is not available here"),
    ("ds = p*dp|;| alert(1)", "“;” means nothing"),
    ("ds = p*|\N{GRINNING FACE}|", "means nothing in these formulas"),
    ("ds = p |dp|", "Is a * missing before it?"),
    ("ds = p*dp|)|", "“)” cannot follow here."),
    ("ds = p*(dp - dp_mean| |", "A “)” is missing here."),
    ("ds = p*sum[i](p |dp|)", "Is a * missing before “dp”? Otherwise a “)” belongs here."),
    ("ds = p*|sum|(p*dp)", "as in sum[i](…)"),
    ("ds = p*sum[|k|](p*dp)", "“k” is not an index. The indices are t, i, j, h, d, c, f, w, g."),
    ("ds = p*sum[|constructor|](p)", "“constructor” is not an index"),
    ("ds = p*|q|", "q means q[h,t,d], and d has no value here. Put it into sum[d](…)"),
    ("ds = p*|kind|", "There is no kind here."),
    ("ds = p*|f|", "The index f has no value here."),
    ("ds = p*|p[h,t]|", "it is p[h,t,i], and here are 2"),
    ("ds = p*q[h,t,|i|]", "This counts something other than index 3 of q[h,t,d]."),
    ("ds = p*|p[h,t+1,i]|", "An index of p is a letter, or h*D+d."),
    ("|ds[t,h,i]| = p", "The indices of ds are [h,t,i]."),
    ("ds = p*|dq|", "dq is computed after ds"),
    ("ds = |ds|", "ds cannot be computed from itself."),
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
        assert page.script("return document.querySelector('#line-problem').childElementCount") == (2 if line else 0)


def test_a_line_is_typed_planted_tested_and_shared(page):
    open_explorer(page, "view=break", width=1440)
    type_into(page, "line", "ds = p·dp")
    until(page, ALL_SHOWN)
    assert ringing(results(page)) == {"falls", "complex", "rows"}
    assert "mistake=own" in address(page)
    assert "line=ds+=+p*dp" in address(page)
    assert "Your own line is planted: ds = p*dp." in page.text(".status")
    shown = page.text(".experiment")
    page.reload()
    until(page, ALL_SHOWN + " && document.querySelector('.moral')")
    assert page.text(".experiment") == shown
    type_into(page, "line", "ds = p*(dp - sum[i](p*dp))")
    until(page, ALL_SHOWN)
    assert ringing(results(page)) == set()
    assert page.text(".moral").startswith("What this shows\n\nNo test rings, and rightly so: no array ")
    page.driver.back()
    until(page, "App.state.line === 'ds = p*dp' && " + ALL_SHOWN)
    assert ringing(results(page)) == {"falls", "complex", "rows"}


def test_a_small_difference_is_said_the_same_everywhere(page):
    open_explorer(page, "view=break&mistake=own&line=ds = 1.0000000001*p*(dp - dp_mean)", width=1440)
    until(page, ALL_SHOWN + " && document.querySelector('.moral')")
    assert "1.0000000001" in page.script("return document.querySelector('.changed math').textContent")
    sizes = [re.search(r"more than (1\.14e−10)", page.text(part)) for part in (".moral", ".trail")]
    assert all(sizes)
    for part in (".moral", ".trail"):
        assert "That is still a difference, but below 1e−9" in page.text(part)
    page.click(".own summary")
    page.settle()
    assert "dp_mean[h,t]" in page.text(".own details")
    assert "dq" not in page.text(".own details")  # it comes later


def test_a_line_with_a_problem_is_not_planted_and_shows_the_place(page):
    open_explorer(page, "view=break&mistake=own&line=ds = p*dp")
    type_into(page, "line", "ds = p*dpp")
    assert (
        page.text("#line-problem").splitlines()[0]
        == "Character 8: There is no dpp here. The names that may be used are listed below."
    )
    assert page.text(".typed mark") == "dpp"
    selected = (
        "const f = document.activeElement; return [f.value.slice(f.selectionStart, f.selectionEnd), f.ariaInvalid]"
    )
    assert page.script(selected) == ["dpp", "true"]
    assert page.script("return App.state.line;") == "ds = p*dp"
    assert "the last line that could be read: ds = p*dp." in page.text("#line-problem")


def test_the_right_line_is_shown_only_after_a_try(page):
    open_explorer(page, "view=break")
    page.click("[data-focus='start-ds = p*dp']")
    until(page, ALL_SHOWN)
    assert page.script("return document.querySelector('.changed details')") is None
    assert "✓" not in page.text(".changed")
    type_into(page, "line", "ds = p*dp*2")
    assert "✓ right" not in page.text(".changed")
    page.click(".changed summary")
    assert "✓ right" in page.text(".changed details")
    assert page.script("return document.querySelector('.changed details dd').textContent").startswith("ds")


@pytest.mark.parametrize(
    "state", ["line=ds = p*sum[i](p dpp)", *weekly(["mistake=own&line=ds = 2*p*dp&cell=cross.ds"])]
)
def test_field_for_a_line_can_be_read_and_operated_by_everybody(page, state):
    open_explorer(page, f"view=break&{state}", width=1440)
    results(page)
    read_by_everybody(page)
