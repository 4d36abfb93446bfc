"""Files: paths are checked early, errors name the path, and no half-written file is left behind."""

import dataclasses
import json
import resource
import subprocess
import sys

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from minitransformer.models import Transformer, TransformerConfig
from minitransformer.system.files import atomic_write, check_file, check_folder, checksum
from minitransformer.training import load_checkpoint, save_checkpoint
from minitransformer.training.checkpoint import BEFORE_CHECKSUMS, FORMAT

ARRAYS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.zeros((0, 2)), "c": np.array(1.5)}
TEXTS = {"x": "1", "y": "ä\ud800"}
OTHERS = {
    "a bit of an array": (TEXTS, {**ARRAYS, "c": np.nextafter(ARRAYS["c"], 2.0)}),
    "the sign of a zero": (TEXTS, {**ARRAYS, "a": ARRAYS["a"] * np.array([[-1.0], [1.0]], np.float32)}),
    "another shape": (TEXTS, {**ARRAYS, "a": ARRAYS["a"].reshape(3, 2)}),
    "another empty shape": (TEXTS, {**ARRAYS, "b": np.zeros((2, 0))}),
    "another dtype": (TEXTS, {**ARRAYS, "a": ARRAYS["a"].view(np.int32)}),
    "another name": (TEXTS, {"d" if name == "c" else name: array for name, array in ARRAYS.items()}),
    "one array less": (TEXTS, {"a": ARRAYS["a"], "c": ARRAYS["c"]}),
    "another text": ({**TEXTS, "x": "2"}, ARRAYS),
    "a text split differently": ({"x": "1y", "": TEXTS["y"]}, ARRAYS),
    "one text less": ({"x": "1"}, ARRAYS),
}
SIZES = {"vocab_size": 11, "d_model": 8, "num_heads": 2, "d_ff": 6, "num_layers": 1, "max_len": 9}


def test_checksum_does_not_depend_on_order_or_on_how_an_array_lies_in_memory():
    turned = {name: np.array(array, order="F") for name, array in reversed(ARRAYS.items())}
    assert checksum(dict(reversed(TEXTS.items())), turned) == checksum(TEXTS, ARRAYS)


@pytest.mark.parametrize("other", OTHERS)
def test_checksum_changes_with(other):
    assert checksum(*OTHERS[other]) != checksum(TEXTS, ARRAYS)


def test_folder_that_can_be_written_is_left_as_it_was(tmp_path):
    check_folder(tmp_path / "not" / "there" / "yet")
    check_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["file", "file/below", "new/\0", "new/" + "x" * 300])
def test_folder_that_cannot_be_written_is_refused_with_its_name_and_nothing_is_left(name, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError, match=r"^cannot write into the folder "):
        check_folder(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_folder_in_use_by_another_process_stays(tmp_path, monkeypatch):
    def write_bytes(path, data):
        (path.parent / "of_another").touch()
        path.touch()

    monkeypatch.setattr("pathlib.Path.write_bytes", write_bytes)
    check_folder(tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["of_another"]


def test_folders_devices_and_missing_files_get_different_errors(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^there is no file"):
        check_file(tmp_path / "missing")
    with pytest.raises(IsADirectoryError, match=r"is a folder"):
        check_file(tmp_path)
    with pytest.raises(OSError, match=r"^/dev/null is not a regular file"):
        check_file("/dev/null")


def test_atomic_write_names_the_file_in_an_error(tmp_path):
    with pytest.raises(OSError, match=r"^cannot write .*/model: the disk burns$"), atomic_write(tmp_path / "model"):
        raise OSError("the disk burns")
    assert list(tmp_path.iterdir()) == []


def test_limit_on_the_file_size_ends_in_a_one_line_error_and_leaves_no_file(tmp_path):
    """Here the system itself refuses, by a limit on the size of files, as on a disk with a quota."""
    code = "import sys; from minitransformer.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "train", "copy", "--steps", "2", "--batch-size", "2", "--name", "copy"]
    limit = (5000, 5000)
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )
    said = "cannot write runs/copy/model.safetensors: File too large; no checkpoint has been saved"
    assert (done.returncode, done.stderr) == (2, f"minitransformer train: {said}\n")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["config.json"]


def model():
    return Transformer(TransformerConfig(**SIZES))


def header_of(path):
    with safe_open(path, framework="numpy") as file:
        return file.metadata()


def older_header(config):
    return {"format": BEFORE_CHECKSUMS, "config": json.dumps(config), "metadata": '{"step": 3}'}


def test_files_without_checksums_are_still_read(tmp_path):
    saved, path = model(), tmp_path / "old"
    save_file(saved.state_dict(), path, metadata=older_header(dataclasses.asdict(saved.config)))
    loaded, metadata = load_checkpoint(path)
    assert metadata == {"step": 3}
    assert all(np.array_equal(array, saved.state_dict()[name]) for name, array in loaded.state_dict().items())


@pytest.mark.parametrize("name", ["source_embedding.tokens.E", "training/adam.m"])
def test_changed_bit_of_an_array_is_noticed(name, tmp_path):
    save_checkpoint(tmp_path / "model", model(), {"adam.m": np.ones(3)})
    arrays = load_file(tmp_path / "model")
    arrays[name].view(np.uint8).reshape(-1)[5] ^= 1
    save_file(arrays, tmp_path / "model", metadata=header_of(tmp_path / "model"))
    with pytest.raises(ValueError, match="its checksum does not match its content"):
        load_checkpoint(tmp_path / "model")


@pytest.mark.parametrize("missing", ["checksum", "config", "options", "metadata", "model"])
def test_header_of_this_version_must_be_complete(missing, tmp_path):
    save_checkpoint(tmp_path / "model", model())
    header = header_of(tmp_path / "model")
    assert header["format"] == FORMAT
    del header[missing]
    save_file(model().state_dict(), tmp_path / "model", metadata=header)
    with pytest.raises(ValueError, match=rf"its header does not fit its format: missing \['{missing}'\]"):
        load_checkpoint(tmp_path / "model")
