"""What we export is loaded by their library, has our logits there, and comes back with our weights to the bit."""

import dataclasses
import json

import numpy as np
import pytest

from minitransformer.config import Experts, Rope, Windowed
from minitransformer.interop import load_huggingface, load_huggingface_tokenizer, save_huggingface
from minitransformer.models import BERT, GPT, Transformer
from minitransformer.models.since_2017.bert import bert_config
from minitransformer.models.since_2017.gpt import gpt_config
from minitransformer.models.since_2017.t5 import t5_config
from minitransformer.tokenizers import BytePairTokenizer, WordPieceTokenizer
from minitransformer.tokenizers.word_piece import SPECIAL
from tests.helpers import relative_error, same
from tests.oracle.test_huggingface_decoders import PLAIN, in_float64
from tests.tokenizers.texts import TEXTS

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.oracle import huggingface_modules  # noqa: E402 - it needs transformers

BOUND = 1e-10
V, B, T, S = 13, 2, 9, 7
SIZES = {"d_model": 18, "num_heads": 3, "d_ff": 11, "num_layers": 3, "max_len": 24, "norm_eps": 0.1}
SIZES |= {"padding": 0, "start": 3, "end": (2, 5)}
MODERN = {"norm": "pre", "normalization": "rms", "bias": False, "activation": "swiglu", "positions": Rope(40.0)}
MODERN |= {"num_heads": 6, "num_kv_heads": 2, "d_k": 10, "d_v": 10, "tie_embeddings": False, "dropout": 0.0}
GEMMA = {"norm": "sandwich", "scale_embeddings": True, "activation": "geglu_tanh", "tie_embeddings": True}
GEMMA |= {"attention": Windowed(3, full_layers=(1,), rope_base=20.0), "positions": Rope(50.0, 3.0), "qk_norm": True}


def gpt(**changes):
    """A GPT, and what it reads."""
    return lambda: GPT(gpt_config(V, **{**SIZES, **changes}), dtype=np.float64)


def bert(classes):
    """A BERT with one of three heads."""
    return lambda: BERT(bert_config(V, **SIZES), num_segments=4, num_classes=classes, dtype=np.float64)


def t5(**changes):
    """A T5."""
    return lambda: Transformer(t5_config(V, **{**SIZES, **changes}), dtype=np.float64)


CASES = {  # (our model, their class, its kind)
    "GPT-2": (gpt(), "AutoModelForCausalLM", "gpt2"),
    "GPT-2, untied": (gpt(tie_embeddings=False, activation="silu"), "AutoModelForCausalLM", "gpt2"),
    "BERT, hidden tokens": (bert(None), "AutoModelForMaskedLM", "bert"),
    "BERT, classes": (bert(5), "AutoModelForSequenceClassification", "bert"),
    "T5": (t5(), "AutoModelForSeq2SeqLM", "t5"),
    "T5, gated": (t5(activation="geglu"), "AutoModelForSeq2SeqLM", "t5"),
    "T5, version 1.1": (
        t5(activation="geglu_tanh", tie_embeddings="inputs", scale_output=False),
        "AutoModelForSeq2SeqLM",
        "t5",
    ),
    "llama": (gpt(**MODERN), "AutoModelForCausalLM", "llama"),
    "llama 3.1": (gpt(**MODERN | {"positions": Rope(40.0, 4.0, 12)}), "AutoModelForCausalLM", "llama"),
    "mistral": (gpt(**MODERN, attention=Windowed(4)), "AutoModelForCausalLM", "mistral"),
    "qwen2": (gpt(**MODERN, qkv_bias=True), "AutoModelForCausalLM", "qwen2"),
    "qwen2, window": (
        gpt(**MODERN, qkv_bias=True, attention=Windowed(3, full_layers=(0,))),
        "AutoModelForCausalLM",
        "qwen2",
    ),
    "qwen3": (gpt(**MODERN | {"tie_embeddings": True}, qk_norm=True), "AutoModelForCausalLM", "qwen3"),
    "gemma 3": (gpt(**MODERN | GEMMA), "AutoModelForCausalLM", "gemma3_text"),
    "mixtral": (gpt(**MODERN, experts=Experts(5, 3)), "AutoModelForCausalLM", "mixtral"),
    "qwen3-moe": (
        gpt(**MODERN, qk_norm=True, experts=Experts(5, 3, renormalize=False)),
        "AutoModelForCausalLM",
        "qwen3_moe",
    ),
    "starcoder2": (gpt(positions=Rope(40.0), attention="tiled"), "AutoModelForCausalLM", "starcoder2"),
}
QUICK = ("GPT-2", "BERT, classes", "T5, version 1.1", "qwen2, window", "gemma 3", "mixtral", "starcoder2")
each_case = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.exhaustive) for name in CASES]
)


def build(name):
    """Our model with weights of order one; gains are between 1/2 and 3/2, where less 1 and plus 1 is exact."""
    model, rng = CASES[name][0](), np.random.default_rng(0)
    for each, parameter in model.named_parameters():
        shape = parameter.data.shape
        is_gain = each.endswith("gamma")
        parameter.data[...] = rng.uniform(0.5, 1.5, shape) if is_gain else 0.4 * rng.standard_normal(shape)
    return model


def inputs_of(model):
    """Random ids without padding, under the argument names of their model, in the order of our arguments."""
    rng = np.random.default_rng(1)
    ids = {"input_ids": rng.integers(1, V, (B, T))}
    if isinstance(model, BERT):
        ids["token_type_ids"] = rng.integers(0, 4, (B, T))
    if isinstance(model, Transformer):
        ids["decoder_input_ids"] = rng.integers(1, V, (B, S))
    return ids


def open_theirs(name, folder):
    """The model in `folder`, as anybody opens it there, in float64."""
    with in_float64(), huggingface_modules.quiet():
        model = getattr(transformers, CASES[name][1]).from_pretrained(folder, **PLAIN)
        return model.double().eval()


@each_case
def test_their_model_has_our_logits_and_comes_back_as_ours(name, tmp_path, record_property):
    ours = build(name)
    save_huggingface(ours, tmp_path / "first")
    theirs, ids = open_theirs(name, tmp_path / "first"), inputs_of(ours)
    assert theirs.config.model_type == CASES[name][2]
    with torch.no_grad(), in_float64(), huggingface_modules.in_float64():
        logits = theirs(**{each: torch.tensor(array) for each, array in ids.items()}).logits
    error = relative_error(ours(*ids.values()), logits.numpy())
    record_property("logits", error)
    assert error <= BOUND
    with huggingface_modules.quiet():
        theirs.save_pretrained(tmp_path / "second")
    for folder in ("first", "second"):
        back = load_huggingface(tmp_path / folder, dtype=np.float64)
        got, expected = back.state_dict(), ours.state_dict()
        assert got.keys() == expected.keys()
        assert all(same(got[each], expected[each]) for each in expected)
        assert (back.config.padding, back.config.start, back.config.end) == (0, 3, (2, 5))
    read, own = (dataclasses.asdict(model.config) for model in (back, ours))
    assert all(read[each] == own[each] for each in ("d_model", "d_ff", "activation", "positions", "norm", "max_len"))


def test_an_encoder_without_a_head_has_our_features_there(tmp_path):
    ours = BERT(bert_config(V, **SIZES), num_segments=4, num_classes=0, dtype=np.float64)
    assert save_huggingface(ours, tmp_path)["architectures"] == ["BertModel"]
    ids = inputs_of(ours)
    with huggingface_modules.quiet(), torch.no_grad():
        theirs = transformers.AutoModel.from_pretrained(tmp_path, attn_implementation="eager").double().eval()
        y = theirs(**{each: torch.tensor(array) for each, array in ids.items()}).last_hidden_state
    assert relative_error(ours.features(*ids.values())[0], y.numpy()) <= BOUND


def test_word_pieces_have_the_same_ids_there(tmp_path):
    pieces = ["the", "mill", "##er", "##s", "é", "e", "wind", "W", "##ind", ",", ".", "-", "O", "o", "##u"]
    for lowercase, strip in ((True, True), (False, False), (True, False)):
        tokenizer = WordPieceTokenizer([*SPECIAL, *pieces], lowercase=lowercase, strip_accents=strip)
        model = BERT(bert_config(tokenizer.vocab_size, **SIZES), num_segments=2, seed=0)
        save_huggingface(model, tmp_path, tokenizer)
        with huggingface_modules.quiet():
            theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
        back = load_huggingface_tokenizer(tmp_path)
        assert back.to_dict() == tokenizer.to_dict()
        for text in ("The millers, the wind.", "Wind é -Ou [MASK] ÉE", "", "mill\u0301er o"):
            assert theirs(text, "wind").input_ids == tokenizer.encode_pair(text, "wind").ids.tolist(), (text, strip)


def test_our_tokens_have_the_same_ids_there(tmp_path):
    tokenizer = BytePairTokenizer.train("".join(TEXTS.values()), 500)
    model = GPT(gpt_config(tokenizer.vocab_size, **SIZES | {"end": 2}), seed=0)
    save_huggingface(model, tmp_path, tokenizer)
    with huggingface_modules.quiet():
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    back = load_huggingface_tokenizer(tmp_path)
    for text in TEXTS.values():
        ids = tokenizer.encode(text).tolist()
        assert theirs(text).input_ids == back.encode(text).tolist() == ids
        assert theirs.decode(ids) == tokenizer.decode(ids)
        assert theirs.decode([1, *ids, 2], skip_special_tokens=True) == tokenizer.decode(ids)
    assert (theirs.pad_token, theirs.eos_token, theirs.eos_token_id) == ("<pad>", "<eos>", 2)
    assert json.loads((tmp_path / "generation_config.json").read_text("utf8"))["eos_token_id"] == 2
