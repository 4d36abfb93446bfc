"""Writing files so that nothing half-written is ever found under their name, and the tensors in safetensors files.

What the system refuses, such as a full disk or a folder that may not be written, is an OSError that names the path.
"""

import contextlib
import hashlib
import os
from pathlib import Path


@contextlib.contextmanager
def written_whole(path):
    """A path to write to in a `with` block, which becomes `path` if the block ends well and vanishes if it does not.

    The bytes are on the disk before the file has its name, so a machine that loses power keeps the old file or the
    new one. Each process writes beside it under a name of its own.
    """
    path = Path(path)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    with named_in_errors(f"cannot write {path}"):
        _make_folder(path.parent)
        try:
            yield partial
            sync(partial)
            os.replace(partial, path)
            sync(path.parent)
        finally:
            with contextlib.suppress(OSError):  # where nothing could be written nothing can be taken away
                partial.unlink(missing_ok=True)


@contextlib.contextmanager
def named_in_errors(what):
    """Inside a `with` block an OSError says `what` could not be done, and then why: Python's own may name no file."""
    try:
        yield
    except OSError as error:
        raise OSError(f"{what}: {reason(error)}") from error


def reason(error):
    """Why the system refused, without a number: "No space left on device"."""
    return getattr(error, "strerror", None) or str(error)


def check_folder(folder):
    """OSError unless a file can be written into `folder`, which need not be there yet. It is left as it was."""
    folder, made = Path(folder), []
    with named_in_errors(f"cannot write into the folder {folder}"):
        try:
            _make_folder(folder, made)
            trial = folder / f"{os.getpid()}.partial"
            try:
                trial.write_bytes(b"something")
            finally:
                trial.unlink(missing_ok=True)
        except ValueError as error:  # a name that no system has, as with a zero byte
            raise OSError(str(error)) from error
        finally:
            with contextlib.suppress(OSError):  # somebody else has begun to use it
                for each in reversed(made):
                    each.rmdir()


def _make_folder(folder, made=None):
    """Make `folder` and those above it, and note in the list `made` those that were not there."""
    for each in reversed((folder, *folder.parents)):
        if each.exists() and not each.is_dir():
            raise NotADirectoryError(f"{each} is a file")
        if not each.exists():
            each.mkdir(exist_ok=True)  # another process may have been quicker
            if made is not None:
                made.append(each)


def check_file(path):
    """FileNotFoundError, IsADirectoryError or OSError unless `path` is a file that can be opened."""
    with named_in_errors(f"cannot read {path}"):
        is_file, is_folder, is_other = (getattr(Path(path), kind)() for kind in ("is_file", "is_dir", "exists"))
    if is_folder:
        raise IsADirectoryError(f"{str(path) or 'the empty name'} is a folder, and a file is needed")
    if is_other and not is_file:
        raise OSError(f"{path} is no regular file, and one is needed")
    if not is_file:
        raise FileNotFoundError(f"there is no file {path}")


def read_bytes(path):
    """All that is in the file at `path`; an OSError as of `check_file`, or one that says why it cannot be read."""
    check_file(path)
    with named_in_errors(f"cannot read {path}"):
        return Path(path).read_bytes()


def sync(path):
    """Wait until a file, or the names in a folder, are on the disk; not where the system cannot, as for folders."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def checksum(texts, arrays=None):
    """A number that changes with any bit of {name: text} and of {name: array}, their order aside -> "sha256:..."."""
    digest = hashlib.sha256()
    for name in sorted(texts):
        _add(digest, name, texts[name], "")
    for name, array in sorted((arrays or {}).items()):
        _add(digest, name, array.dtype.str, array.shape)
        digest.update(array.tobytes() if array.ndim == 0 else array.reshape(-1).view("u1"))
    return f"sha256:{digest.hexdigest()}"


def _add(digest, *parts):
    """Each part with its length before it, so that no two lists of parts look alike."""
    for part in parts:
        data = str(part).encode("utf-8", "backslashreplace")
        digest.update(len(data).to_bytes(8, "little") + data)


def write_safetensors(path, arrays, metadata):
    """Write {name: array} and a header of {name: text} to `path`."""
    from safetensors.numpy import save  # here, so that all else runs on a bare machine without it

    with written_whole(path) as partial:
        partial.write_bytes(save(arrays, metadata=metadata))


def read_safetensors(path):
    """{name: array} and the header {name: text} of the file at `path`.

    Raises FileNotFoundError if there is none, another OSError if it cannot be opened, and ValueError, naming the path,
    if it is none of safetensors; bfloat16 cannot be read, as NumPy does not have it.
    """
    from safetensors import SafetensorError, safe_open

    check_file(path)
    try:
        with named_in_errors(f"cannot read {path}"), safe_open(path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"{path} is not a safetensors file of numbers that NumPy knows: {error}") from error
