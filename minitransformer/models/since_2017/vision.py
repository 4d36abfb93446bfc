"""Images as sequences: BERT reads patches of pixels instead of tokens (Dosovitskiy et al. 2021, "ViT")."""

import math

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_ids, check_shape
from minitransformer.config import TransformerConfig
from minitransformer.functional.linear import LinearCache
from minitransformer.layers import Linear
from minitransformer.models.base import describe
from minitransformer.models.since_2017.bert import BERT, BERTFeaturesCache


class Patches(Linear):
    """A square image of n patches, each of P pixels in a square, as 1 + n vectors: [CLS] and the patches (equation 1).

    Forward    y[0] = b      y[t] = x[t] W + b, t = 1 ... n, row by row      W (P, C), b (C,)
               x[t] (P,) the pixels of patch t, row by row, divided by `levels`
    Chain      dW = sum_t x[t]^T dy[t]      db = sum_t dy[t] with t = 0, both over the batch, too; pixels are data
    Remember   x
    Check      a pixel changes the y[t] of its own patch alone

    The paper learns a vector for [CLS]. Here the vector of its position is all that tells it from the patches: the two
    are only ever added, so one is enough.
    """

    def __init__(self, P: int, C: int, levels: int, rng: np.random.Generator | None, dtype: DTypeLike) -> None:
        super().__init__(P, C, rng=rng, dtype=dtype)
        self.levels = levels

    def forward(self, x: np.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, LinearCache]:
        """x (B, n P) whole numbers on the host, row by row -> y (B, 1 + n, C)."""
        B, p = len(x), math.isqrt(len(self.W.data))
        n = math.isqrt(x.shape[1]) // p  # on a side
        grid = (x / self.levels).astype(self.W.data.real.dtype).reshape(B, n, p, n, p)
        patches = grid.swapaxes(2, 3).reshape(B, n * n, p * p)
        return super().forward(to_device(np.pad(patches, ((0, 0), (1, 0), (0, 0)))))

    def backward(self, dy: xp.ndarray, cache: LinearCache) -> None:  # type: ignore[override]
        """dy (B, 1 + n, C) -> None."""
        super().backward(dy, cache)


class ViT(BERT):
    """BERT's encoder and classifier on images: pixels (B, n P), row by row, -> logits (B, K).

    As in BERT, class 0 is padding, and so is pixel 0: gray levels are counted from 1 to `config.vocab_size` - 1.
    `config.max_len` is 1 + n, and both n and P = `patch_size` are squares.
    """

    def __init__(
        self,
        config: TransformerConfig,
        *,
        num_classes: int,
        patch_size: int,
        seed: int | None = 0,
        dtype: DTypeLike = np.float32,
    ) -> None:
        super().__init__(config, num_segments=1, num_classes=num_classes, seed=seed, dtype=dtype)
        self.options = {"num_classes": num_classes, "patch_size": patch_size}
        rng = None if seed is None else np.random.default_rng([seed, 1])
        self.embedding.tokens = Patches(patch_size, config.d_model, config.vocab_size, rng, dtype)
        self.as_built = describe(self)

    def features(
        self, ids: np.ndarray, segments: np.ndarray | None = None, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, BERTFeaturesCache]:
        """Pixels (B, n P), and segments (B, 1 + n), all 0 -> y (B, 1 + n, C), the input of `head`.

        Raises TypeError, IndexError and ValueError for pixels as BERT does for ids, and for another number of them.
        """
        check_ids("pixels", ids, self.config.vocab_size)
        check_shape("pixels", ids, (*ids.shape[:1], (self.config.max_len - 1) * self.options["patch_size"]))
        segments = np.zeros((len(ids), self.config.max_len), int) if segments is None else segments
        x, cache_embedding = self.embedding.forward(ids, segments, rng)
        y, cache_encoder = self.encoder.forward(x, None, rng)
        return y, BERTFeaturesCache(cache_embedding, cache_encoder)
