"""What no Hugging Face model computes is refused by the name of the part, and no folder of others is overwritten.

That what is exported computes the same there is proven by `tests/oracle/test_huggingface_export`.
"""

import json

import numpy as np
import pytest

from minitransformer.config import ConvConfig, Experts, Strided, Windowed, named_config
from minitransformer.interop import load_huggingface, load_huggingface_tokenizer, save_huggingface
from minitransformer.layers import FeedForward, add_lora
from minitransformer.models import BERT, GPT, Transformer
from minitransformer.models.before_2017.convolutional import ConvLM
from minitransformer.models.since_2017.bert import bert_config
from minitransformer.models.since_2017.gpt import gpt_config
from minitransformer.tokenizers import AddedToken, ByteLevelTokenizer, BytePairTokenizer, CharacterTokenizer
from minitransformer.tokenizers.byte_level import Reading
from tests.helpers import same
from tests.interop.tokenizer_files import vocabulary
from tests.tokenizers.texts import TEXTS

pytestmark = pytest.mark.host_only
SIZES = {"d_model": 12, "num_heads": 3, "d_ff": 7, "num_layers": 2, "max_len": 9}

MODERN = {"normalization": "rms", "bias": False, "activation": "swiglu", "positions": "rope"}


def gpt(V=11, **changes):
    return GPT(gpt_config(V, **{**SIZES, **changes}), seed=3)


def refused(model, message, folder, tokenizer=None):
    with pytest.raises(ValueError, match=message) as refusal:
        save_huggingface(model, folder / "new", tokenizer)
    assert "\n" not in str(refusal.value)
    assert not (folder / "new").exists()


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"norm": "post"}, r"nearest is gpt2, where norm = 'pre', not 'post'"),
        ({"attention": Windowed(4)}, r"nearest is starcoder2, where positions = 'rope', not 'learned'"),
        ({"attention": Windowed(4, num_global=1), "positions": "rope"}, r"num_global = 0, not 1"),
        ({"attention": Strided(4, 2), "positions": "rope"}, r"attention = 'full', not 'strided'"),
        ({"attention": "linear"}, r"attention = 'full', not 'linear'"),
        ({"positions": "alibi"}, r"positions = '\w+', not 'alibi'"),
        ({"activation": "geglu"}, r"activation = 'gelu_tanh', not 'geglu'"),
        ({"normalization": "rms"}, r"normalization = 'layer', not 'rms'"),
        ({"experts": Experts(3)}, r"num_experts = None, not 3, experts_per_token = None, not 2"),
        (
            {**MODERN, "experts": Experts(3, scores="sigmoid")},
            r"is mixtral, where expert_scores = 'softmax', not 'sigm",
        ),
        ({**MODERN, "qk_norm": True, "qkv_bias": True}, r"nearest is qwen2, where qk_norm = False, not True$"),
        ({"share_layers": True}, r"share_layers = False, not True"),
        ({"final_norm": False}, r"final_norm = True, not False"),
        ({"scale_embeddings": True}, r"scale_embeddings = False, not True"),
        ({"padding": 2, "end": 2}, r"padding = None, not 2"),
        ({"d_k": 5, "d_v": 5}, r"nearest is gpt2, where d_k = 4, not 5, d_v = 4, not 5$"),
    ],
)
def test_a_part_that_no_model_of_theirs_has_is_named(changes, part, tmp_path):
    refused(gpt(**changes), f"no Hugging Face model that we know computes what this GPT does: .*{part}", tmp_path)


def test_the_papers_model_and_a_bert_with_rotary_positions_are_refused(tmp_path):
    paper = Transformer(named_config("tiny", 11), seed=None)
    refused(
        paper, r"Transformer does: the nearest is t5, where .*norm = 'pre', not 'post'.* more differences", tmp_path
    )
    rotary = BERT(bert_config(11, **SIZES, positions="rope"), seed=None)
    refused(rotary, "nearest is bert, where positions = 'learned', not 'rope'", tmp_path)


def test_replaced_layers_adapters_and_other_models_are_refused(tmp_path):
    model = gpt()
    model.blocks.layers[1].feed_forward.sublayer = FeedForward(12, 9, rng=np.random.default_rng(0))
    refused(model, r"blocks\.layers\.1\.feed_forward\.sublayer\S* \(\S+\) is not what a configuration builds", tmp_path)
    model = gpt()
    add_lora(model, ["qkv"], rank=2)
    refused(model, r"LoRALinear\) is not what a configuration builds", tmp_path)
    other = ConvLM(ConvConfig(11, d_model=8, num_layers=1), seed=None)
    refused(other, "the class of an exported model must be one of GPT, BERT, Transformer, got 'ConvLM'", tmp_path)


def test_a_weight_that_is_not_finite_is_refused_by_its_name(tmp_path):
    model = gpt()
    model.blocks.layers[0].self_attention.norm.gamma.data[2] = np.nan
    refused(model, r"NaN or infinity in blocks\.layers\.0\.self_attention\.norm\.gamma", tmp_path)


def test_a_tokenizer_that_does_not_fit_is_refused(tmp_path):
    refused(gpt(), r"has 259 tokens, and its model only 11$", tmp_path, BytePairTokenizer())
    refused(gpt(), "a CharacterTokenizer cannot be exported", tmp_path, CharacterTokenizer.train("abc"))


def test_only_a_new_or_empty_folder_or_an_earlier_export_is_written_to(tmp_path):
    model, tokenizer = gpt(300), BytePairTokenizer()
    save_huggingface(model, tmp_path / "a", tokenizer)
    (tmp_path / "a" / "README.md").write_text("mine", "utf8")
    save_huggingface(gpt(), tmp_path / "a")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "README.md",
        "config.json",
        "generation_config.json",
        "model.safetensors",
    ]
    for name, content in (("notes.txt", "mine"), ("config.json", json.dumps({"model_type": "gpt2"}))):
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_text(content, "utf8")
        with pytest.raises(ValueError, match=rf"is not an export, and holds {name}: choose another folder$"):
            save_huggingface(model, folder)
        assert [path.name for path in folder.iterdir()] == [name]
        assert (folder / name).read_text("utf8") == content


def test_dropout_of_a_family_comes_back_and_the_rest_is_left_out(tmp_path):
    save_huggingface(gpt(dropout=0.3, attention_dropout=0.2, ffn_dropout=0.1), tmp_path)
    config = load_huggingface(tmp_path).config
    assert (config.dropout, config.attention_dropout, config.ffn_dropout) == (0.3, 0.2, 0.0)


def test_gemmas_gains_below_a_half_are_rounded_once(tmp_path):
    model = gpt(**MODERN | {"activation": "geglu_tanh"}, qk_norm=True, norm="sandwich", scale_embeddings=True)
    gamma = model.blocks.norm.gamma.data
    gamma[:3] = 0.1, 0.7, 3.3
    assert save_huggingface(model, tmp_path)["model_type"] == "gemma3_text"
    back = load_huggingface(tmp_path)
    got = back.blocks.norm.gamma.data
    assert same(got[1:], gamma[1:])
    assert 0 < abs(got[0] - gamma[0]) <= 2.0**-25
    save_huggingface(back, tmp_path)
    assert same(load_huggingface(tmp_path).blocks.norm.gamma.data, got)


@pytest.mark.parametrize("words", ["gpt2", "qwen", "llama3"])
def test_a_tokenizer_of_theirs_comes_back_with_all_of_its_properties(words, tmp_path):
    vocab, merges = vocabulary()
    first = "" if words == "gpt2" else "<|endoftext|>"
    reading = Reading(words, nfc=words == "qwen", whole=words == "llama3", first=first)
    added = [AddedToken("<|endoftext|>"), AddedToken("Ġthe", special=False, normalized=True)]
    tokenizer = ByteLevelTokenizer(list(vocab), merges, added, reading)
    save_huggingface(gpt(len(vocab), padding=None, end=0), tmp_path, tokenizer)
    back = load_huggingface_tokenizer(tmp_path)
    assert back.to_dict() == tokenizer.to_dict()
    assert all(same(back.encode(text), tokenizer.encode(text)) for text in TEXTS.values())
