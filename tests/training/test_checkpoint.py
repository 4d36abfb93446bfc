"""Checkpoints: what is read is, to the bit, what was written, and a file of any other kind is refused by its path."""

import numpy as np
import pytest

from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import load_checkpoint, save_checkpoint
from tests.helpers import host, randomize

about_the_file = pytest.mark.host_only  # what is said of a file does not depend on where the arrays are

SIZES = {"vocab_size": 11, "d_model": 8, "num_heads": 2, "d_ff": 6, "num_layers": 2, "max_len": 9}
SWITCHES = [
    {},
    {"norm": "pre"},
    {"norm": "pre", "final_norm": False},
    {"norm": "post", "final_norm": True, "tie_embeddings": False},
    {"dropout": 0.0, "attention_dropout": 0.3, "ffn_dropout": 0.2},
]


def _model(seed=1, dtype=np.float32, **switches):
    return randomize(Transformer(TransformerConfig(**SIZES, **switches), seed=None, dtype=dtype), seed)


def _assert_same_weights(model, expected):
    state, expected_state = model.state_dict(), expected.state_dict()
    assert list(state) == list(expected_state)
    for name, value in expected_state.items():
        assert state[name].dtype == value.dtype
        np.testing.assert_array_equal(state[name], value, err_msg=name)


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_loaded_is_exactly_what_was_saved(tmp_path, switches, dtype):
    model = _model(dtype=dtype, **switches)
    metadata = {"task": "sort", "step": 12, "loss": 0.1, "history": [1.5, 2.5], "notes": {"ä": None, "done": True}}
    path = tmp_path / "new" / "folder" / "model.safetensors"
    save_checkpoint(path, model, **metadata)
    loaded, loaded_metadata = load_checkpoint(path)
    assert loaded.config == model.config
    assert loaded_metadata == metadata
    _assert_same_weights(loaded, model)
    source, target = np.array([[3, 4, 5, 0], [6, 7, 0, 0]]), np.array([[1, 8, 9], [1, 10, 0]])
    np.testing.assert_array_equal(host(loaded(source, target)), host(model(source, target)))


def test_saving_again_replaces_the_file_and_leaves_no_other(tmp_path):
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, _model(seed=1), step=1)
    save_checkpoint(path, _model(seed=2), step=2)
    loaded, metadata = load_checkpoint(path)
    assert metadata == {"step": 2}
    _assert_same_weights(loaded, _model(seed=2))
    assert list(tmp_path.iterdir()) == [path]


@about_the_file
def test_folder_of_a_finished_run_stands_for_its_model(tmp_path):
    save_checkpoint(tmp_path / "model.safetensors", _model(), task="copy")
    model, metadata = load_checkpoint(tmp_path)
    assert metadata == {"task": "copy"}
    for name, array in _model().state_dict().items():
        np.testing.assert_array_equal(model.state_dict()[name], array)
