"""Each number of the explorer is where the page says, comes from what it says, and can be changed and changed back."""

import re

import pytest

from tests.browser.explorer import address, chosen, count, drawn, number, open_explorer, show, type_into

pytestmark = pytest.mark.exhaustive

# Where the pointer meets which cell: {cell: [left, top, right, bottom]}, found by moving over the whole map
REGIONS = """
const canvas = document.querySelector(`canvas[data-array="${arguments[0]}"]`);
const {left, top, width, height} = canvas.getBoundingClientRect(), found = {};
for (let y = 0.5; y < height; y += 3) for (let x = 0.5; x < width; x += 3) {
  canvas.dispatchEvent(new PointerEvent("pointermove", {clientX: left + x, clientY: top + y}));
  if (!canvas.title) continue;
  const box = found[canvas.title.split(":")[0]] ??= [x, y, x, y];
  [box[0], box[1]] = [Math.min(box[0], x), Math.min(box[1], y)];
  [box[2], box[3]] = [Math.max(box[2], x), Math.max(box[3], y)];
}
return found;
"""


def click_on(page, array, x, y):
    """Click on a heat map, `x` and `y` pixels from its corner."""
    from selenium.webdriver import ActionChains

    canvas = page.driver.find_element("css selector", f"canvas[data-array='{array}']")
    page.settle()  # a page that has become shorter scrolls, and a map that is cut has its middle elsewhere
    page.script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    width, height = page.script("return [arguments[0].offsetWidth, arguments[0].offsetHeight]", canvas)
    offset = round(x - width / 2), round(y - height / 2)
    ActionChains(page.driver, duration=0).move_to_element_with_offset(canvas, *offset).perform()
    page.settle()  # what the page says of the cell under the pointer has its place before the click is aimed
    ActionChains(page.driver, duration=0).move_to_element_with_offset(canvas, *offset).click().perform()
    page.settle()


@pytest.mark.parametrize("width", [360, 1440])
def test_click_on_a_map_chooses_the_number_that_is_drawn_there(page, width):
    open_explorer(page, "view=cell", width=width)
    for array in ("cross.ds", "encoder.ffn.W_1", "decoder.norm2.gamma", "output.L"):
        show(page, f"view=cell&cell={array}")
        page.script(
            "document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", f"canvas[data-array='{array}']"
        )
        regions = page.script(REGIONS, array)
        size = page.script("return App.machine.get(arguments[0]).size", array)
        names = page.script(
            "return Array.from({length: arguments[1]}, (_, n) => App.cellText(arguments[0], n))", array, size
        )
        assert set(regions) == set(names)
        boxes = list(regions.values())
        for n, (left, top, right, bottom) in enumerate(boxes):  # no two cells overlap
            assert not any(a < right and left < c and b < bottom and top < d for a, b, c, d in boxes[n + 1 :])
        for flat in {0, size // 3, size - 1}:
            page.script("App.set({cell: arguments[0]})", array)
            left, top, right, bottom = regions[names[flat]]
            click_on(page, array, (left + right) / 2, (top + bottom) / 2)
            expected = page.script("return App.setCell({name: arguments[0], flat: arguments[1]})", array, flat)
            assert chosen(page) == expected
            role = "gradient" if array == "cross.ds" else "value"
            value = page.script("return Show.exact(App.machine.value(arguments[0], arguments[1]))", array, flat)
            assert page.script(f"return document.querySelector('section.{role} .result strong').title") == value


def test_order_of_rows_columns_and_heads_is_that_of_the_array(page):
    open_explorer(page, "view=cell&cell=cross.s", width=1440)
    regions = page.script(REGIONS, "cross.s")
    place = {}
    for head in range(2):
        for row, token in enumerate(["bos→p", "p→o", "o→t", "t→s", "s→eos"]):
            for column, key in enumerate("stop"):
                left, top, *_ = regions[f"cross s [head {head}, {token}, {key}]"]
                place[head, row, column] = (top, left)
    for (head, row, column), (top, left) in place.items():
        assert place[head, 0, column] == (place[head, 0, 0][0], left)  # columns stand in line
        assert place[head, row, 0][0] == top
        if row:
            assert top > place[head, row - 1, column][0]
        if column:
            assert left > place[head, row, column - 1][1]
    assert place[0, 0, 0] < place[1, 0, 0]


VERDICTS = """
const [name, done] = arguments, all = [];
const agrees = (verdict) => verdict.classList.contains("right") && verdict.innerText.includes("✓");
(function look() {
  if (all.length === App.machine.get(name).size) return done(all);
  if (App.cell()?.name !== name || App.cell().flat !== all.length) App.select({name, flat: all.length});
  if (document.querySelector(".witnesses output:empty")) return setTimeout(look);
  all.push([...document.querySelectorAll(".witnesses .verdict")].map(agrees));
  look();
})();
"""


def test_both_witnesses_agree_with_the_backward_pass(page):
    open_explorer(page, "view=cell", width=1440)
    for name in ("cross.ds", "decoder.self.p", "encoder.ffn.b_1", "target.x", "output.z"):
        verdicts = page.wait(VERDICTS, name)
        assert verdicts
        has_gradient = name == "cross.ds" or page.script("return Boolean(App.machine.partner(arguments[0]))", name)
        assert verdicts == [[True] * (1 + has_gradient)] * len(verdicts), name


def test_witnesses_notice_a_planted_mistake(page):
    open_explorer(page, "view=cell&mistake=softmax-entry-by-entry", width=1440)
    assert "planted" in page.text("[role=status]")
    for name in ("cross.ds", "encoder.self.q"):
        verdicts = page.wait(VERDICTS, name)
        assert sum(not first for first, _ in verdicts) > len(verdicts) / 2
        assert all(quotient for _, quotient in verdicts)  # the two witnesses still agree with each other


# --- derivations ---

# computed: every cell that has a formula, as {name, flat, pieces}, with the pieces that are printed
COMPUTED = """
const {machine} = App;
const computed = [...machine.arrays.values()].filter(({definition}) => definition).flatMap(({name, size, definition}) =>
  Array.from({length: size}, (_, flat) => {
    return {name, flat, pieces: Show.numbers(definition, machine, machine.givenOf(name, flat))};
  }));
"""

# [name, flat, printed, its value from exact numbers, the value]
PRINTED = """
const signs = {"=": "===", "≠": "!=="};
return computed.map(({name, flat, pieces}) => {
  const code = pieces.map(({text, cell}) => cell ? String(machine.value(cell.name, cell.flat)) : text).join("")
    .replace(/1\\[(.*?) (=|≠|>|<) (.*?)\\]/g, (_, a, sign, b) => `Number(${a} ${signs[sign] ?? sign} ${b})`)
    .replaceAll("·", "*").replaceAll("²", "**2").replaceAll("−", "-")
    .replace(/√([\\d.]+)/g, "Math.sqrt($1)").replaceAll("√(", "Math.sqrt(").replaceAll("ReLU(", "Math.max(0, ")
    .replace(/(?<![.\\w])(exp|log|max)\\(/g, "Math.$1(");
  let value;
  try { value = new Function(`return ${code}`)(); } catch (error) { value = `${error}: ${code}`; }
  return [name, flat, pieces.map(({text}) => text).join(""), value, machine.value(name, flat)];
});
"""


@pytest.mark.parametrize("state", ["", "word=sop&smoothing=0.1&weights=untrained&padding=1"])
def test_printed_formula_gives_the_number(page, state):
    open_explorer(page, state)
    rows = page.script(COMPUTED + PRINTED)
    assert len(rows) > 2000
    for name, flat, printed, value, right in rows:
        assert isinstance(value, float | int), (name, flat, printed, value)
        assert value == pytest.approx(right, rel=1e-9, abs=1e-12), (name, flat, printed)
        assert "…" not in printed
        assert not re.search(r"[-+−·/] −\d", printed), f"{name} {flat}: brackets are missing in {printed}"


CELLS = ["cross.ds[0,1,2]", "decoder.norm1.sigma[2]", "output.loss[1]"]
FOLLOWED = """
const start = App.state.cell, found = [];
const count = document.querySelectorAll(".inspector button.number").length;
for (let n = 0; n < count; n++) {
  App.set({cell: start});
  const button = document.querySelectorAll(".inspector button.number")[n];
  const [text, label] = [button.innerText, button.getAttribute("aria-label")];
  button.click();
  const {name, flat} = App.cell();
  found.push([text, label, Show.number(App.machine.value(name, flat)), App.cellText(name, flat),
    [...document.querySelectorAll(".result strong")].map(each => each.innerText)]);
}
return found;
"""


def test_every_number_of_a_derivation_leads_to_its_cell(page):
    open_explorer(page, "view=cell", width=1440)
    for cell in CELLS:
        show(page, f"view=cell&cell={cell}")
        followed = page.script(FOLLOWED)
        assert followed
        for text, label, value, name, shown in followed:
            assert text == value
            assert label == f"{name}: {value}"
            assert value in shown


def test_links_lead_to_the_cells_that_a_number_comes_from_and_goes_to(page):
    cell = "encoder.norm1.x_hat[2,3]"
    open_explorer(page, f"view=cell&cell={cell}", width=1440)
    page.script("document.querySelectorAll('section.value details').forEach(each => { each.open = true })")
    details = "[...document.querySelectorAll('section.value details a')]"
    links = page.script(f"return {details}.map(a => [a.innerText, a.hash])")
    near = page.script("""
        const {machine} = App, {name, flat} = App.cell();
        const near = [...machine.comesFrom(name, flat), ...machine.goesTo(name, flat)];
        return near.map((cell) => App.cellText(cell.name, cell.flat));
    """)
    assert sorted(text for text, _ in links) == sorted(near)
    for text, link in links:
        show(page, link.removeprefix("#"))
        assert page.text(".inspector h2") == text


def test_zero_gradient_shows_the_factor_that_is_zero(page):
    open_explorer(page, "", width=1440)
    zeros = page.script(
        "return [...App.machine.arrays.values()].filter(({role}) => role === 'gradient')"
        ".map(({name}) => [name, App.machine.data(name).indexOf(0)]).filter(([, flat]) => flat >= 0)"
    )
    assert {"decoder.self.ds", "encoder.ffn.da"} <= {name for name, _ in zeros}
    for name, flat in zeros:
        page.script("App.select({name: arguments[0], flat: arguments[1]})", name, flat)
        text, factors = page.text(".why"), count(page, "section.gradient .derivation .zero")
        if name == "decoder.self.ds" or name.endswith(".db_k"):  # of one key; 0 except for rounding
            assert (text, factors) == ("It is exactly 0 because its terms cancel.", 0)
        else:
            assert text == "It is exactly 0 because of the framed factors, which are exactly 0."
            assert factors, name


# --- changes by hand ---

LOSS = "return App.machine.loss"


TYPED = [
    ("cross.s[0,1,2]", "2.5", 2.5),
    ("E[3,1]", "-0.75", -0.75),
    ("decoder.norm1.mu[2]", "−1e−3", -0.001),
    ("encoder.ffn.r[0,5]", "0,25", 0.25),
    ("PE[0,0]", "1", 1),
]


def test_number_can_be_typed_and_the_change_undone(page):
    open_explorer(page, "view=cell", width=1440)
    for cell, typed, value in TYPED:
        show(page, f"view=cell&cell={cell}")
        loss, status = page.script(LOSS), page.text("[role=status]")
        type_into(page, "set", typed)
        found = page.script("const {name, flat} = App.cell(); return App.machine.value(name, flat)")
        assert found == pytest.approx(value, abs=1e-15)
        assert page.text("section.value .result strong") == number(page, value)
        assert "1 number changed by hand" in page.text("[role=status]")
        assert page.script(LOSS) != loss
        assert f": loss 0.111 → {number(page, page.script(LOSS))}." in page.text("section.value")
        drawn(page)
        assert count(page, ".witnesses .verdict:not(.right)") == 0
        page.script(
            "[...document.querySelectorAll('.setter button')].find(b => b.innerText === Strings.cell.undo).click()"
        )
        assert page.script(LOSS) == loss
        assert page.text("[role=status]") == status
        assert chosen(page) == cell


def test_what_is_not_a_number_is_refused_and_no_change_changes_nothing(page):
    open_explorer(page, "view=cell&cell=cross.s[0,1,2]", width=1440)
    before = address(page)
    page.click("[data-focus=set]")
    page.press("ENTER")
    assert address(page) == before
    for typed in ("abc", "", "1e999", "1 2"):
        type_into(page, "set", typed)
        assert address(page) == before
        assert page.text(".setter [role=alert]") == "That isn’t a number."


def test_mask_can_be_turned_off_and_on_again(page):
    open_explorer(page, "view=cell&cell=cross.allowed[1,2]", width=1440)
    loss = page.script(LOSS)
    assert page.text("[data-focus=toggle]") == "Set allowed to 0"
    page.click("[data-focus=toggle]")
    off = page.script("return ['allowed', 'p', 'ds'].map(symbol => App.machine.value(`cross.${symbol}`, 6))")
    assert off == [0, 0, 0]
    assert page.script(LOSS) != loss
    assert page.script("return document.activeElement.dataset.focus") == "toggle"
    assert page.text("[data-focus=toggle]") == "Set allowed to 1"
    page.press("ENTER")
    assert page.script(LOSS) == loss
    assert "by hand" not in page.text("[role=status]")


# --- typed words ---


def test_typed_word_is_read_and_its_answer_is_reversed(page):
    open_explorer(page, "view=cell&cell=cross.s[0,1,2]", width=1440)
    type_into(page, "word", "tops")
    fields = "return [...document.querySelectorAll('.inputs input[type=text]')].map(field => field.value)"
    assert page.script(fields) == ["tops", "spot"]
    ids = page.script("return [...App.machine.data('source.ids'), ...App.machine.data('output.ids')]")
    assert ids == [6, 3, 4, 5, 5, 4, 3, 6, 2]
    assert "word=tops" in address(page)
    type_into(page, "answer", "po")
    assert page.script("return App.machine.get('cross.s').shape") == [2, 3, 4]
    assert chosen(page) == "cross.s[0,1,2]"
    type_into(page, "word", "stopstop")  # the longest
    assert page.script("return App.machine.get('cross.s').shape[2]") == 8


ODD = "Only the letters a to z, please: no model here has ever read “{}”."
BESIDE = """
const field = document.querySelector(`[data-focus=${arguments[0]}]`);
const alert = document.getElementById(field.getAttribute("aria-describedby"));
const [a, b] = [field.getBoundingClientRect(), alert.getBoundingClientRect()];
const beside = b.left - a.left < 300 && Math.abs(b.top - a.bottom) < 40;
return [alert.role, alert.innerText, field.getAttribute("aria-invalid"), beside];
"""
REFUSED = [
    ("word", "st0p", ODD.format("0")),
    ("word", "señor", ODD.format("ñ")),
    ("word", "   ", "Type at least one token."),
    ("word", "stop" * 5, "At most 10 letters, please: no model here has ever read a longer word."),
    ("answer", "stxp", "There is no token “x”. The tokens are: o, p, s, t."),
    ("answer", "sTop", "There is no token “T”. The tokens are: o, p, s, t."),
    ("answer", "", "Type at least one token."),
    ("answer", "stop" * 5, "At most 8 tokens fit."),
]


def test_word_that_cannot_be_read_is_refused_beside_its_field(page):
    open_explorer(page, "view=model")
    before, loss = address(page), page.script(LOSS)
    for field, typed, message in REFUSED:
        type_into(page, field, typed)
        assert (address(page), page.script(LOSS)) == (before, loss)
        assert page.script(BESIDE, field) == ["alert", message, "true", True]
        page.script("App.set({})")
    for field, typed in (("word", "sos"), ("answer", "so")):
        type_into(page, field, typed)
        assert count(page, "[aria-invalid=true]") == count(page, ".inputs [role=alert]:not(:empty)") == 0
        assert f"{field}={typed}" in address(page)


def test_panel_stays_as_it_is_when_its_number_is_changed(page):
    open_explorer(page, "view=cell&cell=cross.s[0,1,2]", width=1440)
    page.script("document.querySelectorAll('.inspector details')[1].open = true")
    page.script("document.querySelector('.setter input').value = '2.5'")
    page.script("document.querySelector('[data-focus=apply]').focus(); window.scrollTo(0, 120)")
    page.script("document.querySelector('[data-focus=apply]').click()")
    assert page.script("return App.edits().length") == 1
    assert page.script("return document.querySelector('.setter').getBoundingClientRect().bottom <= innerHeight")
    assert page.script("return document.querySelectorAll('.inspector details[open]').length") == 1
