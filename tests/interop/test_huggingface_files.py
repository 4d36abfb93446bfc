"""The files of a folder of theirs: one or several files of weights, in any floating-point dtype, or one plain error."""

import io
import json
import re
import tracemalloc

import numpy as np
import pytest
from safetensors.numpy import save_file

from minitransformer.interop import (
    from_huggingface,
    huggingface,
    huggingface_files,
    load_huggingface,
    outline_huggingface,
)
from minitransformer.interop.huggingface_files import StoredTensor
from tests.helpers import same
from tests.interop.given import FILES, GPT2_FILE, INDEX, make_state, save, save_shards, write_index

pytestmark = pytest.mark.host_only


@pytest.fixture
def state():
    """The weights of a small GPT-2."""
    return make_state("gpt2")


def assert_has(model, state, config=GPT2_FILE):
    """AssertionError unless the model has these weights to the bit."""
    expected, got = from_huggingface(state, config), model.state_dict()
    assert got.keys() == expected.keys()
    assert all(same(got[name], expected[name].astype(np.float32)) for name in expected)


def refused(folder, message):
    """Loading from `folder` is refused in one line that matches `message`."""
    with pytest.raises(ValueError, match=message) as refusal:
        load_huggingface(folder)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("count", [1, 3])
def test_shards_give_the_same_model_as_one_file(name, count, tmp_path):
    save_shards(tmp_path, make_state(name), FILES[name], count)
    assert_has(load_huggingface(tmp_path), make_state(name), FILES[name])


@pytest.mark.parametrize(
    "wrong",
    [
        "../other.safetensors",
        "/etc/passwd",
        "..",
        "",
        7,
    ],
)
def test_an_index_may_only_name_files_in_its_folder(wrong, state, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    save_file(state, tmp_path / "other.safetensors")
    shard_of = save_shards(folder, state)
    write_index(folder, {**shard_of, "wte.weight": wrong})
    refused(folder, f"{re.escape(INDEX)} names the file {re.escape(repr(wrong))}, and a shard must be a file in the")


def test_a_shard_that_is_a_link_to_another_folder_is_refused(state, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    shard = save_shards(folder, state)["wte.weight"]
    (folder / shard).rename(tmp_path / "elsewhere.safetensors")
    (folder / shard).symlink_to(tmp_path / "elsewhere.safetensors")
    refused(folder, f"{shard} is a link to a file outside its folder")
    (folder / shard).unlink()
    (tmp_path / "elsewhere.safetensors").rename(folder / "real.safetensors")
    (folder / shard).symlink_to("real.safetensors")
    assert_has(load_huggingface(folder), state)


def test_the_cache_of_their_library_may_link_to_its_blobs(state, tmp_path):
    folder, blobs = tmp_path / "models--gpt2" / "snapshots" / "607a30d", tmp_path / "models--gpt2" / "blobs"
    folder.mkdir(parents=True)
    blobs.mkdir()
    for i, shard in enumerate(sorted(set(save_shards(folder, state).values()))):
        (folder / shard).rename(blobs / str(i))
        (folder / shard).symlink_to(f"../../blobs/{i}")
    assert_has(load_huggingface(folder), state)


def test_a_tensor_that_its_shard_lacks_is_named(state, tmp_path):
    shard = save_shards(tmp_path, state)["wpe.weight"]
    write_index(tmp_path, {**save_shards(tmp_path, state), "h.0.more": shard})
    refused(tmp_path, rf"{shard} lacks the tensor 'h\.0\.more', which {re.escape(INDEX)} lists$")


def test_a_tensor_in_two_shards_or_in_none_of_the_index_is_named(state, tmp_path):
    shard_of = save_shards(tmp_path, state)
    shards = sorted(set(shard_of.values()))
    here = {name: state[name] for name in state if shard_of[name] == shards[2]}
    twice = next(name for name in state if shard_of[name] == shards[0])
    save_file({**here, twice: state[twice]}, tmp_path / shards[2])
    refused(tmp_path, f"{shards[2]} has the tensor '{twice}', which {re.escape(INDEX)} says is in {shards[0]}$")
    save_file({**here, "spare": state[twice]}, tmp_path / shards[2])
    refused(tmp_path, f"{shards[2]} has the tensor 'spare', which {re.escape(INDEX)} does not list$")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("\xff", "is not JSON"),
        ('{"weight_map": {}}', "has no weight_map"),
        ('{"weight_map": {"a": "x", "a": "y"}}', "is not JSON: the name 'a' is there twice"),
    ],
)
def test_a_bad_index_is_refused_with_its_path(text, message, state, tmp_path):
    save_shards(tmp_path, state)
    (tmp_path / INDEX).write_text(text, "latin1")
    refused(tmp_path, f"{re.escape(INDEX)} {message}")


@pytest.mark.parametrize("count", [1, 3])
def test_loading_never_holds_a_second_model(count, tmp_path):
    config = GPT2_FILE | {"n_embd": 96, "n_layer": 6, "vocab_size": 1000}
    state = make_state("gpt2", config)
    save_shards(tmp_path, state, config, count)
    size = sum(array.nbytes for array in state.values())
    del state
    tracemalloc.start()
    try:
        model = load_huggingface(tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(parameter.data.nbytes for parameter in model.parameters()) == size
    assert peak < 1.5 * size


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("block", "tile"), [(1, 1), (50, 3)])
def test_a_model_is_the_same_whatever_the_blocks_that_it_is_read_in(name, block, tile, tmp_path, monkeypatch):
    state = make_state(name)
    save(tmp_path, state, FILES[name])
    expected = load_huggingface(tmp_path).state_dict()
    monkeypatch.setattr(huggingface, "BLOCK", block)
    monkeypatch.setattr(huggingface, "TILE", tile)
    got = load_huggingface(tmp_path).state_dict()
    assert all(same(got[each], expected[each]) for each in expected)
    last = max(state, key=lambda each: state[each].size)
    state[last].flat[-1] = np.inf
    save(tmp_path, state, FILES[name])
    refused(tmp_path, f"has NaN or infinity in {re.escape(last)}")


def test_large_numbers_are_not_taken_for_infinity(state, tmp_path):
    state["wpe.weight"][3] = 3e38
    save(tmp_path, state, GPT2_FILE)
    assert_has(load_huggingface(tmp_path), state)


def test_an_outline_has_the_shapes_of_the_model_and_reads_no_weight(tmp_path, monkeypatch):
    save(tmp_path, make_state("gpt2", GPT2_FILE), GPT2_FILE)
    shapes = [parameter.data.shape for parameter in load_huggingface(tmp_path).parameters()]
    monkeypatch.delattr(StoredTensor, "blocks")
    assert [parameter.data.shape for parameter in outline_huggingface(tmp_path).parameters()] == shapes


def write_file(path, dtype, tensors):
    """A safetensors file written by hand: {name: (shape, bytes)}."""
    header, data = {}, b""
    for name, (shape, numbers) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def test_bfloat16_is_read_as_the_float32_with_the_same_first_bits(state, tmp_path):
    save(tmp_path, {}, GPT2_FILE)
    shortened = {name: array.copy() for name, array in state.items()}
    for array in shortened.values():
        array.view(np.uint32)[...] &= 0xFFFF0000
    shortened["wte.weight"].flat[:4] = [1.0, -2.5, 2.0**-126, 2.0**-133]  # the last is subnormal
    halves = {
        name: (array.shape, (array.view(np.uint32) >> 16).astype("<u2").tobytes()) for name, array in shortened.items()
    }
    write_file(tmp_path / "model.safetensors", "BF16", halves)
    assert_has(load_huggingface(tmp_path), shortened)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_floating_point_dtypes_are_read(dtype, state, tmp_path):
    given = {name: array.astype(dtype) for name, array in state.items()}
    save(tmp_path, given, GPT2_FILE)
    assert_has(load_huggingface(tmp_path), given)


class Short(io.FileIO):
    """A file of which the system reads 7 bytes at a time: Linux reads less than 2^31 at a time."""

    def readinto(self, buffer):
        return super().readinto(memoryview(buffer)[:7])


def test_a_read_that_the_system_cuts_short_goes_on(tmp_path, state, monkeypatch):
    def open_short(path, mode, buffering=8):
        return Short(path) if not buffering else io.BufferedReader(Short(path), buffering)

    save(tmp_path, state, GPT2_FILE)
    monkeypatch.setattr(huggingface_files, "open", open_short, raising=False)
    assert_has(load_huggingface(tmp_path), state)
