"""What source and target share, which choices a family has, and which models PyTorch's own Transformer represents."""

import numpy as np
import pytest

from minitransformer.functional.since_2017.activations import GATED
from minitransformer.interop import from_pytorch, to_pytorch
from minitransformer.models import BERT, GPT, Transformer, TransformerConfig, bert_config, gpt_config, t5_config
from minitransformer.system.generators import make_generator
from tests.helpers import host, randomize

SIZES = {"vocab_size": 11, "d_model": 12, "num_heads": 3, "d_ff": 7, "num_layers": 1, "max_len": 9}


def config(**switches):
    return TransformerConfig(**SIZES, **switches)


def test_source_and_target_learn_positions_of_their_own():
    """Two tables, drawn apart; what is the same for both, sinusoids, is one table."""
    model, fixed = Transformer(config(positions="learned")), Transformer(config())
    source, target = (embedding.positions for embedding in (model.source_embedding, model.target_embedding))
    assert source is not target
    assert not (host(source.P.data) == host(target.P.data)).any()
    assert sum(name.endswith("positions.P") for name, _ in model.named_parameters()) == 2
    assert fixed.source_embedding.positions is fixed.target_embedding.positions


@pytest.mark.parametrize(
    "switches", [{"normalization": "rms"}, {"bias": False}, {"share_layers": True}, *({"activation": a} for a in GATED)]
)
def test_what_pytorchs_transformer_cannot_represent_is_refused(switches):
    made = config(**switches)
    state = Transformer(made, seed=None).state_dict()
    for convert in (from_pytorch, to_pytorch):
        with pytest.raises(ValueError, match="no place for the weights of a model with normalization = "):
            convert(state, made)


def test_another_activation_without_a_gate_is_converted():
    made = config(activation="gelu", final_norm=True)
    state = Transformer(made, seed=1).state_dict()
    again = from_pytorch(to_pytorch(state, made), made)
    assert again
    assert all(np.array_equal(array, state[name]) for name, array in again.items())


FAMILIES = {"paper": (Transformer, TransformerConfig), "GPT": (GPT, gpt_config), "BERT": (BERT, bert_config)}
FAMILIES |= {"T5": (Transformer, t5_config)}
IN_TRAINING = {"dropout": 0.5, "attention_dropout": 0.3, "ffn_dropout": 0.3}
CHANGED = {"num_kv_heads": 1, "d_k": 3, "d_v": 3, "qk_norm": True, "norm_eps": 0.3, "share_layers": True}
CHANGED |= {"attention": "linear", "norm": "sandwich", "positions": "alibi", "normalization": "rms"}
CHANGED |= {"activation": "silu"}
REFUSED = {
    ("BERT", "tie_embeddings"): "^BERT's embeddings and output share one matrix, got tie_embeddings=False$",
    ("T5", "attention"): "^linear attention has no scores that positions='relative' could act on$",
}
SWITCHES = ("bias", "qkv_bias", "final_norm", "tie_embeddings", "scale_embeddings", "scale_scores", "scale_output")


@pytest.mark.parametrize("field", [*IN_TRAINING, *CHANGED, *SWITCHES])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_choice_changes_what_a_model_computes_or_is_refused(family, field):
    build, configure = FAMILIES[family]
    ids = np.array([[5, 6, 7, 8], [9, 8, 7, 6]])

    def outputs(config):
        model = randomize(build(config, dtype=np.float64), scale=0.7)
        return host(model(*[ids] * (1 + (build is Transformer)), rng=make_generator(1)))

    sizes = {"vocab_size": 11, "d_model": 8, "num_heads": 2, "d_ff": 7, "num_layers": 2, "max_len": 9}
    usual = configure(**sizes)
    before = {"qkv_bias": usual.bias, "final_norm": usual.has_final_norm}.get(field, getattr(usual, field))
    value = (IN_TRAINING | CHANGED).get(field, not before)
    changes = sizes | {field: "layer" if value == before == "rms" else value}
    if (family, field) in REFUSED:
        with pytest.raises(ValueError, match=REFUSED[family, field]):
            outputs(configure(**changes))
    else:
        assert not np.array_equal(outputs(configure(**changes)), outputs(usual))
