"""The first view: what the model reads and writes, and arcs that are as thick as it looks."""

import re

from support.example_numbers import numbers

import numpy as np
import pytest

from minitransformer.decoding import greedy_decode
from minitransformer.example import load_example
from minitransformer.explorer.export import model_data
from minitransformer.explorer.folder import write_page
from minitransformer.explorer.writing import SPECIAL, Writing, toy_writing
from minitransformer.models import GPT, Transformer, TransformerConfig
from minitransformer.vocabulary import BOS, EOS
from tests.browser.cases import example_of, scrambled
from tests.browser.explorer import FOLDER, VIEWS, address, count, open_explorer, show, type_into, until

pytestmark = pytest.mark.exhaustive
SHOWN = """
const texts = (selector) => [...document.querySelectorAll(selector)].map((element) => element.innerText);
return {
  heading: document.querySelector("h1").innerText, read: texts(".read .tile"), written: texts(".written .tile"),
  arcs: [...document.querySelectorAll(".arcs g")].map((arc) => [...arc.children].map((path) => Number(path.getAttribute("stroke-opacity")))),
  likely: [...document.querySelectorAll(".likely")].map((list) => [...list.children].map((item) => item.innerText)),
};
"""  # noqa: E501
WORDS = ("stop", "tos", "ssop")  # the last of these is written wrong


def written_by_the_library(word):
    """The word that it writes by itself, and its numbers while it does."""
    example = load_example(word)
    ids = greedy_decode(example.model, example.source, 8)[0].tolist()
    text = "".join(example.tokens[id] for id in (ids[: ids.index(EOS)] if EOS in ids else ids))
    return text, numbers(example_of(word, text))


def test_letters_bars_and_arcs_are_those_of_the_library(page):
    open_explorer(page)
    assert page.script("return [App.state.view, App.link()]") == [VIEWS[0], "#"] == ["home", "#"]
    tokens = page.script("return MODEL.tokens")
    for word in WORDS:
        text, found = written_by_the_library(word)
        p, arcs = found["output.p"], found["cross.p"]
        show(page, f"word={word}")
        shown = page.script(SHOWN)
        np.testing.assert_allclose(shown["arcs"], arcs.mean(axis=0)[: len(text)], atol=1e-12)
        assert ("".join(shown["read"]), "".join(shown["written"])) == (word, text)
        for t, bars in enumerate(shown["likely"]):
            best = np.argsort(-p[t])[:3]
            shares = [f"{100 * p[t, i]:.0f}" if p[t, i] >= 0.005 else "<1" for i in best]
            names = [{"bos": "start", "eos": "end"}.get(tokens[i], tokens[i]) for i in best]
            assert [bar.split() for bar in bars] == [[*pair, "%"] for pair in zip(names, shares, strict=True)]


def test_wrong_word_has_a_cross_and_the_right_one_a_tick(page):
    assert written_by_the_library("ssop")[0] != "poss"
    open_explorer(page)
    assert page.text(".side .verdict") == page.script("return Strings.home.right")
    type_into(page, "word", "ssop")
    assert page.text(".side .verdict") == page.script("return Strings.home.wrong('poss')")


def test_numbers_of_the_heading_are_counted(page):
    open_explorer(page)
    size = sum(parameter.data.size for parameter in load_example().model.parameters())
    assert page.text("h1").startswith(f"This model of {size} numbers reverses words.")
    page.script("App.set({weights: 'untrained'})")
    assert "isn’t trained yet" in page.text("h1")
    page.script("App.set({weights: '', steps: 2})")
    assert page.text("h1").startswith(f"This model of {size} numbers should reverse words, here after 2 steps of Adam.")


def test_keyboard_reaches_each_written_letter_and_shows_only_its_arcs(page):
    _, found = written_by_the_library("stop")
    open_explorer(page, reduced_motion=True)
    p = found["cross.p"].mean(axis=0)
    seen = []
    while seen != [0, 1, 2, 3]:
        page.press("TAB")
        focused = page.script("return document.activeElement.dataset.focus ?? ''")
        if focused.startswith("letter"):
            t = int(focused.removeprefix("letter"))
            assert t == len(seen)
            seen.append(t)
            visible = "return [...document.querySelectorAll('.arcs g')].map(arc => arc.getClientRects().length > 0)"
            assert page.script(visible) == [n == t for n in range(4)]
            looks = page.script("return [...document.querySelectorAll('.look')].map(look => look.innerText)")
            assert looks == [f"{100 * x:.0f} %" if x >= 0.005 else "<1 %" for x in p[t]]
            told = page.script("return document.getElementById(`looks${arguments[0]}`).innerText", t)
            assert told.startswith(
                f"{'pots'[t]}, the {['first', 'second', 'third', 'last'][t]} letter written, looks {looks[3 - t]}"
            )
    page.press("TAB")
    assert page.script("return document.querySelectorAll('.arcs g.other, .look:not(:empty)').length") == 0


MOVES = "return document.getAnimations().filter(({playState}) => playState === 'running').length"


def test_letters_are_written_one_after_the_other_once(page):
    open_explorer(page, reload=True)
    delay = "parseFloat(getComputedStyle(li).animationDelay)"
    delays = page.script(f"return [...document.querySelectorAll('.written > li')].map(li => {delay})")
    assert np.diff(delays) == pytest.approx([0.5] * 3)
    assert page.script(MOVES) > 0
    page.script("App.set({view: 'cell'}); App.set({view: 'home'})")
    assert page.script(MOVES) == 0
    opacity = "return [...document.querySelectorAll('.written > li')].map(li => getComputedStyle(li).opacity)"
    assert page.script(opacity) == ["1"] * 4


TOUCHED = "[...document.querySelectorAll('.written .tile')].findIndex(tile => tile.classList.contains('touched'))"


def test_letters_are_touched_one_after_the_other_until_somebody_comes(page):
    open_explorer(page, reload=True, alone=True)
    legend = page.text(".said")
    assert "Touch a letter that it wrote" in legend
    for t in (0, 1):
        until(page, f"{TOUCHED} === {t}")
        assert page.text(".said").startswith(f"{'pots'[t]}, the ")
    page.press("SHIFT")
    assert page.script(f"return {TOUCHED}") == -1
    assert page.text(".said") == legend
    page.script(
        "window.moved = 0;"
        "new MutationObserver(() => moved++).observe(document.querySelector('.said'), {childList: true})"
    )
    page.wait("setTimeout(arguments[0], 2000)")
    assert page.script("return moved") == 0
    open_explorer(page, reload=True, alone=True, reduced_motion=True)
    page.wait("setTimeout(arguments[0], 4500)")
    assert page.script(f"return {TOUCHED}") == -1


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (768, 1024), (360, 780)])
def test_first_view_fits_one_screen_and_has_one_main_button(page, width, height):
    open_explorer(page, width=width, height=height)
    bottom = "return document.querySelector(arguments[0]).getBoundingClientRect().bottom"
    assert page.script(bottom, ".go .primary") <= height
    assert page.script(bottom, ".others") <= (height if width > 400 else 1.3 * height)
    page.script("App.set({station: 11})")  # after a tour, too
    assert page.script("return [...document.querySelectorAll('.primary')].map(a => a.hash)") == ["#view=tour"]


def test_first_view_shows_no_loss_and_no_settings_until_something_is_changed(page):
    open_explorer(page)
    assert count(page, "#app select, #app input") == 2  # the word, a line
    assert page.script("return document.querySelector('[role=status]').offsetHeight") <= 1
    assert "Right answer" not in page.text("#app")
    page.script("App.set({weights: 'untrained'})")
    assert page.script("return document.querySelector('[role=status]').offsetHeight") > 20


def test_other_views_begin_at_their_top(page):
    open_explorer(page, width=360, height=400)
    page.script("document.querySelector('.primary').scrollIntoView(); document.querySelector('.primary').click()")
    assert page.script("return [App.state.view, window.scrollY]") == ["tour", 0]


def test_word_is_typed_over_the_one_before_and_an_error_moves_nothing(page):
    open_explorer(page, width=1440)
    page.click("[data-focus=word]")
    page.press("t", "o", "p", "ENTER")
    page.settle()
    assert address(page) == "word=top"
    assert page.script(SHOWN)["written"] == list("pot")
    width = "return document.querySelector('[data-focus=word]').offsetWidth"
    before = page.script(width)
    for typed in ("", "abcdefghijk"):
        type_into(page, "word", typed)
        assert page.text(".problem")
    assert page.script(width) == before


@pytest.fixture
def sentences(tmp_path):
    """The page with a model of two layers that reads and writes tokens, each a word; and the model."""
    tokens = (*SPECIAL, *(f"token{n}" for n in range(20)))
    config = TransformerConfig(len(tokens), d_model=8, num_heads=2, d_ff=8, num_layers=2, dropout=0.0)
    model = scrambled(3, Transformer(config, seed=0, dtype=np.float64))
    write_page(model_data(model, Writing(tokens, " ", lambda text: []), list(range(3, 18))), tmp_path / "page")
    return tmp_path / "page", model


@pytest.mark.parametrize("width", [360, 1440])
def test_long_sentences_have_room_and_their_lines_are_those_of_the_last_layer(page, sentences, width):
    folder, model = sentences
    open_explorer(page, folder=folder, width=width)
    shown = page.script(SHOWN)
    assert page.overflow() == []
    assert shown["read"] == [f"token{n}" for n in range(15)] + ["end"]
    assert "reads one text and writes another" in shown["heading"]
    assert page.text(".side .result").endswith(page.script("return Strings.home.unchecked"))
    target = [BOS, *page.script("return App.written()")]
    weights = model.attention_weights(np.array([[*range(3, 18), EOS]]), np.array([target])).cross[-1]
    np.testing.assert_allclose(shown["arcs"], weights[0].mean(axis=0)[: len(shown["arcs"])], atol=1e-12)


def test_letters_of_a_gpt_look_at_those_before_them(page, tmp_path):
    writing = toy_writing("reverse")
    config = TransformerConfig(
        len(writing.tokens), d_model=8, num_heads=2, d_ff=8, num_layers=2, dropout=0.0, max_len=20, norm="pre"
    )
    model = scrambled(3, GPT(config, seed=0, dtype=np.float64))
    write_page(model_data(model, writing, writing.encode("stop")), tmp_path / "page")
    open_explorer(page, folder=tmp_path / "page", width=360)
    shown = page.script(SHOWN)
    assert page.overflow() == []
    assert (
        page.script("return document.querySelector('.primary').getAttribute('href')") == "#view=cell"
    )  # it has no tour
    assert [bars[0].split()[0] for bars in shown["likely"]] == shown["written"]
    assert shown["read"] == [*"stop", "end", *shown["written"][:-1]]
    for t, weights in enumerate(shown["arcs"]):
        assert sum(weights) == pytest.approx(1)
        assert [weight > 0 for weight in weights] == [i < 5 + t for i in range(len(weights))]


def test_a_name_is_written_by_the_model_with_all_letters(page):
    open_explorer(page)
    type_into(page, "word", "Charlie")
    until(page, "document.querySelectorAll('.read li').length === 7")
    shown = page.script(SHOWN)
    assert ("".join(shown["read"]), "".join(shown["written"])) == ("charlie", "eilrahc")
    size = page.script("return Object.values(MODEL.weights.trained).flat(Infinity).length")
    assert shown["heading"].startswith(f"This model of {size:,} numbers reverses words.")
    assert page.text(".side .verdict") == page.script("return Strings.home.right")
    assert f"{size:,}" in page.text(".others > div + .note")  # beside the field


def test_search_engines_and_previews_have_a_description():
    html = (FOLDER / "index.html").read_text("utf-8")
    texts = re.findall(r'<meta (?:name|property)="(?:og:)?description"\s+content="([^"]+)"', html)
    assert len(texts) == 2
    assert len(set(texts)) == 1
    assert 'property="og:title"' in html
