"""Published bugs in pure functions: the softmax, attention, norms, losses, positions and recurrent steps."""

from tests.museum import NUMPY
from tests.museum.planting import Exhibit

EXHIBITS = (
    Exhibit(
        "the softmax's backward divides by the batch size",
        "The mean over the batch belongs to the loss, once; nothing below it knows of a batch.",
        {"functional:softmax_backward": ("ds *= p", "ds *= p / len(p)")},
        NUMPY,
    ),
    Exhibit(
        "the softmax normalises over the queries instead of the keys",
        "The scores of a sequence with itself are square, so no shape complains. Which axis must sum to 1?",
        {"functional.softmax:_softmax_in_place": ("total = row_sum(p)", "total = p.sum(axis=-2, keepdims=True)")},
        "labmlai/annotated_deep_learning_paper_implementations #146",
    ),
    Exhibit(
        "a mask takes 10,000 from the scores that it forbids",
        "Minus infinity cannot be out-scored; minus 10,000 can, and is, once the weights have grown.",
        {
            "functional.softmax:_softmax_in_place": (
                "xp.copyto(p, -xp.inf, where=forbidden)",
                "xp.copyto(p, p - 1e4, where=forbidden)",
            )
        },
        "TransformerLensOrg/TransformerLens #319",
    ),
    Exhibit(
        "a mask sets forbidden scores to -1e9",
        "Right in every row but an empty one: there all scores are equal, and the query looks at the padding evenly.",
        {
            "functional.softmax:_softmax_in_place": (
                "xp.copyto(p, -xp.inf, where=forbidden)",
                "xp.copyto(p, -1e9, where=forbidden)",
            )
        },
        "ml-explore/mlx #2395",
    ),
    Exhibit(
        "a query that may attend to nothing turns into NaN",
        "-inf - -inf is NaN, and one NaN in one row is NaN in every weight after the next step.",
        {"functional.softmax:_softmax_in_place": ("largest[empty] = 0", "pass")},
        "tracel-ai/burn #4694",
    ),
    Exhibit(
        "an empty row is divided by its sum of zero",
        "0 / 0: the second of the two places where an empty row makes NaN.",
        {"functional.softmax:_softmax_in_place": ("total[empty] = 1", "pass")},
        "tracel-ai/burn #4697",
    ),
    Exhibit(
        "the softmax does not subtract the largest score",
        "Right at the start of training, infinite once a score passes 88 in float32.",
        {"functional.softmax:_softmax_in_place": ("p -= largest", "pass")},
        "dwavesystems/dwave-optimization #555",
    ),
    Exhibit(
        "scores are divided by sqrt(d_model), forward and backward",
        "Forward and backward agree, so no gradient check can tell: only the paper's formula can.",
        {"functional:scaled_dot_product_attention": ("1.0 / math.sqrt(D)", "1.0 / math.sqrt(q.shape[1] * D)")},
        "lucidrains/vit-pytorch #65",
    ),
    Exhibit(
        "the padding mask is True where the padding is",
        "The convention of PyTorch's key_padding_mask, in code that takes True for look.",
        {"functional:padding_mask": ("ids != pad", "ids == pad")},
        "mlwithme/TransformerTranslation #6",
    ),
    Exhibit(
        "heads are merged without being transposed back",
        "In (B, H, T, D) the neighbours of a token's features are another token's.",
        {"functional:merge_heads": ("part.transpose(0, 2, 1, 3).reshape", "part.reshape")},
        "jsbaan/transformer-from-scratch #6",
    ),
    Exhibit(
        "a first tile that is wholly masked makes NaN",
        "The largest score so far is -inf, and -inf - -inf is NaN. What should be subtracted instead?",
        {"functional.since_2017.tiled:_forward_rows": ("xp.where(xp.isfinite(largest), largest, 0)", "largest")},
        "tracel-ai/cubecl #1070",
    ),
    Exhibit(
        "the running maximum starts at a finite number",
        "-5e4 is more than some true scores, and where all scores are below it, exp gives 0.",
        {"functional.since_2017.tiled:_forward_rows": ("-xp.inf, dtype)", "-5e4, dtype)")},
        "flashinfer-ai/flashinfer #4401",
    ),
    Exhibit(
        "dropout comes before the sum of the weights",
        "The weights that were kept are then normalised again, and the scale of dropout comes on top.",
        {"functional.since_2017.tiled:_forward_rows": ("@ weights", "@ part.dropout(weights, rows, columns)[0]")},
        "aws-neuron/nki-samples #80",
    ),
    Exhibit(
        "a window sees one token more",
        "A window of w tokens counts the token itself.",
        {"functional.since_2017.patterns:Pattern.allowed": ("abs(t - s) < self.window", "abs(t - s) <= self.window")},
        "huggingface/transformers #26792",
    ),
    Exhibit(
        "neighbouring heads have different keys",
        "Repeat or tile: do heads 0 and 1 share keys, or heads 0 and G? The weights of others tell which.",
        {
            "functional:repeat_heads": (
                "xp.repeat(x, q.shape[1] // x.shape[1], axis=1)",
                "xp.concatenate([x] * (q.shape[1] // x.shape[1]), axis=1)",
            )
        },
        "onnx/onnx #7274",
    ),
    Exhibit(
        "elu(x) + 1 is computed as it is written",
        "(exp(x) - 1) + 1 keeps no digit of a small exp(x): in float32 the feature is 0 below -17.",
        {
            "functional:elu_plus_one": (
                "y = xp.exp(xp.where(below, x, 0))",
                "y = (xp.exp(xp.where(below, x, 0)) - 1) + 1",
            )
        },
        "fla-org/flash-linear-attention #1261",
    ),
    Exhibit(
        "the rounding error of a large mean stays in x_hat",
        "At a mean of 1e6, float32 knows the mean to 0.03: not exact enough for a token with the spread 1.",
        {
            "functional.layer_norm:_layer_norm": (
                "is_usual = _are_usual(mean, rstd)",
                "is_usual = bool((rstd > 0).all())",
            )
        },
        "pytorch/pytorch #51102",
    ),
    Exhibit(
        "gate and up are swapped, forward",
        "A model can learn either, and each trained elsewhere fails in the other.",
        {"functional.since_2017.activations:_gated": ("gate, up =", "up, gate =")},
        "ml-explore/mlx-lm #767",
    ),
    Exhibit(
        "LayerNorm divides the variance by C - 1",
        "The habit of statistics, and the default of torch.var: [1, 0, 0, 0] becomes 1.500 instead of 1.732.",
        {
            "functional.layer_norm:_layer_norm": (
                "row_dot(x_hat, x_hat) / x.shape[-1]",
                "row_dot(x_hat, x_hat) / (x.shape[-1] - 1)",
            )
        },
        "harvardnlp/annotated-transformer #119",
    ),
    Exhibit(
        "LayerNorm adds eps outside the root",
        "Hardly to be seen at eps = 1e-5: check with an eps that is not small.",
        {"functional.layer_norm:_layer_norm": ("1.0 / xp.sqrt(variance + eps)", "1.0 / (xp.sqrt(variance) + eps)")},
        "tracel-ai/burn #2185",
    ),
    Exhibit(
        "LayerNorm's gamma learns from the first sequence alone if there are four axes",
        "Leading axes mean nothing. Are the gradients of four axes those of the same tokens in two?",
        {
            "functional.layer_norm:_layer_norm_backward": (
                "dgamma = column_dot(dy_rows, x_hat.reshape(-1, C))",
                "first = slice(None) if dy.ndim < 4 else slice(len(dy_rows) // len(dy))\n"
                "    dgamma = column_dot(dy_rows[first], x_hat.reshape(-1, C)[first])",
            )
        },
        "flagos-ai/FlagGems #5392",
    ),
    Exhibit(
        "dropout scales in evaluation although nothing is dropped",
        "Either training divides by the keep rate or evaluation multiplies by it; never both.",
        {"functional:dropout": ("return x, None", "return x * (1.0 - rate), None")},
        NUMPY,
    ),
    Exhibit(
        "the loss's gradient is divided by the number of tokens twice",
        "Once in the loss and once more in its backward: Adam hides it, for it divides by the size.",
        {
            "functional.cross_entropy:_cross_entropy_backward": (
                "(share[rows] * dloss)",
                "(share[rows] * share[rows] * dloss)",
            )
        },
        NUMPY,
    ),
    Exhibit(
        "the loss's gradient is divided by B instead of B T",
        "The mean runs over all tokens, not over all sequences.",
        {
            "functional:cross_entropy_backward": (
                "p, targets, share, smoothing, overwrite).",
                "p, targets, (share > 0) / shape[0], smoothing, overwrite).",
            )
        },
        NUMPY,
    ),
    Exhibit(
        "the loss is divided by B T, padding included",
        "The loss falls when a batch is padded more. Does the same batch with more padding have the same loss?",
        {"functional.cross_entropy:_cross_entropy": ("share /= xp.maximum(share.sum(), 1)", "share /= share.size")},
        "IBM/pytorch-seq2seq #125",
    ),
    Exhibit(
        "padding counts in the loss",
        "The model learns to say padding, which is most of what it is asked, and the loss looks splendid.",
        {"functional.cross_entropy:_cross_entropy": ("counts = targets != pad", "counts = targets == targets")},
        "DaoyuanLi2816/Molecule-Generator #20",
    ),
    Exhibit(
        "the target's logit is found by its value",
        "Where another token has just the same probability, both are taken for the target.",
        {
            "functional.cross_entropy:_cross_entropy_backward": (
                "dz_rows[xp.arange(len(dz_rows)), targets[rows]] -= 1.0 - smoothing",
                "dz_rows -= (1.0 - smoothing) * (dz_rows == dz_rows[xp.arange(len(dz_rows)), targets[rows]][:, None])",
            )
        },
        NUMPY,
    ),
    Exhibit(
        "label smoothing is spread over the other V - 1 tokens",
        "Forward and backward agree. In the paper's source the right token gets its share of eps, too.",
        {
            "functional.cross_entropy:softmax_and_losses": (
                "- smoothing * mean",
                "- smoothing * (mean * z.shape[-1] - right) / (z.shape[-1] - 1)",
            ),
            "functional.cross_entropy:_cross_entropy_backward": (
                """dz_rows -= smoothing / dz.shape[-1]
        dz_rows[xp.arange(len(dz_rows)), targets[rows]] -= 1.0 - smoothing""",
                """others = smoothing / (dz.shape[-1] - 1)
        dz_rows -= others
        dz_rows[xp.arange(len(dz_rows)), targets[rows]] -= 1.0 - smoothing - others""",
            ),
        },
        "fastai/fastai #1814",
    ),
    Exhibit(
        "the loss takes the logarithm of a probability that is zero",
        "log(softmax(z)) underflows where z - log(sum(exp(z))) does not; with smoothing every token's log is needed.",
        {
            "functional.cross_entropy:softmax_and_losses": (
                "return xp.log(total) + lost / total - (1.0 - smoothing) * right - smoothing * mean",
                """uniform = row_mean(xp.log(z))[:, 0] if smoothing else 0.0
    return -(1.0 - smoothing) * xp.log(z[xp.arange(len(z)), targets]) - smoothing * uniform""",
            )
        },
        "zackchase/mxnet-the-straight-dope #3",
    ),
    Exhibit(
        "all sines stand before all cosines",
        "So it is in the code of the paper's authors; the paper alternates them.",
        {
            "functional:sinusoidal_positions": (
                "table[:, 0::2] = np.sin(angles)\n    table[:, 1::2] = np.cos(angles)",
                "table[:] = np.concatenate((np.sin(angles), np.cos(angles)), axis=1)",
            )
        },
        "tensorflow/tensor2tensor, the code of the paper's authors",
    ),
    Exhibit(
        "cosines are of neighbours and sines of halves",
        "Two conventions of pairing in one function: feature i meets i + 1 in one half of the formula only.",
        {
            "functional.since_2017.rotary:_turn": (
                "return (x.view(turns.dtype) * turns).view(x.dtype)",
                "half = x.shape[-1] // 2\n"
                "    swapped = xp.concatenate([-x[..., half:], x[..., :half]], axis=-1)\n"
                "    pair = [xp.stack([part, part], axis=-1).reshape(x.shape[-2:]) "
                "for part in (turns.real, turns.imag)]\n"
                "    return x * pair[0] + swapped * pair[1]",
            )
        },
        "raiyanyahya/how-to-train-your-gpt #6",
    ),
    Exhibit(
        "ALiBi's slopes start at 1",
        "2^0 instead of 2^(-8 / H): the sequence is right, and one place too early.",
        {"functional:alibi_slopes": ("for i in range(1, power + 1)", "for i in range(power)")},
        "paiml/aprender #2143",
    ),
    Exhibit(
        "a number of heads that is no power of two goes on with ever smaller slopes",
        "The paper fills the gaps between the slopes instead: 2^-9 is as good as no position at all.",
        {
            "functional:alibi_slopes": (
                "2.0 ** (-8.0 * i / (2 * power)) for i in range(1, 2 * power, 2)",
                "2.0 ** (-8.0 * i / power) for i in range(power + 1, 2 * power)",
            )
        },
        "ml-explore/mlx #3071",
    ),
    Exhibit(
        "the last step's dc is missing: the LSTM's memory gets its first gradient one step too late",
        "The last c has no next step, but its own h has a gradient.",
        {
            "functional.before_2017.recurrent.lstm:_steps_back": (
                "dc += new",
                "dc += new if t < len(da) - 1 else 0.0 * new",
            )
        },
        "deeplearning4j/deeplearning4j #8838",
    ),
    Exhibit(
        "the biases of the input and the output gate are those of the forget gate",
        "Copied lines with one letter unchanged; invisible as long as all biases are 0.",
        {
            "functional.before_2017.recurrent.lstm:_steps": (
                "a += b",
                "a += xp.concatenate([b[:, 2 * R : 3 * R]] * 3 + [b[:, 3 * R :]], axis=1)",
            )
        },
        "ddbourgin/numpy-ml #42, and learn_dl #53",
    ),
    Exhibit(
        "the derivative of tanh is taken of its input, when what is stored is its output",
        "1 - tanh(y)^2 where y is tanh(c) already.",
        {
            "functional.before_2017.recurrent.lstm:_steps_back": (
                "xp.multiply(tanh_c[t], tanh_c[t], out=new)",
                "xp.tanh(tanh_c[t], out=new)\n        new *= new",
            )
        },
        "rnn_lstm_from_scratch #1",
    ),
    Exhibit(
        "the gradient of the recurrent matrix takes h after the step for h before it",
        "h has T + 1 entries, and U multiplies the first T of them.",
        {"functional:lstm_backward": ("h[:-1].reshape(-1, R).T @ da_rows", "h[1:].reshape(-1, R).T @ da_rows")},
        "VikParuchuri/zero_to_gpt #9",
    ),
    Exhibit(
        "the LSTM's memory is carried into the padding",
        "The final state must be that after the last token, or the decoder starts from a state that has read padding.",
        {"functional:lstm": ("xp.copyto(gates[..., 2 * R : 3 * R], xp.inf, where=padding)  # f = 1", "pass")},
        "deeplearning4j/deeplearning4j #1030",
    ),
    Exhibit(
        "the GRU's second bias is outside the reset gate",
        "n = tanh(x W + b + r (h U) + d): then d and b are one, and PyTorch's two biases are not.",
        {
            "functional.before_2017.recurrent.gru:_steps": (
                "xp.multiply(r, k, out=new)",
                "xp.multiply(r, k - d, out=new)\n        new += d",
            )
        },
        "pytorch/pytorch #529, in the documentation",
    ),
    Exhibit(
        "the loads of the experts are counted for each token and not for each assignment",
        "They sum to k, so the balance loss is k times as strong as the paper's, and 1 is no longer balance.",
        {
            "functional.since_2017.routing:expert_loads": (
                "chosen.mean(axis=0) / chosen[0].sum()",
                "chosen.mean(axis=0)",
            )
        },
        "huggingface/transformers #43688",
    ),
)
