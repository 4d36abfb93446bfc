"""Hugging Face's own models, solving the problems of huggingface_cases.py in float64."""

import contextlib
from unittest import mock

import torch
import transformers

from tests.oracle.huggingface_cases import Problem, Solution, draw_inputs, draw_state, draw_upstream


def build(case):
    """Their model at the sizes of `case`, for evaluation, in float64."""
    cls = getattr(transformers, case.architecture)
    config = cls.config_class(**case.config, attn_implementation="eager")
    with quiet():
        model = cls(config)
    if case.untied and case.kind == "t5":  # newer versions tie it whatever is asked; a file can still have its own
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    return model.double().eval()


@contextlib.contextmanager
def quiet():
    """Without their messages."""
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(before)


def solve(case, seed):
    """Random weights and inputs, and what their model makes of them -> their model, Problem, Solution."""
    model = build(case)
    parameters = dict(model.named_parameters())
    state = draw_state({name: tuple(parameter.shape) for name, parameter in parameters.items()}, seed)
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(torch.tensor(state[name]))
    inputs = draw_inputs(case, seed)
    with in_float64():
        logits = model(**their_inputs(case, inputs)).logits
    dy = draw_upstream(case, tuple(logits.shape), inputs, seed)
    gradients = torch.autograd.grad(logits, list(parameters.values()), torch.tensor(dy))
    named = {name: gradient.numpy() for name, gradient in zip(parameters, gradients, strict=True)}
    return model, Problem(state, inputs, dy), Solution(logits.detach().numpy(), named)


def their_inputs(case, inputs):
    """The same ids by their names of arguments; their mask says 1 where a token may be looked at."""
    ids = {name: torch.tensor(array) for name, array in inputs.items()}
    if case.kind == "gpt2":
        return {"input_ids": ids["target"]}
    if case.kind == "bert":
        mask = (ids["target"] != 0).long()
        return {"input_ids": ids["target"], "token_type_ids": ids["segments"], "attention_mask": mask}
    mask = (ids["source"] != 0).long()
    return {"input_ids": ids["source"], "attention_mask": mask, "decoder_input_ids": ids["target"]}


def in_float64():
    """T5's RMSNorm always takes its mean square in float32; here it is to have the precision of its input."""

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))

    name = "transformers.models.t5.modeling_t5.T5LayerNorm.forward"  # imported in the test, for it takes long
    return mock.patch(name, forward)
