"""Today's decoders compute what those of Hugging Face do: logits and every gradient, from the files that they save.

Their code takes norms, softmax and the angles of RoPE in float32 whatever the precision of the model. Here float32 is
float64 while it runs, so that the comparison is as sharp as the others. Skipped where `transformers` is missing.
"""

import contextlib
import dataclasses
from unittest import mock

import numpy as np
import pytest

from minitransformer.interop import from_huggingface, load_huggingface
from minitransformer.interop.huggingface_configs import config_from_huggingface
from minitransformer.interop.huggingface_decoders import ALIASES, FIELDS
from minitransformer.interop.huggingface_files import read_json, stored_tensors
from tests.helpers import relative_error
from tests.oracle.huggingface_cases import draw_state

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors.torch")  # here, because its table of types must not be made in `in_float64`
transformers = pytest.importorskip("transformers")

from tests.oracle.huggingface_modules import quiet  # noqa: E402 - it needs transformers

BOUND = 1e-10
V, B, T = 13, 2, 9
SIZES = {"vocab_size": V, "hidden_size": 18, "intermediate_size": 11, "num_hidden_layers": 3, "rms_norm_eps": 0.1}
SIZES |= {"num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 24, "head_dim": 10}
NO_HEAD_DIM = {**SIZES, "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 6}
LLAMA_3 = {"rope_type": "llama3", "rope_theta": 40.0, "factor": 4.0, "original_max_position_embeddings": 12}
LLAMA_3 |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
ANGLES = {"full_attention": {"rope_type": "linear", "factor": 3.0, "rope_theta": 50.0}}
ANGLES |= {"sliding_attention": {"rope_type": "default", "rope_theta": 20.0}}
EXPERTS = {"num_local_experts": 5, "num_experts_per_tok": 3}
QWEN3_MOE = {**SIZES, "moe_intermediate_size": 7, "num_experts": 5, "num_experts_per_tok": 3, "norm_topk_prob": True}
STARCODER2 = {**SIZES, "norm_epsilon": 0.1}
PLAIN = {"attn_implementation": "eager", "experts_implementation": "eager"}  # of several ways to compute one thing
CASES = {
    "llama": ("Llama", SIZES),
    "llama, tied": ("Llama", {**NO_HEAD_DIM, "tie_word_embeddings": True}),
    "llama 3.1": ("Llama", {**SIZES, "rope_parameters": LLAMA_3}),
    "llama, linear": (
        "Llama",
        {**SIZES, "rope_parameters": {"rope_type": "linear", "rope_theta": 60.0, "factor": 2.0}},
    ),
    "mistral": ("Mistral", {**SIZES, "sliding_window": 4}),
    "mistral, no window": ("Mistral", {**SIZES, "sliding_window": None}),
    "qwen2": ("Qwen2", {**NO_HEAD_DIM, "tie_word_embeddings": True}),
    "qwen2, window": (
        "Qwen2",
        {**NO_HEAD_DIM, "use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1},
    ),
    "qwen3": ("Qwen3", {**SIZES, "tie_word_embeddings": True}),
    "qwen3, untied": ("Qwen3", SIZES),
    "gemma 3": ("Gemma3Text", {**SIZES, "sliding_window": 3, "query_pre_attn_scalar": 10, "rope_parameters": ANGLES}),
    "mixtral": ("Mixtral", {**SIZES, **EXPERTS}),
    "qwen3-moe": ("Qwen3Moe", QWEN3_MOE),
    "starcoder2": ("Starcoder2", STARCODER2),
    "starcoder2, window": ("Starcoder2", {**STARCODER2, "use_bias": False, "sliding_window": 4}),
    "qwen3-moe, raw": ("Qwen3Moe", {**QWEN3_MOE, "norm_topk_prob": False, "tie_word_embeddings": True}),
}
QUICK = ("llama", "qwen2, window", "gemma 3", "qwen3-moe", "starcoder2")
CASES["gemma 3"][1]["layer_types"] = ["sliding_attention", "full_attention", "sliding_attention"]


@contextlib.contextmanager
def in_float64():
    """Whatever their code wants in float32 becomes float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    with (
        mock.patch.multiple(torch, float32=torch.float64, float=torch.float64),
        mock.patch.object(torch.Tensor, "float", torch.Tensor.double),
    ):
        yield
    torch.set_default_dtype(before)


def build(name, seed=0):
    """Their model with random weights, those of Gemma's norms around 0, as they are stored."""
    kind, settings = CASES[name]
    with in_float64(), quiet():
        config = getattr(transformers, f"{kind}Config")(**settings, **PLAIN)
        model = getattr(transformers, f"{kind.removesuffix('Text')}ForCausalLM")(config).double().eval()
    state = draw_state({name: tuple(p.shape) for name, p in model.named_parameters()}, seed)
    with torch.no_grad():
        for each, parameter in model.named_parameters():
            shift = 1.0 if kind == "Gemma3Text" and "norm" in each else 0.0
            parameter.copy_(torch.tensor(state[each] - shift))
    return model


def saved(model, folder):
    """The tensors that `model` writes to its files, by the names there, and its config.json."""
    with quiet():
        model.save_pretrained(folder, max_shard_size="4KB")
    return stored_tensors(folder), read_json(folder / "config.json")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.exhaustive) for name in CASES]
)
def test_logits_and_every_gradient_of_a_decoder_equal_theirs(name, tmp_path, record_property):
    theirs, ids = build(name), np.random.default_rng(1).integers(1, V, (B, T))  # Gemma does not train the row of 0
    saved(theirs, tmp_path / "model")
    ours = load_huggingface(tmp_path / "model", dtype=np.float64)
    with in_float64():
        logits = theirs(torch.tensor(ids)).logits
    dy = np.random.default_rng(2).standard_normal(logits.shape)
    gradients = torch.autograd.grad(logits, list(theirs.parameters()), torch.tensor(dy))
    with torch.no_grad():
        for parameter, gradient in zip(theirs.parameters(), gradients, strict=True):
            parameter.copy_(gradient)
    expected = from_huggingface(*saved(theirs, tmp_path / "gradients"))
    y, cache = ours.forward(ids)
    ours.backward(dy, cache)
    errors = {"logits": relative_error(y, logits.detach().numpy())}
    for each, parameter in ours.named_parameters():
        is_stored_less = CASES[name][0] == "Gemma3Text" and each.endswith("gamma")
        errors[each] = relative_error(parameter.grad, expected.pop(each) - is_stored_less)
    assert not expected, "every weight has a gradient"
    for what, error in (("logits", errors["logits"]), ("worst", max(errors.values()))):
        record_property(what, error)
    assert max(errors.values()) <= BOUND, errors


NOTHING = {  # fields without a meaning for logits, and another value of each
    "_name_or_path": "somewhere",
    "_sliding_window_pattern": 2,  # older files call it sliding_window_pattern; layer_types stand above it
    "architectures": ["Something"],
    "chunk_size_feed_forward": 2,
    "dtype": "bfloat16",
    "id2label": {"0": "a", "1": "b", "2": "c"},
    "initializer_range": 0.5,
    "is_encoder_decoder": True,
    "label2id": {"a": 0, "b": 1, "c": 2},
    "output_attentions": True,
    "output_hidden_states": True,
    "output_router_logits": True,
    "pretraining_tp": 2,
    "problem_type": "regression",
    "return_dict": False,
    "router_aux_loss_coef": 0.5,
    "transformers_version": "1.0",
    "use_cache": False,
}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "name", ["llama", "mistral", "qwen2", "qwen3", "gemma 3", "mixtral", "qwen3-moe", "starcoder2"]
)
def test_no_field_of_a_decoder_is_unknown_and_those_left_out_mean_nothing(name, tmp_path):
    kind, settings = CASES[name]
    cls, theirs, ids = getattr(transformers, f"{kind}Config"), build(name), torch.tensor([[5, 3, 8, 2, 7]])
    names = {field.name for field in dataclasses.fields(cls)} | cls().to_dict().keys() | cls.attribute_map.keys()
    known = FIELDS[cls.model_type].keys() | ALIASES.get(cls.model_type, {}).keys()
    left_out = names - known - {"model_type", "rope_parameters", "layer_types"}
    assert left_out <= NOTHING.keys()
    changed = {**settings, **{field: NOTHING[field] for field in left_out - {"transformers_version", "return_dict"}}}
    with in_float64(), quiet():
        other = (
            getattr(transformers, f"{kind.removesuffix('Text')}ForCausalLM")(cls(**changed, **PLAIN)).double().eval()
        )
        other.load_state_dict(theirs.state_dict())
        assert torch.equal(other(ids).logits, theirs(ids).logits)
    files = [
        {"model_type": cls.model_type, **fields} for fields in (settings, {**changed, "transformers_version": "1.0"})
    ]
    assert config_from_huggingface(files[0]) == config_from_huggingface(files[1])


@pytest.mark.parametrize("kind", FIELDS)
def test_what_we_take_as_usual_of_a_decoder_is_what_theirs_is(kind):
    theirs = transformers.AutoConfig.for_model(kind).to_dict()
    small = {"num_hidden_layers": 2, "max_window_layers": 1, "max_position_embeddings": 8}  # layer_types are listed
    theirs["layer_types"] = theirs["layer_types"][:2] if theirs.get("layer_types") else None
    alone = {"model_type": kind, **{name: value for name, value in small.items() if name in theirs}}
    assert config_from_huggingface({**theirs, **small}) == config_from_huggingface(alone)
