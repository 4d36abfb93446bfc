"""Weights and configurations of Hugging Face: converted exactly, and what does not fit refused in one plain sentence.

That each entry lands where it belongs is proven by `tests/oracle/test_huggingface_reference`.
"""

import json
import re

import numpy as np
import pytest
from safetensors.numpy import save_file

from minitransformer.interop import config_from_huggingface, from_huggingface, load_huggingface, model_from_huggingface
from minitransformer.interop.huggingface_tables import bert_table, gpt2_table, t5_table
from minitransformer.models import BERT, GPT, Transformer
from tests.helpers import same

pytestmark = pytest.mark.host_only  # files and arrays of the host

GPT2_FILE = {"model_type": "gpt2", "vocab_size": 11, "n_embd": 12, "n_head": 3, "n_layer": 2, "n_positions": 9}
BERT_FILE = {
    "model_type": "bert",
    "vocab_size": 11,
    "hidden_size": 12,
    "num_attention_heads": 3,
    "intermediate_size": 7,
}
BERT_FILE |= {"num_hidden_layers": 2, "max_position_embeddings": 9, "type_vocab_size": 4}
T5_FILE = {"model_type": "t5", "vocab_size": 11, "d_model": 12, "d_kv": 4, "num_heads": 3, "d_ff": 7, "num_layers": 2}
T5_1_1_FILE = T5_FILE | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
FILES = {"gpt2": GPT2_FILE, "bert": BERT_FILE, "bert classes": BERT_FILE, "t5": T5_FILE, "t5 1.1": T5_1_1_FILE}
every_model = pytest.mark.parametrize("name", FILES)


def make_state(name):
    """A random state_dict of theirs, with just the tensors that our tables name."""
    config, rng = config_from_huggingface(FILES[name]), np.random.default_rng(5)
    if name.startswith("bert"):
        table = bert_table(config, 4, 5 if "classes" in name else None)
    else:
        table = gpt2_table(config) if name == "gpt2" else t5_table(config)
    shapes = {theirs: source.shape for source in table.values() for theirs in source.names}
    return {theirs: rng.standard_normal(shape).astype(np.float32) for theirs, shape in shapes.items()}


def save(folder, state, config):
    """The two files that a folder of theirs has."""
    save_file(state, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config), "utf8")


def assert_same_weights(got, expected):
    assert got.keys() == expected.keys()
    assert all(same(got[name], expected[name]) for name in expected)


@every_model
def test_a_folder_becomes_a_model_in_one_line(name, tmp_path):
    state = make_state(name)
    save(tmp_path, state, FILES[name])
    model = load_huggingface(str(tmp_path))
    assert type(model) is {"gpt2": GPT, "bert": BERT, "t5": Transformer}[FILES[name]["model_type"]]
    assert model.config == config_from_huggingface(FILES[name])
    assert {parameter.data.dtype.name for parameter in model.parameters()} == {"float32"}
    assert_same_weights(model.state_dict(), from_huggingface(state, FILES[name]))


@every_model
def test_a_model_takes_another_dtype_and_changes_of_the_configuration(name):
    state = {theirs: array.astype(np.float16) for theirs, array in make_state(name).items()}
    model = model_from_huggingface(state, FILES[name], dtype=np.float64, dropout=0.0)
    assert model.config.dropout == 0.0
    assert model.config != config_from_huggingface(FILES[name])
    assert {parameter.data.dtype.name for parameter in model.parameters()} == {"float64"}


def test_a_t5_can_be_given_a_larger_max_len():
    model = model_from_huggingface(make_state("t5"), T5_FILE, max_len=700)
    ids = np.ones((1, 600), int)
    assert model(ids, ids[:, :1]).shape == (1, 1, 11)


@every_model
def test_results_are_contiguous_copies_of_the_dtype_given(name):
    state = make_state(name)
    made = from_huggingface(state, FILES[name])
    assert all(array.flags.c_contiguous and array.dtype == np.float32 for array in made.values())
    assert not any(np.shares_memory(a, b) for a in made.values() for b in state.values())


def test_queries_keys_and_values_are_joined_and_all_but_gpt2s_matrices_transposed():
    bert, t5, gpt2 = (make_state(name) for name in ("bert", "t5 1.1", "gpt2"))
    own = from_huggingface(bert, BERT_FILE)
    theirs = [bert[f"encoder.layer.1.attention.self.{name}.weight"].T for name in ("query", "key", "value")]
    assert same(own["encoder.layers.1.self_attention.sublayer.qkv.W"], np.concatenate(theirs, axis=1))
    own = from_huggingface(t5, T5_1_1_FILE)
    theirs = [t5[f"decoder.block.1.layer.2.DenseReluDense.{name}.weight"].T for name in ("wi_0", "wi_1")]
    assert same(own["decoder.layers.1.feed_forward.sublayer.expand.W"], np.concatenate(theirs, axis=1))
    own = from_huggingface(gpt2, GPT2_FILE)
    assert same(own["blocks.layers.0.self_attention.sublayer.qkv.W"], gpt2["h.0.attn.c_attn.weight"])


class Tensor:
    """As much of a torch tensor as the conversion may use."""

    def __init__(self, array):
        self.array, self.steps = array, []

    def detach(self):
        self.steps.append("detach")
        return self

    def cpu(self):
        self.steps.append("cpu")
        return self

    def numpy(self):
        assert self.steps == ["detach", "cpu"]
        return self.array


def test_tensors_are_detached_and_brought_to_the_host():
    state = make_state("gpt2")
    got = from_huggingface({name: Tensor(array) for name, array in state.items()}, GPT2_FILE)
    assert_same_weights(got, from_huggingface(state, GPT2_FILE))


# what their files have beside the weights, or call otherwise, and means nothing
HARMLESS = {
    "gpt2": {"h.0.attn.bias": (1, 1, 9, 9), "transformer.h.1.attn.masked_bias": ()},
    "bert": {"bert.embeddings.position_ids": (1, 9), "bert.pooler.dense.weight": (12, 12), "pooler.dense.bias": (12,)},
    "bert classes": {"embeddings.position_ids": (1, 9), "cls.seq_relationship.weight": (2, 12)},
    "t5": {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": (32, 3)},
}


@pytest.mark.parametrize("name", HARMLESS)
def test_buffers_and_the_weights_of_other_heads_are_left_out(name):
    state = make_state(name)
    more = {theirs: np.ones(shape, np.float32) for theirs, shape in HARMLESS[name].items()}
    assert_same_weights(from_huggingface(state | more, FILES[name]), from_huggingface(state, FILES[name]))


@pytest.mark.parametrize(("name", "prefix"), [("gpt2", "transformer."), ("bert", "bert."), ("bert classes", "bert.")])
def test_names_may_begin_with_the_name_of_their_model(name, prefix):
    state = make_state(name)
    renamed = {theirs if theirs[:3] == "cls" else prefix + theirs: array for theirs, array in state.items()}
    assert_same_weights(from_huggingface(renamed, FILES[name]), from_huggingface(state, FILES[name]))


def test_normalisations_may_have_their_old_names():
    state = make_state("bert")
    old = {
        theirs.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): a for theirs, a in state.items()
    }
    assert old.keys() != state.keys()
    assert_same_weights(from_huggingface(old, BERT_FILE), from_huggingface(state, BERT_FILE))


TIED = [
    ("gpt2", "lm_head.weight", "wte.weight"),
    ("bert", "cls.predictions.decoder.weight", "embeddings.word_embeddings.weight"),
    ("bert", "cls.predictions.decoder.bias", "cls.predictions.bias"),
    ("t5", "lm_head.weight", "shared.weight"),
    ("t5", "encoder.embed_tokens.weight", "shared.weight"),
    ("t5 1.1", "decoder.embed_tokens.weight", "shared.weight"),
]


@pytest.mark.parametrize(("name", "copy", "original"), TIED)
def test_a_tied_tensor_may_have_either_name_or_both_with_equal_values(name, copy, original):
    state = make_state(name)
    expected = from_huggingface(state, FILES[name])
    assert_same_weights(from_huggingface({**state, copy: state[original]}, FILES[name]), expected)
    other = {copy if theirs == original else theirs: array for theirs, array in state.items()}
    assert_same_weights(from_huggingface(other, FILES[name]), expected)
    message = f"has one tensor as {copy} and {original}, but they differ"
    with pytest.raises(ValueError, match=re.escape(message)):
        from_huggingface({**state, copy: state[original] + 1}, FILES[name])


def test_an_untied_output_is_kept_and_shared_only_where_the_file_says_all_is_tied():
    state = make_state("t5 1.1")
    model = model_from_huggingface(state, T5_1_1_FILE)
    assert model.source_embedding.tokens.E is model.target_embedding.tokens.E
    assert same(model.output.E.data, state["lm_head.weight"])
    assert not same(model.output.E.data, state["shared.weight"])
    del state["lm_head.weight"]
    newer = T5_FILE | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": True, "scale_decoder_outputs": False}
    assert same(model_from_huggingface(state, newer).output.E.data, state["shared.weight"])
    with pytest.raises(ValueError, match=r"missing \['lm_head.weight'\], unexpected nothing"):
        from_huggingface(state, T5_1_1_FILE)


@every_model
def test_a_missing_and_an_unexpected_tensor_are_named(name):
    state = make_state(name)
    lost = list(state)[7]
    state["h.7.typo"] = state.pop(lost)
    message = f"the Hugging Face state does not fit its config: missing ['{lost}'], unexpected ['h.7.typo']"
    with pytest.raises(ValueError, match=re.escape(message)):
        from_huggingface(state, FILES[name])


@every_model
def test_a_tensor_of_another_shape_is_named(name):
    state = make_state(name)
    wrong = next(theirs for theirs, array in state.items() if array.shape in ((12, 36), (7, 12)))
    shape = state[wrong].shape
    state[wrong] = state[wrong].T
    message = f"the Hugging Face state has {wrong} of shape {shape[::-1]}, its config needs {shape}"
    with pytest.raises(ValueError, match=re.escape(message)):
        from_huggingface(state, FILES[name])


REFUSED = [
    (GPT2_FILE, "scale_attn_weights", False, "only have scale_attn_weights = True, but this one has False"),
    (GPT2_FILE, "scale_attn_by_inverse_layer_idx", True, "only have scale_attn_by_inverse_layer_idx = False"),
    (GPT2_FILE, "activation_function", "tanh", "activation_function must be one of gelu_new, .*, got 'tanh'"),
    (GPT2_FILE, "embd_pdrop", 0.2, "one dropout rate for embd_pdrop and resid_pdrop, but this one has 0.2 and 0.1"),
    (GPT2_FILE, "n_head", 5, "d_model must be a multiple of num_heads, got d_model = 12 and num_heads = 5"),
    (BERT_FILE, "hidden_act", "gelu_new", "only have hidden_act = 'gelu', but this one has 'gelu_new'"),
    (BERT_FILE, "pad_token_id", 1, "only have pad_token_id = 0, but this one has 1"),
    (BERT_FILE, "position_embedding_type", "relative_key", "only have position_embedding_type = 'absolute'"),
    (BERT_FILE, "is_decoder", True, "only have is_decoder = False"),
    (BERT_FILE, "classifier_dropout", 0.3, "one dropout rate for classifier_dropout and hidden_dropout_prob"),
    (T5_FILE, "d_kv", 8, "only have d_kv = d_model / num_heads = 12 / 3, but this one has 8"),
    (T5_FILE, "num_decoder_layers", 3, "as many num_decoder_layers as num_layers, but this one has 3 and 2"),
    (T5_FILE, "relative_attention_num_buckets", 16, "only have relative_attention_num_buckets = 32"),
    (T5_FILE, "relative_attention_max_distance", 64, "only have relative_attention_max_distance = 128"),
    (T5_FILE, "feed_forward_proj", "gated-relu", "feed_forward_proj must be one of relu, .*, got 'gated-relu'"),
    (T5_FILE, "pad_token_id", 3, "only have pad_token_id = 0, but this one has 3"),
    (GPT2_FILE, "model_type", "llama", "model_type must be one of gpt2, bert, t5, got 'llama'"),
    (GPT2_FILE, "model_type", None, "model_type must be one of gpt2, bert, t5, got None"),
]


@pytest.mark.parametrize(("file", "name", "value", "message"), REFUSED)
def test_what_we_cannot_represent_is_refused_by_name(file, name, value, message):
    with pytest.raises(ValueError, match=message) as refusal:
        config_from_huggingface({**file, name: value})
    assert "\n" not in str(refusal.value)


def test_their_configurations_become_ours_field_by_field():
    gpt2 = config_from_huggingface(GPT2_FILE | {"resid_pdrop": 0.3, "embd_pdrop": 0.3, "layer_norm_epsilon": 1e-4})
    assert (gpt2.vocab_size, gpt2.d_model, gpt2.num_heads, gpt2.d_ff, gpt2.num_layers, gpt2.max_len) == (
        11,
        12,
        3,
        48,
        2,
        9,
    )
    assert (gpt2.dropout, gpt2.attention_dropout, gpt2.norm_eps, gpt2.activation) == (0.3, 0.1, 1e-4, "gelu_tanh")
    bert = config_from_huggingface(BERT_FILE | {"attention_probs_dropout_prob": 0.2})
    assert (bert.d_ff, bert.max_len, bert.dropout, bert.attention_dropout, bert.norm_eps) == (7, 9, 0.1, 0.2, 1e-12)
    t5 = config_from_huggingface(T5_FILE | {"n_positions": 77, "dropout_rate": 0.2})
    assert (t5.max_len, t5.dropout, t5.attention_dropout, t5.ffn_dropout, t5.norm_eps) == (77, 0.2, 0.2, 0.2, 1e-6)
    assert (t5.activation, t5.has_tied_output, t5.scale_output) == ("relu", True, True)
    newer = config_from_huggingface(T5_1_1_FILE)
    assert (newer.activation, newer.has_tied_output, newer.scale_output) == ("geglu_tanh", False, False)


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(missing, tmp_path):
    save(tmp_path, make_state("gpt2"), GPT2_FILE)
    (tmp_path / missing).unlink()
    with pytest.raises(FileNotFoundError, match=f"^there is no file .*{re.escape(missing)}$"):
        load_huggingface(tmp_path)


def test_a_file_of_another_kind_is_refused_with_its_path(tmp_path):
    save(tmp_path, make_state("gpt2"), GPT2_FILE)
    (tmp_path / "model.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=r"model\.safetensors is not a safetensors file"):
        load_huggingface(tmp_path)


def test_a_file_in_bfloat16_is_refused_by_its_path(tmp_path):
    save(tmp_path, {}, GPT2_FILE)
    header = b'{"wte.weight":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(ValueError, match=r"safetensors is not a safetensors file, or has a dtype that NumPy lacks"):
        load_huggingface(tmp_path)
