"""Exchanging weights with PyTorch's recurrent layers: the state_dict of `torch.nn.LSTM` and `torch.nn.GRU`, and ours.

For each direction of each layer, with I inputs and R hidden units:

    PyTorch                                      ours
    weight_ih_l0          (4R, I) or (3R, I)     directions.0.W   (I, 4R) or (I, 3R)
    weight_hh_l0          (4R, R) or (3R, R)     directions.0.U   (R, 4R) or (R, 3R)
    bias_ih_l0, bias_hh_l0    (4R,) or (3R,)     directions.0.b   (4R,) or (3R,); and of a GRU directions.0.d  (R,)

PyTorch's blocks are i, f, g, o in an LSTM and r, z, n in a GRU; ours are o, i, f, g and r, z, n. PyTorch has two biases
everywhere. Where only their sum matters, ours is the sum; in a GRU's n they differ, and ours are b and d. The second
direction of a layer, `weight_ih_l0_reverse`, follows the first. This file does not need torch.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from minitransformer.checks import check_names
from minitransformer.interop.pytorch import tensor_to_numpy
from minitransformer.layers.before_2017.recurrent import GRU, LSTM

ORDER = {4: (1, 2, 3, 0), 3: (0, 1, 2)}  # where PyTorch's blocks are in ours, by their number
NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def recurrent_from_pytorch(state_dict: Mapping[str, Any], layer: LSTM | GRU) -> dict[str, np.ndarray]:
    """The state of `layer` from the state_dict of a `torch.nn.LSTM` or `GRU` of its sizes -> {our name: array}.

        layer.load_state_dict(recurrent_from_pytorch(theirs.state_dict(), layer))

    The arrays are copies on the host. Raises ValueError if a tensor is missing or unexpected; a wrong shape is refused
    by `load_state_dict`.
    """
    given = {name: tensor_to_numpy(tensor) for name, tensor in state_dict.items()}
    wanted = [f"{name}_{suffix}" for _, suffix in _directions(layer) for name in NAMES]
    check_names("the PyTorch state does not fit", given, dict.fromkeys(wanted))
    state = {}
    for ours, suffix in _directions(layer):
        W, U, b, second = (given[f"{name}_{suffix}"] for name in NAMES)
        second = np.array(second)
        if isinstance(layer, GRU):
            R = len(second) // 3
            state[f"{ours}.d"] = second[2 * R :].copy()
            second[2 * R :] = 0
        for name, array in (("W", W.T), ("U", U.T), ("b", b + second)):
            state[f"{ours}.{name}"] = _reordered(array, _to_ours(layer))
    return state


def recurrent_to_pytorch(layer: LSTM | GRU) -> dict[str, np.ndarray]:
    """The weights of `layer` in the layout of `torch.nn.LSTM` or `GRU` -> {PyTorch's name: array}, copies on the host.

    PyTorch's second bias is 0 where only the sum matters.
    """
    own, order, state = layer.state_dict(), ORDER[layer.directions[0].blocks], {}
    for ours, suffix in _directions(layer):
        W, U, b = (_reordered(own[f"{ours}.{name}"], order) for name in "WUb")
        second = np.zeros_like(b)
        if isinstance(layer, GRU):
            second[-len(own[f"{ours}.d"]) :] = own[f"{ours}.d"]
        for name, array in zip(NAMES, (W.T, U.T, b, second), strict=True):
            state[f"{name}_{suffix}"] = np.array(array, order="C")
    return state


def _directions(layer: LSTM | GRU) -> Iterator[tuple[str, str]]:
    """(the beginning of our names, the end of PyTorch's) for each direction of each layer."""
    ways = len(layer.directions) // layer.num_layers
    for number in range(len(layer.directions)):
        yield f"directions.{number}", f"l{number // ways}" + ("_reverse" if number % ways else "")


def _to_ours(layer: LSTM | GRU) -> tuple[int, ...]:
    """Where our blocks are in PyTorch's."""
    return tuple(int(i) for i in np.argsort(ORDER[layer.directions[0].blocks]))


def _reordered(array: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    """The blocks of the last axis in another order, as a copy."""
    blocks = np.split(array, len(order), axis=-1)
    return np.concatenate([blocks[i] for i in order], axis=-1)
