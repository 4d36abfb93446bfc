"""Weights and configurations of Hugging Face: converted exactly, and what does not fit refused in one plain sentence.

That each entry lands where it belongs is proven by `tests/oracle/test_huggingface_reference`.
"""

import re

import numpy as np
import pytest

from minitransformer.interop import config_from_huggingface, from_huggingface, load_huggingface, model_from_huggingface
from minitransformer.models import BERT, GPT, Transformer
from tests.helpers import same
from tests.interop.given import BERT_FILE, FILES, GPT2_FILE, T5_1_1_FILE, T5_FILE, make_state, save

pytestmark = pytest.mark.host_only  # files and arrays of the host
every_model = pytest.mark.parametrize("name", FILES)


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


def test_a_classifier_of_tokens_is_refused_as_such():
    state = {name: array for name, array in make_state("bert classes").items() if not name.startswith("pooler")}
    with pytest.raises(ValueError, match=r"BertForTokenClassification: our classifier is for whole texts"):
        from_huggingface(state, BERT_FILE)


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


@every_model
@pytest.mark.parametrize("wrong", [np.nan, -np.inf])
def test_weights_that_are_not_finite_are_refused_by_name(name, wrong):
    state = make_state(name)
    place = list(state)[5]
    state[place].flat[-1] = wrong
    message = f"the Hugging Face state has NaN or infinity in {place}"
    for load in (from_huggingface, model_from_huggingface):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            load(state, FILES[name])


@pytest.mark.parametrize("large", [-1e300])
def test_float64_weights_beyond_float32_are_refused_by_name_and_loaded_as_float64(large):
    state = {theirs: array.astype(np.float64) for theirs, array in make_state("gpt2").items()}
    state["h.1.mlp.c_fc.bias"][3] = large
    message = "the Hugging Face state has numbers in h.1.mlp.c_fc.bias that are too large for float32"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        model_from_huggingface(state, GPT2_FILE)
    model = model_from_huggingface(state, GPT2_FILE, dtype=np.float64)
    assert model.state_dict()["blocks.layers.1.feed_forward.sublayer.expand.b"][3] == large


@pytest.mark.parametrize("dtype", ["bool"])
def test_weights_of_another_kind_of_number_are_refused_by_name(dtype):
    state = make_state("gpt2")
    state["wpe.weight"] = np.ones_like(state["wpe.weight"], dtype)
    with pytest.raises(ValueError, match=rf"has wpe\.weight as {dtype}, and weights must be real numbers"):
        from_huggingface(state, GPT2_FILE)


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("gpt2", "wte.weight", "transformer.wte.weight"),
        ("bert", "embeddings.position_embeddings.weight", "bert.embeddings.position_embeddings.weight"),
        ("bert", "embeddings.LayerNorm.weight", "bert.embeddings.LayerNorm.gamma"),
        ("bert", "embeddings.LayerNorm.bias", "embeddings.LayerNorm.beta"),
    ],
)
def test_one_tensor_under_two_names_must_have_equal_values(name, one, other):
    state = make_state(name)
    expected = from_huggingface(state, FILES[name])
    assert_same_weights(from_huggingface({**state, other: state[one].copy()}, FILES[name]), expected)
    for wrong in (state[one] + 1, state[one][:-1]):
        with pytest.raises(ValueError, match=f"^'{one}' and '{other}' are two names of one tensor, but they differ$"):
            from_huggingface({**state, other: wrong}, FILES[name])
        with pytest.raises(ValueError, match=f"^'{other}' and '{one}' are two names of one tensor, but they differ$"):
            from_huggingface({other: wrong, **state}, FILES[name])


@pytest.mark.parametrize(
    ("file", "field"), [(GPT2_FILE, "n_embd"), (GPT2_FILE, "n_positions"), (BERT_FILE, "vocab_size"), (T5_FILE, "d_ff")]
)
def test_sizes_that_no_memory_holds_are_refused_before_memory_is_asked_for(file, field):
    state = make_state(file["model_type"])
    with pytest.raises(ValueError, match="its config needs"):
        model_from_huggingface(state, {**file, field: 3 * 10**12})
