"""The explorer reads its formulas as they are written, and its detectors find the planted mistakes."""

import re

import numpy as np
import pytest

from minitransformer.example import load_example
from tests.browser.cases import MISTAKES, Case, example_of
from tests.browser.engine import BUILD, to_page

pytestmark = pytest.mark.exhaustive

EXAMPLE = Case("", "stop", load_example())
EVALUATED = """
const machine = build(arguments[0]);
const off = [];
for (const {name, expression, scope} of machine.definitions)
  machine.data(name).forEach((value, flat) => {
    const found = Language.evaluate(expression, scope, machine.givenOf(name, flat));
    if (!(Math.abs(found - value) <= 1e-12 * Math.max(1, Math.abs(value))) && found !== value) off.push([name, flat]);
  });
return off;
"""


@pytest.mark.parametrize("mistake", [None, *MISTAKES])
def test_formula_read_for_one_cell_gives_the_number_that_the_loops_give(engine, mistake):
    allowed = {"cross": np.array([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 1, 0]])}  # a row without a key
    case = Case("", "toot", example_of("too", "to", 1, 1), 0.1, allowed, {"mistake": mistake})
    assert engine.script(BUILD + EVALUATED, to_page(case)) == []


BUILT = """
const [{sizes, eps}, layers] = arguments;
const definitions = (options) => Engine.build({...sizes, layers}, {S: 3, T: 4, eps, ...options}).definitions;
const all = [{}, ...Mistakes.list.map(({options}) => options)];
return all.map((options) => definitions(options).map(({name, text}) => [name, text]));
"""


@pytest.mark.parametrize("layers", [1, 2])
def test_every_line_of_a_mistake_is_another_line_of_an_array_that_exists(engine, layers):
    right, *planted = (dict(lines) for lines in engine.script(BUILT, to_page(EXAMPLE), layers))
    lines = engine.script("return Mistakes.list.map(({lines}) => lines)")
    for name, wrong, replaced in zip(MISTAKES, planted, lines, strict=True):
        assert list(wrong) == list(right), name
        changed = {re.sub(r"^(encoder|decoder)\d", r"\1", array) for array in right if right[array] != wrong[array]}
        symbols = {array.rpartition(".")[-1] for array in changed}
        assert symbols == {symbol for kind in replaced.values() for symbol in kind}, name
        if name == "residual-forgotten":
            assert changed == {"decoder.norm1.dy"}
    assert planted[list(MISTAKES).index("causal-mask-off")] == right


MALFORMED = [
    "",
    "y[t,c] =",
    "y[t,c] x[t,c]",
    "[t,c] = x[t,c]",
    "y[t,c = x[t,c]",
    "y[t,c] = x[t,c",
    "y[t,c] = x[t,c]]",
    "y[t,c] = (x[t,c]",
    "y[t,c] = x[t,c] x[t,c]",
    "y[t,c] = x[t,c] +",
    "y[t,c] = +",
    "y[t,c] = x[t,c] $ 2",
    "y[t,c] = x[t,c]^x[t,c]",
    "y[t,c] = x[t,c]^2.5",
    "y[t,c] = sum[f(a[t,f])",
    "y[t,c] = sum[f]a[t,f]",
    "y[t,c] = sum[](x[t,c])",
    "y[t,c] = sum[3](x[t,c])",
    "y[t,c] = sum[f: f](a[t,f])",
    "y[t,c] = 1[x[t,c]]",
    "y[t,c] = 1[x[t,c] > ]",
    "y[t,c] = sqrt",
    "y[t,c] = sqrt(x[t,c], C)",
    "y[t,c] = x[t,mod(c)]",
    # what only the model knows
    "y[t,c] = Q * x[t,c]",
    "y[t,c] = nothing[t,c]",
    "y[t,c] = x[t]",
    "y[t,c] = x[t,c,c]",
    "y[t,c] = x[t,f]",
    "y[t,c] = sum[f](x[t,f])",
    "y[t,c] = sum[z](x[z,c])",
    "y[z,c] = x[z,c]",
]
REFUSED = """
const {sizes, eps} = arguments[0];
try {
  Engine.build(sizes, {S: 3, T: 4, eps, replaced: {ffn: {y: arguments[1]}}});
  return null;
} catch (error) {
  return `${error.name}: ${error.message}`;
}
"""


@pytest.mark.parametrize("line", MALFORMED)
def test_malformed_formula_is_refused_by_a_sentence_that_names_it(engine, line):
    error = engine.script(REFUSED, to_page(EXAMPLE), line)
    assert error is not None
    assert error.startswith("Error: ")
    assert line in error or error == "Error: encoder.ffn has no nothing"


DETECTED = """
const [ids, mistakes, weights, smoothing] = arguments;
return mistakes.map((id) => {
  const mistake = Mistakes.list.find((one) => one.id === id);
  const context = Mistakes.context(MODEL, {weights: MODEL.weights[weights], ...ids, smoothing, mistake});
  const first = Mistakes.differences(context.right(), context.wrong()).find(({difference}) => difference > 1e-9);
  return [first?.name ?? null, Object.fromEntries(Mistakes.detectors.map(({id, run}) => [id, run(context)]))];
});
"""
FINDINGS = {  # on "stop": the tests that ring, and the first wrong array
    "no-scale": ({"formula"}, "encoder.self.s"),
    "no-scale-backward": ({"complex"}, "cross.dq"),
    "mask-after-softmax": ({"complex", "rows", "leak", "padding", "formula"}, "decoder.self.m"),
    "causal-mask-off": ({"leak", "formula"}, "decoder.self.m"),
    "heads-reshaped": ({"padding", "formula"}, "encoder.self.q"),
    "variance-over-c-1": ({"formula"}, "encoder.norm1.sigma"),
    "gamma-outside-sums": ({"complex", "rows"}, "decoder.norm3.dx_hat_mean"),
    "softmax-entry-by-entry": ({"complex", "rows"}, "cross.ds"),
    "keys-reshaped": ({"complex", "rows", "padding"}, "cross.dk"),
    "relu-gated-by-gradient": ({"falls", "complex"}, "decoder.ffn.da"),
    "residual-forgotten": ({"complex"}, "decoder.norm1.dy"),
    "memory-through-values": ({"complex"}, "cross.dM"),
    "token-twice": (set(), None),
    "mean-and-sum": ({"complex"}, "output.dz"),
}
ON_TOOT = {"relu-gated-by-gradient": {"complex"}, "token-twice": {"complex"}}  # where it is told otherwise


def detected(engine, word, *mistakes, weights="trained", smoothing=0.0):
    """(first wrong array, {detector: result}) for each mistake; the right answer is the reversed word"""
    ids = to_page(Case("", word, load_example(word)))["ids"]
    return engine.script(DETECTED, ids, mistakes, weights, smoothing)


def ringing(results):
    """The names of the detectors that ring."""
    return {name for name, result in results[1].items() if result["rings"]}


def test_each_mistake_is_found_by_the_detectors_that_can_see_it(engine):
    assert list(FINDINGS) == list(MISTAKES)
    for word, others in {"stop": {}, "toot": ON_TOOT}.items():
        right, *planted = detected(engine, word, None, *FINDINGS)
        results = dict(zip(FINDINGS, planted, strict=True))
        assert ringing(right) == set()
        rings = {mistake: rings for mistake, (rings, _) in FINDINGS.items()}
        assert {mistake: ringing(found) for mistake, found in results.items()} == rings | others
        for mistake, (first, found) in results.items():
            assert word == "toot" or first == FINDINGS[mistake][1], mistake
            for result in found.values():
                assert result["rings"] == (result["number"] > 1e-9) or "right" in result, mistake
    _, twice = results["token-twice"]
    assert twice["complex"]["wrong"] == ["E"]
    _, shown_late = results["mask-after-softmax"]
    assert shown_late["formula"]["first"] == "decoder.self.m"


def test_wrong_arrays_are_those_behind_the_mistake_in_the_order_of_the_backward_pass(engine):
    (results,) = detected(engine, "stop", "memory-through-values")
    complex_step = results[1]["complex"]
    arrays = [array["name"] for array in complex_step["arrays"]]
    assert len(arrays) == 43
    assert arrays[0] == "decoder.norm3.gamma"
    assert arrays[-1] == "E"
    of_encoder = [name for name in arrays if name.startswith("encoder.")]
    no_way_through_keys = {"encoder.norm2.beta", "encoder.self.b_k"}  # one vector added to all keys changes no weight
    assert complex_step["wrong"] == [name for name in [*of_encoder, "E"] if name not in no_way_through_keys]


@pytest.mark.parametrize(("word", "weights"), [("o", "trained"), ("pop", "untrained")])
def test_healthy_model_rings_nowhere(engine, word, weights):
    for smoothing in (0.0, 0.1):
        (results,) = detected(engine, word, None, weights=weights, smoothing=smoothing)
        assert ringing(results) == set()


def test_repeated_token_and_gamma_of_1_decide_what_a_gradient_check_sees(engine):
    (twice,) = detected(engine, "stop", "token-twice")
    (gamma,) = detected(engine, "toot", "gamma-outside-sums", weights="untrained")
    assert ringing(twice) == ringing(gamma) == set()


DIFFERENCES = """
const [right, wrong] = [build(arguments[0]), build({...arguments[0], options: {mistake: "no-scale"}})];
return [Mistakes.differences(right, right), Mistakes.differences(right, wrong)];
"""


def test_differences_are_listed_array_by_array_in_the_order_of_the_definitions(engine):
    case = Case("", "toot", example_of("toot", "sst", 1, 2), 0.1)
    same, found = engine.script(BUILD + DIFFERENCES, to_page(case))
    assert {row["difference"] for row in same} == {0}
    names = [row["name"] for row in found]
    assert names[:3] == ["source.e", "source.x", "encoder.self.x"]
    assert names[-1] == "dE"
    right, wrong = case.numbers(), case._replace(planted=MISTAKES["no-scale"].planted).numbers()
    for row in found:
        if row["name"] in right:
            largest = np.abs(right[row["name"]] - wrong[row["name"]]).max()
            assert row["difference"] == pytest.approx(largest, abs=1e-12), row["name"]


ABSOLUTE = """
const lines = ["db_k = sum[i](dk) + 0.5", "db_q = sum[t](dq) * 1.5"];
return lines.map((line) => {
  const {mistake} = OwnLine.read(`cross.${line}`);
  const ids = {source: MODEL.source, target: MODEL.target};
  const context = Mistakes.context(MODEL, {weights: MODEL.weights.trained, ...ids, mistake});
  const {arrays} = Mistakes.detectors.find(({id}) => id === "complex").run(context);
  return arrays.find(({name}) => name === mistake.only[0] + "." + line.slice(1, 4));
});
"""


def test_error_is_relative_but_absolute_where_the_gradient_is_zero(engine):
    keys, queries = engine.script(ABSOLUTE)  # a bias of keys changes no loss
    assert abs(keys["true"]) < 1e-15
    assert keys["error"] == pytest.approx(abs(keys["claimed"]), rel=1e-9)
    assert queries["error"] == pytest.approx(0.5, rel=1e-6)
