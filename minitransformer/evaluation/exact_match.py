"""Exact match: the share of answers in which every token is right."""

from typing import Any

import numpy as np

from minitransformer.config import special_ids
from minitransformer.decoding import greedy_decode

DECODED = 250  # sequences decoded at a time
SLACK = 2  # tokens beyond the longest right answer, so that a missing eos shows


def exact_match(decoded: np.ndarray, expected: np.ndarray, filler: int = 0) -> float:
    """The share of rows in which decoded (B, T) equals expected (B, T'), eos included, after both end in `filler`."""
    return float(np.equal(*_of_one_width([decoded, expected], filler)).all(axis=1).mean())


def decode_and_score(model: Any, batch: Any) -> tuple[np.ndarray, float]:
    """Greedy answers (B, T) to all sources of a batch, and their exact match.

    `batch` has `source` (B, S) and `target_out` (B, T'), the right answers.
    """
    max_new_tokens = batch.target_out.shape[1] + SLACK
    starts = range(0, len(batch.source), DECODED)
    rows = [greedy_decode(model, batch.source[i : i + DECODED], max_new_tokens) for i in starts]
    filler = special_ids(model).filler
    decoded = np.concatenate(_of_one_width(rows, filler))
    return decoded, exact_match(decoded, batch.target_out, filler)


def _of_one_width(parts, filler):
    width = max(ids.shape[1] for ids in parts)
    return [np.pad(ids, ((0, 0), (0, width - ids.shape[1])), constant_values=filler) for ids in parts]
