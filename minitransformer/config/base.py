"""What all configurations share: the special ids, and how numbers are checked."""

import dataclasses
import math
from typing import Any

import numpy as np

from minitransformer.checks import check_integer, check_number, check_rate, check_switch


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """What all models have: their special ids. Id 0 is padding to our own models, and the token "!" to GPT-2.

    Fields:
        padding: fills up shorter sequences, and is not attended to or learned; None: every id is a token.
        start: what a target or a sentence begins with; T5 has padding there, which then may be attended to.
        end: the id, or a tuple of several, that a text ends with; None: a text has no end.
    """

    padding: int | None = 0
    start: int | None = 1
    end: int | tuple[int, ...] | None = 2

    def __post_init__(self) -> None:
        if isinstance(self.end, list):  # as it is in files
            object.__setattr__(self, "end", tuple(self.end))
        for name, ids in (("padding", (self.padding,)), ("start", (self.start,)), ("end", self.ends)):
            for id in ids:
                if id is not None:
                    check_integer(name, id, least=0)

    @property
    def ends(self) -> tuple[int, ...]:
        """The ids that a text ends with."""
        return self.end if isinstance(self.end, tuple) else () if self.end is None else (self.end,)

    @property
    def special(self) -> set[int]:
        """All special ids."""
        return {id for id in (self.padding, self.start, *self.ends) if id is not None}

    @property
    def filler(self) -> int:
        """The id that fills up the rows of an answer that have ended: padding, or the end in a model without it."""
        return next((id for id in (self.padding, *self.ends) if id is not None), 0)

    def tokens(self, ids: np.ndarray) -> np.ndarray:
        """Which of the ids (B, T) on the host are tokens and not padding -> booleans (B, T)."""
        return np.ones(ids.shape, bool) if self.padding is None else ids != self.padding

    def lengths(self, ids: np.ndarray) -> np.ndarray:
        """How many of each row of ids (B, T) come before the padding at its end -> (B,)."""
        places = np.arange(1, ids.shape[1] + 1)
        return (self.tokens(ids) * places).max(axis=1, initial=0)

    def _check(self, sizes=(), rates=(), switches=()):
        ModelConfig.__post_init__(self)
        for name in sizes:
            check_integer(name, getattr(self, name), least=1)
        for name in rates:
            check_rate(name, getattr(self, name))
        for name in switches:
            check_switch(name, getattr(self, name))

    def _check_norm_eps(self):  # of the configurations that have this field
        if not 0.0 < check_number("norm_eps", self.norm_eps) < math.inf:  # at 0, equal features give 0 / 0
            raise ValueError(f"norm_eps must be greater than 0 and finite, got {self.norm_eps}")


OWN_IDS = ModelConfig()  # of the toy tasks and the project's own tokenizers, see vocabulary.py


def special_ids(model: Any) -> ModelConfig:
    """The configuration that says which ids are special to `model`; of a model without one, those of our own tasks."""
    config = getattr(model, "config", None)
    return config if isinstance(config, ModelConfig) else OWN_IDS
