"""Convolution along the sequence with its weights, and the sub-layer that convolutional models stack."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.checks import check_choice, check_integer, check_shape, check_switch, check_width
from minitransformer.core import Layer, Parameter
from minitransformer.functional.before_2017.convolution import Conv1dCache, conv1d, conv1d_backward, slide
from minitransformer.functional.since_2017.activations import CONV_ACTIVATIONS, GatedCache


class ConvBuffer:
    """What decoding keeps of the tokens read so far: the last R inputs of one convolution (B, R, I), at first zeros."""

    def __init__(self, shape: tuple[int, int, int], dtype: DTypeLike) -> None:
        self.x = xp.zeros(shape, dtype)

    def append(self, x: xp.ndarray) -> xp.ndarray:
        """n new inputs (B, n, I) -> the kept inputs and the new ones (B, R + n, I). Keeps the last R of them."""
        joined = xp.concatenate([self.x, x], axis=1)
        self.x = joined[:, x.shape[1] :]
        return joined

    def select(self, rows: xp.ndarray) -> None:
        """Keep the sequences `rows` (integers on the device, repeats allowed), in this order."""
        self.x = self.x[rows]


class Conv1d(Layer):
    """y_t = sum_k x_(t + k d - before) W_k + b        x (B, T, I), W (K, I, O), b (O,), y (B, T, O)

    See `functional.conv1d`. PyTorch's `nn.Conv1d` takes (B, I, T) and stores W as (O, I, K). The initial weights are
    Xavier uniform with fan in K I and fan out O. Raises ValueError for a kernel size or dilation less than 1.
    """

    def __init__(
        self,
        fan_in: int,
        fan_out: int,
        kernel_size: int,
        *,
        dilation: int = 1,
        causal: bool = True,
        bias: bool = True,
        rng: np.random.Generator | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        K = check_integer("kernel_size", kernel_size, least=1)
        self.dilation = check_integer("dilation", dilation, least=1)
        self.causal = check_switch("causal", causal)
        bound = math.sqrt(6.0 / (K * fan_in + fan_out))
        W = np.zeros((K, fan_in, fan_out), dtype) if rng is None else rng.uniform(-bound, bound, (K, fan_in, fan_out))
        self.W = Parameter(W.astype(dtype))
        self.b: Parameter | None = Parameter(np.zeros(fan_out, dtype)) if bias else None

    def forward(
        self, x: xp.ndarray, mask: xp.ndarray | None = None, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, Conv1dCache]:
        """x (B, T, I), mask (B, T) with False = padding, or None -> y (B, T, O)."""
        check_width("Conv1d", x, self.W.data.shape[1], self.W.data.dtype)
        return conv1d(x, self.W.data, None if self.b is None else self.b.data, self.dilation, self.causal, mask)

    def backward(self, dy: xp.ndarray, cache: Conv1dCache) -> xp.ndarray:
        """dy (B, T, O) -> dx (B, T, I)."""
        B, padded_length, _ = cache.padded.shape
        check_shape("dy", dy, (B, padded_length - self.reach, self.W.data.shape[2]))  # before a gradient has changed
        dx, dW, db = conv1d_backward(dy, cache)
        self.W.add_grad(dW)
        if self.b is not None:
            self.b.add_grad(db)
        return dx

    @property
    def reach(self) -> int:
        """R = (K - 1) d, the distance between the first and the last token that one output reads."""
        return (len(self.W.data) - 1) * self.dilation

    def make_buffer(self, batch: int) -> ConvBuffer:
        """What decoding keeps of the tokens of `batch` sequences. Raises ValueError unless the layer is causal."""
        if not self.causal:
            raise ValueError("only a causal convolution can decode: this one reads later tokens")
        return ConvBuffer((batch, self.reach, self.W.data.shape[1]), self.W.data.dtype)

    def extend(self, x: xp.ndarray, buffer: ConvBuffer, mask: xp.ndarray | None = None) -> xp.ndarray:
        """n new tokens x (B, n, I), in decoding, mask (B, n) -> y (B, n, O)."""
        read = buffer.append(x if mask is None else x * mask[..., None])
        return slide(read, self.W.data, None if self.b is None else self.b.data, self.dilation)


class ActivatedConv1dCache(NamedTuple):
    """The cache of `ActivatedConv1d`."""

    conv: Conv1dCache
    activation: xp.ndarray | GatedCache


class ActivatedConv1d(Layer):
    """A convolution and its activation, from C features to C: the sub-layer of a convolutional model.

    activation="glu", ConvS2S (Gehring et al. 2017):    y = sigma(x * V) (x * W), one convolution to 2C features
    "relu", temporal convolutional networks:            y = max(0, x * W)

    Raises ValueError for an activation that is not among CONV_ACTIVATIONS, and as `Conv1d` does.
    """

    def __init__(
        self,
        d_model: int,
        kernel_size: int,
        *,
        dilation: int = 1,
        causal: bool = True,
        activation: str = "glu",
        rng: np.random.Generator | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.activation = check_choice("activation", activation, CONV_ACTIVATIONS)
        width = 2 * d_model if activation == "glu" else d_model
        self.conv = Conv1d(d_model, width, kernel_size, dilation=dilation, causal=causal, rng=rng, dtype=dtype)

    def forward(
        self, x: xp.ndarray, mask: xp.ndarray | None = None, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, ActivatedConv1dCache]:
        """x (B, T, C), mask (B, T) with False = padding, or None -> y (B, T, C)."""
        activate, _ = CONV_ACTIVATIONS[self.activation]
        h, cache_conv = self.conv.forward(x, mask)
        y, cache_activation = activate(h)
        return y, ActivatedConv1dCache(cache_conv, cache_activation)

    def backward(self, dy: xp.ndarray, cache: ActivatedConv1dCache) -> xp.ndarray:
        """dy (B, T, C) -> dx (B, T, C)."""
        _, activate_backward = CONV_ACTIVATIONS[self.activation]
        return self.conv.backward(activate_backward(dy, cache.activation), cache.conv)

    def extend(self, x: xp.ndarray, buffer: ConvBuffer, mask: xp.ndarray | None = None) -> xp.ndarray:
        """n new tokens x (B, n, C), in decoding, mask (B, n) -> y (B, n, C)."""
        activate, _ = CONV_ACTIVATIONS[self.activation]
        return activate(self.conv.extend(x, buffer, mask))[0]
