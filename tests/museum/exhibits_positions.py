"""Bugs in positions: rotations, biases of distance, buckets, learnt vectors."""

from minitransformer import functional as F
from minitransformer import layers as L
from minitransformer.exercises.planting import Exhibit
from minitransformer.functional.diagonals import diagonal_sums
from minitransformer.functional.positions import _least_distances
from minitransformer.functional.rotary import _turn
from minitransformer.layers.positions import rows_from

ROTARY = (
    Exhibit(
        "the rotation's backward turns the same way as its forward",
        "The gradient is as long as it should be and points elsewhere. A rotation's transpose is its inverse.",
        F.rotate_backward,
        "cos - 1j * sin",
        "cos + 1j * sin",
    ),
    Exhibit(
        "the sines of a rotation belong to the pairs of the other half",
        "No rotation any more: cos^2 + sin^2 is not 1. Do vectors keep their lengths?",
        F.rotate,
        "cos + 1j * sin",
        "cos + 1j * sin[:, ::-1]",
    ),
    Exhibit(
        "cosines are of neighbours and sines of halves",
        "Two conventions of pairing in one function: feature i meets i + 1 in one half of the formula only.",
        _turn,
        "return (x.view(turns.dtype) * turns).view(x.dtype)",
        "half = x.shape[-1] // 2\n"
        "    swapped = xp.concatenate([-x[..., half:], x[..., :half]], axis=-1)\n"
        "    pair = [xp.stack([part, part], axis=-1).reshape(x.shape[-2:]) for part in (turns.real, turns.imag)]\n"
        "    return x * pair[0] + swapped * pair[1]",
    ),
    Exhibit(
        "rotary positions start at one",
        "No score can tell: all turn by one angle more. Only weights from elsewhere, and the first token, can.",
        F.rotary_tables,
        "np.arange(length)",
        "np.arange(1, length + 1)",
    ),
    Exhibit(
        "the frequencies of a rotation fall twice as fast",
        "The 2i of the formula is the feature's index already.",
        F.rotary_tables,
        "-math.log(base) * pair / width",
        "-2 * math.log(base) * pair / width",
    ),
    Exhibit(
        "a decoded token is turned as if it were the first",
        "Training never sees it: there every sequence starts at 0.",
        L.RotaryPositions._tables,
        "slice(start, start + x.shape[2])",
        "slice(0, x.shape[2])",
    ),
    Exhibit(
        "a complex number is turned as if it were a pair of features",
        "Right for all that is real, and every proof by complex steps is of another function.",
        _turn,
        "_turn(x.real, turns) + 1j * _turn(x.imag, turns)",
        "x * xp.stack([turns, turns], axis=-1).reshape(x.shape[-2:])",
    ),
)

BIASES = (
    Exhibit(
        "ALiBi rewards distance",
        "One sign: every head looks as far back as it can, and the loss still falls.",
        F.alibi_bias,
        "distances * -slopes",
        "distances * slopes",
    ),
    Exhibit(
        "ALiBi's distance has a sign, also behind the query",
        "Without a causal mask, keys behind the query are rewarded for being far away.",
        F.alibi_bias,
        "xp.abs(keys - queries[:, None])",
        "queries[:, None] - keys",
    ),
    Exhibit(
        "ALiBi's slopes start at 1",
        "2^0 instead of 2^(-8 / H): the sequence is right, and one place too early.",
        F.alibi_slopes,
        "for i in range(1, power + 1)",
        "for i in range(power)",
    ),
    Exhibit(
        "a number of heads that is no power of two goes on with ever smaller slopes",
        "The paper fills the gaps between the slopes instead: 2^-9 is as good as no position at all.",
        F.alibi_slopes,
        "2.0 ** (-8.0 * i / (2 * power)) for i in range(1, 2 * power, 2)",
        "2.0 ** (-8.0 * i / power) for i in range(power + 1, 2 * power)",
    ),
    Exhibit(
        "ALiBi's queries start at 0 while decoding",
        "The newest token believes that it is the first, and the oldest tokens are nearest to it.",
        F.alibi_bias,
        "xp.arange(start, start + T, dtype=dtype)",
        "xp.arange(T, dtype=dtype)",
    ),
    Exhibit(
        "the last bias is given out for another start",
        "A cache whose key has forgotten an argument.",
        L.AlibiPositions.bias,
        "if asked != (T, S, start):",
        "if asked is None or asked[:2] != (T, S):",
    ),
)

BUCKETS = (
    Exhibit(
        "the buckets of past and future are swapped",
        "Query minus key, or key minus query? Learnt from nothing it does not matter, with T5's weights it does.",
        F.relative_buckets,
        "n * (offsets > 0)",
        "n * (offsets < 0)",
    ),
    Exhibit(
        "in one direction the buckets are for the future",
        "All that a causal mask lets through falls into bucket 0: there are no positions, and nobody complains.",
        F.relative_buckets,
        "np.maximum(-offsets, 0)",
        "np.maximum(offsets, 0)",
    ),
    Exhibit(
        "the queries' buckets start at 0 while decoding",
        "Every new token takes all that came before for its future.",
        F.relative_buckets,
        "np.arange(start, start + T)",
        "np.arange(T)",
    ),
    Exhibit(
        "the edge of a bucket falls on the wrong side",
        "At a distance of 16, the logarithm is a whole number; less a rounding error, it is the number below.",
        _least_distances,
        "< e ** (n - e - k)",
        "<= e ** (n - e - k)",
    ),
    Exhibit(
        "far distances are cut into equal buckets",
        "The farther, the coarser: that is what the logarithm is for.",
        _least_distances,
        "d ** (n - e) < e ** (n - e - k) * max_distance**k",
        "(d - e) * (n - e) < k * (max_distance - e)",
    ),
    Exhibit(
        "repeated buckets lose gradient",
        "table[ids] += rows counts each id once, whatever the number of pairs at that distance.",
        F.relative_bias_backward,
        "scatter_add(dtable, buckets.reshape(-1)[up_the_first_column_along_the_first_row], diagonal_sums(dy).T)",
        "dtable[to_device(buckets.reshape(-1)[up_the_first_column_along_the_first_row])] += diagonal_sums(dy).T",
    ),
    Exhibit(
        "a bucket's gradient is that of one query",
        "One table serves all pairs at a distance, so all of them are summed.",
        diagonal_sums,
        "slanted.sum(axis=1)",
        "slanted[:, -1]",
    ),
    Exhibit(
        "the diagonals of relative positions lean the wrong way",
        "Without turning the queries round, one sums the pairs whose positions, not distances, add up.",
        diagonal_sums,
        "dy[:, ::-1]",
        "dy",
    ),
    Exhibit(
        "a decoded token's gradient goes to the buckets of the first",
        "Forward and backward must agree on where the queries stand.",
        L.RelativePositions.bias_backward,
        "self._buckets(T, S, start)",
        "self._buckets(T, S, 0)",
    ),
    Exhibit(
        "the gradient of the relative table is that of its last use",
        "T5 has one table for all layers of a stack.",
        F.relative_bias_backward,
        "scatter_add(dtable,",
        "dtable[...] = 0\n    scatter_add(dtable,",
    ),
)

ADDED = (
    Exhibit(
        "learnt positions get the gradient of one sequence",
        "P[t] was added to all sequences of the batch, so it gets what all of them send back.",
        L.LearnedPositions.backward,
        "dy.sum(axis=0)",
        "dy[-1]",
    ),
    Exhibit(
        "learnt positions get the mean over the batch",
        "The mean belongs to the loss, once.",
        L.LearnedPositions.backward,
        "dy.sum(axis=0)",
        "dy.mean(axis=0)",
    ),
    Exhibit(
        "only the first 64 learnt positions learn",
        "A bound that was once max_len. How long is the longest sequence that any test has?",
        L.LearnedPositions.backward,
        "self.P.grad[start : start + T] += dy.sum(axis=0)",
        "self.P.grad[start : start + min(T, 64)] += dy[:, :64].sum(axis=0)",
    ),
    Exhibit(
        "learnt positions forget where the sequence started",
        "The gradient goes to the first rows, whichever were used.",
        L.LearnedPositions.backward,
        "self.P.grad[start : start + T]",
        "self.P.grad[:T]",
    ),
    Exhibit(
        "every decoded token gets the vector of the first position",
        "One token at a time, each is at index 0 of its own array. Is decoding with remembered keys that without?",
        rows_from,
        "return table[start : start + T]",
        "return table[:T]",
    ),
)

EXHIBITS = ROTARY + BIASES + BUCKETS + ADDED
