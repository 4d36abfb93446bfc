"""Which layers of a model are not the library's: somebody has replaced, subclassed or written them.

A foreign layer promises `forward` and `backward`, and nothing else. So whatever goes around `forward` asks here first:
decoding with KV caches and folded weights, and a file that has no more than a configuration to build the model from.
"""

import functools
from collections.abc import ItemsView
from typing import Any, NamedTuple

from minitransformer.backend import use_backend
from minitransformer.core import Layer, Parameter

ROOT = __name__.partition(".")[0] + "."
UNCOMPARED = ("config", "options", "rate", "dropout_rate")  # dropout does not change what a trained model computes


def is_library(thing: Any) -> bool:
    """Whether the exact class of a layer, or of another object, is the library's, with the library's methods."""
    kind: Any = type(thing)
    return belongs(kind) and belongs(getattr(kind, "forward", kind)) and _methods(kind).isdisjoint(vars(thing))


def class_name(thing: Any) -> str:
    """The class of an object with its module, as in "minitransformer.layers.linear.Linear"."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def class_names(layer: Layer, name: str = "") -> dict[str, str]:
    """{name: class} of `layer`, whose name is "", and of all layers inside it, as in the names of parameters."""
    found = {name: class_name(layer)}
    for inner, child in layer.children():
        found.update(class_names(child, f"{name}.{inner}" if name else inner))
    return found


def foreign_layers(model: Any) -> dict[str, str]:
    """{name: class} of the layers that the model's configuration would not build, the outermost alone.

    A layer of the library is foreign too if it has other settings or shapes than the configuration says: a model that
    is made of the configuration would compute something else. "" is the name of the model itself.
    """
    if not (is_library(model) and hasattr(model, "config")):
        return {"": class_name(model)}
    kind: Any = type(model)
    own, built = _describe(model), _built(kind, model.config, tuple(getattr(model, "options", {}).items()))
    found: dict[str, str] = {}
    for name in [*own, *(name for name in built if name not in own)]:
        if any(f"{name}.".startswith(f"{outer}.") for outer in found):
            continue
        if name not in own:
            found[name] = "missing"
        elif not own[name].library or name not in built or not built[name].settings <= own[name].settings:
            found[name] = own[name].kind
    return found


class _Description(NamedTuple):
    kind: str  # the class
    library: bool  # whether it is the library's
    settings: ItemsView[str, Any]  # the class once more, the plain attributes, and the parameters with their shapes


@functools.lru_cache(maxsize=32)
def _built(kind, config, options):
    """The descriptions of a new model. Its weights are zeros, which take no memory until they are read."""
    with use_backend("numpy"):
        return _describe(kind(config, **dict(options), seed=None))


def _describe(model):
    """{name: description} of the model and of all layers inside it."""
    found: dict[str, _Description] = {}
    first: dict[int, int] = {}  # the number of each parameter, by its id: where it is shared it has the same number

    def visit(layer, name):
        settings: dict[str, Any] = {"class": class_name(layer)}
        parameters = []
        for key, value in vars(layer).items():
            if isinstance(value, Parameter):
                parameters.append((key, tuple(value.data.shape), first.setdefault(id(value), len(first))))
            elif key not in UNCOMPARED and key[0] != "_":
                settings[key] = _plain(value)
        settings["parameters"] = tuple(parameters)
        found[name] = _Description(settings["class"], is_library(layer), settings.items())
        for inner, child in layer.children():
            visit(child, f"{name}.{inner}" if name else inner)

    visit(model, "")
    return found


def _plain(value):
    """What can be compared of an attribute: a number or a word, an array's shape, an object's class and attributes."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple(_plain(item) for item in value)
    if isinstance(value, Layer):
        return None  # it has a description of its own
    if hasattr(value, "shape") or not hasattr(value, "__dict__"):
        return tuple(getattr(value, "shape", ()))
    return class_name(value), is_library(value), tuple(_plain(item) for item in vars(value).values())


def belongs(thing: Any) -> bool:
    """Whether a class or a function is one of the library."""
    return thing.__module__.startswith(ROOT)


@functools.lru_cache(maxsize=256)
def _methods(kind):
    """The names that an object of this class must not have itself, such as a `forward` of its own."""
    return frozenset(name for name in dir(kind) if callable(getattr(kind, name)))
