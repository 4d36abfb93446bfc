"""What the page calls right, what the model writes by itself, and what cannot be shown is said."""

import itertools

import numpy as np
import pytest

from minitransformer.data import get_task, task_names
from minitransformer.decoding import greedy_decode
from minitransformer.example import load_example
from minitransformer.explorer import model_data, write_page
from minitransformer.explorer.writing import ids_writing, toy_writing
from minitransformer.models import Transformer, TransformerConfig
from tests.browser.explorer import address, count, open_explorer, show, type_into, until

pytestmark = pytest.mark.exhaustive
TASKS = (
    "globalThis.MODEL = {task: arguments[0], tokens: arguments[1]}; return arguments[2].map((ids) => Tasks.solve(ids))"
)
QUESTIONS = {
    "addition": ["57+8", "0+0", "9999+1", "7+35", "12", "1+", "12+3+4", "12345+1"],
    "recall": ["a3k7c1k", "b1b", "a3k7c1z", "a3k7"],
}
RESET = "[...document.querySelectorAll('.status button')].find((b) => b.textContent === Strings.status.reset)"


def small_model(vocab_size):
    config = TransformerConfig(vocab_size, d_model=12, num_heads=3, d_ff=10, num_layers=1, max_len=20)
    return Transformer(config, seed=3, dtype=np.float64)


def test_right_answers_are_those_of_the_task(page):
    open_explorer(page)
    for task in task_names():
        writing = toy_writing(task)
        words = QUESTIONS.get(task, ["stop", "a", "zebra"])
        found = page.script(TASKS, task, list(writing.tokens), [writing.encode(word) for word in words])
        assert found == [writing.solve(word) for word in words]


def test_answer_of_an_addition_is_its_sum(page, tmp_path):
    writing = toy_writing("addition")
    model = small_model(len(get_task("addition").vocabulary))
    write_page(model_data(model, writing, writing.encode("57+8"), writing.solve("57+8")), tmp_path / "page")
    open_explorer(page, "view=compare&word=12%2B35", folder=tmp_path / "page")
    assert page.script("return document.querySelector('[data-focus=answer]').value") == "47"
    assert "Right answer" in page.text(".inputs")


def test_answer_that_nobody_has_checked_is_not_called_right(page, tmp_path):
    model = small_model(9)
    write_page(model_data(model, ids_writing(9), [5, 4, 2]), tmp_path / "page")
    open_explorer(page, "view=compare&word=6 5", folder=tmp_path / "page")
    own = greedy_decode(model, np.array([[6, 5]]), 17)[0]
    assert page.script("return App.answer()") == {"ids": [int(i) for i in own if i > 2][:16], "origin": "model"}
    assert "not checked" in page.text(".inputs")
    assert "(not checked)" in page.text("[role=status]")
    assert count(page, ".verdict") == 0
    assert "right answer" not in page.text("main")


def test_status_says_what_the_model_writes_by_itself(page):
    open_explorer(page)
    for word, weights in itertools.product(("stop", "toot", "sso", "stopspot"), ("trained", "untrained")):
        show(page, f"word={word}&weights={weights}")
        model = load_example().model
        if weights == "untrained":
            model = Transformer(model.config, seed=0, dtype=np.float64)
        source = np.array([[{"o": 3, "p": 4, "s": 5, "t": 6}[letter] for letter in word]])
        own = [int(i) for i in greedy_decode(model, source, 9)[0] if i > 2][:8]
        assert page.script("return App.written()") == own
        text = page.text("[role=status]")
        assert f"By itself, the model writes: {' '.join('...opst'[i] for i in own) or 'nothing'}" in text
        assert ("After the given tokens, it predicts" in text) == (own != source[0, ::-1].tolist())


COLORED = """
const map = document.querySelector(`canvas[data-array='${arguments[0]}']`);
const {data} = map.getContext("2d").getImageData(0, 0, map.width, map.height);
let colored = 0;
for (let i = 0; i < data.length; i += 4) colored += data[i + 3] > 0 && data[i] - data[i + 2] > 60;
return [colored, App.machine.isRounding(arguments[0])];
"""


def test_gradient_that_is_rounding_is_not_painted(page):
    open_explorer(page, "view=cell&cell=cross.db_k[0]", width=1440)
    assert page.script(COLORED, "cross.db_k") == [0, True]
    assert "in exact arithmetic, all of these are 0" in page.text("[data-row='cross.b_k']")
    show(page, "view=cell&cell=cross.db_q[0]")
    colored, is_rounding = page.script(COLORED, "cross.db_q")
    assert colored > 100
    assert not is_rounding


def test_word_of_a_link_that_cannot_be_shown_is_named(page):
    open_explorer(page, "word=st0p")
    assert "The link asks for “st0p”. Only the letters a to z, please" in page.text("[role=status]")
    assert "This is “stop” instead" in page.text("[role=status]")
    type_into(page, "word", "top")
    assert "The link asks" not in page.text("[role=status]")
    assert page.script("return document.title").startswith("top → pot")


def test_link_with_a_word_of_other_letters_brings_the_model_that_reads_it(page):
    open_explorer(page, "view=compare&word=Hannah")
    until(page, "App.title() === 'hannah → hannah'")
    assert "The link asks" not in page.text("[role=status]")
    assert page.script("return App.state.model") == "letters"


def test_changes_are_taken_back_one_by_one_by_the_back_key_or_all_at_once(page):
    start = "view=cell&cell=cross.s[0,1,2]"
    open_explorer(page, start, width=1440)
    loss = page.script("return App.machine.loss")
    type_into(page, "word", "tops")
    type_into(page, "set", "2.5")
    page.script("App.set({ steps: 2 })")
    for there, gone in (("edits=", "steps"), ("word=tops", "edits=")):
        page.driver.back()
        page.settle()
        assert there in address(page)
        assert gone not in address(page)
    page.script("App.set({smoothing: 0.1, padding: 2, weights: 'untrained', steps: 3})")
    page.script(f"{RESET}.focus(); {RESET}.click()")
    assert (address(page), page.script("return App.machine.loss")) == (start, loss)
    assert page.script("return document.activeElement !== document.body")
    assert page.script("return App.title()") == "stop → pots"


def test_numbers_are_changed_by_hand_before_training_only(page):
    open_explorer(page, "view=cell&cell=cross.s[0,1,2]&weights=untrained&steps=12", width=1440)
    assert page.script("return document.querySelector('.setter')") is None
    assert "before training" in page.text(".inspector")


def test_a_mistake_planted_by_a_link_can_be_taken_back(page):
    open_explorer(page, "view=break")
    page.click("[data-focus=plant-no-scale]")
    page.settle()
    page.script(f"{RESET}.click()")
    assert page.script("return App.state.mistake") == ""
