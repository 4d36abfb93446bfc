"""What may stand between square brackets. CuPy wraps indices that are out of range, and lets assignments race."""

import numpy as np

from tests.strict.meter import count


def plain_index(key, shape, unwrap):
    """The index as NumPy takes it, with an Ellipsis at its end so that one element is still a view.

    Raises TypeError for arrays and lists of the host, and IndexError for indices outside 0 ... length - 1.
    """
    keys = tuple(unwrap(part, "an index") for part in (key if isinstance(key, tuple) else (key,)))
    for part in keys:
        if isinstance(part, list):
            raise TypeError("an index is a list of the host: CuPy would upload it silently; use an array of the device")
    used = sum(_axes_taken(part) for part in keys)
    axis = 0
    for part in keys:
        if part is Ellipsis:
            axis += len(shape) - used
            continue
        if _is_array(part) and part.dtype != bool:
            check_range(part, shape[axis])
        axis += _axes_taken(part)
    return keys if any(part is Ellipsis for part in keys) else (*keys, Ellipsis)


def check_range(indices, length):
    """IndexError unless all are in 0 ... length - 1. CuPy wraps the others around, and says nothing."""
    if indices.size and (indices.min() < 0 or indices.max() >= length):
        raise IndexError(f"an index array goes from {indices.min()} to {indices.max()}, the axis has length {length}")


def check_reading(keys):
    """A mask gives as many elements as it has True: the GPU must have counted them before there can be an array."""
    if any(_is_array(part) and part.dtype == bool for part in keys):
        count("waits", "array[mask]")


def check_writing(keys, value):
    """ValueError if one place is written twice: on a GPU it is undefined which of the two writes is last."""
    if any(_is_array(part) and part.dtype == bool for part in keys):
        if np.ndim(value):
            raise ValueError("array[mask] = array waits for the GPU; use where or copyto")
        return
    arrays = [part for part in keys if _is_array(part)]
    if not arrays:
        return
    places = np.stack([np.ravel(part).astype(np.int64) for part in np.broadcast_arrays(*arrays)], axis=1)
    if len(np.unique(places, axis=0)) < len(places):
        raise ValueError("array[indices] = value with an index that comes twice is undefined on a GPU; use add.at")


def check_copied(target, value):
    """ValueError if `value` is another view of its own target, such as the real part: CuPy copies nothing then.

    It takes two arrays for the same if they have the same place, shape and strides, whatever their dtypes.
    """
    if _is_array(value) and value.dtype != target.dtype and _layout(value) == _layout(target):
        raise ValueError("array[...] = a view of the same numbers in another dtype does nothing in CuPy; copy the view")


def _layout(array):
    return array.ctypes.data, array.shape, array.strides


def _is_array(part):
    return isinstance(part, np.ndarray)


def _axes_taken(part):
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if _is_array(part) and part.dtype == bool else 1
