"""Exact match: the share of answers in which every token is right."""

from typing import Any

import numpy as np

from minitransformer.decoding import greedy_decode

DECODED = 250  # sequences decoded at a time
SLACK = 2  # tokens beyond the longest right answer, so that a missing eos shows


def exact_match(decoded: np.ndarray, expected: np.ndarray) -> float:
    """The share of rows in which the ids decoded (B, T) equal expected (B, T'), eos included; padding is ignored."""
    width = max(decoded.shape[1], expected.shape[1])
    decoded, expected = (np.pad(x, ((0, 0), (0, width - x.shape[1]))) for x in (decoded, expected))
    return float((decoded == expected).all(axis=1).mean())


def decode_and_score(model: Any, batch: Any) -> tuple[np.ndarray, float]:
    """Greedy answers (B, T) to all sources of a batch, and their exact match.

    `batch` has `source` (B, S) and `target_out` (B, T'), the right answers.
    """
    max_new_tokens = batch.target_out.shape[1] + SLACK
    starts = range(0, len(batch.source), DECODED)
    rows = [greedy_decode(model, batch.source[i : i + DECODED], max_new_tokens) for i in starts]
    width = max(part.shape[1] for part in rows)
    decoded = np.concatenate([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in rows])
    return decoded, exact_match(decoded, batch.target_out)
