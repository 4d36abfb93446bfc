"""The lengths in the shapes of a recurrent model's arrays: real ones, and small ones that identify their letters."""

import dataclasses
from typing import Any

from minitransformer.config import Seq2SeqConfig
from minitransformer.models.before_2017.recurrent import Seq2Seq

# so chosen that each length, and each product and sum below, identifies its letters
SMALL = {"B": 2, "S": 3, "T": 7, "R": 22, "V": 17, "C": 23}


def real_lengths(config: Seq2SeqConfig) -> dict[str, int]:
    """R, V and C of a model."""
    return {"R": config.hidden_size, "V": config.vocab_size, "C": config.d_model}


def small_lengths(config: Seq2SeqConfig) -> dict[str, int]:
    """The lengths of a small model of the same kind."""
    return SMALL


def small_model(config: Seq2SeqConfig, small: dict[str, int]) -> Any:
    """A model with the same layers and switches, and the lengths `small`."""
    sizes = {"vocab_size": small["V"], "d_model": small["C"], "hidden_size": small["R"]}
    return Seq2Seq(dataclasses.replace(config, **sizes), seed=None)  # type: ignore[arg-type]


def with_products(lengths: dict[str, int]) -> dict[str, int]:
    """The lengths, and those made of them: gates 4R, half of R for each direction, and one more state than steps."""
    R = lengths["R"]
    made = {"R/2": R // 2, "3R/2": 3 * R // 2, "2R": 2 * R, "3R": 3 * R, "4R": 4 * R}
    made |= {f"{letter}+1": lengths[letter] + 1 for letter in "ST"}
    made |= {f"B{letter}": lengths["B"] * lengths[letter] for letter in "ST"}
    return {**made, "BTS": lengths["B"] * lengths["T"] * lengths["S"], **lengths}
