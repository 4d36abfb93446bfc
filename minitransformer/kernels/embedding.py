"""The embedding's gradient on a GPU: the ids are sorted on the host, then one kernel sums the rows of each id."""

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.kernels.launch import COLUMNS, PARTS, ceil_div, common_real, launch


def embedding_backward(dy, cache, dE):
    """As `functional.embedding_backward`. The ids must be rows of the table, as the layer has checked."""
    ids, scale = cache
    dtype = common_real(dy, dE)
    if dtype is None or not dE.flags.c_contiguous:
        return NotImplemented
    C = dE.shape[1]
    ids, first, order = _runs(ids.reshape(-1))
    grid, block = (len(ids), ceil_div(C, COLUMNS)), (COLUMNS, PARTS)
    indices = map(to_device, (ids, first, order))
    launch("embedding_backward", dtype, grid, block, xp.ascontiguousarray(dy), *indices, dE, C, dtype.type(scale))
    return None


def _runs(ids):
    """The id of each run of equal ones in the sorted `ids`, where it begins, with the end of all, and the order."""
    order = np.argsort(ids, kind="stable")
    ids = ids[order].astype(np.int64)
    first = np.flatnonzero(np.diff(ids, prepend=-1))
    return ids[first], np.append(first, len(ids)), order
