"""Adapters to compare with PEFT's: on which of the models of huggingface_cases.py, and on which of their modules."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors.numpy import save_file

from minitransformer.interop import load_adapters, model_from_huggingface
from minitransformer.interop.huggingface_adapters import module_of, their_modules
from tests.helpers import host, relative_error
from tests.oracle.huggingface_cases import CASES, config_file

PATH = Path(__file__).parents[1] / "reference" / "peft.safetensors"
BOUND = 1e-12  # on every relative error; the worst measured is 2e-13
R, ALPHA = 2, 3
# the name of a case, and PEFT's target_modules: matrices that are one in both models, and some of queries and values
TARGETS = {
    "GPT-2": ["c_attn", "c_proj", "c_fc"],
    "BERT, hidden tokens": ["query", "value", "dense"],
    "T5": ["q", "k", "v", "o", "wi"],
}
# the file that PEFT 0.21.2 writes for GPT-2
CONFIG = json.loads("""{
    "alora_invocation_tokens": null, "alpha_pattern": {}, "arrow_config": null, "auto_mapping": null,
    "base_model_name_or_path": null, "bias": "none", "corda_config": null, "ensure_weight_tying": false,
    "eva_config": null, "exclude_modules": null, "fan_in_fan_out": true, "inference_mode": true,
    "init_lora_weights": true, "kasa_config": null, "layer_replication": null, "layers_pattern": null,
    "layers_to_transform": null, "loftq_config": {}, "lora_alpha": 3, "lora_bias": false, "lora_dropout": 0.0,
    "lora_ga_config": null, "megatron_config": null, "megatron_core": "megatron.core", "modules_to_save": null,
    "monteclora_config": null, "peft_type": "LORA", "peft_version": "0.21.2", "qalora_group_size": 16, "r": 2,
    "rank_pattern": {}, "revision": null, "target_modules": ["c_attn", "c_proj", "c_fc"], "target_parameters": null,
    "task_type": "CAUSAL_LM", "trainable_token_indices": null, "use_bdlora": null, "use_dora": false,
    "use_qalora": false, "use_rslora": false, "velora_config": null
}""")


class Problem(NamedTuple):
    """The numbers of one comparison; all floats are exact in float16."""

    state: dict  # the weights of their model, by their names
    adapters: dict  # the tensors of PEFT's file
    inputs: dict
    dy: np.ndarray


class Solution(NamedTuple):
    """What both sides are asked for."""

    logits: np.ndarray
    gradients: dict  # by the names of PEFT's file


def write_folder(folder, adapters, config=CONFIG):
    """The two files of PEFT."""
    save_file(
        {name: np.array(array, order="C") for name, array in adapters.items()}, folder / "adapter_model.safetensors"
    )
    (folder / "adapter_config.json").write_text(json.dumps(config), "utf8")


def base_of(name, problem):
    """Our model without adapters."""
    return model_from_huggingface(problem.state, config_file(CASES[name]), dtype=np.float64)


def solve_ours(name, model, problem):
    """Our logits, after which the parameters have their gradients."""
    order = {"gpt2": ("target",), "bert": ("target", "segments"), "t5": ("source", "target")}[CASES[name].kind]
    logits, cache = model.forward(*(problem.inputs[each] for each in order))
    model.backward(problem.dy, cache)
    return host(logits)


def errors_of_loading(name, problem, solution, folder):
    """{name: relative error} of our logits and gradients with the adapters in PEFT's `folder`."""
    model = base_of(name, problem)
    adapters = load_adapters(model, folder)
    logits = solve_ours(name, model, problem)
    assert not any(parameter.frozen for adapter in adapters.values() for parameter in (adapter.A, adapter.B))
    prefix, modules = their_modules(model)
    found = {}
    for own, adapter in adapters.items():
        names = [
            f"base_model.model.{prefix if 'cls.' not in each else ''}{each}" for each in map(module_of, modules[own])
        ]
        given = [(i, each) for i, each in enumerate(names) if f"{each}.lora_A.weight" in solution.gradients]
        width = adapter.B.data.shape[1] // len(names)
        for k, (i, each) in enumerate(given):
            rows = slice(k * R, (k + 1) * R)
            found[f"{each}.lora_A.weight"] = host(adapter.A.grad)[:, rows].T
            found[f"{each}.lora_B.weight"] = host(adapter.B.grad)[rows, i * width : (i + 1) * width].T
    assert found.keys() == solution.gradients.keys()
    named = {each: relative_error(found[each], solution.gradients[each]) for each in found}
    return {"logits": relative_error(logits, solution.logits)} | named
