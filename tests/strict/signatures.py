"""Which names CuPy has, and whether a call is one that it would take; see cupy_api.json and who writes it."""

import functools
import inspect
import json
from pathlib import Path

API = json.loads(Path(__file__).with_name("cupy_api.json").read_text(encoding="utf-8"))
VERSION = f"CuPy {API['made with']['cupy']}"


@functools.cache
def signature(text):
    """An inspect.Signature from one line of the API, such as "a, axis=, out=, *, dtype="."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = []
    for part in filter(None, text.split(", ")):
        name = part.strip("=*")
        if part == "/":
            parameters = [p.replace(kind=inspect.Parameter.POSITIONAL_ONLY) for p in parameters]
        elif part == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
        elif part.startswith("**"):
            parameters.append(inspect.Parameter(name, inspect.Parameter.VAR_KEYWORD))
        elif part.startswith("*"):
            parameters.append(inspect.Parameter(name, inspect.Parameter.VAR_POSITIONAL))
            kind = inspect.Parameter.KEYWORD_ONLY
        else:
            default = None if part.endswith("=") else inspect.Parameter.empty
            parameters.append(inspect.Parameter(name, kind, default=default))
    return inspect.Signature(parameters)


def bound(name, text, args, kwargs):
    """{parameter: argument} of a call of `name`; TypeError, in CuPy's name, if it does not take these arguments."""
    try:
        return signature(text).bind(*args, **kwargs).arguments
    except TypeError as error:
        raise TypeError(f"{VERSION} has {name}({text}): {error}") from None
