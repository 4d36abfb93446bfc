"""Writing files so that nothing half-written is ever found under their name, and the tensors in safetensors files."""

import contextlib
import os
from pathlib import Path


@contextlib.contextmanager
def written_whole(path):
    """A path to write to in a `with` block, which becomes `path` if the block ends well and vanishes if it does not.

    The bytes are on the disk before the file has its name, so a machine that loses power keeps the old file or the
    new one. Each process writes beside it under a name of its own.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        sync(partial)
        os.replace(partial, path)
        sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def sync(path):
    """Wait until a file, or the names in a folder, are on the disk; not where the system cannot, as for folders."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_safetensors(path, arrays, metadata):
    """Write {name: array} and a header of {name: text} to `path`."""
    from safetensors.numpy import save  # here, so that all else runs on a bare machine without it

    with written_whole(path) as partial:
        partial.write_bytes(save(arrays, metadata=metadata))


def read_safetensors(path):
    """{name: array} and the header {name: text} of the file at `path`.

    Raises FileNotFoundError if there is none, and ValueError, naming the path, if it cannot be read; bfloat16 cannot,
    as NumPy does not have it.
    """
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, TypeError) as error:
        raise ValueError(f"{path} is not a safetensors file of numbers that NumPy knows: {error}") from error
