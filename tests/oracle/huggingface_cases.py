"""Hugging Face models to compare with: what they are, and random numbers for them; nothing here needs their library.

Each case is a model of theirs at small sizes, no two axes equal, with weights of order one, so that an eps, a scale or
a bias in the wrong place shows. Their weights are drawn by their names, and reach ours by `model_from_huggingface`.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from minitransformer.interop import from_huggingface, model_from_huggingface
from tests.helpers import relative_error
from tests.oracle.problems import draw_ids, to_short_floats

PATH = Path(__file__).parents[1] / "reference" / "huggingface.safetensors"
BOUND = 1e-12  # on every relative error; the worst measured is 1e-13
V = 11
LARGE_EPS = 0.1  # so large that it matters where it stands


KINDS = {
    "GPT2LMHeadModel": "gpt2",
    "BertForMaskedLM": "bert",
    "BertForSequenceClassification": "bert",
    "T5ForConditionalGeneration": "t5",
}


class Case(NamedTuple):
    """A model of theirs and the shape of what it reads."""

    architecture: str  # their class
    config: dict  # what differs from their usual
    target: int  # T, its tokens
    source: int = 0  # S, of an encoder-decoder
    untied: bool = False  # its output has a matrix of its own, whatever their config says

    @property
    def kind(self):
        """Their "model_type"."""
        return KINDS[self.architecture]


GPT2 = {"vocab_size": V, "n_positions": 9, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_inner": 7}
GPT2["layer_norm_epsilon"] = LARGE_EPS
BERT = {"vocab_size": V, "max_position_embeddings": 9, "hidden_size": 12, "num_hidden_layers": 2}
BERT |= {"num_attention_heads": 3, "intermediate_size": 7, "type_vocab_size": 4, "layer_norm_eps": LARGE_EPS}
T5 = {"vocab_size": V, "d_model": 12, "d_kv": 4, "num_heads": 3, "d_ff": 7, "num_layers": 2}
T5["layer_norm_epsilon"] = LARGE_EPS
T5_1_1 = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}

# S and T beyond 32, so that far distances share their buckets
CASES = {
    "GPT-2": Case("GPT2LMHeadModel", GPT2, 8),
    "BERT, hidden tokens": Case("BertForMaskedLM", BERT, 8),
    "BERT, classes": Case("BertForSequenceClassification", BERT | {"num_labels": 5}, 8),
    "T5": Case("T5ForConditionalGeneration", T5, 37, 41),
    "T5, version 1.1": Case("T5ForConditionalGeneration", T5 | T5_1_1, 37, 41, untied=True),
}
# further ones for the live comparison: every bucket, other activations, the usual width of the network
MORE_CASES = {
    "GPT-2, exact GELU, untied": Case(
        "GPT2LMHeadModel", GPT2 | {"activation_function": "gelu", "n_inner": None, "tie_word_embeddings": False}, 6
    ),
    "GPT-2, SiLU": Case("GPT2LMHeadModel", GPT2 | {"activation_function": "silu"}, 6),
    "GPT-2, Swish": Case("GPT2LMHeadModel", GPT2 | {"activation_function": "swish"}, 6),
    "GPT-2, tanh of PyTorch": Case("GPT2LMHeadModel", GPT2 | {"activation_function": "gelu_pytorch_tanh"}, 6),
    "GPT-2, ReLU": Case("GPT2LMHeadModel", GPT2 | {"activation_function": "relu"}, 6),
    "T5, GELU": Case("T5ForConditionalGeneration", T5 | {"feed_forward_proj": "gelu"}, 5, 3),
    "T5, SiLU": Case("T5ForConditionalGeneration", T5 | {"feed_forward_proj": "silu"}, 5, 3),
    "T5, all distances": Case("T5ForConditionalGeneration", T5, 140, 150),
    "T5, gated SiLU": Case("T5ForConditionalGeneration", T5 | T5_1_1 | {"feed_forward_proj": "gated-silu"}, 5, 3, True),
}


class Problem(NamedTuple):
    """The numbers of one comparison; all floats are exact in float16."""

    state: dict  # their weights, by their names
    inputs: dict  # ids: "target" (B, T), and "source" (B, S) or "segments" (B, T)
    dy: np.ndarray  # the upstream gradient, dLoss/dlogits


class Solution(NamedTuple):
    """What both sides are asked for."""

    logits: np.ndarray
    gradients: dict  # by their names


def draw_state(shapes, seed):
    """Order-one weights {name: array} for {name: shape}, those of normalisations around 1."""
    rng = np.random.default_rng(seed)
    state = {}
    for name, shape in shapes.items():
        parts = name.lower().split(".")
        is_scale = parts[-1] == "weight" and ("norm" in parts[-2] or parts[-2].startswith("ln_"))
        state[name] = to_short_floats(is_scale + 0.4 * rng.standard_normal(shape))
    return state


def draw_inputs(case, seed, B=3):
    """Random ids with padding at the end where the model knows padding, and repeats."""
    rng = np.random.default_rng(seed)
    if case.kind == "gpt2":
        return {"target": rng.integers(0, V, (B, case.target))}
    if case.kind == "bert":
        segments = rng.integers(0, case.config["type_vocab_size"], (B, case.target))
        return {"target": draw_ids(rng, B, case.target, V), "segments": segments}
    target = rng.integers(1, V, (B, case.target))
    target[:, 0] = 0  # what T5 starts with
    return {"source": draw_ids(rng, B, case.source, V), "target": target}


def draw_upstream(case, shape, inputs, seed):
    """A random gradient of the logits; 0 where a token is padding, as no loss asks there."""
    dy = to_short_floats(np.random.default_rng(seed).standard_normal(shape))
    if case.architecture == "BertForMaskedLM":
        dy[inputs["target"] == 0] = 0
    return dy


def solve_ours(case, problem):
    """Our model with their weights -> (logits, {our name: gradient}, the model)."""
    model = model_from_huggingface(problem.state, config_file(case), dtype=np.float64)
    order = {"gpt2": ("target",), "bert": ("target", "segments"), "t5": ("source", "target")}[case.kind]
    logits, cache = model.forward(*(problem.inputs[name] for name in order))
    model.backward(problem.dy, cache)
    return logits, {name: parameter.grad for name, parameter in model.named_parameters()}


def config_file(case):
    """What stands in their config.json."""
    return {"model_type": case.kind, **case.config}


def errors(case, problem, solution):
    """{name: relative error} of our logits and of all our gradients, after proof that none is missing."""
    logits, gradients = solve_ours(case, problem)
    expected = from_huggingface(solution.gradients, config_file(case))
    assert gradients.keys() == expected.keys()
    named = {name: relative_error(gradients[name], expected[name]) for name in expected}
    return {"logits": relative_error(logits, solution.logits)} | named
