"""Exercise 14: what the decoder reads, and what it is to say.

Difficulty 2 of 5, 15 minutes. See lesson 14, "Shift by one".

Answers come as rows of ids, padded at the end. Training wants two arrays of them, one column wider: `target_in`, which
the decoder reads and which begins with bos, and `target_out`, which it is to say and which ends with eos. Column t of
target_in is what has been said just before column t of target_out.

    minitransformer check 14_shift_targets
"""

import numpy as np

PAD, BOS, EOS = 0, 1, 2  # ids of letters begin at 3


def shift_targets(answer):
    """answer (B, L) ids, padded behind each answer's last letter -> target_in, target_out, both (B, L + 1) ids.

    An answer may have L letters, and it may have none.

    Both are padded at the end as well. Where target_out is padding nothing is learnt, and nobody looks at target_in.
    """
    B, L = answer.shape
    raise NotImplementedError(
        "write both arrays for one row by hand, say 5 4 0 0, and look where bos and eos must stand"
    )
