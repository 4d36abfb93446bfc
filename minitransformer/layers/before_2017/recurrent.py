"""Recurrent layers: LSTM and GRU, stacked, in one direction or two."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.checks import check_integer, check_shape, check_width
from minitransformer.core import Layer, Parameter
from minitransformer.functional.before_2017.recurrent import gru, gru_backward, lstm, lstm_backward
from minitransformer.functional.dropout import DropoutCache
from minitransformer.layers.dropout import Dropout
from minitransformer.layers.initializers import xavier_uniform

State = tuple[xp.ndarray, ...]  # (h, c) of an LSTM, (h,) of a GRU


class RecurrentDirection(Layer):
    """One layer of a recurrent stack in one direction: the parameters, and the functions that read a sequence.

    A subclass says which functions, and the number of blocks of R columns in W (I, blocks R), U (R, blocks R) and b.
    """

    blocks: int
    read: Callable[..., Any]
    read_backward: Callable[..., Any]

    def __init__(
        self, input_size: int, hidden_size: int, reverse: bool, rng: np.random.Generator | None, dtype: DTypeLike
    ) -> None:
        self.W = Parameter(xavier_uniform(rng, input_size, hidden_size, self.blocks, dtype))
        self.U = Parameter(xavier_uniform(rng, hidden_size, hidden_size, self.blocks, dtype))
        self.b = Parameter(np.zeros(self.blocks * hidden_size, dtype))
        self.reverse = reverse

    @property
    def weights(self) -> tuple[Parameter, ...]:
        """The parameters, in the order in which the functions take them."""
        return self.W, self.U, self.b

    def forward(self, x: xp.ndarray, state: State | None, mask: xp.ndarray | None) -> tuple[Any, Any]:
        """x (B, T, I), the arrays of the state (B, R), mask (B, T) -> (y (B, T, R), state)."""
        return self.read(x, *(parameter.data for parameter in self.weights), state, mask, self.reverse)

    def backward(self, dy: xp.ndarray, cache: Any, dstate: State | None) -> tuple[xp.ndarray, State]:
        """dy (B, T, R) and that of the final state -> dx (B, T, I) and that of the initial state."""
        dx, *gradients, dstate = self.read_backward(dy, cache, dstate)
        for parameter, gradient in zip(self.weights, gradients, strict=True):
            parameter.add_grad(gradient)
        return dx, dstate


class LSTMDirection(RecurrentDirection):
    """`functional.lstm` with its parameters."""

    blocks, read, read_backward = 4, staticmethod(lstm), staticmethod(lstm_backward)


class GRUDirection(RecurrentDirection):
    """`functional.gru` with its parameters; d is the bias inside the candidate's reset."""

    blocks, read, read_backward = 3, staticmethod(gru), staticmethod(gru_backward)

    def __init__(self, input_size: int, hidden_size: int, *options: Any) -> None:
        super().__init__(input_size, hidden_size, *options)
        self.d = Parameter(np.zeros(hidden_size, self.b.data.dtype))

    @property
    def weights(self) -> tuple[Parameter, ...]:
        """As in the base class."""
        return *super().weights, self.d


class RecurrentCache(NamedTuple):
    """What a recurrent stack remembers."""

    dropout: list[DropoutCache | None]  # of the inputs of all layers except the first
    layers: list[list[Any]]  # for each layer the cache of each direction


class RecurrentStack(Layer):
    """Layers on top of each other, each of one direction or two: what `LSTM` and `GRU` share.

    The output of a layer is the input of the next, with dropout in between. With two directions, a layer's output is
    the outputs of both side by side, so its width O is twice R. Padding is skipped in both directions: the second one
    starts at the last token of each sequence, as with PyTorch's packed sequences.
    """

    letters: str  # of the arrays in the state
    direction: type[RecurrentDirection]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        num_layers: int = 1,
        bidirectional: bool = False,
        dropout_rate: float = 0.0,
        rng: np.random.Generator | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            check_integer(name, value, least=1)
        ways = (False, True) if bidirectional else (False,)  # whether it reads from the end
        widths = [input_size] + (num_layers - 1) * [len(ways) * hidden_size]
        # of the first layer, then of the second, ...
        self.directions = [self.direction(I, hidden_size, way, rng, dtype) for I in widths for way in ways]
        self.dropout = Dropout(dropout_rate)
        self.num_layers = num_layers

    @property
    def width(self) -> int:
        """O, the width of the output and of each array of the state."""
        return sum(len(direction.U.data) for direction in self._of_layer(0))

    def forward(
        self,
        x: xp.ndarray,
        state: State | None = None,
        mask: xp.ndarray | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[tuple[xp.ndarray, State], RecurrentCache]:
        """x (B, T, I), mask (B, T), False in padding -> ((y (B, T, O), the final state), cache).

        A state is (h, c) of an LSTM and (h,) of a GRU, each (L, B, O) with L layers; None is zeros. In padding y is 0,
        and the state stays as it was.
        """
        first = self.directions[0].W.data
        check_width(type(self).__name__, x, len(first), first.dtype)
        if state is not None:
            if len(state) != len(self.letters):
                raise ValueError(f"the state must be ({', '.join(self.letters)}), got {len(state)} arrays")
            for name, array in zip(self.letters, state, strict=True):
                check_shape(name, array, (self.num_layers, len(x), self.width))
        keeps, caches, finals = [], [], []
        for layer in range(self.num_layers):
            if layer:
                x, keep = self.dropout.forward(x, rng)
                keeps.append(keep)
            before = None if state is None else [array[layer] for array in state]
            outputs, layer_caches = self._forward_layer(layer, x, before, mask)
            x = _side_by_side([y for y, _ in outputs])
            finals.append([xp.concatenate(arrays, axis=-1) for arrays in zip(*(s for _, s in outputs), strict=True)])
            caches.append(layer_caches)
        final = tuple(xp.stack(arrays) for arrays in zip(*finals, strict=True))
        return (x, final), RecurrentCache(keeps, caches)

    def backward(self, dy: xp.ndarray, cache: RecurrentCache, dstate: State | None = None) -> tuple[xp.ndarray, State]:
        """dy (B, T, O), and that of the final state or None for zeros -> dx (B, T, I) and that of the initial state."""
        initials: list[list[xp.ndarray]] = []
        for layer in reversed(range(self.num_layers)):
            dfinal = None if dstate is None else [array[layer] for array in dstate]
            dx, dinitial = self._backward_layer(layer, dy, cache.layers[layer], dfinal)
            initials.insert(0, dinitial)
            dy = self.dropout.backward(dx, cache.dropout[layer - 1]) if layer else dx
        return dy, tuple(xp.stack(arrays) for arrays in zip(*initials, strict=True))

    def _of_layer(self, layer):
        """The directions of one layer: one or two."""
        count = len(self.directions) // self.num_layers
        return self.directions[layer * count : (layer + 1) * count]

    def _forward_layer(self, layer, x, state, mask):
        """The (y, state) of each direction, and the cache of each."""
        directions = self._of_layer(layer)
        states = [None] * len(directions) if state is None else _parts(state, len(directions))
        results = [direction.forward(x, s, mask) for direction, s in zip(directions, states, strict=True)]
        return [output for output, _ in results], [cache for _, cache in results]

    def _backward_layer(self, layer, dy, caches, dstate):
        """dx, the sum over the directions, and the gradient of the initial state."""
        directions = self._of_layer(layer)
        dys = [part for (part,) in _parts((dy,), len(directions))]
        dstates = [None] * len(directions) if dstate is None else _parts(dstate, len(directions))
        results = [d.backward(*each) for d, *each in zip(directions, dys, caches, dstates, strict=True)]
        dx = results[0][0]
        for other, _ in results[1:]:
            dx = dx + other
        return dx, [xp.concatenate(arrays, axis=-1) for arrays in zip(*(s for _, s in results), strict=True)]


def _parts(arrays, count):
    """Each array's `count` equal parts of the last axis -> for each part the tuple of its arrays."""
    return list(zip(*(xp.split(array, count, axis=-1) for array in arrays), strict=True))


def _side_by_side(outputs):
    """Outputs (B, T, R) as one (B, T, O), laid out in the order of the steps, as the next layer needs it."""
    if len(outputs) == 1:
        return outputs[0]
    return xp.concatenate([y.swapaxes(0, 1) for y in outputs], axis=-1).swapaxes(0, 1)


class LSTM(RecurrentStack):
    """Long short-term memory: `functional.lstm` in `num_layers` layers of `hidden_size` = R units in each direction.

    The forget gate's bias starts at `forget_bias`. At 1 the gate starts mostly open, so gradients reach far from the
    first step on (Gers et al. 2000; Jozefowicz et al. 2015); PyTorch starts it at about 0. The other options are those
    of `GRU`. Raises ValueError or TypeError for sizes that are not whole numbers of at least 1 and a dropout rate
    outside [0, 1), and forward for arrays that do not fit.
    """

    letters, direction = "hc", LSTMDirection

    def __init__(self, input_size: int, hidden_size: int, *, forget_bias: float = 1.0, **options: Any) -> None:
        super().__init__(input_size, hidden_size, **options)
        for direction in self.directions:
            direction.b.data[2 * hidden_size : 3 * hidden_size] = forget_bias


class GRU(RecurrentStack):
    """Gated recurrent units: `functional.gru` in `num_layers` layers of `hidden_size` = R units in each direction.

    Errors as for `LSTM`.
    """

    letters, direction = "h", GRUDirection
