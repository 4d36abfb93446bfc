"""How good the answers of a model are."""

import numpy as np

from minitransformer.decoding.generate import generate
from minitransformer.decoding.greedy import exact_match, greedy_decode
from minitransformer.models import GPT
from minitransformer.models.config import PAD

DECODED = 250  # sequences decoded at once


def decode_and_score(model, batch):
    """Greedy answers to all sources of a batch, and the share that is right to the last token."""
    room = batch.target_out.shape[1] + 2  # a little too much, so that a missing eos shows
    answer = continue_prompts if isinstance(model, GPT) else greedy_decode
    starts = range(0, len(batch.source), DECODED)
    rows = [answer(model, batch.source[i : i + DECODED], room) for i in starts]
    width = max(part.shape[1] for part in rows)
    decoded = np.concatenate([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in rows])
    return decoded, exact_match(decoded, batch.target_out)


def continue_prompts(model, source, room):
    """What a decoder-only model says behind each source (B, S), padded at its end -> (B, T) ids with T <= room."""
    prompts, padding = left_padded(source)
    state = model.begin(len(prompts), prompts.shape[1] + room, padding)
    return generate(state, prompts, room).ids


def left_padded(source):
    """Sources (B, S) padded at the end -> the same padded in front, and the number of padding tokens (B,) of each."""
    padding = (source == PAD).sum(axis=1)
    where = (np.arange(source.shape[1]) - padding[:, None]) % source.shape[1]
    return np.take_along_axis(source, where, axis=1), padding
