"""Bugs in convolution: who reads whom is a matter of one index, forward and backward."""

from minitransformer.decoding.incremental import ConvState
from minitransformer.exercises.planting import Exhibit
from minitransformer.functional import convolution, gated
from minitransformer.functional.convolution import conv1d, conv1d_backward
from minitransformer.layers.convolution import ConvBuffer
from minitransformer.models import ConvLM

EXHIBITS = (
    Exhibit(
        "causal padding is off by one, and each token sees the next",
        "With one zero too few before the first token, the last tap reads x[t + 1]. A language model then copies it.",
        conv1d,
        "before = reach if causal else",
        "before = max(reach - 1, 0) if causal else",
    ),
    Exhibit(
        "causal padding forgets the dilation",
        "K - 1 zeros are enough only without gaps; with d = 2 the kernel reaches twice as far.",
        conv1d,
        "before = reach if causal else",
        "before = len(W) - 1 if causal else",
    ),
    Exhibit(
        "a convolution's padding is all on one side although it is not causal",
        "Shapes are right, and every output has moved.",
        conv1d,
        "reach // 2",
        "0",
    ),
    Exhibit(
        "dilation is ignored in the convolution's backward",
        "The forward pass skipped tokens. The gradient must skip the same ones.",
        conv1d_backward,
        "slice(k * dilation, k * dilation + T)",
        "slice(k, k + T)",
    ),
    Exhibit(
        "the kernel is not flipped in the convolution's backward",
        "What was read k steps ahead gets its gradient from k steps back. Which tap met which token?",
        conv1d_backward,
        "rows @ W[k].T",
        "rows @ W[-1 - k].T",
    ),
    Exhibit(
        "the kernel's gradient comes in the reverse order of its taps",
        "A convolution of signal processing flips its kernel; this one, as in all libraries, does not.",
        conv1d_backward,
        "dW[k] =",
        "dW[-1 - k] =",
    ),
    Exhibit(
        "the taps overwrite each other's gradient",
        "A token is read by up to K outputs, and each of them sends it a gradient.",
        conv1d_backward,
        "dpadded[:, read] +=",
        "dpadded[:, read] =",
    ),
    Exhibit(
        "the convolution's bias gradient is not summed over time",
        "One bias is added at every position, so its gradient is the sum over all of them.",
        conv1d_backward,
        "column_sum(rows)",
        "column_sum(dy[:, -1])",
    ),
    Exhibit(
        "the gradient is cut out of its padding at the wrong end",
        "dx begins where x began between the zeros. For a kernel of one tap there is no difference.",
        conv1d_backward,
        "dpadded[:, before : before + T]",
        "dpadded[:, :T]",
    ),
    Exhibit(
        "padding gets a gradient from the convolution",
        "It was read as zeros, whatever it was, so the loss does not depend on it.",
        conv1d_backward,
        "dx = dx * mask[..., None]",
        "pass",
    ),
    Exhibit(
        "a two-sided convolution reads padding as tokens",
        "The last real tokens then depend on how much longer the longest sequence of the batch is.",
        conv1d,
        "x if mask is None else x * mask[..., None]",
        "x",
    ),
    Exhibit(
        "the bias is added once for each tap",
        "y = sum of the taps + b: the bias belongs to the sum.",
        convolution.slide,
        "y += padded[:, k * dilation : k * dilation + T] @ W[k]",
        "y += padded[:, k * dilation : k * dilation + T] @ W[k] + (0 if b is None else b)",
    ),
    Exhibit(
        "the gate of a gated linear unit has the slope of its own output squared",
        "sigma'(x) = sigma(x) sigma(-x), with sigma as it was in the forward pass.",
        gated._sigmoid_backward,
        "cache.share * cache.rest",
        "cache.share * cache.share",
    ),
    Exhibit(
        "a convolution's buffer keeps the first inputs instead of the last",
        "Right for as long as the buffer is not full.",
        ConvBuffer.append,
        "joined[:, x.shape[1] :]",
        "joined[:, : self.x.shape[1]]",
    ),
    Exhibit(
        "padding before a prompt is read by the convolutions",
        "The embeddings of padding are not zero, and from the second layer on not even a zero stays zero.",
        ConvState._extend,
        "block.extend(x, buffer, mask)",
        "block.extend(x, buffer)",
    ),
    Exhibit(
        "beam search selects sequences, and the buffers stay with the old ones",
        "Each hypothesis goes on with the past of another one.",
        ConvState._select,
        "buffer.select(kept)",
        "pass",
    ),
    Exhibit(
        "the gradient of a convolutional model skips the last normalisation",
        "With pre-norm the sum of all layers is normalised once more before the output.",
        ConvLM.features_backward,
        "dy = self.norm.backward(dy, cache.norm)",
        "pass",
    ),
)
