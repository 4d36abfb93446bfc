"""Exercise 21: rank heads by what they do, not by how they look.

Difficulty 2 of 5, 25 minutes. See lesson 21, "Which heads are needed?" and lesson 20, "A head taken out".

A model of H heads adds up what they say: the logits are the sum of z (H, N, V) over the heads, for N tokens. The loss
is the mean cross-entropy. The cost of a head is what the loss rises by if the head says nothing. A head that does harm
has a negative cost, and comes last in the ranking. The second measure needs no head to be taken out: the mean over the
tokens of |∂L_n/∂scale|, where L_n is the loss of token n, and scale, which is 1, multiplies what the head says.

    minitransformer check 21_rank_heads
"""

import numpy as np


def losses(z, targets):
    """logits z (N, V), targets (N,) -> the cross-entropy (N,) of each token."""
    z = z - z.max(axis=-1, keepdims=True)
    return np.log(np.exp(z).sum(axis=-1)) - z[np.arange(len(z)), targets]


def costs(z, targets):
    """z (H, N, V), targets (N,) -> what each head is worth (H,)."""
    raise NotImplementedError("write the loss with all heads first, then the loss without head 0")


def ranking(cost):
    """cost (H,) -> the numbers of the heads (H,), that of the most needed head first."""
    raise NotImplementedError("which head stands first, and where does one with a negative cost stand?")


def slopes(z, targets):
    """z (H, N, V), targets (N,) -> (H,) the mean over the tokens of |∂L_n/∂scale|, where all scales are 1."""
    raise NotImplementedError("lesson 03 has dz, the gradient of the logits. How does a logit change with a scale?")
