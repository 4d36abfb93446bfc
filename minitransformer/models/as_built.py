"""What a model was built of, and which of its layers have been changed since.

A layer promises `forward` and `backward`, and nothing else: anybody may replace, subclass or write one. So whatever
goes around `forward` asks here first: decoding with KV caches and folded weights, and a file that has no more than a
configuration to build the model from. Every model of the library describes itself at the end of its constructor, and
keeps the description as `as_built`. Later it is described again, and the two are compared.
"""

import functools
from typing import Any

from minitransformer.core import Layer, Parameter

ROOT = __name__.partition(".")[0] + "."
# dropout does not change what a trained model computes, and special ids are read where they are used
UNCOMPARED = {"as_built", "rate", "dropout", "dropout_rate", "attention_dropout", "ffn_dropout"}
UNCOMPARED |= {"padding", "start", "end"}


class Foreign:
    """What a description has for the class of a layer that is not the library's."""


def describe(model: Layer) -> dict[str, Any]:
    """{place: what is there} for the model and everything in it, at places such as "model.blocks.layers.0".

    Of a layer or another object it is the class, and what it consists of has places of its own; of an array the shape;
    of a parameter also its number, which is the same wherever it is shared.
    """
    found: dict[str, Any] = {}
    numbers: dict[int, int] = {}

    def visit(thing, place):
        if thing is None or isinstance(thing, (bool, int, float, str)):
            found[place] = thing
        elif isinstance(thing, Parameter):
            found[place] = numbers.setdefault(id(thing), len(numbers)), tuple(thing.data.shape)
        elif isinstance(thing, (list, tuple)):
            found[place] = len(thing)
            for i, item in enumerate(thing):
                visit(item, f"{place}.{i}")
        elif hasattr(thing, "shape"):
            found[place] = tuple(thing.shape)
        else:
            found[place] = Foreign if hasattr(thing, "forward") and not is_library(thing) else type(thing)
            for name, part in getattr(thing, "__dict__", {}).items():
                if name not in UNCOMPARED and name[0] != "_":
                    visit(part, f"{place}.{name}")

    visit(model, "model")
    return found


def changed_layers(model: Any) -> dict[str, str]:
    """{name: class} of the layers that are not what the model was built with, the outermost alone.

    A layer of the library has changed too if it has other settings or shapes: a model that is built from the
    configuration would compute something else. "" is the name of the model itself.
    """
    if not (is_library(model) and hasattr(model, "as_built")):
        return {"": class_name(model)}
    built, own = model.as_built, describe(model)
    if own == built and Foreign not in own.values():
        return {}
    layers = class_names(model, "model")
    places = [place for place, there in built.items() if own.get(place, Foreign) != there]
    places += [place for place, there in own.items() if there is Foreign or (place in layers and place not in built)]
    changed = {_layer_of(place, layers) for place in places}
    found: list[str] = []
    for layer in layers:
        if layer in changed and not any(f"{layer}.".startswith(f"{outer}.") for outer in found):
            found.append(layer)
    return {layer.partition(".")[2]: layers[layer] for layer in found}


def _layer_of(place, layers):
    """The innermost of `layers` that a place is in."""
    while place not in layers:
        place = place.rpartition(".")[0]
    return place


def is_library(thing: Any) -> bool:
    """Whether the exact class of a layer, or of another object, is the library's, with the library's methods."""
    kind: Any = type(thing)
    forward = getattr(kind, "forward", kind)
    is_ours = kind.__module__.startswith(ROOT) and forward.__module__.startswith(ROOT)
    return is_ours and _methods(kind).isdisjoint(getattr(thing, "__dict__", ()))


@functools.lru_cache(maxsize=256)
def _methods(kind):
    """The names that an object of this class must not have itself, such as a `forward` of its own."""
    return frozenset(name for name in dir(kind) if callable(getattr(kind, name)))


def class_name(thing: Any) -> str:
    """The class of an object with its module, as in "minitransformer.layers.linear.Linear"."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def class_names(layer: Layer, name: str = "") -> dict[str, str]:
    """{name: class} of `layer`, which has this `name`, and of all layers inside it, as in the names of parameters."""
    found = {name: class_name(layer)}
    for inner, child in layer.children():
        found.update(class_names(child, f"{name}.{inner}" if name else inner))
    return found
