"""Low-rank adaptation (Hu et al. 2021, LoRA): train a small addition to each matrix of a model that stays as it is."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import xp
from minitransformer.core import Layer, Parameter
from minitransformer.functional import linear, linear_backward
from minitransformer.functional.linear import LinearCache
from minitransformer.layers.linear import Linear


class LoRACache(NamedTuple):
    """The cache of `LoRALinear`; None for the addition while it is merged."""

    linear: LinearCache
    down: LinearCache | None  # of x A
    up: LinearCache | None  # of h B


class LoRALinear(Linear):
    """y = x W + b + s (x A) B        x (..., I), A (I, r), B (r, O), s = alpha / r

    W and b are those of `base`, which are frozen. A is drawn as PEFT draws it, uniformly within 1 / sqrt(I), and B is
    0, so at first y is what it was.

    Forward    h_nk = s sum_i x_ni A_ik      y_no = (x W + b)_no + sum_k h_nk B_ko
    Chain      dB_ko = sum_n h_nk dy_no      dh_nk = sum_o dy_no B_ko      dA_ik = s sum_n x_ni dh_nk
               dx_ni = sum_o dy_no W_io + s sum_k dh_nk A_ik
               as matrices: dB = s (x A)^T dy, dA = s x^T (dy B^T), dx = dy W^T + s (dy B^T) A^T
    Remember   x, h, and the matrices; s stands where the arrays are narrow
    Check      while B is 0, dA is exactly 0 and dB is not; two adapters with A, B and A M, M^-1 B are one function

    Raises ValueError for a rank below 1 or above I or O, and for an alpha / r that is not finite in W's dtype.
    """

    def __init__(
        self, base: Linear, rank: int, alpha: float | None = None, *, rng: np.random.Generator | None = None
    ) -> None:
        check_place("the Linear", base, rank, alpha)
        fan_in, fan_out = base.W.data.shape
        self.W, self.b = base.W, base.b
        self.freeze()
        dtype, reach = base.W.data.dtype, 1 / math.sqrt(fan_in)
        rng = np.random.default_rng(0) if rng is None else rng
        self.A = Parameter(rng.uniform(-reach, reach, (fan_in, rank)).astype(dtype))
        self.B = Parameter(np.zeros((rank, fan_out), dtype))
        self.s = (rank if alpha is None else alpha) / rank
        self.before: xp.ndarray | None = None  # W without the addition, while that is merged into it

    def forward(self, x: xp.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, LoRACache]:  # type: ignore[override]
        """x (..., I) -> y (..., O)."""
        y, cache = super().forward(x)
        if self.before is not None:
            return y, LoRACache(cache, None, None)
        h, down = linear(x, self.A.data)
        h *= self.s
        addition, up = linear(h, self.B.data)
        y += addition
        return y, LoRACache(cache, down, up)

    def backward(self, dy: xp.ndarray, cache: LoRACache) -> xp.ndarray:  # type: ignore[override]
        """dy (..., O) -> dx (..., I). Raises ValueError for a forward with the addition merged."""
        if cache.down is None or cache.up is None:
            raise ValueError("an adapter that is merged into its matrix has no gradient: unmerge it to train")
        dx = super().backward(dy, cache.linear)
        dh, dB, _ = linear_backward(dy, cache.up)
        dh *= self.s
        dx_down, dA, _ = linear_backward(dh, cache.down)
        self.B.add_grad(dB)
        self.A.add_grad(dA)
        dx += dx_down
        return dx

    def merge(self) -> None:
        """W becomes W + s A B, so that the layer costs what a Linear costs. Twice is once."""
        if self.before is None:
            self.before = self.W.data.copy()
            self.W.data += self.s * (self.A.data @ self.B.data)

    def unmerge(self) -> None:
        """W is again, to the last bit, what it was before `merge`."""
        if self.before is not None:
            self.W.data[...], self.before = self.before, None


def add_lora(
    model: Layer,
    names: Sequence[str],
    rank: int,
    alpha: float | None = None,
    *,
    rng: np.random.Generator | None = None,
) -> dict[str, LoRALinear]:
    """Freeze `model`, and put an adapter around each Linear whose name ends in one of `names` -> {its name: adapter}.

        adapters = add_lora(model, ["qkv", "output"], rank=4)
        optimizer = Adam(model.parameters())        # which now holds the adapters' A and B alone

    The whole name of a Linear means that one alone. More can be trained afterwards with
    `model.freeze("decoder.norm", frozen=False)`. Raises ValueError for a name that fits no Linear, for a rank that does
    not fit one, for an alpha that is not finite, and for a Linear that has an adapter already. In these cases the model
    has not changed.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    linears = list(linear_places(model))
    known, chosen = [name for name, *_ in linears], set()
    for wanted in names:
        fitting = {wanted}.intersection(known) or {name for name in known if name.endswith(f".{wanted}")}
        if not fitting:
            ends = ", ".join(dict.fromkeys(name.rpartition(".")[2] for name in known))
            raise ValueError(f"no Linear's name ends in {wanted!r}: the last parts of their names are {ends}")
        chosen |= fitting
    places = [place for place in linears if place[0] in chosen]
    for name, _, _, layer in places:
        check_place(name, layer, rank, alpha)
    model.freeze()
    made: dict[int, LoRALinear] = {}
    found = {}
    for name, owner, key, layer in places:
        if id(layer) not in made:
            made[id(layer)] = LoRALinear(layer, rank, alpha, rng=rng)
            found[name] = made[id(layer)]
        put(owner, key, made[id(layer)])
    for adapter in lora_adapters(model).values():
        adapter.freeze("A", "B", frozen=False)  # earlier ones too
    return found


def lora_adapters(model: Layer) -> dict[str, LoRALinear]:
    """{name: adapter} of all that `add_lora` has put into a model."""
    return {name: layer for name, _, _, layer in linear_places(model) if isinstance(layer, LoRALinear)}


def remove_lora(model: Layer, merge: bool = True) -> None:
    """Put a plain Linear back in the place of each adapter, with the addition in its matrix, or without it.

    What was frozen stays so; `model.freeze(frozen=False)` lets all of it be trained again.
    """
    for _, owner, key, layer in list(linear_places(model)):
        if isinstance(layer, LoRALinear):
            if merge:
                layer.merge()
            else:
                layer.unmerge()
            plain = Linear.__new__(Linear)
            plain.W, plain.b = layer.W, layer.b
            put(owner, key, plain)


def check_place(name: str, layer: Linear, rank: int, alpha: float | None = None) -> None:
    """ValueError unless an adapter of this rank can be put around this Linear, and alpha / rank is finite there."""
    shape = layer.W.data.shape
    if isinstance(layer, LoRALinear):
        raise ValueError(f"{name} has an adapter already: remove_lora removes it")
    if not 1 <= rank <= min(shape):
        raise ValueError(f"rank must be from 1 to {min(shape)} for a matrix {shape}, got {rank}")
    if alpha is not None and not abs(alpha) / rank <= xp.finfo(layer.W.data.dtype).max:
        raise ValueError(
            f"alpha must be a number for which alpha / rank is finite in {layer.W.data.dtype}, got {alpha}"
        )


def linear_places(layer: Layer, path: str = "") -> Iterator[tuple[str, Any, str | int, Linear]]:
    """(name, the layer or list that holds it, its attribute or index, the Linear) for each use of one in `layer`.

    A subclass of Linear is left out, because an adapter would replace its forward.
    """
    for key, value in vars(layer).items():
        members = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, member in members:
            name = f"{path}{key}" if index is None else f"{path}{key}.{index}"
            if type(member) in (Linear, LoRALinear):
                yield name, layer if index is None else value, key if index is None else index, member
            elif isinstance(member, Layer):
                yield from linear_places(member, f"{name}.")


def put(owner: Any, key: str | int, layer: Any) -> None:
    """Put a layer where `linear_places` has found one."""
    if isinstance(owner, list):
        owner[int(key)] = layer
    else:
        setattr(owner, str(key), layer)
