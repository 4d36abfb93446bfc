"""Adding rows to a table on a GPU: the ids are sorted on the host, then one kernel sums the rows of each id."""

from typing import Any

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.kernels.launch import COLUMNS, PARTS, ceil_div, common_real, launch


def scatter_add(table: xp.ndarray, ids: np.ndarray, rows: xp.ndarray) -> Any:
    """As `functional.embedding.scatter_add`, in place: table (V, C), ids (N,) on the host, rows (N, C)."""
    dtype = common_real(table, rows)
    if dtype is None or not table.flags.c_contiguous:
        return NotImplemented
    C = table.shape[1]
    ids, first, order = _runs(ids)
    grid, block = (len(ids), ceil_div(C, COLUMNS)), (COLUMNS, PARTS)
    indices = map(to_device, (ids, first, order))
    launch("scatter_add", dtype, grid, block, xp.ascontiguousarray(rows), *indices, table, C)
    return None


def _runs(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The id of each run of equal ids after sorting, where each run begins (and the end of the last), and the order."""
    order = np.argsort(ids, kind="stable")
    ids = ids[order].astype(np.int64)
    first = np.flatnonzero(np.diff(ids, prepend=-1))
    return ids[first], np.append(first, len(ids)), order
