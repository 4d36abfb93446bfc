"""The patients of lesson 15: mistakes that can be planted in the library. This file gives them away.

They are sorted by name. The museum in the tests exhibits those that were published.
"""

import contextlib

from minitransformer import decoding, functional, layers, models
from minitransformer.data import tasks
from minitransformer.exercises.planting import Exhibit
from minitransformer.functional.layer_norm import _layer_norm_backward

PATIENTS = (
    Exhibit(
        "LayerNorm's gamma is taken outside the sums",
        "Published. Exact at gamma = 1, where every model starts, and 54 % wrong later.",
        _layer_norm_backward,
        "dx = dy * gamma  # dx_hat\n    through_std = row_dot(dx, x_hat) / C\n    dx -= row_mean(dx)\n"
        "    dx -= x_hat * through_std",
        "dx = gamma * (dy - row_mean(dy) - x_hat * row_dot(dy, x_hat) / C)",
    ),
    Exhibit(
        "a token that comes twice gets only one of its gradients",
        "Published. dE[ids] += dy writes each row once, whatever the number of repeats.",
        functional.embedding_backward,
        "scatter_add(dE, ids.reshape(-1), dy.reshape(-1, dy.shape[-1]) * scale)",
        "dE[ids.reshape(-1)] += dy.reshape(-1, dy.shape[-1]) * scale",
    ),
    Exhibit(
        "decoding stops as soon as one row has said eos",
        "any for all: the shortest answer of a batch cuts all the others.",
        decoding.generate_tokens,
        "if finished.all():",
        "if finished.any():",
    ),
    Exhibit(
        "embeddings start with standard deviation 1",
        "PyTorch's default. Times sqrt(d_model), and again as output: what is the loss before training?",
        models.Transformer._embedding_matrices,
        "C**-0.5",
        "1.0",
    ),
    Exhibit(
        "heads are split and merged by a reshape alone",
        "The shape is right, positions are mixed, and the two undo each other: every gradient check passes.",
        functional.split_heads,
        "x.reshape(B, T, num_heads, C // num_heads).transpose(0, 2, 1, 3)",
        "x.reshape(B, num_heads, T, C // num_heads)",
        also=((functional.merge_heads, "part.transpose(0, 2, 1, 3).reshape", "part.reshape"),),
    ),
    Exhibit(
        "the causal mask is off by default",
        "Published. The loss is splendid, what the model writes is not. Try random targets: a leak learns them.",
        models.Transformer.decode,
        "causal_mask(target.shape[1]) & self.target_allowed(target)",
        "self.target_allowed(target)",
    ),
    Exhibit(
        "the exponent of the positions counts pairs twice",
        "The 2i of the paper is the feature's index already. Wrong in eight public repositories, and it trains.",
        functional.sinusoidal_positions,
        "np.exp(-math.log(10000.0) * pair / d_model)",
        "np.exp(-math.log(10000.0) * 2 * pair / d_model)",
    ),
    Exhibit(
        "the keys' gradient is computed transposed and then reshaped into place",
        "Published. A reshape makes any shape fit: it reads the same numbers in another order.",
        functional.scaled_dot_product_attention_backward,
        "dk = product_of_heads(dscores.swapaxes(-1, -2), q)",
        "dk = (q.swapaxes(-1, -2) @ dscores).reshape(k.shape)",
    ),
    Exhibit(
        "the residual's gradient is never added around cross-attention",
        "Published, in a decoder. Two paths lead from x to y, so two gradients come back and are added.",
        layers.Residual.backward,
        "dx = dsum + dx",
        "dx = dx if dcontext else dsum + dx",
    ),
    Exhibit(
        "the target is not shifted",
        "The decoder reads what it is to say, so it learns to repeat one token - and has none to repeat in decoding.",
        tasks.make_batch,
        "target_in = np.concatenate([bos, answer], axis=1)[:, : target_out.shape[1]]",
        "target_in = target_out",
    ),
)

ORDER = (4, 0, 9, 1, 3, 5, 7, 2, 8, 6)  # which of them is patient 1, patient 2, ...


def admitted(number: int) -> contextlib.AbstractContextManager[None]:
    """Inside a `with` block the library has the mistake of this patient, 1 to 10; patient 0 is healthy."""
    return PATIENTS[ORDER[number - 1]].planted() if number else contextlib.nullcontext()
