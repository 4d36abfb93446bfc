"""Bugs in attention that is tiled, windowed, grouped or linear, many of them published."""

from minitransformer import functional as F
from minitransformer.exercises.planting import Exhibit
from minitransformer.functional.attention import linear, patterns, tiled, tiles
from minitransformer.functional.attention.patterns import Pattern
from minitransformer.functional.diagonals import toeplitz
from minitransformer.layers.attention_kinds import TiledAttention
from minitransformer.layers.kv_cache import RollingKVCache

TILED = (
    Exhibit(
        "a first tile that is wholly masked makes NaN",
        "Published. The largest score so far is -inf, and -inf - -inf is NaN. What should be subtracted instead?",
        tiled._forward_rows,
        "xp.where(xp.isfinite(largest), largest, 0)",
        "largest",
    ),
    Exhibit(
        "the running maximum starts at a finite number",
        "Published: -5e4 is more than some true scores, and where all scores are below it, exp gives 0.",
        tiled._forward_rows,
        "-xp.inf, dtype)",
        "-5e4, dtype)",
    ),
    Exhibit(
        "dropout comes before the sum of the weights",
        "Published. The weights that were kept are then normalised again, and the scale of dropout comes on top.",
        tiled._forward_rows,
        "@ weights  # their sum",
        "@ part.dropout(weights, rows, columns)[0]  # their sum",
    ),
    Exhibit(
        "backward draws other dropout masks than forward",
        "The masks are not kept. So each tile must be able to draw its mask again, from the same seed.",
        tiled._backward,
        "part.dropout(weights, rows, columns)",
        "part.dropout(weights, columns, rows)",
    ),
    Exhibit(
        "every tile has the same dropout mask",
        "The rate is right, but the noise repeats from one block of tokens to the next.",
        tiles.Part.dropout,
        "self.number, rows.start, columns.start",
        "self.number",
    ),
    Exhibit(
        "what was summed before is not rescaled when the maximum grows",
        "Right as long as the largest score comes in the first tile.",
        tiled._forward_rows,
        "sums *= rescale.swapaxes(-1, -2)",
        "pass",
    ),
    Exhibit(
        "the sum of the weights is not rescaled when the maximum grows",
        "Numerator and denominator must be measured from the same maximum.",
        tiled._forward_rows,
        "total *= rescale",
        "pass",
    ),
    Exhibit(
        "backward forgets the bias and the mask of the scores",
        "The weights are computed a second time, so all that made them the first time must come again.",
        tiled._backward,
        "part.complete(weights, rows, columns, forbidden)",
        "pass",
    ),
    Exhibit(
        "backward forgets the mask inside a tile",
        "exp(score - L) of a forbidden pair is not 0. It may even be large, as L does not know it.",
        tiled._backward,
        "part.complete(weights, rows, columns, forbidden)",
        "part.complete(weights, rows, columns, None)",
    ),
    Exhibit(
        "the gradient of the scores forgets the average that they are compared with",
        "D_t = dy . y: what one weight gains, the others of its row lose.",
        tiled._backward,
        "-row_dot(dy[queries], cache.y[queries])",
        "0.0 * row_dot(dy[queries], cache.y[queries])",
    ),
    Exhibit(
        "the log-sum-exp is the logarithm of the sum alone",
        "L = m + log l. Without m the weights are right only if the largest score is 0.",
        tiled._forward_rows,
        "shift + xp.log(total)",
        "xp.log(total)",
    ),
)

DISTANCES = (
    Exhibit(
        "a bias by distance is read from the future to the past",
        "It is symmetric for ALiBi, so that only other biases show the mistake.",
        toeplitz,
        "values[:, None]",
        "values[:, None, ::-1]",
    ),
    Exhibit(
        "every tile has the bias of the first distances",
        "A tile further down or further right has other distances.",
        tiles.Part.distances,
        "columns.start - (rows.stop - 1), columns.stop - 1 - rows.start",
        "1 - (rows.stop - rows.start), columns.stop - columns.start - 1",
    ),
    Exhibit(
        "the gradient of a bias by distance is that of the last tile",
        "Most distances occur in several tiles.",
        tiles.Part.add_bias_gradient,
        "+= diagonal_sums",
        "= diagonal_sums",
    ),
    Exhibit(
        "the mask of a tile starts at a key that was left out",
        "Once keys at the start of a tile are left out, its mask starts later, too.",
        patterns._trim,
        "entries[:, first:last]",
        "entries[:, : last - first]",
    ),
)

PATTERNS = (
    Exhibit(
        "a window sees one token more",
        "Published. A window of w tokens counts the token itself.",
        Pattern.allowed,
        "abs(t - s) < self.window",
        "abs(t - s) <= self.window",
    ),
    Exhibit(
        "global tokens see everything but are not seen",
        "Longformer's global attention is symmetric.",
        Pattern.allowed,
        "(t < self.num_global) | (s < self.num_global)",
        "t < self.num_global",
    ),
    Exhibit(
        "a strided pattern counts from the start of the text",
        "Every stride-th key before the query, not every stride-th position.",
        Pattern.allowed,
        "(t - s) % self.stride == 0",
        "s % self.stride == 0",
    ),
    Exhibit(
        "a ring buffer forgets what the first tokens of a prompt still see",
        "The last tokens of a prompt take the slots of keys that its first tokens have not read yet.",
        RollingKVCache.append,
        "before = np.arange(max(0, start - W), start)",
        "before = np.arange(start, start)",
    ),
    Exhibit(
        "a ring buffer gives positions in the order of its slots",
        "The order of the keys does not matter to attention, but to its mask and its bias.",
        RollingKVCache.append,
        "end - 1 - (end - 1 - filled) % W",
        "max(0, end - W) + filled",
    ),
)

GROUPED = (
    Exhibit(
        "the gradient of grouped keys and values is that of one head of the group",
        "Published. A head of keys that serves four heads of queries gets the sum of four gradients.",
        F.repeat_heads_backward,
        ".sum(axis=2)",
        "[:, :, 0]",
    ),
    Exhibit(
        "the gradient of grouped keys and values is a mean over the group",
        "A sum, as everywhere where one thing is used several times.",
        F.repeat_heads_backward,
        ".sum(axis=2)",
        ".mean(axis=2)",
    ),
    Exhibit(
        "neighbouring heads have different keys",
        "Repeat or tile: do heads 0 and 1 share keys, or heads 0 and G? The weights of others tell which.",
        F.repeat_heads,
        "xp.repeat(x, q.shape[1] // x.shape[1], axis=1)",
        "xp.concatenate([x] * (q.shape[1] // x.shape[1]), axis=1)",
    ),
)

LINEAR = (
    Exhibit(
        "elu(x) + 1 is computed as it is written",
        "Published. (exp(x) - 1) + 1 keeps no digit of a small exp(x): in float32 the feature is 0 below -17.",
        F.elu_plus_one,
        "y = xp.exp(xp.where(below, x, 0))",
        "y = (xp.exp(xp.where(below, x, 0)) - 1) + 1",
    ),
    Exhibit(
        "the slope of elu(x) + 1 is 1 everywhere",
        "It is exp(x) below 0.",
        F.elu_plus_one_backward,
        "xp.where(y.real < 1, y, 1)",
        "xp.ones_like(y)",
    ),
    Exhibit(
        "chunks overlap, and are counted twice",
        "Published. Within the chunk, the masked product has counted these keys already.",
        linear._causal_sums,
        "n += q @ Z",
        "n += q @ (Z + k.swapaxes(-1, -2) @ v)",
    ),
    Exhibit(
        "the keys' gradient forgets the queries of later chunks",
        "A key is read by every later query, also by those of other chunks.",
        linear._causal_sums_backward,
        "@ q + v @ R.swapaxes(-1, -2)",
        "@ q",
    ),
    Exhibit(
        "the gradient of the sum of the weights is forgotten",
        "y = n / l: the denominator depends on queries and keys too.",
        F.linear_attention_backward,
        "-row_dot(dy, y) / total",
        "0.0 * row_dot(dy, y)",
    ),
    Exhibit(
        "keys of padding keep their gradient",
        "What was left out of the sums has no gradient.",
        F.linear_attention_backward,
        "dkeys *= allowed",
        "pass",
    ),
    Exhibit(
        "linear attention sees the future within its chunk",
        "The state holds the chunks before. Within the chunk, a mask must keep the order.",
        linear._lower,
        "xp.tril(by_head)",
        "by_head",
    ),
)

DECODING = (
    Exhibit(
        "a later piece of a text is read in tiles as if it were the beginning",
        "The pattern counts from the first key. Where does the first query stand?",
        TiledAttention._attend_new,
        "ShiftedPattern(self.pattern, k.shape[2] - n)",
        "self.pattern",
    ),
    Exhibit(
        "the bias of a ring buffer is cut, and not put into the order of its slots",
        "Keys lie where there was room. Mask and bias must follow them.",
        TiledAttention.read,
        "_of_keys(x, kept)",
        "_of_keys(x, slice(len(positions)))",
    ),
    Exhibit(
        "a decoded token sees all that was kept",
        "The KV cache of strided attention keeps every token, because a later one may see it.",
        TiledAttention.read,
        "near if allowed is None else allowed & near",
        "allowed",
    ),
)

EXHIBITS = (*TILED, *DISTANCES, *PATTERNS, *GROUPED, *LINEAR, *DECODING)
