"""The explorer computes what the library computes: every tensor, every gradient, every step of Adam."""

import re

import numpy as np
import pytest

from minitransformer.example import load_example
from minitransformer.example.names import named_weights
from minitransformer.training import Adam
from minitransformer.vocabulary import PAD
from tests.browser.cases import Case, all_cases, example_of, results_and_gradients, shapes
from tests.browser.engine import BUILD, to_page
from tests.browser.numbers import differences

pytestmark = pytest.mark.exhaustive


def name_of(case):
    return f"{case.group} {case.name}"


def test_every_tensor_is_that_of_the_library(engine):
    cases = all_cases()
    groups = differences(engine, cases)
    assert set(groups) == {case.group for case in cases}
    for worst in groups.values():
        assert worst.absolute < 1e-12, worst
        assert worst.relative < 1e-12, worst
    assert sum(worst.tensors for worst in groups.values()) > 160 * sum(not case.whole for case in cases)


ON_THE_WAY = """
const [given, known] = arguments;
const machine = build(given);
const names = [...machine.arrays.keys()].filter((name) => !known.includes(name) && !name.endsWith("ids"));
return Object.fromEntries(names.map((name) => [name, Array.from(machine.data(name))]));
"""


def test_arrays_that_only_the_page_has_are_right(engine):
    case = Case("", "toot", example_of("toot", "sst", 1, 2), 0.1)
    v, right = case.numbers(), {}
    targets = case.example.target_out[0]
    z, wanted = v["output.z"], np.eye(case.example.model.config.vocab_size)[targets]
    for at in {name.removesuffix(".ds") for name in v if name.endswith(".ds")}:
        allowed = np.where(v[f"{at}.allowed"], v[f"{at}.s"], -np.inf)
        right[f"{at}.m"] = allowed.max(axis=-1)
        right[f"{at}.n"] = np.exp(allowed - right[f"{at}.m"][..., None]).sum(axis=-1)
        right[f"{at}.dp_mean"] = (v[f"{at}.p"] * v[f"{at}.dp"]).sum(axis=-1)
    for at in {name.removesuffix(".x_hat") for name in v if name.endswith(".x_hat")}:
        right[f"{at}.dx_hat_mean"] = v[f"{at}.dx_hat"].mean(axis=-1)
        right[f"{at}.dx_hat_x_hat_mean"] = (v[f"{at}.dx_hat"] * v[f"{at}.x_hat"]).mean(axis=-1)
    right["output.m"] = z.max(axis=-1)
    right["output.n"] = np.exp(z - z.max(axis=-1, keepdims=True)).sum(axis=-1)
    right["output.p_star"] = 0.9 * wanted + 0.1 / z.shape[-1]
    right["output.share"] = (targets != PAD) / (targets != PAD).sum()
    right["output.loss"] = -(right["output.p_star"] * np.log(v["output.p"])).sum(axis=-1)
    found = engine.script(BUILD + ON_THE_WAY, to_page(case), [*v, "PE"])
    assert set(found) == set(right)
    for name, values in found.items():
        np.testing.assert_allclose(values, np.ravel(right[name]), rtol=1e-13, atol=1e-12, err_msg=name)


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


SLOPES = [
    *(pytest.param(case, 1e-5, 1e-6, id=f"quotient, {case.name}") for case in EXAMPLES),
    *(pytest.param(case, 0, 1e-10, id=f"complex step, {name_of(case)}") for case in EXAMPLES),
    *(pytest.param(case, 0, 1e-10, id=f"complex step, {name_of(case)}", marks=pytest.mark.weekly) for case in shapes()),
]


@pytest.mark.parametrize(("case", "h", "tolerance"), SLOPES)
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
const adam = new Engine.Adam();
for (let step = 0; step < steps; step++) {
  adam.step(machine);
  machine.run();
}
return [machine.loss, Object.fromEntries(machine.weights().map((name) => [name, Array.from(machine.data(name))]))];
"""


@pytest.mark.parametrize("steps", [1, 100])
@pytest.mark.parametrize("case", EXAMPLES[:2], ids=lambda case: case.name)
def test_steps_of_adam_are_those_of_the_library(engine, case, steps):
    constants = engine.script("return {...new Engine.Adam()}")
    model = load_example().model
    betas = constants["beta_1"], constants["beta_2"]
    adam = Adam(model.parameters(), constants["lr"], betas, constants["eps"])
    example = case.example._replace(model=model)
    for _ in range(steps):
        results_and_gradients(example, case.smoothing)
        adam.step()
    weights, right = named_weights(model), results_and_gradients(example, case.smoothing)["output.L"]
    loss, found = engine.script(BUILD + TRAIN, to_page(case), steps)
    assert loss == pytest.approx(float(right), abs=1e-12)
    assert set(found) == set(weights)
    for name, values in found.items():
        # the gradient of b_k is 0 except for rounding, which Adam divides by eps
        atol = 1e-6 if name.endswith("b_k") else 1e-12
        np.testing.assert_allclose(values, weights[name].ravel(), rtol=0, atol=atol, err_msg=name)


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
