"""PEFT's own adapters on Hugging Face's models, solving the problems of peft_cases.py in float64."""

import warnings

import numpy as np
import torch

from tests.oracle.huggingface_cases import CASES, draw_inputs, draw_state, draw_upstream
from tests.oracle.huggingface_modules import build, in_float64, their_inputs
from tests.oracle.peft_cases import ALPHA, TARGETS, Problem, R, Solution
from tests.oracle.problems import to_short_floats


def their_base(name, seed):
    """Their model with random weights, and the weights."""
    model = build(CASES[name])
    parameters = dict(model.named_parameters())
    state = draw_state({each: tuple(parameter.shape) for each, parameter in parameters.items()}, seed)
    with torch.no_grad():
        for each, parameter in parameters.items():
            parameter.copy_(torch.tensor(state[each]))
    return model, state


def solve(name, seed):
    """Random weights, adapters and inputs, and what PEFT makes of them -> their model, Problem, Solution."""
    import peft  # takes seconds

    base, state = their_base(name, seed)
    config = peft.LoraConfig(
        r=R, lora_alpha=ALPHA, target_modules=TARGETS[name], fan_in_fan_out=CASES[name].kind == "gpt2"
    )
    model = peft.get_peft_model(base, config).eval()
    rng = np.random.default_rng(seed)
    adapters = {}
    with torch.no_grad():
        for each, parameter in trained(model).items():
            adapters[each] = to_short_floats(0.4 * rng.standard_normal(tuple(parameter.shape)))
            parameter.copy_(torch.tensor(adapters[each]))
    inputs = draw_inputs(CASES[name], seed)
    dy = draw_upstream(CASES[name], logits_of(name, model, inputs).shape, inputs, seed)
    return model, Problem(state, adapters, inputs, dy), their_solution(name, model, inputs, dy)


def logits_of(name, model, inputs):
    """Their logits, with the graph that gradients need."""
    with in_float64(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model(**their_inputs(CASES[name], inputs)).logits


def their_solution(name, model, inputs, dy):
    """Their logits and the gradients of all adapters."""
    parameters, logits = trained(model), logits_of(name, model, inputs)
    gradients = torch.autograd.grad(logits, list(parameters.values()), torch.tensor(dy))
    named = {each: gradient.numpy() for each, gradient in zip(parameters, gradients, strict=True)}
    return Solution(logits.detach().numpy(), named)


def trained(model):
    """{name in PEFT's file: parameter} of what PEFT trains."""
    return {
        each.replace(".default", ""): parameter
        for each, parameter in model.named_parameters()
        if parameter.requires_grad
    }
