"""Bugs in the softmax, attention, its masks and its heads: `minitransformer.functional`."""

import numpy as np

from minitransformer import functional as F
from minitransformer.exercises.planting import Exhibit
from minitransformer.functional.reductions import row_max
from minitransformer.functional.softmax import _softmax

SOFTMAX = (
    Exhibit(
        "the softmax's Jacobian is taken as elementwise",
        "p (1 - p) is only its diagonal: what one weight gains, the others must lose. Do the rows of ds sum to 0?",
        F.softmax_backward,
        "ds = dp - row_dot(dp, p)",
        "ds = dp * (1.0 - p)",
    ),
    Exhibit(
        "the softmax's backward divides by the batch size",
        "Published. The mean over the batch belongs to the loss, once; nothing below it knows of a batch.",
        F.softmax_backward,
        "ds *= p",
        "ds *= p / len(p)",
    ),
    Exhibit(
        "the softmax normalises over the queries instead of the keys",
        "The scores of a sequence with itself are square, so no shape complains. Which axis must sum to 1?",
        _softmax,
        "total = row_sum(p)",
        "total = p.sum(axis=-2, keepdims=True)",
    ),
    Exhibit(
        "a mask takes 10,000 from the scores that it forbids",
        "Minus infinity cannot be out-scored; minus 10,000 can, and is, once the weights have grown.",
        _softmax,
        "xp.copyto(p, -xp.inf, where=~allowed)",
        "xp.copyto(p, p - 1e4, where=~allowed)",
    ),
    Exhibit(
        "a mask sets forbidden scores to -1e9",
        "Right in every row but an empty one: there all scores are equal, and the query looks at the padding evenly.",
        _softmax,
        "xp.copyto(p, -xp.inf, where=~allowed)",
        "xp.copyto(p, -1e9, where=~allowed)",
    ),
    Exhibit(
        "a query that may attend to nothing turns into NaN",
        "-inf - -inf is NaN, and one NaN in one row is NaN in every weight after the next step.",
        _softmax,
        "largest[empty] = 0",
        "pass",
    ),
    Exhibit(
        "an empty row is divided by its sum of zero",
        "0 / 0: the second of the two places where an empty row makes NaN.",
        _softmax,
        "total[empty] = 1",
        "pass",
    ),
    Exhibit(
        "the softmax does not subtract the largest score",
        "Right at the start of training, infinite once a score passes 88 in float32.",
        _softmax,
        "p -= largest",
        "pass",
    ),
    Exhibit(
        "the search for the largest score skips the middle of an odd row",
        "The softmax does not change when another number is subtracted - until exp overflows, on one row in a million.",
        row_max,
        "half = (length + 1) // 2",
        "half = length // 2",
    ),
    Exhibit(
        "the mask is read the other way round",
        "True means look in one library and ignore in the next. Say it in the argument's name.",
        _softmax,
        "xp.copyto(p, -xp.inf, where=~allowed)",
        "xp.copyto(p, -xp.inf, where=allowed)",
    ),
)

ATTENTION = (
    Exhibit(
        "the queries' gradient forgets 1 / sqrt(d_k)",
        "What does the chain rule say about a constant factor? Yours / true = sqrt(d_k), everywhere.",
        F.scaled_dot_product_attention_backward,
        "dq *= scale",
        "pass",
    ),
    Exhibit(
        "the keys' gradient is divided by sqrt(d_k) twice",
        "The queries that were remembered have been divided already. What exactly is in the cache?",
        F.scaled_dot_product_attention_backward,
        "dk = dscores.swapaxes(-1, -2) @ q",
        "dk = dscores.swapaxes(-1, -2) @ q / math.sqrt(q.shape[-1])",
    ),
    Exhibit(
        "scores are divided by sqrt(d_model), forward and backward",
        "Forward and backward agree, so no gradient check can tell: only the paper's formula can.",
        F.scaled_dot_product_attention,
        "1.0 / math.sqrt(D)",
        "1.0 / math.sqrt(q.shape[1] * D)",
    ),
    Exhibit(
        "scores are divided by d_k instead of its root, forward and backward",
        "The variance of q . k is d_k; its standard deviation is what has to go.",
        F.scaled_dot_product_attention,
        "1.0 / math.sqrt(D)",
        "1.0 / D",
    ),
    Exhibit(
        "the gradient of the weights is taken with the keys instead of the values",
        "dp = dy v^T. Keys and values have one shape, so nothing but a number can tell.",
        F.scaled_dot_product_attention_backward,
        "dy @ v.swapaxes(-1, -2)",
        "dy @ k.swapaxes(-1, -2)",
    ),
    Exhibit(
        "the values' gradient uses the attention weights from before their dropout",
        "Backward must see what forward saw: y = dropout(p) v.",
        F.scaled_dot_product_attention_backward,
        "dv = dropped.swapaxes(-1, -2) @ dy",
        "dv = weights.swapaxes(-1, -2) @ dy",
    ),
    Exhibit(
        "the dropout on the attention weights is skipped in backward",
        "Right at rate 0. Was dropout on when you checked the gradient?",
        F.scaled_dot_product_attention_backward,
        "dropout_backward(dy @ v.swapaxes(-1, -2), keep)",
        "dy @ v.swapaxes(-1, -2)",
    ),
    Exhibit(
        "attention remembers its weights after their dropout",
        "The softmax's backward needs its own output, not what dropout made of it.",
        F.scaled_dot_product_attention,
        "AttentionCache(q, k, v, weights, keep, ",
        "AttentionCache(q, k, v, dropped, keep, ",
    ),
)

MASKS_AND_HEADS = (
    Exhibit(
        "the causal mask lets each position see the next one",
        "The next one is just what it is to predict: the loss falls to 0, also on random targets.",
        F.causal_mask,
        "xp.tril(xp.ones((length, length), dtype=bool))",
        "xp.tril(xp.ones((length, length), dtype=bool), 1)",
    ),
    Exhibit(
        "the causal mask hides a position from itself",
        "And leaves the first row empty. The target is shifted already: once is enough.",
        F.causal_mask,
        "xp.tril(xp.ones((length, length), dtype=bool))",
        "xp.tril(xp.ones((length, length), dtype=bool), -1)",
    ),
    Exhibit(
        "the causal mask is transposed",
        "Upper and lower triangle: who is the query, the row or the column?",
        F.causal_mask,
        "xp.tril(",
        "xp.triu(",
    ),
    Exhibit(
        "the padding mask is True where the padding is",
        "The convention of PyTorch's key_padding_mask, in code that takes True for look.",
        F.padding_mask,
        "ids != pad",
        "ids == pad",
    ),
    Exhibit(
        "heads are merged without being transposed back",
        "In (B, H, T, D) the neighbours of a token's features are another token's.",
        F.merge_heads,
        "part.transpose(0, 2, 1, 3)",
        "part.reshape(B, T, H, D)",
    ),
)

NUMPY_2 = not np.__version__.startswith("1.")
PROMOTION = (
    Exhibit(
        "1 / sqrt(d_k) is a NumPy float64",
        "np.sqrt(64) is one, and makes a float32 model compute in float64 - since NumPy 2, not before.",
        F.scaled_dot_product_attention,
        "1.0 / math.sqrt(D)",
        "1.0 / xp.sqrt(D)",
    ),
)

EXHIBITS = (*SOFTMAX, *ATTENTION, *MASKS_AND_HEADS, *(PROMOTION if NUMPY_2 else ()))
