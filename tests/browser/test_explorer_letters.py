"""One's own word: the second model is loaded when it is needed, and computes what the library computes."""

import itertools
import shutil

import numpy as np
import pytest

from minitransformer.example.model import Example
from minitransformer.explorer import model_data, write_page
from minitransformer.explorer.writing import toy_writing
from minitransformer.models import Transformer
from minitransformer.vocabulary import BOS, EOS, PAD
from tests.browser.cases import Case
from tests.browser.explorer import FOLDER, UNFOLD, VIEWS, address, drawn, open_explorer, show, type_into, until, weekly
from tests.browser.numbers import differences
from tests.explorer.letters import CONFIG, letters_file
from tests.explorer.reading import read_model, state_of

pytestmark = pytest.mark.exhaustive
START = "view=compare"
LOADED = "!document.querySelector('#loading')"
GREEDY = """
const greedy = (source) =>
  Engine.greedyDecode(MODEL.sizes, {eps: MODEL.norm_eps}, MODEL.weights.trained, source, MODEL.max_length);
"""


@pytest.fixture(scope="module")
def model():
    made = Transformer(CONFIG, seed=None, dtype=np.float64)
    made.load_state_dict(state_of(read_model(letters_file().read_text("utf-8"))["weights"]["trained"], 1))
    return made


def type_word(page, word):
    """Type a word, and wait for the model that reads it."""
    type_into(page, "word", word)
    until(page, LOADED)
    page.settle()


def written(page):
    return page.script(f"{GREEDY} return App.words(greedy(App.ids().source))")


def scripts_of(page):
    return page.script("return [...document.scripts].map(script => script.getAttribute('src'))").count("letters.js")


@pytest.mark.parametrize("over", ["file", *weekly(["http"])])
def test_a_word_of_other_letters_or_a_longer_one_loads_the_second_model_once(page, over):
    open_explorer(page, START, over=over, reload=True)
    assert scripts_of(page) == 0
    type_word(page, "tops")
    assert address(page) == "view=compare&word=tops"
    for word in (" Anna ", "explorer", "topspot"):
        type_word(page, word)
        small = word.strip().lower()
        assert address(page) == f"view=compare&word={small}&model=letters"
        assert written(page) == small[::-1]
    assert scripts_of(page) == 1


def test_what_is_done_while_it_loads_is_not_lost_and_loads_it_once(page):
    open_explorer(page, START, reload=True)
    page.script("App.set({word: 'grace', model: 'letters'}); App.set({view: 'model'})")
    until(page, LOADED)
    drawn(page)
    assert address(page) == "view=model&word=grace&model=letters"
    assert scripts_of(page) == 1
    page.reload()
    page.script("App.set({view: 'compare', word: '', model: ''})")  # back before it is there, or after
    page.settle()
    until(page, LOADED)
    assert page.script("return [MODEL.sizes.C, App.machine.sizes.C]") == [6, 6]


def test_other_signs_and_long_words_get_a_sentence(page):
    open_explorer(page, START)
    for state in (START, f"{START}&model=letters"):
        show(page, state)
        until(page, LOADED)
        for word, sentence in (("José", "“é”"), ("ann lee", "without spaces"), ("christopher", "At most 10 letters")):
            type_into(page, "word", word)
            assert sentence in page.text("#problem-word")
            assert address(page) == state


def test_the_small_model_is_one_button_or_the_back_key_away(page):
    open_explorer(page, START)
    loss = page.script("return App.machine.loss")
    type_word(page, "anna")
    type_word(page, "stop")  # known to both: the page stays with the larger one
    assert address(page) == "view=compare&word=stop&model=letters"
    assert page.script("return App.machine.loss") != loss
    page.click("[data-focus=first-model]")
    page.settle()
    assert address(page) == START
    assert page.script("return [App.machine.loss, MODEL.sizes.C]") == [loss, 6]
    page.driver.back()
    page.settle()
    assert page.script("return [App.state.word, MODEL.sizes.C]") == ["stop", 24]


FOUND = "App.state.view !== 'break' || Experiments.result('falls')"


def test_what_is_kept_of_one_model_is_not_shown_for_the_other(page):
    kept = "return [App.ids(), App.machine.loss, Experiments.right().loss, Experiments.result('falls')?.number ?? null]"
    for view in ("compare", "break"):
        open_explorer(page, f"view={view}&word=stop&mistake=no-scale&look=skip")
        until(page, FOUND)
        small = page.script(kept)
        page.script("App.set({model: 'letters'})")
        until(page, LOADED)
        drawn(page)
        same = [a for a, b in zip(small, page.script(kept), strict=True) if a == b]
        assert same == ([None] if view == "compare" else [])  # which has no tests of a mistake


def test_failure_to_load_is_said_and_the_small_model_stays(page, tmp_path):
    folder = shutil.copytree(FOLDER, tmp_path / "page")
    (folder / "letters.js").unlink()
    for view in ("home", "compare"):
        open_explorer(page, f"view={view}", folder=folder)
        type_into(page, "word", "anna")
        until(page, "!document.querySelector('script[src^=letters]')")
        assert "could not be loaded" in page.text("#loading")
        assert "anna" not in address(page)
        assert page.script("return MODEL.sizes.C") == 6
        type_into(page, "word", "pot")
        assert page.script("return document.querySelector('#loading')") is None
    assert [problem for problem in page.problems() if "letters.js" not in problem] == []


def test_a_model_of_ones_own_stays_alone(page, tmp_path):
    writing = toy_writing("reverse")
    data = model_data(Transformer(CONFIG), writing, writing.encode("abc"))
    write_page(data, tmp_path / "page")
    open_explorer(page, f"{START}&model=letters", folder=tmp_path / "page")
    assert page.script("return App.state.model") == ""
    type_into(page, "word", "Zoë")
    assert "no token “Z”" in page.text("#problem-word")
    assert scripts_of(page) == 0


@pytest.mark.parametrize("width", [360, *weekly([1440])])
def test_every_view_shows_the_second_model(page, width):
    rest = "model=letters&word=explorer&mistake=heads-reshaped&steps=2&cell=dE[3,1]&compare=E"
    for view in VIEWS:
        open_explorer(page, f"view={view}&{rest}", width=width)
        page.script(UNFOLD)
        page.settle()
        assert page.script("return MODEL.sizes.C") == 24
        assert page.overflow() == [], view
        assert "undefined" not in page.text()


def letters_case(model, word, padding=0, smoothing=0.0):
    source = [ord(letter) - ord("a") + 3 for letter in word]
    target, after = source[::-1], [PAD] * padding
    rows = ([*source, *after], [BOS, *target, *after], [*target, EOS, *after])
    return Case("letters", word, Example(model, (), *(np.array([ids]) for ids in rows)), smoothing)


def test_every_array_of_the_second_model_is_that_of_the_library(page, model):
    open_explorer(page, f"{START}&model=letters")
    cases = [letters_case(model, "explorer"), letters_case(model, "a", 2, 0.1), letters_case(model, "anna", 1)]
    worst = differences(page, cases)["letters"]
    assert worst.tensors > 160 * len(cases)
    assert worst.absolute < 1e-12, worst
    assert worst.relative < 1e-12, worst


LABELS = """
const drawn = [], {fillText} = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  drawn.push([x - this.measureText(text).width / 2, x + this.measureText(text).width / 2]);
};
Heatmap.heatmap({name: "E", values: App.machine.data("E"), width: arguments[0], label: ""});
Object.assign(CanvasRenderingContext2D.prototype, {fillText});
return drawn.slice(0, drawn.length - MODEL.sizes.V); // without the labels of rows
"""


def test_labels_of_many_columns_do_not_run_into_each_other(page):
    open_explorer(page, f"{START}&model=letters")
    for width in (310, 440):
        labels = page.script(LABELS, width)
        assert len(labels) > 12
        assert all(right <= left for (_, right), (left, _) in itertools.pairwise(labels))
