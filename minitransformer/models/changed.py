"""Which layers of a model have been changed since it was built.

A layer promises `forward` and `backward`, and nothing else: anybody may replace, subclass or write one. So whatever
goes around `forward` asks here first: decoding with KV caches and folded weights, and a file that has no more than a
configuration to build the model from. The model's description `as_built` is compared with a new one.
"""

from typing import Any

from minitransformer.core import Layer
from minitransformer.models.base import describe

ROOT = __name__.partition(".")[0] + "."


def changed_layers(model: Any) -> dict[str, str]:
    """{name: class} of the layers that are not what the model was built with, the outermost alone.

    A layer of the library has changed too if it has other settings or shapes: a model that is built from the
    configuration would compute something else. "" is the name of the model itself.
    """
    if not hasattr(model, "as_built"):
        return {"": class_name(model)}
    built, own = model.as_built, describe(model)
    foreign = {there for there in own.values() if isinstance(there, type) and not is_library(there)}
    if own == built and not foreign:
        return {}
    layers = class_names(model, "model")
    places = {place for place, there in built.items() if place not in own or own[place] != there}
    places |= {place for place, there in own.items() if there in foreign}
    places |= {place for place in own.keys() - built.keys() if _counts(place, own)}
    changed = {_layer_of(place, layers) for place in places}
    found: list[str] = []
    for layer in layers:
        if layer in changed and not any(layer.startswith(f"{outer}.") for outer in found):
            found.append(layer)
    return {layer.partition(".")[2]: layers[layer] for layer in found}


def check_used(model: Any) -> None:
    """Raise ValueError for a layer that was added to one of the library's layers, such as under a misspelled name.

    A layer calls what its own class knows, so this one would get no gradient, and nobody would notice.
    """
    built, own = getattr(model, "as_built", {}), describe(model)
    for place in (place for place in own if place not in built and _is_layer(own[place])):
        around, _, name = place.rpartition(".")
        owner: Any = built.get(around)
        if around != "model" and _is_layer(owner) and is_library(owner) and own[around] == owner:
            raise ValueError(f"{place} is never used: {owner.__name__} has no {name} (print(model) shows its layers)")


def _counts(place, own):
    """Whether what has been added there is a layer, or hides what the class around it has, such as its `forward`."""
    around, _, name = place.rpartition(".")
    return _is_layer(own[place]) or hasattr(own[around], name)


def _is_layer(there):
    """Whether this is the class of a layer."""
    return isinstance(there, type) and issubclass(there, Layer)


def _layer_of(place, layers):
    """The innermost of `layers` that a place is in."""
    while place not in layers:
        place = place.rpartition(".")[0]
    return place


def is_library(kind: type) -> bool:
    """Whether a class that has a `forward`, and this method, are the library's. What has none computes nothing."""
    forward = getattr(kind, "forward", None)
    return forward is None or (kind.__module__.startswith(ROOT) and forward.__module__.startswith(ROOT))


def class_name(thing: Any) -> str:
    """The class of an object with its module, as in "minitransformer.layers.linear.Linear"."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def class_names(layer: Layer, name: str = "") -> dict[str, str]:
    """{name: class} of `layer`, which has this `name`, and of all layers inside it, as in the names of parameters."""
    found = {name: class_name(layer)}
    for inner, child in layer.children():
        found.update(class_names(child, f"{name}.{inner}" if name else inner))
    return found
