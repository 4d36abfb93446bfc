"""A model with any normalisation and activation, with biases and without: proven, trainable, refused where unknown."""

import numpy as np
import pytest

from minitransformer.gradcheck.check import randomize_parameters
from minitransformer.gradcheck.report import COMPLEX_STEP
from minitransformer.gradcheck.subjects.models import check_loss
from minitransformer.interop import from_pytorch, to_pytorch
from minitransformer.layers.feed_forward import ACTIVATIONS, GATED
from minitransformer.models import Transformer, TransformerConfig
from tests.helpers import host

SIZES = {"vocab_size": 11, "d_model": 12, "num_heads": 3, "d_ff": 7, "num_layers": 1, "max_len": 9}
LLAMA = {"norm": "pre", "normalization": "rms", "activation": "swiglu", "bias": False, "norm_eps": 1e-6}
SOURCE = np.array([[4, 9, 6, 0, 0], [2, 8, 4, 7, 2]])
TARGET = np.array([[1, 5, 3, 2, 0], [1, 5, 8, 8, 2]])


def config(**switches):
    return TransformerConfig(**SIZES, **switches)


@pytest.mark.parametrize("normalization", ["layer", "rms"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_gradient_of_the_model_equals_a_complex_step(normalization, activation):
    switches = {"normalization": normalization, "activation": activation, "bias": normalization == "layer"}
    model = Transformer(config(**switches, dropout=0.2, ffn_dropout=0.3), dtype=np.float64)
    randomize_parameters(model)
    ids = (SOURCE, TARGET[:, :-1], TARGET[:, 1:])
    report = check_loss(model, *ids, name=activation, method=COMPLEX_STEP, together=True, directions=2)
    assert report.worst.error <= 1e-12, str(report)


def test_source_and_target_learn_positions_of_their_own():
    """Two tables, drawn apart; what is the same for both, sinusoids, is one table."""
    model, fixed = Transformer(config(positions="learned")), Transformer(config())
    source, target = (embedding.positions for embedding in (model.source_embedding, model.target_embedding))
    assert source is not target
    assert not (host(source.P.data) == host(target.P.data)).any()
    assert sum(name.endswith("positions.P") for name, _ in model.named_parameters()) == 2
    assert fixed.source_embedding.positions is fixed.target_embedding.positions


def test_a_model_like_llama_has_no_shift_anywhere():
    names = [name for name, _ in Transformer(config(**LLAMA), seed=None).named_parameters()]
    assert not [name for name in names if name.endswith((".b", ".beta"))]
    assert [name for name in names if name.endswith("expand.W")]


def test_the_normalisation_and_the_activation_of_the_paper_are_the_defaults():
    plain = config()
    assert (plain.normalization, plain.norm_eps, plain.activation, plain.bias) == ("layer", 1e-5, "relu", True)


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
