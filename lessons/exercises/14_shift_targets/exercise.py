"""Exercise 14: what the decoder reads, and what it must write.

Difficulty 2 of 5, 15 minutes. See lesson 14, "Shift by one".

Answers are rows of ids, padded at the end. Training needs two arrays with one more column: `target_in`, which the
decoder reads and which begins with bos, and `target_out`, which it must write and which ends with eos. Column t of
target_in is the token just before column t of target_out.

    minitransformer check 14_shift_targets
"""

import numpy as np

PAD, BOS, EOS = 0, 1, 2  # ids of letters begin at 3


def shift_targets(answer):
    """answer (B, T - 1) ids, padded after the last letter of each answer -> target_in, target_out, both (B, T) ids.

    An answer may fill its row, and it may have no letters at all. Both results are padded at the end as well. Where
    target_out is padding, nothing is learnt, and nobody looks at target_in.
    """
    B, T = len(answer), answer.shape[1] + 1
    raise NotImplementedError("write both arrays by hand for one row, such as 5 4 0 0. Where must bos and eos be?")
