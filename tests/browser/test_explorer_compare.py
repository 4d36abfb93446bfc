"""Trained against untrained weights, with steps of Adam or without, as the library finds them."""

import itertools
import re

from support.example_numbers import numbers

import numpy as np
import pytest

from minitransformer.example import load_example
from minitransformer.example.names import named_weights
from minitransformer.explorer import example_data, write_page
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.training import Adam
from tests.browser import cases
from tests.browser.explorer import ONE_OF_EACH_KIND, VIEWS, open_explorer, show, type_into

pytestmark = pytest.mark.exhaustive


def trained_by_library(steps, lr=0.01, untrained=False):
    """The running example's model and its losses, after steps of Adam on its word."""
    example = load_example()
    model = cases.untrained() if untrained else example.model
    optimizer, losses, right = Adam(model.parameters(), lr=lr), [], []
    for step in range(steps + 1):
        optimizer.zero_grad()
        z, cache = model.forward(example.source, example.target_in)
        loss, loss_cache = cross_entropy(z, example.target_out)
        losses.append(float(loss))
        right.append(bool((z.argmax(-1) == example.target_out).all()))
        if step < steps:
            model.backward(cross_entropy_backward(1.0, loss_cache), cache)
            optimizer.step()
    return model, losses, right


def losses_of(page):
    return page.script("return App.run.losses")


def test_steps_of_a_link_begin_with_untrained_weights_or_its_own_and_hold_in_every_view(page):
    open_explorer(page, "view=model&steps=50")
    _, losses, _ = trained_by_library(50, untrained=True)
    np.testing.assert_allclose(losses_of(page), losses, rtol=1e-7)
    assert (losses[0] > 2.5, losses[1] < losses[0], losses[50] < 0.14) == (True, True, True)
    assert page.script("return [App.weights, App.link({view: 'home'})]") == ["untrained", "#steps=50"]
    for view, weights in itertools.product(("compare", "cell"), ("trained", "untrained")):
        show(page, f"view={view}&weights={weights}&steps=1")
        expected = trained_by_library(1, untrained=weights == "untrained")[1]
        assert losses_of(page) == pytest.approx(expected, rel=1e-9)


def test_first_step_moves_each_weight_with_a_gradient_by_lr(page):
    open_explorer(page, "view=compare&weights=trained&steps=1")
    changes = page.script(
        "const start = (name) => Engine.flatten(MODEL.weights.trained[name]);"
        "return App.machine.weights().flatMap((n) => [...App.machine.data(n)].map((w, i) => w - start(n)[i]))"
    )
    sizes = np.abs(changes)
    moved = sizes > 1e-6
    assert (moved.sum(), sizes.size) == (795, 826)
    np.testing.assert_allclose(sizes[moved], 0.01, rtol=0, atol=1e-6)


def test_learning_rate_stands_in_the_url_and_begins_anew(page):
    open_explorer(page, "embed=output.L&turn=lr&weights=trained&steps=1")
    page.script(
        "const s = document.querySelector('[data-focus=turn]'); s.value = '0.001'; s.dispatchEvent(new Event('change'))"
    )
    assert page.script("return [App.state.lr, App.state.steps]") == [0.001, 1]
    assert losses_of(page)[1] == pytest.approx(trained_by_library(1, 0.001)[1][1], rel=1e-9)
    page.go("index.html#view=compare&lr=7")
    assert page.script("return App.state.lr") == 0.01


def table(page):
    rows = page.script("return [...document.querySelectorAll('main .facts')].at(-1).innerText").strip().split("\n")
    return dict(row.split("\t", 1) for row in rows if "\t" in row)


def test_the_verdict_says_what_both_sets_of_weights_make_of_the_word(page):
    open_explorer(page, "view=compare")
    said = table(page)
    for name, untrained in (("trained", False), ("untrained", True)):
        example = load_example()
        values = numbers(example._replace(model=trained_by_library(0, untrained=True)[0]) if untrained else example)
        right = np.mean([values["output.p"][t, i] for t, i in enumerate(example.target_out[0])])
        loss, probability, written = said[name].split("\t")
        assert float(loss) == pytest.approx(values["output.L"], rel=5e-3)
        assert float(probability) == pytest.approx(right, rel=5e-3)
        assert ("✓" in written) == (not untrained)


def test_both_models_are_shown_on_one_scale_and_lead_to_their_cells(page):
    open_explorer(page, "view=compare&compare=output.z")
    sides = page.script("return [...document.querySelectorAll('[data-side]')].map((e) => e.dataset.side)")
    assert sides == ["trained", "untrained"] * 2
    page.script("document.querySelector('[data-side=untrained] canvas').focus()")
    page.press("HOME", "ENTER")
    assert page.script("return [App.state.weights, App.state.cell]") == ["untrained", "output.z[0,0]"]


def test_array_is_found_by_typing_and_an_unknown_one_is_named(page):
    open_explorer(page, "view=compare")
    for typed, name in (("cross.q", "cross.q"), ("decoder.self W_v", "decoder.self.W_v"), (" E ", "E")):
        type_into(page, "compare", typed)
        assert page.script("return [App.state.compare, document.activeElement.dataset.focus]") == [name, "compare"]
    type_into(page, "compare", "cross.nothing")
    assert page.text(".picker .problem") == "No array is called “cross.nothing”."
    assert page.script("return App.state.compare") == "E"


def test_every_array_of_one_place_of_each_kind_can_be_compared(page):
    open_explorer(page, "view=compare")
    wrong = page.script(
        ONE_OF_EACH_KIND
        + """
        const offered = [...document.querySelectorAll("#arrays option")].map((option) => option.value);
        const names = oneOfEachKind().filter((name) => offered.includes(name));
        const bad = names.filter((compare) => {
          App.set({compare});
          return /NaN|undefined|null|∞/.test(document.getElementById("content").innerText);
        });
        return [names.length, bad];
    """
    )
    assert wrong[0] > 40
    assert wrong[1] == []


def test_steps_of_training_are_compared_too(page):
    open_explorer(page, "view=compare&weights=untrained&steps=20", reload=True)
    assert "untrained, after 20 steps of Adam" in page.text("main")


def test_two_runs_stand_beside_each_other_under_their_names(page, tmp_path):
    example, other = example_data(), named_weights(cases.untrained())
    write_page({**example, "weights": {"a": example["weights"]["trained"], "word": other}}, tmp_path / "page")
    open_explorer(page, "view=compare", folder=tmp_path / "page")
    assert page.text("h1") == "Compare a with word"
    assert list(table(page))[1:] == ["a", "word"]
    sides = page.script("return [...document.querySelectorAll('[data-side]')].map((e) => e.dataset.side)")
    assert sides == ["a", "word"] * 2
    assert page.text("[data-focus=weights]").split() == ["a", "word"]
    for view in VIEWS:
        page.script("App.set({view: arguments[0], weights: 'word', steps: 3})", view)
        assert not re.search("undefined|NaN", page.text("main")), view
