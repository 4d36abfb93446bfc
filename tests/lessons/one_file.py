"""The files of lessons/one_file, each loaded afresh, so that no test sees what another has learned."""

import importlib.util

from minitransformer.course import FOLDER


def load(name):
    """The module lessons/one_file/NAME.py."""
    spec = importlib.util.spec_from_file_location(f"one_file_{name}", FOLDER / "one_file" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def convert(module, dtype):
    """Give the parameters of a module this dtype, and gradients of 0."""
    for p in module.parameters:
        p.data, p.grad = p.data.astype(dtype), p.grad.astype(dtype) * 0
