"""What source and target share, and which models PyTorch's own Transformer can represent."""

import numpy as np
import pytest

from minitransformer.interop import from_pytorch, to_pytorch
from minitransformer.layers.since_2017.feed_forward import GATED
from minitransformer.models import Transformer, TransformerConfig
from tests.helpers import host

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
