"""Proves that our adapters and PEFT's are one function with the same gradients, whoever saved the files.

Skipped where `peft` is missing; `test_peft_reference` compares with stored values then.
"""

import contextlib
import json

import numpy as np
import pytest

from minitransformer.interop import load_adapters, load_huggingface, save_adapters
from minitransformer.interop.huggingface_adapters import module_of, their_modules
from minitransformer.layers import add_lora, lora_adapters
from tests.helpers import device, host, relative_error
from tests.oracle.huggingface_cases import CASES, draw_inputs, draw_upstream
from tests.oracle.peft_cases import BOUND, CONFIG, TARGETS, Problem, base_of, errors_of_loading, solve_ours
from tests.oracle.problems import assert_all_within

torch = pytest.importorskip("torch")

from tests.oracle.peft_modules import logits_of, solve, their_base, their_solution  # noqa: E402 - it needs PyTorch
from tests.oracle.test_huggingface_decoders import V, build, in_float64, saved  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
OURS = {"GPT-2": ["qkv", "output", "contract"], "BERT, hidden tokens": ["qkv", "expand", "transform"]}
OURS["T5"] = ["qkv", "q", "kv", "output"]


@pytest.fixture(scope="module", autouse=True)
def peft():
    """PEFT, imported here, for it takes seconds."""
    return pytest.importorskip("peft")


@pytest.mark.parametrize("name", TARGETS)
def test_what_peft_saves_has_its_logits_and_gradients_in_our_model(name, tmp_path, record_property):
    theirs, problem, solution = solve(name, seed=11)
    theirs.save_pretrained(tmp_path)
    errors = errors_of_loading(name, problem, solution, tmp_path)
    assert_all_within(BOUND, errors, name, record_property)
    written = json.loads((tmp_path / "adapter_config.json").read_text("utf8"))
    assert written.keys() == CONFIG.keys()


@pytest.mark.parametrize("name", OURS)
def test_what_we_save_has_our_logits_and_gradients_in_theirs(peft, name, tmp_path, record_property):
    base, state = their_base(name, seed=12)
    problem = Problem(state, {}, draw_inputs(CASES[name], 12), None)
    model = base_of(name, problem)
    adapters = add_lora(model, OURS[name], rank=3, alpha=5)
    rng = np.random.default_rng(12)
    for adapter in adapters.values():
        for parameter in (adapter.A, adapter.B):
            parameter.data[...] = device(0.4 * rng.standard_normal(parameter.data.shape))
    save_adapters(model, tmp_path)
    theirs = peft.PeftModel.from_pretrained(base, tmp_path, is_trainable=True).eval()
    dy = draw_upstream(CASES[name], logits_of(name, theirs, problem.inputs).shape, problem.inputs, 12)
    logits = solve_ours(name, model, problem._replace(dy=dy))
    solution = their_solution(name, theirs, problem.inputs, dy)
    errors = {"logits": relative_error(logits, solution.logits)}
    prefix, modules = their_modules(model)
    expected = dict(solution.gradients)
    for own, adapter in adapters.items():
        names = [
            f"base_model.model.{prefix if 'cls.' not in each else ''}{each}" for each in map(module_of, modules[own])
        ]
        dA = sum(expected.pop(f"{each}.lora_A.weight") for each in names)  # the modules share one A here
        dB = np.concatenate([expected.pop(f"{each}.lora_B.weight") for each in names])
        errors[f"{own}.A"] = relative_error(host(adapter.A.grad).T, dA)
        errors[f"{own}.B"] = relative_error(host(adapter.B.grad).T, dB)
    assert not expected
    assert_all_within(BOUND, errors, name, record_property)


DECODERS = {"llama": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]}
DECODERS |= {"qwen2": ["q_proj", "k_proj"], "qwen3": ["k_proj", "v_proj"], "gemma 3": ["q_proj", "up_proj"]}
DECODERS["mixtral"] = ["q_proj", "o_proj"]


@pytest.mark.parametrize("name", DECODERS)
def test_adapters_of_a_decoder_are_one_function_whoever_saved_them(peft, name, tmp_path):
    rng, ids = np.random.default_rng(13), np.random.default_rng(14).integers(1, V, (2, 7))
    base = build(name)
    saved(base, tmp_path / "base")
    theirs = peft.get_peft_model(base, peft.LoraConfig(r=2, lora_alpha=3, target_modules=DECODERS[name])).double()
    with torch.no_grad():
        for each, parameter in theirs.named_parameters():
            if ".lora_" in each:
                parameter.copy_(torch.tensor(0.4 * rng.standard_normal(tuple(parameter.shape))))
    theirs.save_pretrained(tmp_path / "theirs")
    ours = load_huggingface(tmp_path / "base", dtype=np.float64)
    load_adapters(ours, tmp_path / "theirs")
    assert relative_error(ours(ids), their_logits(theirs, ids)) <= BOUND
    assert relative_error(ours(ids), their_logits(base, ids, theirs)) > 1e-3

    ours = load_huggingface(tmp_path / "base", dtype=np.float64)
    add_lora(ours, ["projection" if name in ("qwen3", "gemma 3") else "qkv", "output"], rank=3, alpha=5)
    for adapter in lora_adapters(ours).values():
        for parameter in (adapter.A, adapter.B):
            parameter.data[...] = device(0.4 * rng.standard_normal(parameter.data.shape))
    save_adapters(ours, tmp_path / "ours")
    theirs = peft.PeftModel.from_pretrained(build(name), tmp_path / "ours").double().eval()
    assert relative_error(their_logits(theirs, ids), ours(ids)) <= BOUND


def their_logits(model, ids, adapted=None):
    """Their logits; with `adapted`, those of the model without its adapters."""
    with in_float64(), torch.no_grad(), adapted.disable_adapter() if adapted else contextlib.nullcontext():
        return model(torch.tensor(ids)).logits.numpy()
