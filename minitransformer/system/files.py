"""Atomic writes, so that a file is complete or not there at all, reading within limits, and safetensors files.

If the system refuses something, for example because the disk is full or a folder is read-only, that is an OSError that
names the path.

What is read must be a regular file, or a link to one. Output goes to a new name, to a regular file, or to the file that
a link leads to, so that the link stays one; a device or a pipe is refused.
"""

import codecs
import contextlib
import errno
import hashlib
import importlib.util
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

import numpy as np

from minitransformer.system.terminal import is_closed_pipe

if sys.platform == "darwin":
    import fcntl

UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOTTY)  # a file system cannot sync
LARGEST_TEXT = 2**26  # bytes of a file that is read as a whole: in memory, text and its tokens are many times as large
LONGEST_LINE = 2**20  # characters of a line that is answered or translated


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike) -> Iterator[Path]:
    """A `with` block that gets a temporary path to write to. At its end the temporary file is renamed to `path`.

    If the block raises an exception, the temporary file is removed and `path` stays as it was. The bytes are on the
    disk before the file gets its name, so after a power failure there is the old file or the new one, never half of it.
    An error of the disk is raised, also if it comes only with the last flush. Each process uses a temporary name of
    its own. A link stays a link, and its file is replaced.
    """
    with named_in_errors(f"cannot write {path}"):
        target = _target(path)
        partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
        make_folder(target.parent)
        try:
            # Linux reports a failed write once to each handle that was open at the time: this one sees them all.
            # It is writable, because Windows cannot flush others, and closed before renaming, for Windows, too.
            with open(partial, "wb") as handle:
                yield partial
                _flush(handle.fileno())
            os.replace(partial, target)
        except BaseException:
            with contextlib.suppress(OSError):  # if it could not be written, it cannot be removed
                partial.unlink(missing_ok=True)
            raise
    with named_in_errors(f"{path} is written, but a power failure may undo it"):
        _sync_folder(target.parent)


def check_output(path: str | os.PathLike) -> None:
    """OSError unless `atomic_write` can write to `path`, as far as that is known before. Nothing is left behind."""
    if kind_of(Path(path)) == "folder":
        raise IsADirectoryError(f"{path} is a folder, not a file")
    with named_in_errors(f"cannot write {path}"):
        target = _target(path)
    check_folder(target.parent)


def _target(path: str | os.PathLike) -> Path:
    """The file that is written if output goes to `path`: where a link leads to, or the path itself.

    Raises OSError for a device, a pipe and a link that leads nowhere but to itself.
    """
    target = Path(os.path.realpath(path) if os.path.islink(path) else path)
    if kind_of(target) == "something else":
        raise OSError("it is not a regular file")
    return target


def delete(path: Path) -> None:
    """Delete the file at `path`, if there is one. Raises OSError that names it."""
    with named_in_errors(f"cannot delete {path}"):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def named_in_errors(what: str) -> Iterator[None]:
    """A `with` block in which an OSError says `what` failed, and then why: Python's own message may name no file."""
    try:
        yield
    except OSError as error:
        if is_closed_pipe(error):
            raise
        raise OSError(f"{what}: {reason(error)}") from error


def reason(error: OSError) -> str:
    """The system's reason without the error number: "No space left on device"."""
    return getattr(error, "strerror", None) or str(error)


def check_folder(folder: str | os.PathLike) -> None:
    """OSError unless a file can be written into `folder`, which need not exist yet. Nothing is left behind."""
    folder = Path(folder)
    made: list[Path] = []
    with named_in_errors(f"cannot write into the folder {folder}"):
        try:
            make_folder(folder, made)
            trial = folder / f"{os.getpid()}.partial"
            try:
                trial.write_bytes(b"something")
            finally:
                trial.unlink(missing_ok=True)
        except ValueError as error:  # an impossible name, such as one with a zero byte
            raise OSError(str(error)) from error
        finally:
            with contextlib.suppress(OSError):  # another process uses it by now
                for each in reversed(made):
                    each.rmdir()


def make_folder(folder: Path, made: list[Path] | None = None) -> None:
    """Create `folder` and its missing parents, and append those that were missing to `made`."""
    for each in reversed((folder, *folder.parents)):
        if each.exists() and not each.is_dir():
            raise NotADirectoryError(f"{each} is a file, not a folder")
        if not each.exists():
            each.mkdir(exist_ok=True)  # another process may create it at the same time
            if made is not None:
                made.append(each)
            _sync_folder(each.parent)


def _sync_folder(folder: Path) -> None:
    """Wait until the list of files in `folder` is on the disk. Windows, which lacks O_DIRECTORY, cannot do it."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _flush(descriptor)
        finally:
            os.close(descriptor)


def _flush(descriptor: int) -> None:
    """Wait until an open file is on the disk. OSError if it is not; after that, what the file holds is unknown."""
    flushes: list[Callable[[int], object]] = [os.fsync]
    if sys.platform == "darwin":  # there fsync only hands the bytes to the disk, which may keep them in its own memory
        flushes.insert(0, lambda file: fcntl.fcntl(file, fcntl.F_FULLFSYNC))
    for flush in flushes:
        try:
            flush(descriptor)
            return
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise


def kind_of(path: str | os.PathLike) -> str:
    """What is at `path`: a "file", a "folder" or "something else", or "" if there is nothing.

    A link counts as what it leads to. Raises OSError, naming the path, if the system does not say it: what may not be
    seen is not missing.
    """
    with named_in_errors(f"cannot read {path}"):
        try:
            mode = os.stat(path).st_mode
        except (FileNotFoundError, NotADirectoryError, ValueError):  # no file can have a name with a zero byte
            return ""
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "something else"


def names_in(folder: str | os.PathLike) -> list[str]:
    """The names of all that is in `folder`, in order; [] if there is no such folder. OSError if it cannot be read."""
    with named_in_errors(f"cannot read {folder}"):
        return sorted(os.listdir(folder)) if kind_of(folder) == "folder" else []


def check_file(path: str | os.PathLike) -> None:
    """FileNotFoundError, IsADirectoryError or OSError unless `path` is a regular file that can be read."""
    kind = kind_of(path) if str(path) else "folder"
    if kind == "folder":
        raise IsADirectoryError(f"{path} is a folder, not a file" if str(path) else "the file name is empty")
    if kind == "something else":
        raise OSError(f"{path} is not a regular file")
    if not kind:
        raise FileNotFoundError(f"there is no file {path}")
    with named_in_errors(f"cannot read {path}"), open(path, "rb"):
        pass  # it can be opened: for safetensors, whatever cannot be is missing


def read_bytes(path: str | os.PathLike) -> bytes:
    """The content of the file at `path`. Raises the errors of `check_file`, or an OSError that says why it failed.

    ValueError if it has more than LARGEST_TEXT bytes.
    """
    check_file(path)
    with named_in_errors(f"cannot read {path}"), open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size <= LARGEST_TEXT:
            return file.read()
    raise ValueError(f"{path} is larger than {LARGEST_TEXT:,} bytes, the limit")


def read_lines(stream: TextIO, name: str = "the input") -> Iterator[str]:
    """Yield the lines of `stream`, which a message calls `name`, without their ends.

    ValueError for one of more than LONGEST_LINE characters, before the rest of it is read.
    """
    for number, read in enumerate(iter(lambda: stream.readline(LONGEST_LINE + 2), ""), start=1):
        line = read.rstrip("\r\n")
        if len(line) > LONGEST_LINE:
            raise ValueError(f"line {number} of {name} is longer than {LONGEST_LINE:,} characters, the limit")
        yield line


def read_text(path: str | os.PathLike) -> str:
    """The text of a file in UTF-8. Every line end becomes a newline, and a byte order mark is removed.

    Raises ValueError, naming the path and the line, if the file is not text, and the errors of `read_bytes`.
    """
    data = read_bytes(path)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError(f"{path} begins as text in UTF-16 does: save it in UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before, byte = error.object[: error.start], error.object[error.start : error.start + 1]
        line = len(before.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"))
        guess = f", but in Latin-1 it is {byte.decode('latin1')!r}" if byte > b"\xa0" and b"\0" not in data else ""
        raise ValueError(f"{path}, line {line}: byte 0x{byte.hex()} is no UTF-8{guess}: save it in UTF-8") from error
    if "\0" in text:
        raise ValueError(f"{path} is not text: it has a zero byte at character {text.index(chr(0))}")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def checksum(texts: Mapping[str, str], arrays: Mapping[str, np.ndarray] | None = None) -> str:
    """The SHA-256 of {name: text} and {name: array}, as "sha256:...". The order of the names makes no difference."""
    digest = hashlib.sha256()
    for name in sorted(texts):
        _add(digest, name, texts[name], "")
    for name, array in sorted((arrays or {}).items()):
        _add(digest, name, array.dtype.str, array.shape)
        digest.update(array.tobytes() if array.ndim == 0 else array.reshape(-1).view("u1").data)
    return f"sha256:{digest.hexdigest()}"


def _add(digest: "hashlib._Hash", *parts: object) -> None:
    """Add each part after its length, so that different lists of parts never look the same."""
    for part in parts:
        data = str(part).encode("utf-8", "backslashreplace")
        digest.update(len(data).to_bytes(8, "little") + data)


def write_safetensors(path: str | os.PathLike, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Write {name: array} and a header {name: text} to `path`."""
    from safetensors.numpy import save  # here, so that everything else runs without it

    in_order = {name: np.asarray(array, order="C") for name, array in arrays.items()}  # save would mix up any other
    with atomic_write(path) as partial:
        partial.write_bytes(save(in_order, metadata=dict(metadata)))


def read_safetensors(path: str | os.PathLike) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """{name: array} and the header {name: text} of the file at `path`.

    Raises FileNotFoundError if it is missing, another OSError if it cannot be opened, and ValueError, naming the path,
    if it is not a safetensors file. Files with bfloat16 tensors cannot be read, because NumPy lacks that dtype.
    """
    from safetensors import SafetensorError, safe_open

    check_file(path)
    try:
        with named_in_errors(f"cannot read {path}"), safe_open(path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, TypeError, AttributeError, KeyError) as error:
        why = f"is not a safetensors file, or has a dtype that NumPy lacks: {error}"
        if Path(path).suffix != ".safetensors":
            why = "is not a model: give the folder of a run, such as runs/text, or its model.safetensors"
        raise ValueError(f"{path} {why}") from error


def read_safetensors_header(path: str | os.PathLike) -> tuple[dict[str, dict[str, Any]], int]:
    """What the file at `path` says about its tensors, and the place in the file where their data begins.

    The former is {name: {"dtype", "shape", "data_offsets"}}, where the offsets count from that place. Raises as
    `read_safetensors` does, but knows every dtype.
    """
    from safetensors import SafetensorError, safe_open

    check_file(path)
    try:
        with named_in_errors(f"cannot read {path}"), safe_open(path, framework="numpy"):
            pass  # opening checks the whole header: shapes, places, and that every byte belongs to one tensor
        with named_in_errors(f"cannot read {path}"), open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
    except (SafetensorError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a safetensors file: {error}") from error
    header.pop("__metadata__", None)
    return header, 8 + length


def load_module(path: str) -> ModuleType:
    """Import a user's own file. Raises ValueError, with the file's name, if that fails."""
    check_file(path)
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{path} raised an error (--debug shows where): {type(error).__name__}: {error}") from error
    return module
