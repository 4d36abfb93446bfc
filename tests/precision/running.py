"""How a case runs a function of the package: `run(**arrays)` -> y, and a function of dy -> the gradients."""

from minitransformer import functional as F


def pair(name, **options):
    """The function `name` with these options, and its backward."""

    def run(**arrays):
        y, cache = getattr(F, name)(**arrays, **options)
        return y, lambda dy: getattr(F, f"{name}_backward")(dy, cache)

    return run


def entries(name):
    """As `pair`, for a function whose only array has no fixed name."""

    def run(x):
        y, cache = getattr(F, name)(x)
        return y, lambda dy: getattr(F, f"{name}_backward")(dy, cache)

    return run


def alone(function):
    """A function that has no backward."""
    return lambda **arrays: (function(**arrays), None)
