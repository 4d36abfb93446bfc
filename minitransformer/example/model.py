"""The model of the running example, and its word."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from minitransformer.models import Transformer, TransformerConfig
from minitransformer.vocabulary import BOS, EOS, SPECIAL_TOKENS

LETTERS = "opst"
WORD = "stop"
WEIGHTS = Path(__file__).with_name("weights.json")


class Example(NamedTuple):
    """A model and one pair of sequences, each a batch of one."""

    model: Transformer  # float64, without dropout
    tokens: tuple[str, ...]  # the V tokens in the order of their ids
    source: np.ndarray  # (1, S) ids of "stop"
    target_in: np.ndarray  # (1, T) ids of bos and "pots": what the decoder reads
    target_out: np.ndarray  # (1, T) ids of "pots" and eos: what it is to write


def load_example(word: str = WORD) -> Example:
    """The running example, in float64. `word` may be any word of one to four of the letters o, p, s and t.

    Raises ValueError for another word.
    """
    if not 1 <= len(word) <= len(WORD) or set(word) - set(LETTERS):
        raise ValueError(f"word must have 1 to {len(WORD)} of the letters {', '.join(LETTERS)}, got {word!r}")
    tokens = (*SPECIAL_TOKENS, *LETTERS)
    config = TransformerConfig(len(tokens), d_model=6, num_heads=2, d_ff=8, num_layers=1, dropout=0.0)
    model = Transformer(config, seed=None, dtype=np.float64)
    model.load_state_dict({name: np.array(rows) for name, rows in json.loads(WEIGHTS.read_text("utf-8")).items()})
    ids = [tokens.index(letter) for letter in word]
    return Example(model, tokens, np.array([ids]), np.array([[BOS, *ids[::-1]]]), np.array([[*ids[::-1], EOS]]))
