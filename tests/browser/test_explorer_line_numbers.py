"""The reader's own line in the engine: what it computes, where it is planted, and that nothing else gets in."""

import numpy as np
import pytest

from minitransformer.example import load_example
from tests.browser.cases import INPUTS, Case, example_of
from tests.browser.engine import BUILD, to_page

pytestmark = pytest.mark.exhaustive

RIGHT = {  # the same array in two forms, neither of which is that of the page
    "cross.ds": [
        "ds = p*dp - p*sum[i](p*dp)",
        "ds[h,t,i] = sum[j](dp[h,t,j] * p[h,t,j] * (1[i == j] - p[h,t,i]))",
    ],
    "decoder.norm2.dx": [
        "dx = dx_hat/sigma - (sum[c](dx_hat) + x_hat*sum[c](dx_hat*x_hat))/(C*sigma)",
        "dx = sum[g](dx_hat[t,g] * (1[c == g] - (1 + x_hat*x_hat[t,g])/C)) / sigma",
    ],
    "output.dz": [
        "dz = share*p - share*p_star",
        "dz[t,w] = share[t]*(exp(z[t,w])/sum[w](exp(z[t,w])) - p_star[t,w])",
    ],
    "decoder.ffn.da": ["da = 1[r > 0]*dr", "da = dr - 1[a <= 0]*dr"],
    "encoder.self.dW_q": ["dW_q = sum[t](dq*x)", "dW_q[c,h*D+d] = sum[t](x*sum[i](ds*k)) / sqrt(D)"],
}
FOUND = """
const machine = build(arguments[0]);
const {mistake} = OwnLine.read(arguments[0].options.line);
const {source, target} = arguments[0].ids;
const context = Mistakes.context(MODEL, {weights: MODEL.weights.trained, source, target, mistake});
const right = context.right();
return {
  numbers: arguments[1].map((name) => Array.from(machine.data(name))),
  rings: arguments[1].length && Mistakes.detectors.filter(({run}) => run(context).rings).map(({id}) => id),
  changed: machine.definitions.filter(({name, text}) => text !== right.get(name).definition.text)
    .map(({name}) => name),
};
"""


@pytest.mark.parametrize(
    "array", [*list(RIGHT)[:2], *(pytest.param(name, marks=pytest.mark.weekly) for name in list(RIGHT)[2:])]
)
def test_a_right_line_in_another_form_rings_nowhere_and_gives_the_library_s_numbers(engine, array):
    example = example_of("toot", "too")
    expected = Case("", "", example).numbers()
    names = [name for name in expected if name not in INPUTS]
    for line in RIGHT[array]:
        found = engine.script(BUILD + FOUND, to_page(Case("", "", example, options={"line": line})), names)
        assert found["rings"] == []
        assert array in found["changed"]
        for name, values in zip(names, found["numbers"], strict=True):
            np.testing.assert_allclose(values, expected[name].ravel(), rtol=0, atol=1e-12, err_msg=name)


EVALUATED = """
const machine = build(arguments[0]);
let worst = 0;
for (const {name, expression, scope} of machine.definitions)
  machine.data(name).forEach((value, flat) => {
    worst = Math.max(worst, Math.abs(Language.evaluate(expression, scope, machine.givenOf(name, flat)) - value));
  });
const texts = (cells) => cells.map(({name, flat}) => `${name} ${flat}`).sort();
return [worst, texts(machine.comesFrom("cross.ds", 0)), texts(machine.goesTo("cross.dp", 3))];
"""


def test_an_index_that_a_sum_hides_has_its_old_value_after_it(engine):
    case = Case("", "", load_example(), options={"line": "ds = sum[i](p*dp^3) * p - -p*dp"})
    worst, come_from, go_to = engine.script(BUILD + EVALUATED, to_page(case))
    assert worst < 1e-12
    assert go_to == ["cross.dp_mean 0", *(f"cross.ds {flat}" for flat in range(4))]
    assert come_from == sorted(f"cross.{symbol} {flat}" for symbol in ("p", "dp") for flat in range(4))


def test_a_line_is_planted_in_all_places_that_have_its_names_or_in_the_one_that_is_named(engine):
    everywhere = ["cross.ds", "decoder.self.ds", "encoder.self.ds"]
    norms = [f"{stack}.norm{n}.dx" for stack, n in [("decoder", 3), ("decoder", 2), ("decoder", 1), ("encoder", 2)]]
    for line, changed in {
        "ds = p*dp": everywhere,
        "cross.ds = p*dp": everywhere[:1],
        "dx = dx_hat / sigma": [*norms, "encoder.norm1.dx"],
        "dW_k = sum[i](M*dk)": ["cross.dW_k"],
        "dE = sum[t](DZ*Y)": ["dE"],
    }.items():
        found = engine.script(BUILD + FOUND, to_page(Case("", "", load_example(), options={"line": line})), [])
        assert found["changed"] == changed, line


FUZZ = """
let state = 1;
const random = (n) => Math.floor(((state = (state * 48271) % 2147483647) / 2147483647) * n);
const pieces = `p dp q k v ds dq x E ids[t] sum[i]( max[d]( 1[ sqrt( relu( exp( ) ] [h,t,i] [h,t,d] , * + - /
  ^2 ^ == > : = h t i d c 0.5 2 D constructor eval kind layers
  __proto__ toString alert(1) ; { } \\` " $ . 1e400 0 let this`.split(/\\s+/);
const kinds = {};
for (let n = 0; n < 3000; n++) {
  const parts = Array.from({length: 1 + random(7)}, () => pieces[random(pieces.length)]);
  const line = "ds = " + parts.join(random(2) ? " " : "");
  const {problem} = OwnLine.read(line);
  kinds[problem?.kind ?? "fine"] = (kinds[problem?.kind ?? "fine"] ?? 0) + 1;
}
return kinds;
"""


def test_any_line_is_either_computed_or_refused_with_a_reason(engine):
    kinds = engine.script(FUZZ)
    assert sum(kinds.values()) == 3000
    assert kinds["fine"] > 50
    assert len(kinds) >= 14
    assert "other" not in kinds  # a reason that nobody has thought of


OTHER_MODELS = """
const sizes = {...MODEL.sizes, H: 3, D: 2, ...arguments[0]};
globalThis.MODEL = {...MODEL, sizes};
const {mistake} = OwnLine.read(arguments[1]);
const right = Engine.build(sizes, {S: 3, T: 4, eps: 1e-5});
const wrong = Engine.build(sizes, {S: 3, T: 4, eps: 1e-5, ...mistake.options});
const changed = wrong.definitions.filter(({name, text}) => text !== right.get(name).definition.text);
return [mistake.only, changed.map(({name}) => name)];
"""


@pytest.mark.parametrize(
    ("shape", "line", "changed"),
    [
        ({"layers": 2}, "decoder2.cross.ds = p*dp", ["decoder2.cross.ds"]),
        ({"layers": 2}, "da = dr", [f"{stack}{n}.ffn.da" for stack in ("decoder", "encoder") for n in (2, 1)]),
        ({"norm": "pre"}, "ds = p*dp", ["cross.ds", "decoder.self.ds", "encoder.self.ds"]),
        ({"kind": "gpt", "layers": 2}, "ds = p*dp", ["decoder2.self.ds", "decoder1.self.ds"]),
        ({"positions": "rope"}, "decoder.self.dW_q = sum[t](x*dq_0)*2", ["decoder.self.dW_q"]),
    ],
)
def test_a_line_is_planted_in_models_of_other_shapes(engine, shape, line, changed):
    model = engine.script("return MODEL")
    only, found = engine.script(OTHER_MODELS, shape, line)
    engine.script("globalThis.MODEL = arguments[0]", model)
    assert found == changed
    assert sorted(only) == sorted(name.rpartition(".")[0] for name in changed)
