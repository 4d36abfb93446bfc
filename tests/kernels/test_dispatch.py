"""`fused`: with CuPy the kernel is called, with every other library the plain formula runs."""

import configparser
import fnmatch
import importlib
import inspect
import pkgutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from minitransformer import functional, kernels
from minitransformer.backend import fused, use_backend
from minitransformer.kernels import launch
from minitransformer.training import optimizers
from tests.helpers import plain_formulas

calls = []


def kernel_of_double(*args, **kwargs):
    """A kernel that does not know strings, and notes how it is called."""
    calls.append((args, kwargs))
    return NotImplemented if isinstance(args[0], str) else ("fused", args[0])


@fused
def double(x, times=1):
    """Two x, so many times."""
    return "plain", x * 2**times


@pytest.fixture(autouse=True)
def numpy_again(monkeypatch):
    """Afterwards the library in use is what it was."""
    calls.clear()
    monkeypatch.setattr(kernels, "double", kernel_of_double, raising=False)
    with use_backend("numpy"):
        yield


def _use(name):
    use_backend(SimpleNamespace(__name__=name, ndarray=np.ndarray))


def test_cupy_uses_the_kernel_and_other_libraries_and_what_it_does_not_know_the_plain_formula():
    assert double(3, times=2) == ("plain", 12)
    _use("another")
    assert double(3) == ("plain", 6)
    assert calls == []
    _use("cupy")
    assert double(4, times=2) == ("fused", 4)
    assert double("a") == ("plain", "aa")
    assert calls == [((4,), {"times": 2}), (("a",), {})]


def test_plain_formulas_can_be_asked_for_also_within_themselves_and_end_with_an_error():
    _use("cupy")
    with plain_formulas():
        with plain_formulas():
            assert double(3) == ("plain", 6)
        assert double(3) == ("plain", 6)
    with pytest.raises(RuntimeError), plain_formulas():
        raise RuntimeError
    assert double(3) == ("fused", 3)


def decorated():
    """{kernel function: the decorated formula} for all of the library."""
    files = pkgutil.iter_modules(functional.__path__, "minitransformer.functional.")
    modules = [importlib.import_module(file.name) for file in files] + [optimizers]
    values = {value for module in modules for value in vars(module).values() if inspect.isfunction(value)}
    functions = [value for value in values if value.__code__.co_name == "dispatch"]
    return {getattr(kernels, function.__name__.lstrip("_")): function for function in functions}


def test_every_kernel_function_stands_for_one_formula():
    assert set(decorated()) == {getattr(kernels, name) for name in kernels.__all__}


def test_kernel_takes_the_arguments_of_its_formula():
    for function, formula in decorated().items():
        assert list(inspect.signature(function).parameters) == list(inspect.signature(formula).parameters)


def test_a_built_package_carries_every_cuda_file():
    setup = configparser.ConfigParser()
    setup.read(Path(__file__).parents[2] / "setup.cfg")
    patterns = setup["options.package_data"]["minitransformer.kernels"].split()
    assert [name for name in launch.FILES if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)] == []
    assert {path.name for path in Path(launch.__file__).parent.glob("*.cu*")} == set(launch.FILES)
