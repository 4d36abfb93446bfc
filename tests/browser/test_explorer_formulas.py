"""The formulas of the explorer are MathML that says what is computed, and its letters have words."""

import pytest

from tests.browser.explorer import open_explorer

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
    const symbol = node.localName === "msub" ? node : [...node.children].find(({localName}) => localName === "msub");
    if (!symbol) return machine.value(array.name);
    const base = symbol.children[0].textContent.replace("^", "\\u0302").replace("^", "\\u0302");
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


@pytest.mark.parametrize("place", ["cross", "output", "decoder.norm1", "E"])
@pytest.mark.parametrize("width", [360, 1440])
def test_formula_fits_its_box(page, place, width):
    open_explorer(page, f"view=cell&cell={place if place == 'E' else place + '.x'}", width=width)
    page.script("document.querySelectorAll('details').forEach(details => { details.open = true })")
    page.settle()
    cut = page.script("""
        return [...document.querySelectorAll(".formula")]
          .filter(({scrollWidth, clientWidth, scrollHeight, clientHeight}) =>
            scrollWidth > clientWidth || scrollHeight > clientHeight)
          .map(({textContent}) => textContent);
    """)
    assert cut == []


def test_screen_reader_is_told_the_structure_of_a_formula(page):
    open_explorer(page, "view=cell&cell=cross.s", width=1440)
    page.script("document.querySelector('canvas[data-array=\"cross.s\"]').parentElement.querySelector('math').id = 'm'")
    nodes = page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = [node["role"]["value"] for node in nodes if not node["ignored"]]
    assert {"MathMLMath", "MathMLFraction", "MathMLSub", "MathMLUnder", "MathMLSquareRoot"} <= set(roles)


def test_every_array_has_a_word(page):
    open_explorer(page, "view=train")
    wordless = page.script(
        "return [...App.machine.arrays.values()].filter(array => !Show.word(array)).map(({name}) => name)"
    )
    assert wordless == []
    words = page.script(
        "return ['cross.dq', 'output.p', 'cross.p', 'dE'].map(name => Show.word(App.machine.get(name)))"
    )
    assert words == ["gradient of the query", "probability", "weight", "gradient of the embeddings"]
