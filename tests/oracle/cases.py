"""The list of all comparisons with PyTorch. A reference file has some of them, the live test takes them all."""

from itertools import product

from tests.oracle.function_cases import (
    CrossEntropyCase,
    DotProductAttentionCase,
    EmbeddingCase,
    FeedForwardCase,
    LayerNormCase,
    LinearCase,
    ReluCase,
    SoftmaxCase,
)
from tests.oracle.layer_cases import CrossAttentionCase, DecoderLayerCase, EncoderLayerCase, SelfAttentionCase
from tests.oracle.model_cases import TransformerCase, TransformerLossCase
from tests.oracle.problems import Sizes

REFERENCE_SIZES = Sizes(B=3, T=5, S=6, H=2, D=4, F=7, V=11)

MASKS = {
    "": {"padding": False, "causal": False},
    ", padding": {"padding": True, "causal": False},
    ", causal": {"padding": False, "causal": True},
    ", padding and causal": {"padding": True, "causal": True},
}


def _functions():
    yield LinearCase("linear", bias=True)
    yield LinearCase("linear without bias", bias=False)
    yield LayerNormCase("layer norm")
    yield ReluCase("relu")
    yield SoftmaxCase("softmax", masked=False)
    yield SoftmaxCase("softmax, mask", masked=True)
    for mask in ("none", "random", "empty"):
        yield DotProductAttentionCase(f"scaled dot-product attention, mask {mask}", mask)
    yield FeedForwardCase("feed-forward network")
    yield EmbeddingCase("embedding")
    for smoothing in (0.0, 0.1):
        yield CrossEntropyCase(f"cross-entropy, smoothing {smoothing}", smoothing)


def _attention():
    for title, masks in MASKS.items():
        yield SelfAttentionCase(f"self-attention{title}", **masks)
        yield CrossAttentionCase(f"cross-attention{title}", **masks)


def _blocks():
    for norm, masked in product(("post", "pre"), (False, True)):
        title = f"{norm}-norm{', masks' if masked else ''}"
        yield EncoderLayerCase(f"encoder layer, {title}", masked=masked, norm=norm)
        yield DecoderLayerCase(f"decoder layer, {title}", masked=masked, norm=norm)


def _models():
    for norm, final_norm, tied in product(("post", "pre"), (False, True), (True, False)):
        title = f"{norm}-norm, {'with' if final_norm else 'without'} final norm, {'tied' if tied else 'untied'}"
        yield TransformerCase(f"transformer, {title}", norm=norm, final_norm=final_norm, tie_embeddings=tied)
    for smoothing in (0.0, 0.1):
        yield TransformerLossCase(f"transformer, loss, smoothing {smoothing}", label_smoothing=smoothing)


CASES = {case.name: case for cases in (_functions, _attention, _blocks, _models) for case in cases()}

# Each kind once, with its masks on: enough to see every backward pass, and small enough to keep.
REFERENCE_CASES = (
    "linear",
    "layer norm",
    "relu",
    "softmax, mask",
    "scaled dot-product attention, mask random",
    "feed-forward network",
    "embedding",
    "cross-entropy, smoothing 0.0",
    "cross-entropy, smoothing 0.1",
    "self-attention, padding and causal",
    "cross-attention, padding",
    "encoder layer, post-norm, masks",
    "encoder layer, pre-norm, masks",
    "decoder layer, post-norm, masks",
    "decoder layer, pre-norm, masks",
    "transformer, post-norm, without final norm, tied",
    "transformer, pre-norm, with final norm, tied",
)

CONVERTED = "transformer, pre-norm, with final norm, tied"  # its weights are also compared in PyTorch's layout
