"""How good the answers of a model are."""

import numpy as np

from minitransformer.decoding.greedy import exact_match, greedy_decode

DECODED = 250  # sequences decoded at once


def decode_and_score(model, batch):
    """Greedy answers to all sources of a batch, and the share that is right to the last token."""
    room = batch.target_out.shape[1] + 2  # a little too much, so that a missing eos shows
    starts = range(0, len(batch.source), DECODED)
    rows = [greedy_decode(model, batch.source[i : i + DECODED], room) for i in starts]
    width = max(part.shape[1] for part in rows)
    decoded = np.concatenate([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in rows])
    return decoded, exact_match(decoded, batch.target_out)
