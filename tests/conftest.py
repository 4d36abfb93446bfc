"""Runs the tests of the model once for each array library: NumPy, a stand-in stricter than CuPy, and CuPy itself.

A test says nothing of it: `xp` is switched around it. It makes its values on the host, with NumPy, and crosses with
`device` and `host` of helpers.py. Whatever is of the host by its nature (threads, files) is marked `host_only`.
"""

import contextlib
import functools
from pathlib import Path

import pytest

from minitransformer.backend import BackendUnavailableError, use_backend
from tests.strict.strict import strict

HERE = Path(__file__).parent
BACKENDS = {"numpy": "numpy", "strict": strict, "cupy": "cupy"}
ON_EVERY_BACKEND = (
    "functional/",
    "layers/",
    "models/",
    "evaluation/",
    "training/",
    "decoding/",
    "gradcheck/test_cases.py",
    "test_core.py",
    "test_properties.py",
)


def pytest_generate_tests(metafunc):
    """Repeat the tests of the files above on every backend."""
    file = metafunc.definition.path.relative_to(HERE).as_posix()
    if file.startswith(ON_EVERY_BACKEND) and not metafunc.definition.get_closest_marker("host_only"):
        metafunc.parametrize("backend", BACKENDS, indirect=True)


def pytest_runtest_setup(item):
    """Skip what is to run on a GPU where there is none; here and not in the fixture, so that one line reports all."""
    backend = getattr(item, "callspec", None) and item.callspec.params.get("backend")
    if backend in BACKENDS and missing(backend):
        pytest.skip(missing(backend))


@functools.cache
def missing(backend):
    """What is missing for this backend, in a sentence, or nothing."""
    try:
        with use_backend(BACKENDS[backend]):
            return ""
    except BackendUnavailableError as error:
        return str(error)


@pytest.fixture(autouse=True)
def backend(request):
    """Inside the test `xp` is the library that the test is repeated on; tests that are not repeated run as they are."""
    with use_backend(BACKENDS[request.param]) if hasattr(request, "param") else contextlib.nullcontext():
        yield
