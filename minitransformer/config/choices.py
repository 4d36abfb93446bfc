"""Choices of a configuration that have numbers of their own: an option belongs to the thing that it configures."""

import dataclasses
import math
from typing import Any, ClassVar

from minitransformer.checks import check_choice, check_integer, check_number, check_rate, check_switch

NORMS = ("post", "pre", "sandwich")
EXPERT_SCORES = ("softmax", "sigmoid")


class Choice:
    """A choice that has numbers of its own. As a string it is the name that it has in files, such as "rope"."""

    kinds: ClassVar[dict[str, Any]] = {}  # all classes by these names

    def __init_subclass__(cls) -> None:
        Choice.kinds[cls.__name__.lower()] = cls

    def __str__(self) -> str:
        return type(self).__name__.lower()

    def check_in(self, config: Any) -> None:
        """ValueError if this does not go together with the rest of `config`."""


def _check_integers(choice, **least):
    for name, lowest in least.items():
        check_integer(f"{type(choice).__name__}.{name}", getattr(choice, name), least=lowest)


def _check_angles(choice, *names):
    for name in names:
        value, full_name = getattr(choice, name), f"{type(choice).__name__}.{name}"
        if not 1.0 <= check_number(full_name, value) < math.inf:
            raise ValueError(f"{full_name} must be at least 1 and finite, got {value}")


@dataclasses.dataclass(frozen=True)
class Rope(Choice):
    """Rotary positions: queries and keys are rotated by angles (LLaMA, GPT-NeoX); see `functional.rotary_tables`.

    Fields:
        base: 1 / base is about the smallest angle between neighboring positions.
        factor: by which angles are divided for texts longer than those a model was trained on.
        original_len: the length of those texts (Llama 3.1), or None if all angles are divided.
    """

    base: float = 10000.0
    factor: float = 1.0
    original_len: int | None = None

    def __post_init__(self) -> None:
        _check_angles(self, "base", "factor")
        if self.original_len is not None:
            _check_integers(self, original_len=1)


@dataclasses.dataclass(frozen=True)
class Windowed(Choice):
    """Self-attention to the nearest keys: Longformer, Mistral.

    Fields:
        window: a token sees the keys at a distance below it.
        num_global: the first tokens, which see all and are seen by all.
        full_layers: layers, counted from 0, that have no window (Gemma 3).
        rope_base: the base of RoPE in the layers with a window, if the full layers have another (Gemma 3: 10,000).
            These angles have no factor. None: all layers have the same angles.
    """

    window: int
    num_global: int = 0
    full_layers: tuple[int, ...] = ()
    rope_base: float | None = None

    def __post_init__(self) -> None:
        _check_integers(self, window=1, num_global=0)
        if not isinstance(self.full_layers, tuple | list | None):
            raise TypeError(f"Windowed.full_layers must be a list of layers, got {self.full_layers!r}")
        object.__setattr__(self, "full_layers", tuple(self.full_layers or ()))  # in files it is a list
        for layer in self.full_layers:
            check_integer("Windowed.full_layers", layer, least=0)
        if self.rope_base is not None:
            _check_angles(self, "rope_base")
            if not self.full_layers:
                raise ValueError(f"Windowed.rope_base needs full_layers; else say positions=Rope({self.rope_base})")

    def check_in(self, config: Any) -> None:
        """ValueError for full layers that `config` does not have, or angles of RoPE without RoPE."""
        for layer in self.full_layers:
            if layer >= config.num_layers:
                raise ValueError(f"full_layers must be less than num_layers = {config.num_layers}, got {layer}")
        if self.full_layers and config.share_layers:
            raise ValueError("full_layers differ from the others, so share_layers is impossible")
        if self.rope_base is not None and not isinstance(config.positions, Rope):
            raise ValueError(f"Windowed.rope_base needs positions=Rope(), got positions={config.positions!r}")


@dataclasses.dataclass(frozen=True)
class Strided(Choice):
    """Self-attention to the nearest keys and to every stride-th key: Sparse Transformer.

    Fields:
        window: a token sees the keys at a distance below it.
        stride: a token also sees every stride-th key.
        num_global: the first tokens, which see all and are seen by all.
    """

    window: int
    stride: int
    num_global: int = 0

    def __post_init__(self) -> None:
        _check_integers(self, window=1, stride=1, num_global=0)


@dataclasses.dataclass(frozen=True)
class Experts(Choice):
    """Feed-forward networks, of which a router chooses some for each token; see layers/since_2017/experts.py.

    Fields:
        count: the number of networks in each layer.
        per_token: how many of them each token uses.
        renormalize: the weights of a token's experts sum to 1 (Mixtral); False: the probabilities as they are.
        scores: "softmax", or "sigmoid" with a bias that balances the experts: DeepSeek-V3.
        balance: weight of the loss that keeps all experts in use, or of the gradient of their bias; 0: none.
        z_loss: weight of the loss that keeps the router's logits small (ST-MoE); 0: none.
    """

    count: int
    per_token: int = 2
    renormalize: bool = True
    scores: str = "softmax"
    balance: float = 0.01
    z_loss: float = 0.0

    def __post_init__(self) -> None:
        _check_integers(self, count=1, per_token=1)
        if self.per_token > self.count:
            raise ValueError(f"Experts.per_token must be at most count = {self.count}, got {self.per_token}")
        check_switch("Experts.renormalize", self.renormalize)
        check_choice("Experts.scores", self.scores, EXPERT_SCORES)
        check_rate("Experts.balance", self.balance)
        check_rate("Experts.z_loss", self.z_loss)
