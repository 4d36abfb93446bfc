"""The view of planted mistakes: who notices which, where the wrong numbers begin, and what the page shows of it."""

import pytest

from tests.browser.explorer import open_explorer, read_by_everybody, until, weekly
from tests.browser.test_explorer_mistakes import FINDINGS

pytestmark = pytest.mark.exhaustive
SEEN = ["", "no-scale", "keys-reshaped", "token-twice"]  # the others ring in the engine as they should
DETECTORS = ["falls", "complex", "rows", "leak", "padding", "formula"]

ALL_SHOWN = "document.querySelectorAll('.detectors :is(.ring, .silence)').length === 6"
SHOWN = """
return Object.fromEntries([...document.querySelectorAll(".detectors li")].map(
  (item) => [item.dataset.detector, [item.querySelector(".ring, .silence").innerText.trim(), item.innerText]]));
"""
RUN = """
const {weights, target, source} = {...MODEL, weights: MODEL.weights.trained};
const mistake = Mistakes.list.find(({id}) => id === arguments[0]);
const context = Mistakes.context(MODEL, {weights, source, target, mistake});
return Object.fromEntries(Mistakes.detectors.map(({id, run}) => [id, run(context)]).map(
  ([id, {rings, number}]) => [id, [rings ? "rings" : "silent", Show.number(number)]]));
"""


def open_view(page, fragment="", **settings):
    open_explorer(page, f"view=break{fragment}", **settings)


def results(page):
    """{test: (what is shown of its bell, all that it shows)}, once all are there."""
    until(page, ALL_SHOWN)
    return page.script(SHOWN)


def ringing(found):
    return {detector for detector, (bell, _) in found.items() if bell == "rings"}


def unfold_trail(page):
    if not page.script("return document.querySelector('.trail details').open"):
        page.click(".trail summary")
    until(page, "document.querySelector('.chip').getClientRects().length")


def test_list_has_every_mistake_once_and_none_first(page):
    open_view(page)
    shown = page.script(
        "return [...document.querySelectorAll('.menu a')].map(a => new URLSearchParams(a.hash).get('mistake'));"
    )
    assert shown[0] is None  # the right model
    assert sorted(shown[1:]) == sorted(FINDINGS)
    assert page.script("return Mistakes.list.map(({id}) => id);") == list(FINDINGS)


CHIPS = """
return [...document.querySelectorAll(".chip")].map(
  (chip) => [chip.dataset.chip, chip.classList.contains("edited")]);
"""
DIFFERENCES = """
const {weights, target, source} = {...MODEL, weights: MODEL.weights.trained};
const mistake = Mistakes.list.find(({id}) => id === arguments[0]);
const {right, wrong} = Mistakes.context(MODEL, {weights, source, target, mistake});
const [a, b] = [right(), wrong()];
return [...a.arrays.keys()].filter((name) => a.data(name).some((x, i) => !(Math.abs(x - b.data(name)[i]) <= 1e-9)));
"""


@pytest.mark.parametrize("mistake", SEEN)
def test_bells_are_those_of_the_detectors_and_the_trail_begins_where_the_mistake_is(page, mistake):
    open_view(page, f"&mistake={mistake}&look=skip")
    shown, found = results(page), page.script(RUN, mistake)
    assert shown.keys() == found.keys() == set(DETECTORS)
    for detector, (bell, number) in found.items():
        assert shown[detector][0] == bell
        assert number in shown[detector][1]
    rings, first = FINDINGS.get(mistake, (set(), None))
    assert ringing(shown) == rings
    if first:
        assert page.script("return document.querySelector('.trail [data-first]').dataset.first;") == first
        unfold_trail(page)
        chips = page.script(CHIPS)
        assert chips[0] == [first, True]
        assert sorted(name for name, _ in chips) == sorted(page.script(DIFFERENCES, mistake))


def test_guesses_are_judged(page):
    open_view(page, "&mistake=softmax-entry-by-entry")
    assert page.script("return document.querySelectorAll('.ring, .moral, .trail').length;") == 0
    for detector in ["complex", "leak"]:
        page.click(f"[data-detector={detector}] input")
    page.click("[data-focus=look]")
    shown = results(page)
    remarks = {detector: [sign for sign in "✓✗" if sign in text] for detector, (_, text) in shown.items()}
    assert remarks == {detector: [] for detector in DETECTORS} | {"complex": ["✓"], "rows": ["✗"], "leak": ["✗"]}
    assert "2 of 6 notice: Complex step, " in page.text(".moral")
    page.reload()
    assert results(page) == shown


@pytest.mark.parametrize("mistake", ["no-scale-backward", "token-twice"])
def test_a_box_without_a_tick_is_no_guess(page, mistake):
    open_view(page, f"&mistake={mistake}")
    page.click("[data-focus=look]")
    assert ["✓" in text for _, text in results(page).values()] == [False] * 6


def test_trail_is_folded_until_asked(page):
    open_view(page, "&mistake=softmax-entry-by-entry&look=skip", reload=True)
    sentence = "It begins in cross ds. The 112 arrays before it are equal. Of the 79 after it, 77 are wrong."
    assert [line for line in page.text(".trail").splitlines() if line][1:] == [sentence, "All 78 wrong arrays"]
    assert page.text(".trail .pass") == ""
    unfold_trail(page)
    assert page.script("return document.querySelectorAll('.chip').length;") == 78


def test_skipping_lasts_for_other_mistakes(page):
    open_view(page, "&mistake=no-scale", width=1440)
    page.click("[data-focus=skip]")
    results(page)
    page.click("[data-focus=plant-mean-and-sum]")
    until(page, "App.state.mistake === 'mean-and-sum'")
    assert ringing(results(page)) == {"complex"}


@pytest.mark.parametrize(
    ("fragment", "expected"),
    [("&mistake=token-twice", {"complex"}), ("&mistake=gamma-outside-sums&weights=untrained", {"complex", "rows"})],
)
def test_offer_makes_a_silent_mistake_ring(page, fragment, expected):
    open_view(page, f"{fragment}&look=skip")
    assert ringing(results(page)) == set()
    assert page.text(".trail") == "Where does the trail of wrong numbers begin?\n\nNo array differs from the right one."
    assert "Nobody notices, and nobody can" in page.text(".moral")
    page.click(".offer")
    until(page, "document.querySelector('.trail [data-first]')")
    assert ringing(results(page)) == expected


def test_offer_leads_to_the_tests(page):
    open_view(page, "&mistake=token-twice&look=skip", width=390)
    results(page)
    page.click(".offer")
    page.settle()
    assert -1 <= page.script("return document.getElementById('who').getBoundingClientRect().top;") < 400


def test_an_array_of_the_trail_leads_to_its_numbers(page):
    open_view(page, "&mistake=softmax-entry-by-entry&look=skip")
    unfold_trail(page)
    page.click("[data-chip='cross.ds']")
    until(page, "App.state.view === 'cell'")
    assert page.script("return App.state.cell;") == "cross.ds"
    assert page.script("return [...document.querySelectorAll('.formula.planted')].map(p => p.parentElement.innerText);")
    page.driver.back()
    until(page, "App.state.view === 'break'")
    assert page.script("return App.state.mistake;") == "softmax-entry-by-entry"


def test_numbers_say_what_the_right_line_is(page):
    open_explorer(page, "view=cell&cell=cross.ds&mistake=softmax-entry-by-entry")
    notes = page.script("return [...document.querySelectorAll('.formula.planted')].map(p => p.textContent);")
    assert len(notes) == 1
    assert notes[0].startswith("✗ planted mistake; the right line is: ds")
    open_explorer(page, "view=cell&cell=decoder.self.p&mistake=causal-mask-off")
    assert "also forbids every key after the query" in page.text(".formula.planted")


@pytest.mark.parametrize(
    "fragment", ["&mistake=keys-reshaped&look=skip&cell=cross.dk[0,1,2]", *weekly(["&mistake=no-scale"])]
)
def test_view_can_be_read_and_operated_by_everybody(page, fragment):
    open_view(page, fragment, width=1440)
    if "skip" in fragment:
        results(page)
    read_by_everybody(page)
