"""Proves that exchanging weights with PyTorch loses nothing, copies, and refuses what does not fit; no torch.

That each entry lands where PyTorch has it is proven by the stored state_dict in `test_pytorch_reference`.
"""

import re

import numpy as np
import pytest

from minitransformer.interop.pytorch import from_pytorch, to_pytorch
from minitransformer.models import Transformer, TransformerConfig
from tests.helpers import randomize

SIZES = {"vocab_size": 11, "d_model": 6, "num_heads": 3, "d_ff": 7, "num_layers": 2}
CONFIGS = {
    "post-norm, with final norm": TransformerConfig(**SIZES, final_norm=True),
    "post-norm, without final norm": TransformerConfig(**SIZES, final_norm=False),
    "pre-norm, untied": TransformerConfig(**SIZES, norm="pre", tie_embeddings=False),
}
CONFIG = CONFIGS["post-norm, with final norm"]


def random_state(config, dtype=np.float64):
    """The state of a model with random weights."""
    return randomize(Transformer(config, seed=None, dtype=dtype)).state_dict()


@pytest.fixture
def theirs():
    """A state_dict in PyTorch's layout."""
    return to_pytorch(random_state(CONFIG), CONFIG)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CONFIGS)
def test_to_pytorch_and_back_is_exact_and_keeps_the_dtype(name, dtype):
    config = CONFIGS[name]
    state = random_state(config, dtype)
    again = from_pytorch(to_pytorch(state, config), config)
    assert again.keys() == {name for name in state if name.startswith(("encoder.", "decoder."))}
    assert all(np.array_equal(array, state[name]) and array.dtype == dtype for name, array in again.items())


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_takes_the_converted_weights_beside_its_own_embeddings(name):
    config = CONFIGS[name]
    state = random_state(config)
    model = Transformer(config, seed=5, dtype=np.float64)
    before = model.state_dict()
    model.load_state_dict(before | from_pytorch(to_pytorch(state, config), config))
    stacks = ("encoder.", "decoder.")
    expected = {name: state[name] if name.startswith(stacks) else before[name] for name in state}
    assert all(np.array_equal(array, expected[name]) for name, array in model.state_dict().items())


def test_a_missing_tensor_is_named(theirs):
    del theirs["decoder.layers.1.multihead_attn.in_proj_bias"]
    message = "the PyTorch state does not fit this config: missing ['decoder.layers.1.multihead_attn.in_proj_bias']"
    with pytest.raises(ValueError, match=re.escape(f"{message}, unexpected nothing")):
        from_pytorch(theirs, CONFIG)


def test_a_tensor_of_pytorchs_in_our_layout_is_refused_for_its_shape(theirs):
    theirs["encoder.layers.0.linear1.weight"] = theirs["encoder.layers.0.linear1.weight"].T
    message = "the PyTorch state has encoder.layers.0.linear1.weight of shape (6, 7), this config needs (7, 6)"
    with pytest.raises(ValueError, match=re.escape(message)):
        from_pytorch(theirs, CONFIG)


def test_a_missing_and_an_unexpected_array_of_ours_are_named():
    state = random_state(CONFIG)
    state["encoder.layers.0.typo"] = state.pop("encoder.norm.beta")
    message = "the state does not fit this config: missing ['encoder.norm.beta'], unexpected ['encoder.layers.0.typo']"
    with pytest.raises(ValueError, match=re.escape(message)):
        to_pytorch(state, CONFIG)
