"""The tour of the explorer shows the library's numbers, asks what they answer, and leads on whatever one guesses."""

import dataclasses
import itertools
import shutil
from pathlib import Path

from support.example_numbers import numbers

import numpy as np
import pytest

from minitransformer.course import FOLDER as LESSONS
from minitransformer.example import load_example
from minitransformer.explorer.export import model_data, write_data
from minitransformer.explorer.writing import example_writing
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.models import Transformer
from tests.browser import cases
from tests.browser.explorer import FOLDER, address, count, needs_axe, number, open_explorer, show, weekly
from tests.browser.page import ABOUT_COLORS

pytestmark = pytest.mark.exhaustive
STATIONS = [
    "learning", "forward", "logits", "norm", "residual", "price", "score", "query", "weight", "nudge"
]  # fmt: skip
PATIENT = "performance.now = () => 0"  # so that a busy machine does not cut the descent of the first station short
GIVEN = "return Stations.at(arguments[0], Stations.road(App.machine))"
SHOWN = "return [document.querySelector('.others a').hash, document.querySelector('.formula strong').innerText]"
ROAD = "const {t, h, i, q, x, way} = Stations.road(App.machine); return [t, h, i, q, x, way.map(App.setCell)]"
PLACE = "return document.querySelector('[data-focus=next]').getBoundingClientRect().top"
STATES = ["", *weekly(["word=toot&weights=untrained", "word=o", "word=po&smoothing=0.1&padding=2",
                       "mistake=gamma-outside-sums"])]  # fmt: skip


def open_station(page, station, state="", **options):
    open_explorer(page, f"view=tour&station={station}&{state}", reload=True, **{"width": 1440, **options})


def untrained():
    return load_example()._replace(model=cases.untrained())


def show_me(page):
    page.script("document.querySelector('.ask .quiet').click()")


def go_to(page, station):
    page.script("App.set({station: arguments[0]})", station)


# --- the numbers ---


def test_number_of_each_station_is_the_librarys(page):
    norms = ["decoder.norm3.dx", "decoder.norm2.dy"]
    open_station(page, 1)
    for word in ("stop", "toot", "po"):
        expected, names = numbers(load_example(word)), []
        right = load_example(word).target_out[0]
        losses = -np.log(expected["output.p"][range(len(right)), right])
        show(page, f"view=tour&word={word}")
        for station in range(2, 10):
            go_to(page, station)
            show_me(page)
            link, shown = page.script(SHOWN)
            name, _, index = link.split("cell=")[1].split("&")[0].rstrip("]").partition("[")
            value = float({"output.loss": losses, **expected}[name][tuple(map(int, index.split(",")))])
            assert shown == number(page, value)
            names.append(name)
        assert names == ["output.loss", "output.dz", *norms, "cross.dp", "cross.ds", "cross.dq", "cross.dW_q"]


ROADS = "const {h, q, x, dW, all, heaviest} = Stations.road(App.machine).roads; return {h, q, x, dW, all, heaviest}"


def norm_back(get, at, t, dy):
    """The gradients of a norm's input in row t, for rows dy of gradients of its output."""
    x_hat, sigma = get[f"{at}.x_hat"][t], get[f"{at}.sigma"][t].item()
    d = dy * get[f"{at}.gamma"]
    return (d - d.mean(axis=-1, keepdims=True) - x_hat * (d * x_hat).mean(axis=-1, keepdims=True)) / sigma


def slopes_of_scores(get, h, t):
    """[w, i]: how much the gradient of score i grows in row t and head h if that of logit w grows by 1."""
    W_1, W_2, on = get["decoder.ffn.W_1"], get["decoder.ffn.W_2"], get["decoder.ffn.a"][t] > 0
    d = norm_back(get, "decoder.norm3", t, get["E"])
    d = norm_back(get, "decoder.norm2", t, d + ((d @ W_2.T) * on) @ W_1.T)
    dp = d @ get["cross.W_o"][3 * h : 3 * h + 3].T @ get["cross.v"][h].T
    p = get["cross.p"][h, t]
    return p * (dp - dp @ p[:, None])


@pytest.mark.parametrize("state", ["", *weekly(["word=toot", "weights=untrained", "word=ssop&weights=untrained"])])
def test_shares_of_all_roads_are_the_librarys_and_add_up_to_the_whole_gradient(page, state):
    open_station(page, 11, state)
    example = load_example(state.partition("word=")[2].split("&")[0] or "stop")
    get = numbers(example if "untrained" not in state else example._replace(model=untrained().model))
    found = page.script(ROADS)
    h, q, x = found["h"], found["q"], found["x"]
    dW = get["cross.dW_q"][x, 3 * h + q]
    assert abs(dW) == np.abs(get["cross.dW_q"]).max() > 0
    dz, k = get["output.dz"], get["cross.k"][h, :, q] / 3**0.5
    expected = [dz[t, :, None] * slopes_of_scores(get, h, t) * k * get["cross.x"][t, x] / dW for t in range(len(dz))]
    shares = np.array([road["share"] for road in found["all"]]).reshape(np.shape(expected))
    np.testing.assert_allclose(shares, expected, rtol=0, atol=1e-12)
    assert shares.sum() == pytest.approx(1, abs=1e-12)
    heaviest = found["heaviest"]
    assert heaviest["share"] == shares.max()
    assert "untrained" in state or shares.max() > 0.5  # with random weights, many roads bring a little
    assert shares[heaviest["t"], heaviest["w"], heaviest["i"]] == shares.max()


RIBBONS = """
return [...document.querySelectorAll(".roads path")].map((path) => {
  const numbers = path.getAttribute("d").match(/-?[\\d.]+(e-\\d+)?/g).map(Number);
  return [path.getAttribute("class"), numbers.at(-2) - numbers[0]];
});
"""


def test_each_ribbon_is_as_thick_as_its_share_and_ours_is_the_heaviest(page):
    open_station(page, 11)
    shares = {road["share"] for road in page.script(ROADS)["all"]}
    ribbons = page.script(RIBBONS)
    drawn = sorted(abs(share) for share in shares if abs(share) > 5e-4)
    assert len(ribbons) == len(drawn) > 40
    widths = np.sort([width for _, width in ribbons])
    np.testing.assert_allclose(widths / widths.max(), np.array(drawn) / drawn[-1], atol=1e-9)
    assert sum(kind.startswith("against") for kind, _ in ribbons) == sum(share < -5e-4 for share in shares)
    assert ribbons[-1] == ["along ours", widths.max()]
    assert "it brings 112 %" in page.text("main")
    assert "our road: +112 %" in page.script("return document.querySelector('.roads').textContent")
    dW = page.script("return Show.number(Stations.road(App.machine).roads.dW)")
    assert f"On each level they add up to 100 %, which is {dW}." in page.text("main")
    rows = page.script("return [...document.querySelectorAll('.roads .stop')].map((text) => text.textContent)")
    assert {"+99 %", "−4 %"} <= set(rows)  # income and spending


def test_roads_say_why_there_are_none(page):
    open_station(page, 11, "word=o")
    assert "so no road brings anything" in page.text("main")
    open_station(page, 11, "mistake=relu-gated-by-gradient")
    assert "isn’t a sum of roads" in page.text("main")


# --- the questions ---


def sign(x):
    return "zero" if abs(x) < 1e-12 else "positive" if x > 0 else "negative"


def right_choices(get, road):
    """What the library's numbers answer."""
    t, h, i, q, x, cells = road
    word = int(cells[0].rstrip("]").split(",")[-1])
    pulls = get["cross.ds"][h, t] * get["cross.k"][h, :, q]
    terms = get["cross.x"][:, x] * get["cross.dq"][h, :, q]
    count = int((np.abs(terms) > 1e-12).sum())
    return {
        "logits": sign(get["output.dz"][t, word]),
        "norm": "zero",
        "price": sign(get["cross.dp"][h, t, i]),
        "query": str(np.abs(pulls).argmax()),
        "weight": ["none", "one", "more"][min(count, 2)],
    }


def test_right_choices_follow_from_the_numbers_of_word_and_weights(page):
    seen = {}
    open_station(page, 1)
    for word, weights in itertools.product(("stop", "toot", "pop", "ts", "o"), ("trained", "untrained")):
        show(page, f"view=tour&word={word}&weights={weights}")
        example = load_example(word)
        example = example if weights == "trained" else example._replace(model=untrained().model)
        expected = right_choices(numbers(example), page.script(ROAD))
        found = {name: page.script(GIVEN, name)["right"] for name in expected}
        assert found == {name: [right] for name, right in expected.items()}, (word, weights)
        for name, right in expected.items():
            seen.setdefault(name, set()).add(right)
    assert all(len(seen[name]) > 1 for name in ("price", "query", "weight")), seen


def test_residual_adds_what_comes_around_the_network_and_through_it(page):
    get = numbers(load_example())
    open_station(page, 5)
    t, *_, cells = page.script(ROAD)
    c = int(cells[2].rstrip("]").split(",")[-1])
    facts = page.script(GIVEN, "residual")["facts"]
    assert facts["around"] == pytest.approx(get["decoder.norm3.dx"][t, c], rel=1e-12)
    assert facts["through"] == pytest.approx(get["decoder.ffn.dx"][t, c], rel=1e-9)


def test_planted_mistake_changes_the_answer_about_the_norm(page):
    open_station(page, 4, "mistake=gamma-outside-sums")
    assert page.script(GIVEN, "norm")["right"] != ["zero"]
    show_me(page)
    assert "a mistake must be planted" in page.text(".ask")
    open_station(page, 10, "mistake=gamma-outside-sums")
    show_me(page)
    assert "no, not right" in page.text(".ask")


def test_nudge_agrees_with_the_gradient(page):
    open_station(page, 10)
    gradient = page.script("return App.machine.value('cross.dW_q', Stations.road(App.machine).dW.flat)")
    name, _, index = (
        page.script("return Stations.road(App.machine).way.map(App.setCell).at(-1)").rstrip("]").partition("[")
    )
    assert gradient == pytest.approx(numbers(load_example())[name][tuple(map(int, index.split(",")))], rel=1e-9)
    errors = page.script(GIVEN, "nudge")["facts"]["errors"]
    assert page.script(GIVEN, "nudge")["right"] == [["1", "0.00001", "1e-12"][int(np.argmin(errors))]]
    assert errors[1] < 1e-6 * abs(gradient) < errors[0]
    show_me(page)
    assert f"the gradient is {gradient:.8f}: yes, right to 8 decimals" in page.text(".ask")


def descended(rate, steps):
    """The library's losses from untrained weights, without Adam."""
    example, losses = untrained(), []
    for _ in range(steps + 1):
        z, cache = example.model.forward(example.source, example.target_in)
        loss, loss_cache = cross_entropy(z, example.target_out)
        losses.append(float(loss))
        example.model.zero_grad()
        example.model.backward(cross_entropy_backward(1.0, loss_cache), cache)
        for parameter in example.model.parameters():
            parameter.data -= rate * parameter.grad
    return losses


def test_each_press_is_a_step_that_lowers_the_loss_as_in_the_library(page):
    open_station(page, 1)
    page.script(PATIENT)
    expected = descended(0.1, 19)
    assert number(page, expected[0]) in page.text(".trial output")
    for step in (1, 2):
        page.click(".trial .primary")
        assert page.text(".trial output").startswith(f"After {step} step")
        assert number(page, expected[step]) in page.text(".trial output")
    show_me(page)
    assert "11 to 50. After 19, each right letter is the most likely one" in page.text(".ask")
    assert number(page, expected[19]) in page.text(".trial output")
    assert count(page, ".trial .verdict.right") == 5


# --- guesses ---


# whether one must still guess, and what is said of the guess
OPEN = """
return [document.querySelector('[data-focus=next]').disabled,
  document.querySelector('.ask [role=status]').innerText];
"""


@pytest.mark.parametrize("state", STATES)
def test_every_guess_gets_an_answer_and_leads_on(page, state):
    open_explorer(page, f"view=tour&{state}", reload=True, width=1440)
    page.script(PATIENT)
    for station, name in enumerate(STATIONS, 1):
        options = page.script(GIVEN, name).get("options")
        for guess in range(len(options or [1, 2, 3]) + 1):
            fresh = "App.set({station: arguments[0], edits: `E:0:${arguments[1] * 1e-14}`})"
            page.script(fresh, station, guess)
            given = page.script(GIVEN, name)
            assert page.script(OPEN) == [True, ""]
            if not options and guess < 3:
                value = [given["from"], given["to"], 0.1][guess]
                page.script("document.querySelector('.ask input').value = arguments[0]", value)
            button = guess if options else guess // 3
            page.script("document.querySelectorAll('.ask button')[arguments[0]].click()", button)
            disabled, said = page.script(OPEN)
            assert not disabled
            assert len(said) > 25
            text = page.text("main")
            assert not any(word in text for word in ("undefined", "NaN", "null", "[object"))
            if options and guess < len(options):
                assert said.startswith("Right" if options[guess] in given["right"] else "You said")
    page.click("[data-focus=next]")
    assert "All roads home" in page.text("main h2")


PICTURES = "return [...document.querySelectorAll('.pictures canvas')].map(canvas => canvas.dataset.array)"
INK = """
const c = [...document.querySelectorAll('.pictures canvas')].at(-1), found = new Set();
c.getContext('2d').getImageData(0, 0, c.width, c.height).data.forEach((x) => found.add(x));
return [found.size, c.getAttribute('aria-label')];
"""
QUESTIONS = {  # the pictures of each question, the last one without its numbers until it is answered
    3: ["output.p", "output.dz"],
    5: ["decoder.norm3.dx", "decoder.norm2.dy"],
    6: ["cross.do", "cross.v", "cross.dp"],
    7: ["cross.p", "cross.dp", "cross.ds"],
    8: ["cross.ds", "cross.k", "cross.dq"],
    9: ["cross.x", "cross.dq", "cross.dW_q"],
}


def test_question_shows_what_it_needs_and_an_empty_grid_for_its_answer(page):
    open_station(page, 1)
    for station, pictures in QUESTIONS.items():
        go_to(page, station)
        assert page.script(PICTURES) == pictures
        empty, label = page.script(INK)
        cell = "const {cell: {name, flat}} = Stations.at(arguments[0], Stations.road(App.machine))"
        value = page.script(f"{cell}; return Show.number(App.machine.value(name, flat))", STATIONS[station - 1])
        assert value not in label
        assert station != 7 or value not in page.text("main")
        show_me(page)
        assert page.script(PICTURES) == pictures
        full, label = page.script(INK)
        assert full > empty
        assert value in label


def test_way_forward_shows_one_row_from_its_letter_to_its_loss(page):
    get = numbers(load_example())
    open_station(page, 2)
    assert page.script(PICTURES) == ["target.x", "cross.p", "output.y", "output.z", "output.p", "output.loss"]
    assert page.text(".formula") == "loss = −log p"
    show_me(page)
    assert "= −log 0.697" in page.text(".formula")
    canvas = page.driver.find_elements("css selector", ".pictures canvas")[1]
    page.script("arguments[0].focus()", canvas)
    page.press("ARROW_RIGHT", "ARROW_RIGHT")
    shown = number(page, get["cross.p"][0, 1, 1])
    assert canvas.get_attribute("aria-label").startswith(f"cross p [head 0, p→o, t]: {shown}")
    open_station(page, 2, "smoothing=0.1")  # it is not −log p then
    assert "−log p" not in page.text(".formula")


def test_special_tokens_are_called_as_in_the_first_view(page):
    open_station(page, 1)
    for station in range(1, 12):
        go_to(page, station)
        show_me(page) if station < 11 else None
        assert not any(word in page.text("main").split() for word in ("bos", "eos"))
    label = "return App.label(App.machine.get('output.z'), 0, arguments[0], true)"
    assert [page.script(label, t) for t in (0, 4)] == ["start→p", "s→end"]


def test_mean_of_the_prices_is_written_out_with_its_weights(page):
    get = numbers(load_example())
    open_station(page, 7)
    ask = page.text(".ask").replace("(", "").replace(")", "")
    for p, dp in zip(get["cross.p"][0, 1], get["cross.dp"][0, 1], strict=True):
        assert f"{number(page, p)} · {number(page, dp)}" in ask
    assert f"= {number(page, (get['cross.p'] * get['cross.dp'])[0, 1].sum())}." in ask


# --- how one goes on ---


def test_keyboard_alone_leads_through_the_tour(page):
    open_explorer(page, "view=tour", reload=True, width=1440)
    for station in range(1, 11):
        assert f"station={station}" in address(page) or station == 1
        page.script("document.querySelector('.choice').focus()")
        page.press(*(["TAB"] if page.script("return document.activeElement.type === 'range'") else []), "ENTER")
        assert page.script("return document.activeElement.dataset.focus") == "next"
        page.press("ENTER")
    assert page.script("return document.activeElement.tagName") == "H2"
    assert address(page) == "view=tour&station=11"


def test_station_stands_in_the_address_and_back_returns(page):
    open_station(page, 4)
    assert page.text("main h2") == "4 of 10: the norm"
    assert count(page, ".dots a") == 11
    page.click(".dots li:nth-child(7) a")
    assert page.text("main h2") == "7 of 10: the score"
    page.driver.back()
    page.settle()
    assert page.text("main h2") == "4 of 10: the norm"
    for station, heading in (("99", "All roads home"), ("x", "1 of 10: learning"), ("-3", "1 of 10: learning")):
        show(page, f"view=tour&station={station}")
        assert page.text("main h2") == heading


def test_tour_is_about_the_weights_before_the_steps_of_the_reader(page):
    open_explorer(page, "view=compare&steps=3")
    page.script("App.set({view: 'tour'})")
    assert page.script("return [App.state.steps, App.weights]") == [0, "trained"]
    page.driver.back()
    page.settle()
    assert page.script("return [App.state.view, App.run.steps]") == ["compare", 3]
    open_station(page, 2, "steps=3")
    assert "with the trained model" in page.text(".sentence")
    assert page.script("return document.querySelector('[role=status]').offsetHeight") <= 1


def test_model_without_cross_attention_is_told_plainly_and_settings_are_hidden(page):
    open_station(page, 2)
    assert page.script("return document.querySelector('#app > form').getClientRects().length") == 0
    page.script(
        "const {machine} = App; machine.places = machine.places.filter(p => p.kind !== 'attention'); App.set({})"
    )
    assert "encoder-decoders" in page.text("main")


def test_tour_goes_through_models_with_pre_norm_and_with_layers(page, tmp_path):
    folder = shutil.copytree(FOLDER, tmp_path / "page")
    config = dataclasses.replace(load_example().model.config, norm="pre", num_layers=2)
    model = Transformer(config, seed=1, dtype=np.float64)
    write_data(model_data(model, example_writing(), [5, 6, 3, 4], [4, 3, 6, 5]), folder / "data.js")
    open_explorer(page, "view=tour&station=11", folder=folder, width=1440)
    names = [cell.split("[")[0] for cell in page.script(ROAD)[-1]]
    cross = [f"decoder2.cross.{symbol}" for symbol in ("do", "dp", "ds", "dq", "dW_q")]
    assert names == ["output.dz", "output.dy", "decoder.norm.dx", "decoder2.norm3.dx", *cross]
    for station in range(1, 11):
        go_to(page, station)
        show_me(page)
        assert len(page.text(".ask [role=status]")) > 25


def test_lessons_are_named_and_on_the_site_linked(page):
    open_station(page, 1)
    files = page.script("return Stations.names.map(name => Strings.tour[name].lesson)")
    assert [file for file in files if not (Path(LESSONS) / f"{file}.py").exists()] == []
    assert count(page, ".others a") == 1
    site = "document.head.append(Object.assign(document.createElement('meta'), {name: 'site', content: '../'}))"
    page.script(f"{site}; App.set({{}})")
    assert page.script("return document.querySelectorAll('.others a')[1].getAttribute('href')") == (
        f"../lessons/{files[0]}.html"
    )


# --- how it looks ---


@pytest.mark.parametrize("width", [320, 1440, *weekly([360, 768])])
def test_each_station_fits_the_window_before_and_after_its_answer(page, width):
    open_explorer(page, "view=tour", reload=True, width=width)
    bottom = "return document.querySelector('main > article').getBoundingClientRect().bottom"
    places = set()
    for station in range(1, 12):
        go_to(page, station)
        for answer in (False, True)[: 1 if station == 11 else 2]:
            if answer:
                show_me(page)
            page.settle()
            assert page.overflow() == [], station
            assert width < 1440 or page.script(bottom) <= 900
            places |= {page.script(PLACE)} if station < 11 else set()
    assert len(places) == 1 or width in (320, 768)  # the button to go on stays in one place


def test_maps_have_their_numbers_on_a_phone_and_sliders_their_ends(page):
    open_explorer(page, "view=tour&station=7", width=360)
    assert page.text(".ends").split() == ["−0.6", "0.6"]
    for station in (7, 8):
        go_to(page, station)
        columns = "App.machine.get(c.dataset.array).shape.at(-1)"
        widths = f"return [...document.querySelectorAll('.pictures canvas')].map(c => (c.clientWidth - 40) / {columns})"
        assert min(page.script(widths)) >= 32  # from here on, a cell has room for its number


@needs_axe
def test_axe_finds_nothing_serious_before_and_after_an_answer(page):
    for station, dark in itertools.product((7, 10), (False, True)):
        open_station(page, station, dark=dark)
        assert page.axe(*[ABOUT_COLORS] * dark) == [], (station, dark)
        show_me(page)
        page.settle()
        assert page.axe(*[ABOUT_COLORS] * dark) == [], (station, dark)
