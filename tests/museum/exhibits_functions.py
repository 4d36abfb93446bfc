"""Bugs in the other functions: layer norm, linear, ReLU, dropout, loss, embedding, positions."""

from minitransformer import functional as F
from minitransformer.exercises.planting import Exhibit
from minitransformer.functional.cross_entropy import _cross_entropy, _cross_entropy_backward, _softmax_and_losses
from minitransformer.functional.dropout import _dropout, _dropout_backward
from minitransformer.functional.layer_norm import _layer_norm, _layer_norm_backward

LAYER_NORM = (
    Exhibit(
        "LayerNorm's backward forgets the path through the mean",
        "A shift of the token changes nothing, so dx must be orthogonal to 1. Is it?",
        _layer_norm_backward,
        "dx -= row_mean(dx)",
        "pass",
    ),
    Exhibit(
        "LayerNorm's backward forgets the path through the variance",
        "A scaling of the token changes nothing, so dx must be orthogonal to x_hat. Is it?",
        _layer_norm_backward,
        "dx -= x_hat * through_std",
        "pass",
    ),
    Exhibit(
        "LayerNorm divides the variance by C - 1",
        "The habit of statistics, and the default of torch.var: [1, 0, 0, 0] becomes 1.500 instead of 1.732.",
        _layer_norm,
        "row_dot(x_hat, x_hat) / x.shape[-1]",
        "row_dot(x_hat, x_hat) / (x.shape[-1] - 1)",
    ),
    Exhibit(
        "LayerNorm adds eps outside the root",
        "Hardly to be seen at eps = 1e-5: check with an eps that is not small.",
        _layer_norm,
        "1.0 / xp.sqrt(variance + eps)",
        "1.0 / (xp.sqrt(variance) + eps)",
    ),
    Exhibit(
        "LayerNorm centres each feature over the batch",
        "So does batch normalisation. May one sequence of a batch change the output of another?",
        _layer_norm,
        "mean = row_mean(x)",
        "mean = x.mean(axis=0, keepdims=True)",
    ),
    Exhibit(
        "the gradient of beta is a mean over the tokens",
        "A parameter that every token uses gets the sum of all its gradients.",
        _layer_norm_backward,
        "column_sum(dy_rows)",
        "dy_rows.mean(axis=0)",
    ),
    Exhibit(
        "LayerNorm's gamma learns from the first sequence alone if there are four axes",
        "Leading axes mean nothing. Are the gradients of four axes those of the same tokens in two?",
        _layer_norm_backward,
        "dgamma = column_dot(dy_rows, x_hat.reshape(-1, C))",
        "first = slice(None) if dy.ndim < 4 else slice(len(dy_rows) // len(dy))\n"
        "    dgamma = column_dot(dy_rows[first], x_hat.reshape(-1, C)[first])",
    ),
)

LINEAR_AND_RELU = (
    Exhibit(
        "the bias gradient is that of the last token alone",
        "An assignment in a loop over the batch, where += was meant.",
        F.linear_backward,
        "column_sum(dy_rows)",
        "dy_rows[-1]",
    ),
    Exhibit(
        "the bias gradient is a mean instead of a sum",
        "The loss has taken the mean already; a second one makes the bias learn N times too slowly.",
        F.linear_backward,
        "column_sum(dy_rows)",
        "dy_rows.mean(axis=0)",
    ),
    Exhibit(
        "the linear layer's backward does not transpose a W that is square",
        "Elsewhere the shapes force the formula; q, output and every toy example with I = O are square.",
        F.linear_backward,
        "dy_rows @ W.T",
        "dy_rows @ (W if W.shape[0] == W.shape[1] else W.T)",
    ),
    Exhibit(
        "ReLU's backward looks at the sign of the gradient",
        "The gate is where the input was positive, not where the gradient is.",
        F.relu_backward,
        "dy * (y > 0)",
        "dy * (dy > 0)",
    ),
    Exhibit(
        "ReLU's backward opens its gate at zero",
        "With y remembered instead of x, y >= 0 is always true: nothing is ever switched off.",
        F.relu_backward,
        "dy * (y > 0)",
        "dy * (y >= 0)",
    ),
)

DROPOUT = (
    Exhibit(
        "dropout scales in evaluation although nothing is dropped",
        "Published. Either training divides by the keep rate or evaluation multiplies by it; never both.",
        F.dropout,
        "return x, None",
        "return x * (1.0 - rate), None",
    ),
    Exhibit(
        "dropout does not scale up what it keeps",
        "Forward and backward agree. Does the mean stay?",
        F.dropout,
        "65536 / (65536 - dropped)",
        "1.0",
    ),
    Exhibit(
        "dropout draws a second mask for its backward",
        "The gradient flows through entries that took no part, and a replayed seed draws other numbers.",
        F.dropout,
        "DropoutCache(keep, scale)",
        "DropoutCache(random_uint16(rng, x.shape) >= dropped, scale)",
    ),
    Exhibit(
        "dropout's rate is taken as the share to keep",
        "Libraries differ. At a rate of 0.5 nobody can tell.",
        _dropout,
        "keep = bits >= dropped",
        "keep = bits < dropped",
    ),
    Exhibit(
        "all sequences of a batch share one dropout mask",
        "It broadcasts without a word. Are two rows ever dropped differently?",
        F.dropout,
        "random_uint16(rng, x.shape)",
        "random_uint16(rng, x.shape[1:] or x.shape)",
    ),
    Exhibit(
        "the dropout mask is float64 in a float32 model",
        "rng.random() draws float64 unless told otherwise, and every array after it is float64: half the speed.",
        _dropout_backward,
        "dy * keep",
        "dy * keep.astype(float)",
    ),
)

LOSS = (
    Exhibit(
        "the loss's gradient is divided by the number of tokens twice",
        "Published. Once in the loss and once more in its backward: Adam hides it, for it divides by the size.",
        _cross_entropy_backward,
        "(share[rows] * dloss)",
        "(share[rows] * share[rows] * dloss)",
    ),
    Exhibit(
        "the loss's gradient is divided by B instead of B T",
        "Published. The mean runs over all tokens, not over all sequences.",
        F.cross_entropy_backward,
        "p, targets, share, smoothing, overwrite).",
        "p, targets, (share > 0) / shape[0], smoothing, overwrite).",
    ),
    Exhibit(
        "the loss is divided by B T, padding included",
        "The loss falls when a batch is padded more. Does the same batch with more padding have the same loss?",
        _cross_entropy,
        "share /= xp.maximum(share.sum(), 1)",
        "share /= share.size",
    ),
    Exhibit(
        "padding counts in the loss",
        "The model learns to say padding, which is most of what it is asked, and the loss looks splendid.",
        _cross_entropy,
        "counts = targets != pad",
        "counts = targets == targets",
    ),
    Exhibit(
        "a batch of padding alone divides by zero",
        "A mean over no tokens: rare, until the last batch of an epoch.",
        _cross_entropy,
        "share /= xp.maximum(share.sum(), 1)",
        "share /= share.sum()",
    ),
    Exhibit(
        "the target's logit is found by its value",
        "Published. Where another token has just the same probability, both are taken for the target.",
        _cross_entropy_backward,
        "dz_rows[xp.arange(len(dz_rows)), targets[rows]] -= 1.0 - smoothing",
        "dz_rows -= (1.0 - smoothing) * (dz_rows == dz_rows[xp.arange(len(dz_rows)), targets[rows]][:, None])",
    ),
    Exhibit(
        "label smoothing is spread over the other V - 1 tokens",
        "Forward and backward agree. In the paper's source the right token gets its share of eps, too.",
        _softmax_and_losses,
        "- smoothing * mean",
        "- smoothing * (mean * z.shape[-1] - right) / (z.shape[-1] - 1)",
        also=(
            (
                _cross_entropy_backward,
                """dz_rows -= smoothing / dz.shape[-1]
        dz_rows[xp.arange(len(dz_rows)), targets[rows]] -= 1.0 - smoothing""",
                """others = smoothing / (dz.shape[-1] - 1)
        dz_rows -= others
        dz_rows[xp.arange(len(dz_rows)), targets[rows]] -= 1.0 - smoothing - others""",
            ),
        ),
    ),
    Exhibit(
        "label smoothing is left out of the backward",
        "The loss printed has a floor that the gradient does not know of.",
        _cross_entropy_backward,
        "dz_rows -= smoothing / dz.shape[-1]",
        "pass",
    ),
    Exhibit(
        "the loss takes the logarithm of a probability that is zero",
        "log(softmax(z)) underflows where z - log(sum(exp(z))) does not; with smoothing every token's log is needed.",
        _softmax_and_losses,
        "return xp.log(total) + lost / total - (1.0 - smoothing) * right - smoothing * mean",
        """uniform = row_mean(xp.log(z))[:, 0] if smoothing else 0.0
    return -(1.0 - smoothing) * xp.log(z[xp.arange(len(z)), targets]) - smoothing * uniform""",
    ),
    Exhibit(
        "every block of logits is compared with the targets of the first block",
        "Right for every batch that fits into one block: the tests must have one that does not.",
        _cross_entropy_backward,
        "targets[rows]",
        "targets[: len(dz_rows)]",
    ),
    Exhibit(
        "the loss writes over the probabilities that it remembers",
        "Right the first time. Call backward twice: is the answer the same?",
        _cross_entropy_backward,
        "dz = p if overwrite else p.copy()",
        "dz = p",
    ),
)

INPUTS = (
    Exhibit(
        "the embedding's sqrt(d_model) is in the forward only",
        "A constant factor comes back in the chain rule; without it E learns too little from its first two uses.",
        F.embedding,
        "EmbeddingCache(ids, scale)",
        "EmbeddingCache(ids, 1.0)",
    ),
    Exhibit(
        "the embedding's backward starts its table's gradient again from zero",
        "With one shared matrix, what the output projection has written there is gone.",
        F.embedding_backward,
        "scatter_add(dE,",
        "dE[...] = 0\n    scatter_add(dE,",
    ),
    Exhibit(
        "sines and cosines of the positions are swapped",
        "Nothing that is learnt can tell, but no weights can be exchanged with anybody.",
        F.sinusoidal_positions,
        "table[:, 0::2] = np.sin(angles)\n    table[:, 1::2] = np.cos(angles)",
        "table[:, 1::2] = np.sin(angles)\n    table[:, 0::2] = np.cos(angles)",
    ),
    Exhibit(
        "all sines stand before all cosines",
        "So it is in the code of the paper's authors; the paper alternates them.",
        F.sinusoidal_positions,
        "table[:, 0::2] = np.sin(angles)\n    table[:, 1::2] = np.cos(angles)",
        "table[:] = np.concatenate((np.sin(angles), np.cos(angles)), axis=1)",
    ),
    Exhibit(
        "positions count from one",
        "What is the vector of the first token? sin(0) and cos(0): 0 and 1, in turn.",
        F.sinusoidal_positions,
        "np.arange(length)",
        "np.arange(1, length + 1)",
    ),
    Exhibit(
        "the table of positions is float64 whatever the model is",
        "An array made without a dtype is float64, and what is added to it too.",
        F.sinusoidal_positions,
        "np.empty((length, d_model), dtype=dtype)",
        "np.empty((length, d_model))",
    ),
)

EXHIBITS = (*LAYER_NORM, *LINEAR_AND_RELU, *DROPOUT, *LOSS, *INPUTS)
