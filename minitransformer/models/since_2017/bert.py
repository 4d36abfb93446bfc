"""Encoder-only (Devlin et al. 2019): every token sees every other; the model predicts those that are masked."""

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_batch_of_ids, check_dtype, check_ids, check_integer
from minitransformer.config import TransformerConfig
from minitransformer.core import Layer, Parameter
from minitransformer.functional import gelu, gelu_backward, padding_mask, tanh, tanh_backward
from minitransformer.functional.dropout import DropoutCache
from minitransformer.functional.embedding import EmbeddingCache
from minitransformer.functional.layer_norm import LayerNormCache
from minitransformer.functional.linear import LinearCache
from minitransformer.functional.since_2017.activations import ShareCache
from minitransformer.layers import Dropout, Embedding, Encoder, LayerNorm, Linear
from minitransformer.layers.initializers import normal
from minitransformer.layers.stack import StackCache
from minitransformer.models.base import Model, describe
from minitransformer.models.build import builder
from minitransformer.models.since_2017.build import LaterBuilder

STD = 0.02  # of initial token vectors, which are not multiplied by sqrt(C)


def bert_config(vocab_size: int, **changes: Any) -> TransformerConfig:
    """BERT's choices (Devlin et al. 2019): post-norm, learned positions, exact GELU, eps 1e-12.

    `changes` replaces fields of the TransformerConfig, such as d_model. Raises ValueError or TypeError as that does.
    """
    bert = {"norm": "post", "positions": "learned", "activation": "gelu", "scale_embeddings": False, "norm_eps": 1e-12}
    return TransformerConfig(vocab_size, **{**bert, **changes})


class BERTEmbeddingCache(NamedTuple):
    """What `BERTEmbedding` remembers."""

    tokens: Any  # an EmbeddingCache, or that of Patches
    positions: Any  # the cache of the layer that adds positions, or None
    segments: EmbeddingCache
    norm: LayerNormCache
    dropout: DropoutCache | None


class BERTEmbedding(Layer):
    """The sum of token, position and segment vectors, normalized, with dropout (section 3, figure 2)."""

    def __init__(
        self, config: TransformerConfig, num_segments: int, rng: np.random.Generator | None, dtype: DTypeLike
    ) -> None:
        V, C = config.vocab_size, config.d_model
        scale = C**0.5 if config.scale_embeddings else 1.0
        self.tokens: Any = Embedding(Parameter(normal(rng, (V, C), STD, dtype)), scale)  # or Patches
        self.positions = LaterBuilder(config, rng, dtype).input_positions(STD)
        self.segments = Embedding(Parameter(normal(rng, (num_segments, C), STD, dtype)), scale=1.0)
        self.norm = LayerNorm(C, eps=config.norm_eps, dtype=dtype)
        self.dropout = Dropout(config.dropout)

    def forward(
        self, ids: np.ndarray, segments: np.ndarray, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, BERTEmbeddingCache]:
        """ids and segments (B, T) on the host -> y (B, T, C)."""
        x, cache_tokens = self.tokens.forward(ids)
        cache_positions = None
        if self.positions is not None:
            x, cache_positions = self.positions.forward(x)
        s, cache_segments = self.segments.forward(segments)
        n, cache_norm = self.norm.forward(x + s)
        y, cache_dropout = self.dropout.forward(n, rng)
        return y, BERTEmbeddingCache(cache_tokens, cache_positions, cache_segments, cache_norm, cache_dropout)

    def backward(self, dy: xp.ndarray, cache: BERTEmbeddingCache) -> None:
        """dy (B, T, C) -> None. The three vectors are added, so each gets the whole gradient."""
        cache_tokens, cache_positions, cache_segments, cache_norm, cache_dropout = cache
        dx = self.norm.backward(self.dropout.backward(dy, cache_dropout), cache_norm)
        self.segments.backward(dx, cache_segments)
        if self.positions is not None:
            dx = self.positions.backward(dx, cache_positions)
        self.tokens.backward(dx, cache_tokens)


class MaskedHeadCache(NamedTuple):
    """What `MaskedHead` remembers."""

    transform: LinearCache
    gelu: ShareCache
    norm: LayerNormCache
    output: xp.ndarray  # (B, T, C), the input of the output projection


class MaskedHead(Layer):
    """From the encoder's output to the logits of masked tokens: Linear, GELU, LayerNorm, the tied matrix, a bias."""

    def __init__(
        self, E: Parameter, config: TransformerConfig, rng: np.random.Generator | None, dtype: DTypeLike
    ) -> None:
        C = config.d_model
        self.transform = Linear(C, C, rng=rng, dtype=dtype)
        self.norm = LayerNorm(C, eps=config.norm_eps, dtype=dtype)
        self.output = LaterBuilder(config, rng, dtype).output(E)
        self.b = Parameter(np.zeros(len(E.data), dtype))

    def forward(self, x: xp.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, MaskedHeadCache]:
        """x (B, T, C), or (N, C) for N tokens -> logits (B, T, V) or (N, V)."""
        h, cache_transform = self.transform.forward(x)
        a, cache_gelu = gelu(h)
        n, cache_norm = self.norm.forward(a)
        logits, cache_output = self.output.forward(n)
        logits += self.b.data
        return logits, MaskedHeadCache(cache_transform, cache_gelu, cache_norm, cache_output)

    def backward(self, dlogits: xp.ndarray, cache: MaskedHeadCache) -> xp.ndarray:
        """dlogits (B, T, V) -> dx (B, T, C)."""
        cache_transform, cache_gelu, cache_norm, cache_output = cache
        self.b.add_grad(dlogits.reshape(-1, dlogits.shape[-1]).sum(axis=0))
        da = self.norm.backward(self.output.backward(dlogits, cache_output), cache_norm)
        return self.transform.backward(gelu_backward(da, cache_gelu), cache_transform)


class ClassifierHeadCache(NamedTuple):
    """What `ClassifierHead` remembers."""

    x: xp.ndarray  # (B, T, C)
    pooler: LinearCache
    tanh: xp.ndarray  # (B, C), the output of tanh
    dropout: DropoutCache | None
    classes: LinearCache


class ClassifierHead(Layer):
    """From the first token's output to the logits of classes: Linear and tanh (the "pooler"), dropout, Linear."""

    def __init__(
        self, num_classes: int, config: TransformerConfig, rng: np.random.Generator | None, dtype: DTypeLike
    ) -> None:
        C = config.d_model
        self.pooler = Linear(C, C, rng=rng, dtype=dtype)
        self.dropout = Dropout(config.dropout)
        self.classes = Linear(C, num_classes, rng=rng, dtype=dtype)

    def forward(self, x: xp.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, ClassifierHeadCache]:
        """x (B, T, C) -> logits (B, K), with K = num_classes."""
        h, cache_pooler = self.pooler.forward(x[:, 0])
        a, cache_tanh = tanh(h)
        d, cache_dropout = self.dropout.forward(a, rng)
        logits, cache_classes = self.classes.forward(d)
        return logits, ClassifierHeadCache(x, cache_pooler, cache_tanh, cache_dropout, cache_classes)

    def backward(self, dlogits: xp.ndarray, cache: ClassifierHeadCache) -> xp.ndarray:
        """dlogits (B, K) -> dx (B, T, C), which is 0 except for the first token."""
        x, cache_pooler, cache_tanh, cache_dropout, cache_classes = cache
        da = self.dropout.backward(self.classes.backward(dlogits, cache_classes), cache_dropout)
        dx = xp.zeros_like(x)
        dx[:, 0] = self.pooler.backward(tanh_backward(da, cache_tanh), cache_pooler)
        return dx


class NoHead(Layer):
    """The place of a head in a model that has none, such as a BERT that was trained to compare sentences."""

    def forward(self, x: xp.ndarray, rng: np.random.Generator | None = None) -> NoReturn:
        """ValueError, with what to do: there are no logits."""
        raise ValueError(
            "this model has no head, so it computes features and no logits: call `model.features(ids)`, or give it a "
            "head with `minitransformer train classify --from FOLDER` (labels) or `train masked --from FOLDER` (tokens)"
        )


class BERTFeaturesCache(NamedTuple):
    """What `BERT.features` remembers."""

    embedding: BERTEmbeddingCache
    encoder: StackCache


class BERTCache(NamedTuple):
    """What `BERT` remembers."""

    features: BERTFeaturesCache
    head: MaskedHeadCache | ClassifierHeadCache


class BERT(Model):
    """An encoder with a head: logits (B, T, V) of masked tokens, or with `num_classes` logits (B, K) of a sequence.

    With `num_classes` = 0 there is no head: the model computes `features`, and asking for logits is an error.

    Compared with the Transformer only the attention mask and the loss change: only padding is hidden from attention,
    and only masked tokens count in the loss. See `bert_config`, and `MaskedTask`, which masks tokens. In training, a
    target of 0 is padding and is ignored: number the classes from 1, and let `num_classes` be their number plus one.
    """

    config: TransformerConfig
    embedding: BERTEmbedding
    encoder: Encoder
    head: Layer  # a MaskedHead, a ClassifierHead or NoHead
    options: dict[str, Any]

    def __init__(
        self,
        config: TransformerConfig,
        *,
        num_segments: int = 2,
        num_classes: int | None = None,
        seed: int | None = 0,
        dtype: DTypeLike = np.float32,
    ) -> None:
        """Make a model with new weights: vectors of V tokens and `num_segments` segments, an encoder, and the head.

        `num_classes` = K selects the classifier instead of the head for masked tokens, and 0 no head. `seed` chooses
        the initial weights: normal with standard deviation 0.02 for all vectors, as in BERT, and Xavier uniform for the
        matrices; None makes them zero, for uses where only shapes matter. `dtype` is float32 for training, float64 or
        complex128 for proofs.
        Raises ValueError for any other dtype, for an untied output, for `num_segments` below 1 and for `num_classes`
        below 0.
        """
        dtype = check_dtype(dtype)
        if not config.has_tied_output:
            tied = config.tie_embeddings
            raise ValueError(f"BERT's embeddings and output share one matrix, got tie_embeddings={tied}")
        self.config = config
        check_integer("num_segments", num_segments, least=1)
        if num_classes is not None:
            check_integer("num_classes", num_classes, least=0)
        # what a checkpoint adds to the config
        self.options = {"num_segments": num_segments, "num_classes": num_classes}
        rng = None if seed is None else np.random.default_rng(seed)
        self.embedding = BERTEmbedding(config, num_segments, rng, dtype)
        self.encoder = builder(config, rng, dtype).encoder()
        if num_classes is None:
            self.head = MaskedHead(self.embedding.tokens.E, config, rng, dtype)
        else:
            self.head = ClassifierHead(num_classes, config, rng, dtype) if num_classes else NoHead()
        self.as_built = describe(self)

    def forward(
        self, ids: np.ndarray, segments: np.ndarray | None = None, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, BERTCache]:
        """ids and segments (B, T) on the host, all segment 0 by default -> logits (B, T, V), or (B, K) of a classifier.

        Raises TypeError for ids or segments that are not integers, ValueError for a wrong shape or T > max_len, and
        IndexError for ids outside the vocabulary or segments that do not exist.
        """
        y, cache_features = self.features(ids, segments, rng)
        logits, cache_head = self.head.forward(y, rng)
        return logits, BERTCache(cache_features, cache_head)

    def backward(self, dlogits: xp.ndarray, cache: BERTCache) -> None:
        """dlogits, of the shape of the logits -> None, because ids have no gradient."""
        self.features_backward(self.head.backward(dlogits, cache.head), cache.features)

    def features(
        self, ids: np.ndarray, segments: np.ndarray | None = None, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, BERTFeaturesCache]:
        """ids and segments (B, T) -> y (B, T, C), the input of `head`. Raises what `forward` raises."""
        check_batch_of_ids("ids", ids, self.config.vocab_size, self.config.max_len)
        segments = np.zeros_like(ids) if segments is None else segments
        check_ids("segments", segments, self.options["num_segments"])
        if segments.shape != ids.shape:  # one row would be broadcast
            raise ValueError(
                f"segments must have the same shape as ids, {tuple(ids.shape)}, got {tuple(segments.shape)}"
            )
        x, cache_embedding = self.embedding.forward(ids, segments, rng)
        allowed = padding_mask(to_device(ids), self.config.padding)
        y, cache_encoder = self.encoder.forward(x, allowed, rng)
        return y, BERTFeaturesCache(cache_embedding, cache_encoder)

    def features_backward(self, dy: xp.ndarray, cache: BERTFeaturesCache) -> None:
        """dy (B, T, C) -> None."""
        if self.embedding.is_trained:
            self.embedding.backward(self.encoder.backward(dy, cache.encoder), cache.embedding)
        else:
            self.encoder.backward(dy, cache.encoder, needs_dx=False)

    def attention_weights(self, ids: np.ndarray, segments: np.ndarray | None = None) -> list[xp.ndarray]:
        """ids and segments (B, T) -> the attention weights (B, H, T, T) of every layer, first layer first -> list."""
        return self.features(ids, segments)[1].encoder.attention_weights()
