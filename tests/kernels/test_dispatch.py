"""`fused_on_gpu`: with CuPy the kernel of the same name is called, everywhere else the plain formula stays."""

import inspect
import pydoc
from types import SimpleNamespace

import numpy as np
import pytest

from minitransformer import functional, kernels
from minitransformer.backend import fused_on_gpu, plain_formulas, use_backend
from minitransformer.training import Adam


@fused_on_gpu
def double(x, times=1):
    """Two x, so many times."""
    return "plain", x * 2**times


@pytest.fixture
def calls(monkeypatch):
    """`kernels.double` is there, knows no strings, and notes how it is called."""
    calls = []

    def fused(*args, **kwargs):
        calls.append((args, kwargs))
        return NotImplemented if isinstance(args[0], str) else ("fused", args[0])

    monkeypatch.setattr(kernels, "double", fused, raising=False)
    return calls


@pytest.fixture(autouse=True)
def numpy_again():
    """Afterwards the library in use is what it was."""
    with use_backend("numpy"):
        yield


def _use(name):
    use_backend(SimpleNamespace(__name__=name, ndarray=np.ndarray))


def test_numpy_uses_the_plain_formula(calls):
    assert double(3, times=2) == ("plain", 12)
    assert calls == []


def test_cupy_uses_the_kernel_and_passes_all_arguments(calls):
    _use("cupy")
    assert double(3) == ("fused", 3)
    assert double(4, times=2) == ("fused", 4)
    assert calls == [((3,), {}), ((4,), {"times": 2})]


def test_other_libraries_use_the_plain_formula(calls):
    _use("another")
    assert double(3) == ("plain", 6)
    assert calls == []


def test_what_the_kernel_does_not_know_goes_to_the_plain_formula(calls):
    _use("cupy")
    assert double("a", times=2) == ("plain", "aaaa")
    assert len(calls) == 1


def test_plain_formulas_can_be_asked_for_also_within_themselves_and_end_with_an_error(calls):
    _use("cupy")
    with plain_formulas():
        with plain_formulas():
            assert double(3) == ("plain", 6)
        assert double(3) == ("plain", 6)
    with pytest.raises(RuntimeError), plain_formulas():
        raise RuntimeError
    assert double(3) == ("fused", 3)


def test_help_shows_the_plain_function():
    text = pydoc.plain(pydoc.render_doc(double))
    assert "double(x, times=1)\n    Two x, so many times." in text


def _signature(function):
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("name", sorted(set(kernels.__all__) - {"adam_update"}))
def test_kernel_takes_the_arguments_of_the_plain_function(name):
    assert _signature(getattr(kernels, name)) == _signature(getattr(functional, name))


def test_adams_kernel_takes_the_arguments_of_its_method():
    assert _signature(kernels.adam_update)[1:] == _signature(Adam._update)[1:]
