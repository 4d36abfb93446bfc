"""Files: paths are checked early, errors name the path, and no half-written file is left behind."""

import errno
import io
import json
import os
import socket
import stat
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from minitransformer.data import load_text
from minitransformer.interop import is_huggingface_folder, load_huggingface, load_huggingface_tokenizer
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.recipes.run import find_checkpoint
from minitransformer.recipes.saved import find_model
from minitransformer.system.files import (
    LARGEST_TEXT,
    LONGEST_LINE,
    atomic_write,
    check_folder,
    check_output,
    checksum,
    read_lines,
    read_safetensors,
    write_safetensors,
)
from minitransformer.tokenizers import load_tokenizer
from minitransformer.training import load_checkpoint, save_checkpoint
from minitransformer.training.saving.checkpoint import BEFORE_CHECKSUMS

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


def test_arrays_are_stored_as_they_are_however_they_lie_in_memory(tmp_path):
    a = np.arange(12.0).reshape(3, 4)
    arrays = {"transposed": a.T, "part": a[:, 1:3], "backwards": a[::-1], "scalar": np.array(2.0)}
    write_safetensors(tmp_path / "a.safetensors", arrays, {})
    stored, _ = read_safetensors(tmp_path / "a.safetensors")
    for name, array in arrays.items():
        assert stored[name].shape == array.shape
        assert np.array_equal(stored[name], array), name


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


def test_atomic_write_names_the_file_in_an_error(tmp_path):
    with pytest.raises(OSError, match=r"^cannot write .*/model: the disk burns$"), atomic_write(tmp_path / "model"):
        raise OSError("the disk burns")
    assert list(tmp_path.iterdir()) == []


def is_folder(descriptor):
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


def failing(number, only=lambda descriptor: True):
    """An fsync that ends with the error `number` for the files that `only` chooses."""

    def fsync(descriptor, *command):
        if only(descriptor):
            raise OSError(number, os.strerror(number))

    return fsync


def write(path, text="new"):
    with atomic_write(path) as partial:
        partial.write_text(text, encoding="utf8")


@pytest.mark.parametrize("there", [True, False])
def test_link_stays_a_link_and_what_it_leads_to_is_written(there, tmp_path):
    (tmp_path / "link").symlink_to("folder/file")
    (tmp_path / "folder").mkdir()
    if there:
        (tmp_path / "folder" / "file").write_text("old")
    check_output(tmp_path / "link")
    write(tmp_path / "link")
    assert os.readlink(tmp_path / "link") == "folder/file"
    assert [(path.name, path.read_text()) for path in (tmp_path / "folder").iterdir()] == [("file", "new")]


@pytest.mark.parametrize("what", ["a folder", "a socket", "a pipe", "a link to itself", "a link into a file"])
def test_output_that_cannot_be_written_is_refused_before_and_nothing_is_changed(what, tmp_path):
    path = tmp_path / "there"
    said = {
        "a folder": "is a folder|Is a directory",
        **dict.fromkeys(("a socket", "a pipe"), "it is not a regular file"),
    }
    (tmp_path / "file").write_text("x")
    with socket.socket(socket.AF_UNIX) as listener:
        if what == "a folder":
            path.mkdir()
        elif what == "a socket":
            listener.bind(str(path))
        elif what == "a pipe":
            os.mkfifo(path)
        else:
            path.symlink_to(path if what == "a link to itself" else tmp_path / "file" / "below")
        before = os.lstat(path)
        for refuse in (check_output, write):
            with pytest.raises(OSError, match=said.get(what, "cannot (read|write) ")):
                refuse(path)
    assert os.path.samestat(os.lstat(path), before)
    assert sorted(os.listdir(tmp_path)) == ["file", "there"]


READERS = {  # of what may be missing, and then something else is tried or said
    "model": lambda path: find_model(str(path), "reverse"),
    "run": find_checkpoint,
    "checkpoint": load_checkpoint,
    "text": load_text,
    "tokenizer": load_tokenizer,
    "Hugging Face folder": is_huggingface_folder,
    "Hugging Face model": load_huggingface,
    "Hugging Face tokenizer": load_huggingface_tokenizer,
}


@pytest.mark.parametrize("reader", READERS)
def test_what_may_not_be_seen_is_not_missing(reader, tmp_path, monkeypatch):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OSError, match=r"^cannot read .*loop.*: Too many levels of symbolic links$"):
        READERS[reader](tmp_path / "loop")


@pytest.mark.parametrize("reader", [READERS["model"], READERS["run"]])
def test_folder_whose_names_may_not_be_read_is_not_empty(reader, tmp_path, monkeypatch):
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    monkeypatch.setattr(os, "listdir", failing(errno.EACCES))
    with pytest.raises(OSError, match=r"^cannot read .*/run/checkpoints: Permission denied$"):
        reader(tmp_path / "run")


def test_model_that_may_not_be_opened_is_not_missing(tmp_path, monkeypatch):
    save_checkpoint(tmp_path / "model", model())

    def refuse(path, mode):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr("minitransformer.system.files.open", refuse, raising=False)
    with pytest.raises(OSError, match=r"^cannot read .*/model: Permission denied$"):
        load_checkpoint(tmp_path / "model")


def test_file_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    with open(tmp_path / "large", "wb") as file:
        file.truncate(LARGEST_TEXT + 1)
    for read in (load_text, load_tokenizer):
        with pytest.raises(ValueError, match=r"/large is larger than 67,108,864 bytes, the limit$"):
            read(tmp_path / "large")


def test_line_without_an_end_is_refused_and_the_longest_is_read():
    longest = "x" * LONGEST_LINE
    assert list(read_lines(io.StringIO(f"\n{longest}\r\n{longest}"))) == ["", longest, longest]
    endless = SimpleNamespace(readline=lambda limit: "x" * limit)
    with pytest.raises(ValueError, match=r"^line 1 of the input is longer than 1,048,576 characters, the limit$"):
        list(read_lines(endless))


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EBADF])
def test_file_that_is_not_flushed_to_the_disk_does_not_replace_the_old_one(number, tmp_path, monkeypatch):
    write(tmp_path / "model", "old")
    monkeypatch.setattr(os, "fsync", failing(number))
    with pytest.raises(OSError, match=rf"^cannot write .*/model: {os.strerror(number)}$"):
        write(tmp_path / "model")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("model", "old")]


def test_name_that_is_not_flushed_to_the_disk_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", failing(errno.EIO, is_folder))
    with pytest.raises(OSError, match=r"^.*/model is written, but a power failure may undo it: Input/output error$"):
        write(tmp_path / "model")
    assert (tmp_path / "model").read_text() == "new"


def test_folder_that_is_not_flushed_to_the_disk_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", failing(errno.EIO, is_folder))
    with pytest.raises(OSError, match=r"^cannot write .*/new/model: Input/output error$"):
        write(tmp_path / "new" / "model")


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS])
def test_file_system_that_cannot_flush_is_used_all_the_same(number, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", failing(number))
    write(tmp_path / "new" / "model")
    assert (tmp_path / "new" / "model").read_text() == "new"


def test_each_new_folder_and_each_file_is_flushed_before_what_depends_on_it(tmp_path, monkeypatch):
    flushed, names = [], [tmp_path / "a" / "b" / "model", tmp_path / "a" / "b", tmp_path / "a", tmp_path]

    def fsync(descriptor):
        flushed.extend(path for path in names if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()))
        if not is_folder(descriptor):
            assert (os.fstat(descriptor).st_size, names[0].exists()) == (3, False)
            flushed.append("the bytes")

    monkeypatch.setattr(os, "fsync", fsync)
    write(names[0])
    assert flushed == [tmp_path, tmp_path / "a", "the bytes", tmp_path / "a" / "b"]


def test_on_windows_a_writable_file_is_flushed_and_closed_before_it_is_renamed_and_folders_are_not_opened(
    tmp_path, monkeypatch
):
    """There fsync needs a file that is open for writing, an open file keeps its name, and folders cannot be opened."""
    import fcntl

    flushed, replace = [], os.replace

    def fsync(descriptor):
        assert fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
        flushed.append(descriptor)

    def replace_closed(source, target):
        for descriptor in flushed:
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(descriptor)
        replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace_closed)
    monkeypatch.setattr(os, "open", failing(errno.EACCES))
    monkeypatch.delattr(os, "O_DIRECTORY")
    write(tmp_path / "new" / "model")
    assert len(flushed) == 1


MACOS = {  # what the disk's full flush says, and whether fsync follows
    "does it": (None, False),
    "cannot do it": (errno.ENOTSUP, True),
    "has no such command": (errno.ENOTTY, True),
    "fails": (errno.EIO, False),
}


@pytest.mark.parametrize("case", MACOS)
def test_on_macos_the_disk_itself_is_flushed(case, tmp_path, monkeypatch):
    number, followed = MACOS[case]
    full, plain = [], []

    def fcntl(descriptor, command):
        full.append((command, is_folder(descriptor)))
        if number:
            raise OSError(number, os.strerror(number))

    module = SimpleNamespace(F_FULLFSYNC=51, fcntl=fcntl)
    monkeypatch.setattr("minitransformer.system.files.fcntl", module, raising=False)
    monkeypatch.setattr("minitransformer.system.files.sys", SimpleNamespace(platform="darwin"))
    monkeypatch.setattr(os, "fsync", lambda descriptor: plain.append(is_folder(descriptor)))
    if number == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            write(tmp_path / "model")
        assert full == [(51, False)]
    else:
        write(tmp_path / "model")
        assert full == [(51, False), (51, True)]
    assert plain == [False, True] * followed


def model():
    return Transformer(TransformerConfig(**SIZES))


def header_of(path):
    with safe_open(path, framework="numpy") as file:
        return file.metadata()


def older_header(config):
    return {"format": BEFORE_CHECKSUMS, "config": json.dumps(config), "metadata": '{"step": 3}'}


def test_files_without_checksums_are_still_read(tmp_path):
    saved, path = model(), tmp_path / "old"
    save_file(saved.state_dict(), path, metadata=older_header(SIZES))
    loaded, metadata = load_checkpoint(path)
    assert metadata == {"step": 3}
    assert all(np.array_equal(array, saved.state_dict()[name]) for name, array in loaded.state_dict().items())


def test_changed_bit_of_the_state_of_a_training_is_noticed(tmp_path):
    save_checkpoint(tmp_path / "model", model(), {"adam.m": np.ones(3)})
    arrays = load_file(tmp_path / "model")
    arrays["training/adam.m"].view(np.uint8).reshape(-1)[5] ^= 1
    save_file(arrays, tmp_path / "model", metadata=header_of(tmp_path / "model"))
    with pytest.raises(ValueError, match="its checksum does not match its content"):
        load_checkpoint(tmp_path / "model")
