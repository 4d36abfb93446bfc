"""Adapters in PEFT's files: what is saved is loaded, in their names and layout, and what does not fit is refused.

That they compute what PEFT's compute is proven by `tests/oracle/test_peft_reference`.
"""

import json
import re

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from minitransformer.interop import load_adapters, model_from_huggingface, save_adapters
from minitransformer.interop.huggingface_configs import config_from_huggingface
from minitransformer.interop.huggingface_decoders import decoder_table
from minitransformer.layers import add_lora, lora_adapters, remove_lora
from minitransformer.models import GPT, Transformer, TransformerConfig, gpt_config
from tests.helpers import device, host, same
from tests.interop.given import FILES, make_state
from tests.interop.test_huggingface_decoders import MORE, SMALL
from tests.oracle.peft_cases import CONFIG, write_folder

pytestmark = pytest.mark.host_only  # files and arrays of the host
SIZES = {"d_model": 12, "num_heads": 3, "d_ff": 20, "num_layers": 2, "max_len": 9}
DECODERS = {
    kind: {"model_type": kind, **SMALL, **MORE.get(kind, {}), "num_hidden_layers": 2}
    for kind in ("llama", "qwen2", "qwen3", "gemma3_text", "mixtral", "qwen3_moe")
}
GPT2_NAME = "base_model.model.transformer.h.0.attn.c_attn.lora_"


def base(kind):
    """A model that Hugging Face has, by its name in FILES, or one that it lacks."""
    if kind in FILES:
        return model_from_huggingface(make_state(kind), FILES[kind], dtype=np.float64)
    if kind in DECODERS:
        return model_from_huggingface(decoder_state(kind), DECODERS[kind], dtype=np.float64)
    model, config = {
        "GPT": (GPT, gpt_config(11, **SIZES, positions="rope", activation="swiglu")),
        "grouped": (GPT, gpt_config(11, **SIZES, num_kv_heads=1)),
        "Transformer": (Transformer, TransformerConfig(11, **SIZES)),
    }[kind]
    return model(config, seed=3, dtype=np.float64)


def decoder_state(kind):
    """Random weights of a decoder of theirs."""
    table, rng = decoder_table(config_from_huggingface(DECODERS[kind]), kind), np.random.default_rng(5)
    return {tensor.name: rng.standard_normal(tensor.shape) for source in table.values() for tensor in source.tensors}


def randomize_adapters(model):
    rng = np.random.default_rng(7)
    for adapter in lora_adapters(model).values():
        for parameter in (adapter.A, adapter.B):
            parameter.data[...] = device(rng.standard_normal(parameter.data.shape))


def first_attention(model):
    return (
        next(getattr(model, name) for name in ("blocks", "encoder") if hasattr(model, name))
        .layers[0]
        .self_attention.sublayer
    )


def logits(model):
    ids = np.array([[3, 5, 4, 3, 7]])
    return host(model(ids, ids) if isinstance(model, Transformer) else model(ids))


@pytest.mark.parametrize("kind", [*FILES, *DECODERS, "GPT", "grouped", "Transformer"])
def test_what_was_saved_is_loaded_into_a_model_without_adapters(kind, tmp_path):
    model = base(kind)
    add_lora(model, ["projection" if hasattr(first_attention(model).qkv, "projection") else "qkv"], rank=3, alpha=4)
    add_lora(model, ["contract"], rank=2, alpha=8 / 3)
    randomize_adapters(model)
    save_adapters(model, tmp_path / "new" / "folder")
    other = base(kind)
    loaded = load_adapters(other, tmp_path / "new" / "folder")
    assert loaded == lora_adapters(other)
    np.testing.assert_allclose(logits(other), logits(model), rtol=1e-13, atol=1e-13)
    for name, adapter in lora_adapters(model).items():
        assert loaded[name].B.data.shape[0] == 3  # the lower rank is filled up
        assert same(loaded[name].A.data[:, : adapter.A.data.shape[1]], adapter.A.data)
    trained = {name for name, parameter in other.named_parameters() if not parameter.frozen}
    assert trained == {f"{name}.{matrix}" for name in loaded for matrix in "AB"}
    assert not np.allclose(logits(base(kind)), logits(model))


def test_the_files_have_their_names_and_their_layout_and_are_small(tmp_path):
    model = base("gpt2")
    adapter = add_lora(model, ["qkv", "output"], rank=2)["blocks.layers.0.self_attention.sublayer.qkv"]
    randomize_adapters(model)
    save_adapters(model, tmp_path)
    stored = load_file(tmp_path / "adapter_model.safetensors")
    modules = [f"transformer.h.{i}.attn.{name}" for i in range(2) for name in ("c_attn", "c_proj")]
    assert stored.keys() == {f"base_model.model.{module}.lora_{matrix}.weight" for module in modules for matrix in "AB"}
    assert same(stored[f"{GPT2_NAME}A.weight"], host(adapter.A.data).T)
    assert same(stored[f"{GPT2_NAME}B.weight"], host(adapter.B.data).T)
    with safe_open(tmp_path / "adapter_model.safetensors", "numpy") as file:
        assert file.metadata() == {"format": "pt"}
    config = json.loads((tmp_path / "adapter_config.json").read_text("utf8"))
    assert config["target_modules"] == modules
    assert {name: CONFIG[name] for name in config.keys() - {"target_modules", "lora_alpha"}}.items() <= config.items()
    assert config["r"] == config["lora_alpha"] == 2
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 6000


@pytest.mark.parametrize("kind", DECODERS)
def test_a_loaded_adapter_of_a_decoder_is_merged_into_the_weights_that_theirs_merge_it_into(kind, tmp_path):
    state, rng, adapters = decoder_state(kind), np.random.default_rng(8), {}
    wanted = r"layers\.1\.self_attn\.([qv]|k)_proj\.weight|layers\.0\..*(o_proj|up_proj|w3|mlp.down_proj)\.weight"
    changed = dict(state)
    for name, W in state.items():
        if re.fullmatch(wanted, name) and not (kind == "llama" and "k_proj" in name):
            A, B = rng.standard_normal((2, W.shape[1])), rng.standard_normal((W.shape[0], 2))
            module = f"base_model.model.model.{name.removesuffix('.weight')}"
            adapters |= {f"{module}.lora_A.weight": A, f"{module}.lora_B.weight": B}
            changed[name] = W + 1.5 * B @ A
    assert any("q_proj" in name for name in adapters)
    write_folder(tmp_path, adapters)
    model = base(kind)
    load_adapters(model, tmp_path)
    save_adapters(model, tmp_path / "again")
    remove_lora(model)
    expected = model_from_huggingface(changed, DECODERS[kind], dtype=np.float64).state_dict()
    for name, array in model.state_dict().items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-12, atol=1e-12, err_msg=name)
    again = base(kind)
    load_adapters(again, tmp_path / "again")
    remove_lora(again)
    assert all(same(array, again.state_dict()[name]) for name, array in model.state_dict().items())


def test_a_model_without_rope_is_no_decoder_of_theirs_even_with_a_llamas_weights(tmp_path):
    config = config_from_huggingface(DECODERS["llama"], positions="alibi")
    model = GPT(config, dtype=np.float64)
    add_lora(model, ["qkv"], rank=2)
    save_adapters(model, tmp_path)
    names = load_file(tmp_path / "adapter_model.safetensors").keys()
    assert "base_model.model.blocks.layers.0.self_attention.sublayer.qkv.lora_A.weight" in names


def test_a_merged_adapter_is_saved_as_it_is_unmerged(tmp_path):
    model = base("gpt2")
    add_lora(model, ["qkv"], rank=2)
    randomize_adapters(model)
    expected = logits(model)
    for adapter in lora_adapters(model).values():
        adapter.merge()
    save_adapters(model, tmp_path)
    other = base("gpt2")
    load_adapters(other, tmp_path)
    np.testing.assert_allclose(logits(other), expected, rtol=1e-12, atol=1e-12)


def test_what_the_files_cannot_hold_is_refused_when_it_is_saved(tmp_path):
    model = base("gpt2")
    with pytest.raises(ValueError, match="the model has no adapters to save: add_lora puts them in"):
        save_adapters(model, tmp_path)
    add_lora(model, ["qkv"], rank=2)
    model.freeze("blocks.norm", frozen=False)
    with pytest.raises(ValueError, match=r"blocks\.norm\.gamma is not frozen, and files of adapters cannot hold it"):
        save_adapters(model, tmp_path)
    add_lora(model, ["output"], rank=2, alpha=5)
    with pytest.raises(ValueError, match=r"have one alpha / rank, and this model's adapters have 2"):
        save_adapters(model, tmp_path)
    assert not list(tmp_path.iterdir())


A, B = np.ones((2, 12)), np.ones((36, 2))
PAIR = {f"{GPT2_NAME}A.weight": A, f"{GPT2_NAME}B.weight": B}


def test_names_may_lack_the_name_of_their_model_and_dropout_is_left_out(tmp_path):
    write_folder(tmp_path, {name.replace("transformer.", ""): array for name, array in PAIR.items()},
                 CONFIG | {"lora_dropout": 0.1})  # fmt: skip
    (adapter,) = load_adapters(base("gpt2"), tmp_path).values()
    assert same(adapter.A.data, A.T)
    assert adapter.s == 1.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"peft_type": "IA3"}, "can only have peft_type = 'LORA', but {} has 'IA3'"),
        ({"bias": "lora_only"}, "can only have bias = 'none', but {} has 'lora_only'"),
        ({"use_rslora": True}, "our adapters cannot have use_rslora, but {} has True"),
        ({"modules_to_save": ["wte"]}, "our adapters cannot have modules_to_save, but {} has ['wte']"),
        ({"of_next_year": 1}, "our adapters cannot have of_next_year, but {} has 1"),
        ({"r": 10**12}, "rank must be from 1 to 12 for a matrix (12, 36), got 1000000000000"),
        ({"lora_alpha": "8"}, "lora_alpha must be a number, got '8'"),
    ],
)
def test_another_kind_of_adapter_is_refused_by_the_name_of_its_field(change, message, tmp_path):
    write_folder(tmp_path, PAIR, CONFIG | change)
    refused(tmp_path, message.format(tmp_path / "adapter_config.json"))


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (PAIR | {f"{GPT2_NAME}magnitude_vector": A}, f"has {GPT2_NAME}magnitude_vector, which is not a matrix of"),
        ({f"{GPT2_NAME}A.weight": A}, "has only lora_A of the adapter for transformer.h.0.attn.c_attn"),
        (PAIR | {f"{GPT2_NAME}A.weight": A.T}, f"has {GPT2_NAME}A.weight of shape (12, 2), we need (2, 12)"),
        (PAIR | {f"{GPT2_NAME}B.weight": A}, f"has {GPT2_NAME}B.weight of shape (2, 12), we need (36, 2)"),
        (PAIR | {f"{GPT2_NAME}B.weight": B * np.inf}, f"NaN or infinity in {GPT2_NAME}B.weight"),
        ({name.replace("h.0", "h.2"): array for name, array in PAIR.items()},
         "has an adapter for h.2.attn.c_attn, which this model does not have"),
        ({}, "has no adapters"),
    ],
)  # fmt: skip
def test_a_tensor_that_does_not_fit_is_refused_by_its_name(tensors, message, tmp_path):
    write_folder(tmp_path, tensors)
    refused(tmp_path, message)


def refused(folder, message):
    model = base("gpt2")
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        load_adapters(model, folder)
    assert not lora_adapters(model)
    assert not any(parameter.frozen for parameter in model.parameters())


def test_a_second_load_is_refused_until_the_first_is_removed(tmp_path):
    write_folder(tmp_path, PAIR)
    model = base("gpt2")
    before = logits(model)
    load_adapters(model, tmp_path)
    with pytest.raises(ValueError, match="has an adapter already: remove_lora removes it"):
        load_adapters(model, tmp_path)
    remove_lora(model, merge=False)
    assert np.array_equal(logits(model), before)
    load_adapters(model, tmp_path)


def test_queries_and_values_alone_leave_the_keys_as_they_are(tmp_path):
    name = "base_model.model.bert.encoder.layer.1.attention.self.{}.lora_{}.weight"
    rng = np.random.default_rng(1)
    tensors = {
        name.format(module, matrix): rng.standard_normal((2, 12) if matrix == "A" else (12, 2))
        for module in ("query", "value")
        for matrix in "AB"
    }
    write_folder(tmp_path, tensors)
    model = base("bert")
    W = host(model.encoder.layers[1].self_attention.sublayer.qkv.W.data).copy()
    load_adapters(model, tmp_path)
    remove_lora(model)
    added = host(model.encoder.layers[1].self_attention.sublayer.qkv.W.data) - W
    query, key, value = np.split(added, 3, axis=1)
    assert not key.any()
    for part, module in ((query, "query"), (value, "value")):
        product = tensors[name.format(module, "B")] @ tensors[name.format(module, "A")]
        np.testing.assert_allclose(part, 1.5 * product.T, rtol=1e-12, atol=1e-12)
