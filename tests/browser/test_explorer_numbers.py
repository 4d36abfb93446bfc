"""The explorer computes what the library computes: every tensor, every gradient, every step of Adam."""

import re

import numpy as np
import pytest

from minitransformer.decoding import greedy_decode
from minitransformer.example import load_example
from minitransformer.example.model import Example
from minitransformer.functional import cross_entropy, cross_entropy_backward, sinusoidal_positions
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import Adam
from minitransformer.vocabulary import EOS
from tests.browser.cases import MISTAKES, Case, all_cases, example_of, scrambled
from tests.browser.engine import BUILD, to_page
from tests.browser.numbers import differences

PLACES = {  # of the library, and how the page calls them in a stack
    "encoder.self_attention": ("self", "norm1"),
    "encoder.feed_forward": ("ffn", "norm2"),
    "decoder.self_attention": ("self", "norm1"),
    "decoder.cross_attention": ("cross", "norm2"),
    "decoder.feed_forward": ("ffn", "norm3"),
}
SYMBOLS = {"qkv": "qkv", "kv": "kv", "q": "q", "output": "o", "expand": "1", "contract": "2"}


def named(arrays, layers=1):
    """{name in the library: array} -> {name on the page: array}. The library keeps q, k and v in one matrix."""
    found = {}
    for name, array in arrays.items():
        if name == "source_embedding.tokens.E":
            found["E"] = array
            continue
        stack, layer, part, kind, symbol = re.fullmatch(r"(\w+)\.layers\.(\d)\.(\w+)\.(\w+)\.(.+)", name).groups()
        place = PLACES[f"{stack}.{part}"][kind == "norm"]
        number = int(layer) + 1 if layers > 1 else ""
        full = place if place == "cross" and layers == 1 else f"{stack}{number}.{place}"
        if kind == "norm":
            found[f"{full}.{symbol}"] = array
            continue
        matrix, letter = symbol.split(".")
        parts = SYMBOLS[matrix]
        for i, piece in enumerate(np.split(array, len(parts), axis=-1)):
            found[f"{full}.{letter}_{parts[i]}"] = piece
    return found


def loss_and_gradients(example, smoothing=0.0):
    """Of the library's Transformer -> loss, {name on the page: gradient}"""
    model = example.model
    z, cache = model.forward(example.source, example.target_in)
    loss, cache_loss = cross_entropy(z, example.target_out, smoothing)
    model.zero_grad()
    model.backward(cross_entropy_backward(1.0, cache_loss), cache)
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return loss, named(gradients, model.config.num_layers)


def test_every_tensor_is_that_of_the_library(engine):
    cases = all_cases()
    groups = differences(engine, cases)
    assert set(groups) == {case.group for case in cases}
    for worst in groups.values():
        assert worst.absolute < 1e-12, worst
        assert worst.relative < 1e-12, worst
    assert sum(worst.tensors for worst in groups.values()) > 160 * len(cases)


def test_comparison_notices_a_tensor_that_is_off(engine):
    wrong = Case("off", "stop", load_example(), edits=(("decoder.ffn.dW_1", 3, 1e-11),))
    worst = differences(engine, [wrong])["off"]
    assert worst.absolute == pytest.approx(1e-11)
    assert worst.absolute_in == "decoder.ffn.dW_1 (stop)"


ON_THE_WAY = """
const [given, known] = arguments;
const machine = build(given);
const names = [...machine.arrays.keys()].filter((name) => !known.includes(name) && !name.endsWith("ids"));
return Object.fromEntries(names.map((name) => [name, Array.from(machine.data(name))]));
"""


def test_arrays_that_only_the_page_has_are_right(engine):
    case = Case("", "toot", example_of("toot", "sst", 1, 2), 0.1)
    v, right = case.numbers(), {}
    for at in ("encoder.self", "decoder.self", "cross"):
        allowed = np.where(v[f"{at}.allowed"], v[f"{at}.s"], -np.inf).reshape(v[f"{at}.s"].shape)
        right[f"{at}.m"] = allowed.max(axis=-1)
        right[f"{at}.n"] = np.exp(allowed - right[f"{at}.m"][..., None]).sum(axis=-1)
        right[f"{at}.dp_mean"] = (v[f"{at}.p"] * v[f"{at}.dp"]).sum(axis=-1)
    for at in ("encoder.norm1", "encoder.norm2", "decoder.norm1", "decoder.norm2", "decoder.norm3"):
        right[f"{at}.dx_hat_mean"] = v[f"{at}.dx_hat"].mean(axis=-1)
        right[f"{at}.dx_hat_x_hat_mean"] = (v[f"{at}.dx_hat"] * v[f"{at}.x_hat"]).mean(axis=-1)
    z, wanted = v["output.z"], np.eye(7)[case.example.target_out[0]]
    right["output.m"] = z.max(axis=-1)
    right["output.n"] = np.exp(z - z.max(axis=-1, keepdims=True)).sum(axis=-1)
    right["output.p_star"] = 0.9 * wanted + 0.1 / 7
    right["output.share"] = [0.25, 0.25, 0.25, 0.25, 0, 0]
    right["output.loss"] = -(right["output.p_star"] * np.log(v["output.p"])).sum(axis=-1)
    found = engine.script(BUILD + ON_THE_WAY, to_page(case), list(v))
    assert set(found) == set(right)
    for name, values in found.items():
        np.testing.assert_allclose(values, np.ravel(right[name]), rtol=0, atol=1e-12, err_msg=name)


def test_mistakes_of_the_page_are_all_planted_in_the_library_too(engine):
    assert engine.script("return Mistakes.list.map(({id}) => id)") == list(MISTAKES)


CELLS = """
const [given, h] = arguments;
const machine = build(given);
const found = [];
for (const [name, {role, size}] of machine.arrays) {
  const partner = machine.partner(name);
  if (!partner || !["weight", "value"].includes(role)) continue;
  const slope = (flat) => h ? (machine.nudge(name, flat, h) - machine.nudge(name, flat, -h)) / (2 * h)
    : machine.complexStep(name, flat);
  found.push([name, Array.from({length: size}, (_, flat) => slope(flat)), Array.from(machine.data(partner))]);
}
return found;
"""
EXAMPLES = [
    Case("", "stop", load_example()),
    Case("", "repeated letters and padding", example_of("toot", "sst", 1, 2), 0.1),
    Case("", "edited", load_example("pop"), edits=(("cross.s", 4, 0.5), ("encoder.ffn.a", 2, 0.3))),
]


@pytest.mark.parametrize("case", EXAMPLES, ids=lambda case: case.name)
@pytest.mark.parametrize(("h", "tolerance"), [(0, 1e-10), (1e-5, 1e-6)], ids=["complex step", "quotient"])
def test_slope_at_every_number_is_its_gradient(engine, case, h, tolerance):
    found = engine.script(BUILD + CELLS, to_page(case), h)
    gradients_of_library = {name for name in case.numbers() if name.rpartition(".")[-1].startswith("d")}
    assert gradients_of_library <= {re.sub(r"(\w+)$", r"d\1", name) for name, _, _ in found}
    for name, slopes, gradients in found:
        scale = max(1e-3, np.abs(gradients).max())
        np.testing.assert_allclose(slopes, gradients, rtol=0, atol=tolerance * scale, err_msg=name)


TRAIN = """
const [given, steps] = arguments;
const machine = build(given);
const adam = new Engine.Adam(MODEL.adam);
for (let step = 0; step < steps; step++) {
  adam.step(machine);
  machine.run();
}
return [machine.loss, Object.fromEntries(machine.weights().map((name) => [name, Array.from(machine.data(name))]))];
"""


@pytest.mark.parametrize("steps", [1, 100])
@pytest.mark.parametrize("case", EXAMPLES[:2], ids=lambda case: case.name)
def test_steps_of_adam_are_those_of_the_library(engine, case, steps):
    constants = engine.script("return MODEL.adam")
    model = load_example().model
    betas = constants["beta_1"], constants["beta_2"]
    adam = Adam(model.parameters(), constants["lr"], betas, constants["eps"])
    example = case.example._replace(model=model)
    for _ in range(steps):
        loss_and_gradients(example, case.smoothing)
        adam.step()
    weights = named({name: parameter.data for name, parameter in model.named_parameters()})
    loss, found = engine.script(BUILD + TRAIN, to_page(case), steps)
    assert loss == pytest.approx(loss_and_gradients(example, case.smoothing)[0], abs=1e-12)
    assert set(found) == set(weights)
    for name, values in found.items():
        # the gradient of b_k is 0 except for rounding, which Adam divides by eps
        atol = 1e-6 if name.endswith("b_k") else 1e-12
        np.testing.assert_allclose(values, weights[name].ravel(), rtol=0, atol=atol, err_msg=name)


def model_of(layers):
    """A model of other sizes with random weights, and a pair of sequences for it -> Case"""
    config = TransformerConfig(9, d_model=8, num_heads=4, d_ff=5, num_layers=layers, dropout=0.0)
    model = scrambled(7, Transformer(config, seed=0, dtype=np.float64))
    rows = ([3, 8, 4, 4, 0], [1, 5, 8, 8, 6, 7, 3, 0, 0], [5, 8, 8, 6, 7, 3, 2, 0, 0])
    example = Example(model, (), *(np.array([ids]) for ids in rows))
    weights = named({name: parameter.data for name, parameter in model.named_parameters()}, layers)
    return Case("", f"{layers} layers", example, 0.1, weights=weights)


GRADIENTS = """
const machine = build(arguments[0]);
const gradients = machine.weights().map((name) => [name, Array.from(machine.data(machine.partner(name)))]);
return [machine.loss, Object.fromEntries(gradients)];
"""


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_model_of_other_sizes_and_layers_has_the_gradients_of_the_library(engine, layers):
    case = model_of(layers)
    loss, gradients = loss_and_gradients(case.example, case.smoothing)
    positions = sinusoidal_positions(9, 8, np.float64).tolist()
    found_loss, found = engine.script(BUILD + GRADIENTS, to_page(case) | {"PE": positions})
    assert found_loss == pytest.approx(loss, rel=1e-13)
    assert set(found) == set(gradients) == set(case.weights)
    for name, values in found.items():
        scale = max(1e-3, np.abs(gradients[name]).max())  # there are gradients of 1e-9
        np.testing.assert_allclose(values, gradients[name].ravel(), rtol=0, atol=1e-12 * scale, err_msg=name)


WRITE = """
const {sizes, eps, ids} = arguments[0];
return Engine.greedyDecode(sizes, {eps}, MODEL.weights.trained, MODEL.PE, ids.source, arguments[1]);
"""


@pytest.mark.parametrize("word", ["stop", "toot", "o", "ps", "sstt"])
def test_page_writes_what_the_library_writes(engine, word):
    example = load_example(word)
    written = greedy_decode(example.model, example.source, 6)[0].tolist()
    assert EOS in written
    assert engine.script(WRITE, to_page(Case("", word, example)), 6) == written[: written.index(EOS)]


LINKS = """
const machine = build(arguments[0]);
const goes = new Map(); // as told by comesFrom
const key = (name, flat) => `${name} ${flat}`;
const cellsOf = ({name, size}) => Array.from({length: size}, (_, flat) => [name, flat]);
const cells = [...machine.arrays.values()].flatMap(cellsOf);
for (const cell of cells) goes.set(key(...cell), new Set());
for (const [name, flat] of cells)
  for (const from of machine.comesFrom(name, flat)) goes.get(key(from.name, from.flat)).add(key(name, flat));
const wrong = cells.filter((cell) => {
  const found = machine.goesTo(...cell).map(({name, flat}) => key(name, flat));
  return found.length !== goes.get(key(...cell)).size || found.some((to) => !goes.get(key(...cell)).has(to));
});
return [cells.length, wrong];
"""


@pytest.mark.parametrize("mistake", [None, "heads-reshaped", "token-twice"])
def test_each_cell_goes_to_the_cells_that_come_from_it(engine, mistake):
    case = Case("", "o", example_of("o", "t", 1, 1), options={"mistake": mistake})
    count, wrong = engine.script(BUILD + LINKS, to_page(case))
    assert count > 2000
    assert wrong == []
