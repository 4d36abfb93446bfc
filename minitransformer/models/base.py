"""What the models have in common: `features`, where a model does its work, and `head`, which turns them into logits."""

import importlib
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import xp
from minitransformer.core import Layer, Parameter
from minitransformer.layers import OutputProjection


class ModelCache(NamedTuple):
    """What a model remembers."""

    features: Any  # what its `features` remembers
    output: xp.ndarray  # (B, T, C), the input of the output projection


# dropout does not change what a trained model computes, and special ids are read from the configuration when needed
UNDESCRIBED = {"as_built", "rate", "dropout", "dropout_rate", "attention_dropout", "ffn_dropout"}
UNDESCRIBED |= {"padding", "start", "end"}


def describe(model: Layer) -> dict[str, Any]:
    """{place: what is there} for a model and everything in it, at places such as "model.blocks.layers.0".

    That is the class of a layer or another object, whose attributes have places too; a number or a word; the length of
    a list; the shape of an array, and for a parameter also the first of the places that share it. Each model keeps the
    description of what its constructor has built as `as_built`; models/changed.py compares with it.
    """
    found: dict[str, Any] = {}
    first: dict[int, str] = {}

    def visit(thing, place):
        if thing is None or isinstance(thing, (bool, int, float, str)):
            found[place] = thing
        elif isinstance(thing, Parameter):
            found[place] = first.setdefault(id(thing), place), tuple(thing.data.shape)
        elif isinstance(thing, (list, tuple)):
            found[place] = len(thing)
            for i, item in enumerate(thing):
                visit(item, f"{place}.{i}")
        elif hasattr(thing, "shape"):
            found[place] = tuple(thing.shape)
        else:
            found[place] = type(thing)
            for name, part in getattr(thing, "__dict__", {}).items():
                if name[0] != "_" and (name not in UNDESCRIBED or isinstance(part, Layer)):
                    visit(part, f"{place}.{name}")

    visit(model, "model")
    return found


class Model(Layer):
    """A model of the library: a subclass has `features`, their backward, and `head`."""

    features: Any
    features_backward: Any

    def __call__(self, *inputs: Any, **options: Any) -> xp.ndarray:
        """The output of forward without the cache: in slices, and one layer after another (models/reading.py)."""
        reading = importlib.import_module("minitransformer.models.reading")  # unread in training
        return reading.read(self.forward, *inputs, **options)


class LanguageModel(Model):
    """A model that says for each of ids (B, T) which token comes next."""

    output: OutputProjection

    def forward(self, ids: np.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, ModelCache]:
        """ids (B, T) on the host -> logits (B, T, V).

        Raises TypeError for ids that are not integers, ValueError for a wrong shape or a text longer than the model can
        read, and IndexError for ids outside the vocabulary.
        """
        y, cache_features = self.features(ids, rng)
        logits, cache_output = self.output.forward(y)
        return logits, ModelCache(cache_features, cache_output)

    def backward(self, dlogits: xp.ndarray, cache: ModelCache) -> None:
        """dlogits (B, T, V) -> None, because ids have no gradient."""
        self.features_backward(self.output.backward(dlogits, cache.output), cache.features)

    @property
    def head(self) -> OutputProjection:
        """The layer from `features` to logits. See `layers.since_2017.blockwise`."""
        return self.output


class EncoderDecoderFeaturesCache(NamedTuple):
    """What `EncoderDecoder.features` remembers."""

    encode: Any
    decode: Any


class EncoderDecoder(LanguageModel):
    """A model whose decoder writes the target while it reads what the encoder made of the source, the memory.

    A subclass has `encode`, `decode` and the backward of both.
    """

    encode: Any
    encode_backward: Any
    decode: Any
    decode_backward: Any

    def forward(  # type: ignore[override]  # a language model has no source
        self, source: np.ndarray, target: np.ndarray, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, ModelCache]:
        """source (B, S) and target (B, T) ids on the host -> logits (B, T, V) of the token after each target token.

        Raises TypeError for ids that are not integers, ValueError for wrong shapes or sequences longer than max_len,
        and IndexError for ids outside the vocabulary.
        """
        y, cache_features = self.features(source, target, rng)
        logits, cache_output = self.output.forward(y)
        return logits, ModelCache(cache_features, cache_output)

    def features(
        self, source: np.ndarray, target: np.ndarray, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, EncoderDecoderFeaturesCache]:
        """source (B, S) and target (B, T) ids -> y (B, T, C), the input of `head`. Raises what `forward` raises."""
        memory, cache_encode = self.encode(source, rng)
        y, cache_decode = self.decode(target, memory, source, rng)
        return y, EncoderDecoderFeaturesCache(cache_encode, cache_decode)

    def features_backward(self, dy: xp.ndarray, cache: EncoderDecoderFeaturesCache) -> None:
        """dy (B, T, C) -> None."""
        self.encode_backward(self.decode_backward(dy, cache.decode), cache.encode)
