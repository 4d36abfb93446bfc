"""The explorer's formulas say in MathML what is computed, its letters have words, and a number, a symbol and a cell
that belong together are shown to."""

import pytest

from tests.browser.explorer import ONE_OF_EACH_KIND, open_explorer, show, type_into

pytestmark = pytest.mark.exhaustive

# value(math, name, given): what a formula gives that is read from the MathML alone, for one cell of an array
READ = """
const {machine} = App;
const signOf = (node) => node?.localName === "mo" ? node.textContent : "";
const isList = (node) => node.localName === "mrow" && !node.dataset.array && signOf(node.children[0]) !== "("
  && signOf(node.children[1]) !== "[";
const list = (node) => isList(node) ? [...node.children] : [node];
const split = (nodes, sign) => nodes.reduce((parts, node) => signOf(node) === sign
  ? [...parts, []] : [...parts.slice(0, -1), [...parts.at(-1), node]], [[]]);
const tests = {"=": (a, b) => a === b, "≠": (a, b) => a !== b, ">": (a, b) => a > b};
const functions = {exp: Math.exp, log: Math.log, ReLU: (x) => Math.max(0, x), div: (a, b) => Math.floor(a / b),
  mod: (a, b) => a % b};

function reader(place) {
  const sizes = {...machine.sizesAt(place), "ε": place.kind === "output" ? machine.sizes.smoothing : machine.sizes.eps};
  const sum = (nodes, at) => {
    const terms = [[1, []]];
    for (const node of nodes) {
      const sign = node.getAttribute("form") === "infix" && {"+": 1, "−": -1}[signOf(node)];
      if (sign) terms.push([sign, []]); else terms.at(-1)[1].push(node);
    }
    return terms.reduce((total, [sign, term]) => total + sign * product(term, at), 0);
  };
  const product = (nodes, at) => {
    const [first, ...rest] = nodes.filter((node) => signOf(node) !== "\\u2062");
    if (!first) return 1;
    if (signOf(first) === "−") return -product(rest, at);
    if (first.localName === "munder") return series(first, rest, at);
    if (signOf(rest[0]) === "\\u2061") {
      const inner = split([...rest[1].children].slice(1, -1), ",").map((part) => sum(part, at));
      return functions[first.textContent](...inner) * product(rest.slice(2), at);
    }
    const factor = single(first, at);
    return factor === 0 ? 0 : factor * product(rest, at); // 1[...] hides what it is multiplied with
  };
  const series = (under, body, at) => {
    const [names, where] = split(list(under.children[1]), ":");
    const over = names.filter((node) => node.localName === "mi").map((node) => node.textContent);
    const values = [...Language.tuples(over, sizes, at)].filter((inner) => !where || holds(where, inner))
      .map((inner) => product(body, inner));
    return under.children[0].textContent === "max" ? Math.max(...values) : values.reduce((a, b) => a + b, 0);
  };
  const holds = (nodes, at) => {
    const sign = nodes.map(signOf).find((each) => each in tests);
    if (!sign) return sum(nodes, at) === 1;
    return tests[sign](...split(nodes, sign).map((side) => sum(side, at)));
  };
  const single = (node, at) => {
    const children = [...node.children];
    if (node.dataset.array) return cell(node, at);
    if (node.localName === "mn") return Number(node.textContent);
    if (node.localName === "mi") return at[node.textContent] ?? sizes[node.textContent];
    if (node.localName === "mfrac") return sum(list(children[0]), at) / sum(list(children[1]), at);
    if (node.localName === "msqrt") return Math.sqrt(sum(children, at));
    if (node.localName === "msup") return sum(list(children[0]), at) ** Number(children[1].textContent);
    if (!children.length) throw new Error(`${node.outerHTML} is no number`);
    if (signOf(children[1]) === "[") return Number(holds(children.slice(2, -1), at));
    return sum(signOf(children[0]) === "(" ? children.slice(1, -1) : children, at);
  };
  const cell = (node, at) => {
    const array = machine.get(node.dataset.array), {text, sub} = Show.symbol(array.symbol);
    const symbol = [node, ...node.children].find(({localName}) => localName.startsWith("msub"));
    if (!symbol) return machine.value(array.name);
    const base = [0, 2].map((n) => symbol.children[n]?.textContent ?? "").join("").replaceAll("^", "\\u0302");
    if (base !== text.replaceAll(" ", "")) throw new Error(`${base} is not ${text}`);
    let nodes = list(symbol.children[1]);
    if (sub && nodes[0].textContent !== sub) throw new Error(`${nodes[0].textContent} is not ${sub}`);
    if (sub) nodes = nodes.slice(2);
    const axes = nodes.some((each) => signOf(each) === ",") ? split(nodes, ",")
      : nodes.length === array.shape.length ? nodes.map((each) => [each]) : [nodes];
    return machine.value(array.name, machine.offsetOf(array.name, axes.map((axis) => sum(axis, at))));
  };
  return sum;
}
function value(math, name, given) {
  const nodes = [...math.children].flatMap((term) => [...term.children]);
  const [left, right] = split(nodes, "=");
  const read = reader(machine.get(name).definition.place);
  return [left.map(({dataset}) => dataset.array).join(), read(left, given), read(right, given)];
}
"""
EVERY = """
return machine.definitions.flatMap((definition) => {
  const {name, size} = machine.get(definition.name);
  const [math] = Dom.formula(Show.equation(definition, machine));
  return [0, Math.floor(size / 2), size - 1].map((flat) =>
    [name, flat, machine.value(name, flat), ...value(math, name, machine.givenOf(name, flat))]);
});
"""


@pytest.mark.parametrize("state", ["", "smoothing=0.1&mistake=heads-reshaped", "word=toot&mistake=token-twice"])
def test_formula_as_it_is_written_in_mathml_gives_the_number(page, state):
    open_explorer(page, state)
    rows = page.script(READ + EVERY)
    assert len(rows) > 450
    for name, flat, right, left_array, left, found in rows:
        assert left_array == name
        assert left == right, (name, flat)
        assert found == pytest.approx(right, rel=1e-9, abs=1e-12), (name, flat)


@pytest.mark.parametrize("width", [360, 1440])
def test_formula_fits_its_box(page, width):
    open_explorer(page, "view=cell", width=width)
    for cell in ("cross.x", "output.x", "decoder.norm1.x", "E"):
        show(page, f"view=cell&cell={cell}")
        page.script("document.querySelectorAll('details').forEach(details => { details.open = true })")
        page.settle()
        cut = page.script("""
            return [...document.querySelectorAll(".formula")]
              .filter(({scrollWidth, clientWidth, scrollHeight, clientHeight}) =>
                scrollWidth > clientWidth || scrollHeight > clientHeight)
              .map(({textContent}) => textContent);
        """)
        assert cut == []


def test_every_array_has_a_word_that_stands_beside_its_letter(page):
    open_explorer(page, "view=model")
    all_words = "[...App.machine.arrays.values()].filter(array => !Show.word(array)).map(({name}) => name)"
    assert page.script(f"return {all_words}") == []
    words = "return ['cross.dq', 'output.p', 'dE'].map(name => Show.word(App.machine.get(name)))"
    assert page.script(words) == ["gradient of the query", "probability", "gradient of the embeddings"]
    assert page.text("[data-place='cross'] .thumbnail .caption").split() == ["p", "(2,", "5,", "4)"]
    show(page, "view=cell&cell=cross.s")
    assert page.text("[data-row='cross.s'] .map.gradient .about") == "gradient of the score (2, 5, 4) cross"


# --- where a number comes from ---

# what each heat map has marked when a number is chosen
MARKED = """
const {name, flat} = App.cell(), update = Heatmap.update, marked = {};
Heatmap.update = (canvas, changes, ...rest) => {
  marked[canvas.dataset.array] = changes.marked;
  update(canvas, changes, ...rest);
};
App.set({cell: App.setCell({name, flat: flat + 1})});
Heatmap.update = update;
return [App.setCell(App.cell()), marked];
"""


def test_the_cells_that_a_number_comes_from_are_framed_on_their_maps(page):
    open_explorer(page, "view=cell&cell=cross.ds[0,1,1]", width=1440, reload=True)
    cell, marked = page.script(MARKED)
    assert cell == "cross.ds[0,1,2]"
    frames = {name: cells for name, cells in marked.items() if cells}
    # ds = p (dp - dp_mean), of the same entry; the frame on s is that of the number whose gradient this is
    assert frames == {"cross.s": [6], "cross.p": [6], "cross.dp": [6], "cross.dp_mean": [1]}
    show(page, "view=cell&cell=cross.s[0,1,1]")
    cell, marked = page.script(MARKED)
    assert cell == "cross.s[0,1,2]"
    frames = {name: cells for name, cells in marked.items() if cells}
    assert frames == {"cross.ds": [6], "cross.q": [3, 4, 5], "cross.k": [6, 7, 8]}  # a sum over the features of a head


# --- less at once ---

SHOWN = """
return [...document.querySelectorAll(".map canvas")].filter((map) => map.getClientRects().length)
  .map((map) => map.dataset.array);
"""


def test_map_leads_to_every_array_with_what_it_is_computed_from(page):
    open_explorer(page, "view=cell", reload=True, width=1440)
    chips = page.script("return [...document.querySelectorAll('.chip')].map(chip => chip.dataset.chip)")
    assert sorted(chips) == sorted(page.script("return [...App.machine.arrays.keys()]"))
    assert page.script(SHOWN) == []
    page.click("[data-chip='cross.s']")
    page.settle()
    shown = page.script(SHOWN)
    assert shown[:2] == ["cross.s", "cross.ds"]
    assert {"cross.q", "cross.k", "cross.p", "cross.dp"} <= set(shown)
    assert not {"cross.o", "cross.W_q", "cross.y"} & set(shown)
    assert page.script("return document.querySelector('.chip[aria-current]').dataset.chip") == "cross.s"
    page.click(".place > a")
    page.settle()
    assert page.script("return [App.state.cell, document.querySelector('main h1').innerText]") == ["", "All arrays"]


def test_page_of_an_array_is_short(page):
    open_explorer(page, "view=cell&cell=cross.s", width=390)
    assert page.script("return document.documentElement.scrollHeight") < 6777 / 1.5  # with all arrays of the place
    show(page, "view=cell")
    assert page.script("return document.documentElement.scrollHeight") < 2600


def test_array_is_shown_first_or_beside_its_value_when_it_is_chosen(page):
    open_explorer(page, "view=cell&cell=cross.s", width=1440)
    hidden = page.script(
        ONE_OF_EACH_KIND
        + """
        const first = () => [...document.querySelector(".array").querySelectorAll("canvas")].map(({dataset}) => dataset.array);
        return oneOfEachKind().filter((_, n) => n % 5 === 0).filter((cell) => {
          App.set({cell});
          return !first().includes(cell);
        });
    """  # noqa: E501
    )
    assert hidden == []


# --- what the page says of a number ---


def said(page, cell, selector=".inspector"):
    page.script("App.set({view: 'cell', cell: arguments[0]})", cell)
    return page.text(selector)


def test_weight_is_called_what_it_is(page):
    open_explorer(page, "view=cell&cell=cross.W_q[0,0]", width=1440)
    assert "it was learned, and no formula gives it" in page.text(".inspector")
    type_into(page, "set", "1")
    assert "You’ve added" in page.text(".inspector")
    page.script("App.set({edits: '', weights: 'untrained'})")
    assert "initial value: it has learned nothing yet" in page.text(".inspector")
    page.script("App.set({steps: 3})")
    assert "learned here in 3 steps of Adam, from its initial value" in page.text(".inspector")
    page.script("App.set({steps: 1, weights: 'trained'})")
    assert "learned here in one step of Adam, from its trained value" in page.text(".inspector")


def test_number_that_goes_nowhere_says_why(page):
    open_explorer(page, "view=cell&cell=cross.s", width=1440)
    off, on = page.script("""
        const values = App.machine.data("encoder.ffn.a"), cell = (flat) => App.setCell({name: "encoder.ffn.a", flat});
        return [cell(values.findIndex((x) => x < 0)), cell(values.findIndex((x) => x > 0))];
    """)
    assert "ReLU sets r to 0 here" in said(page, off)
    assert "ReLU" not in said(page, on)
    assert "encoder.ffn da, where a condition 1[…] or the mask leaves it out" in said(page, off.replace(".a", ".dr"))
    assert "leaves it out" not in said(page, on.replace(".a", ".dr"))
    users = "decoder.self m, decoder.self n, decoder.self p"
    assert f"{users}, where a condition 1[…] or the mask leaves it out" in said(page, "decoder.self.s[0,0,1]")
    assert "the optimizer. It is a final result." in said(page, "cross.dW_q[0,0]")
    assert "the backward pass starts from it" in said(page, "output.L[]")
