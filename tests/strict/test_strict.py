"""The stand-in for CuPy is strict: it counts what waits, and refuses mixtures, doubtful indices and what CuPy lacks.

Each test is one rule, and so one difference between NumPy and CuPy. That the numbers are NumPy's, to the last bit, is
shown by test_training_step.py.
"""

import json
import math
import operator

import numpy as np
import pytest

from tests.strict import freeze_cupy_api
from tests.strict.meter import measured
from tests.strict.signatures import API
from tests.strict.strict import strict


def device(values):
    return strict.asarray(np.array(values))


@pytest.fixture
def x():
    """(2, 3) in float32."""
    return strict.asarray(np.array([[1.0, -2.0, 4.0], [0.5, 8.0, -0.25]], np.float32))


# ---- no array becomes a number, or a NumPy array, by itself ----


READS = {
    "float()": float,
    "int()": int,
    "complex()": complex,
    "bool()": bool,
    ".item()": lambda value: value.item(),
    ".tolist()": lambda value: value.tolist(),
    "str()": str,
    "repr()": repr,
    "format()": lambda value: f"{value:.2f}",
}


def test_each_way_for_the_host_to_read_a_value_is_counted_as_a_wait_with_its_line(x):
    for how, read in READS.items():
        with measured() as meter:
            read(x[0, 0])
        (wait,) = meter.waits
        assert wait.startswith(how)
        assert "test_strict.py" in wait
        assert meter.downloads == []


IMPLIED_READS = {
    "if": lambda x: 1 if x[0, 0] else 0,
    "Python's max": lambda x: max(x[0, 0], 1.0),
    "math": lambda x: math.sqrt(x[0, 0]),
    "in": lambda x: 1.0 in x[0],
    "sorted": lambda x: sorted(x[0]),
    "a mask as an index": lambda x: x[x > 0],
    "nonzero": lambda x: strict.flatnonzero(x),
    "where with one argument": lambda x: strict.where(x > 0),
}


def test_reading_without_saying_so_is_counted_too(x):
    for name, read in IMPLIED_READS.items():
        with measured() as meter:
            read(x)
        assert meter.waits, name


def test_asarray_is_a_counted_copy_of_what_comes_from_the_host():
    host = np.ones(3)
    with measured() as meter:
        there = strict.asarray(host)
        assert strict.asarray(there) is there
    host[...] = 5.0
    assert float(there[0]) == 1.0
    assert len(meter.uploads) == 1


def test_arrays_are_counted_with_their_dtype_and_the_line_that_made_them(x):
    with measured() as meter:
        strict.zeros(3)
        x * 2.0
        x.astype(np.float64)
    assert [dtype for dtype, _ in meter.arrays] == ["float64", "float32", "float64"]
    assert all(line.startswith("test_strict.py:") for line in meter.lines_that_made("float64"))
    assert len(meter.lines_that_made("float64")) == 2


def test_an_array_is_no_index_of_the_host():
    for use in (range, lambda i: [0, 1, 2][i], lambda i: np.arange(3)[i], lambda i: [0, 1, 2][:i]):
        with pytest.raises((TypeError, IndexError)):
            use(device(1))


# ---- the names are CuPy's ----


def test_every_frozen_name_is_there(x):
    for name in (*API["ufuncs"], *API["functions"], *API["constants"]):
        assert hasattr(strict, name) or not hasattr(np, name), name  # an older NumPy has fewer
    for name in (*API["attributes"], *API["methods"]):
        assert hasattr(x, name) or not hasattr(np.ndarray, name), name
    assert strict.__name__ == "strict"


def test_frozen_names_are_those_of_the_installed_cupy():
    cupy = pytest.importorskip("cupy")
    if API["made with"] != {"cupy": cupy.__version__, "numpy": np.__version__}:
        pytest.skip(f"the API was frozen with {API['made with']}")
    assert json.loads(freeze_cupy_api.as_text(freeze_cupy_api.collect())) == API


# ---- host and device never mix ----

MIXTURES = {
    "numpy function": lambda x, host: np.exp(x),
    "numpy function with axes": lambda x, host: np.sum(x, axis=0),
    "numpy asarray": lambda x, host: np.asarray(x),
    "device + host": lambda x, host: x + host,
    "host + device": lambda x, host: host + x,
    "device @ host": lambda x, host: x @ host.T,
    "device < host": lambda x, host: x < host,
    "host == device": lambda x, host: host == x,
    "device += host": lambda x, host: operator.iadd(x, host),
    "strict function of host": lambda x, host: strict.exp(host),
    "strict function of both": lambda x, host: strict.maximum(x, host),
    "strict function of a list": lambda x, host: strict.sum([1.0, 2.0]),
    "strict out": lambda x, host: strict.exp(x, out=host),
    "device[host]": lambda x, host: x[np.array([0, 1])],
    "device[list]": lambda x, host: x[[0, 1]],
    "device[host] = number": lambda x, host: operator.setitem(x, np.array([0, 1]), 0.0),
    "device[...] = host": lambda x, host: operator.setitem(x, ..., host),
    "host[device]": lambda x, host: host[device([0, 1])],
    "host[...] = device": lambda x, host: operator.setitem(host, ..., x),
    "device.take(host)": lambda x, host: x.take(np.array([0])),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_host_and_device_do_not_mix(name, x):
    with pytest.raises((TypeError, IndexError)):
        MIXTURES[name](x, x.get())


@pytest.mark.parametrize("operation", [operator.mul, lambda a, b: b * a, strict.multiply, operator.imul, operator.lt])
def test_a_numpy_number_is_refused_where_it_would_change_the_dtype(operation, x):
    with pytest.raises(TypeError, match="float64"):
        operation(x, np.sqrt(64))
    assert operation(x, np.float32(8.0)).shape == x.shape
    assert operation(x, math.sqrt(64)).shape == x.shape


# ---- indices ----


@pytest.mark.parametrize("indices", [[0, 2], [-1, 0]])
def test_indices_out_of_range_and_below_0_are_refused(indices, x):
    """CuPy wraps both around without a word; NumPy the second."""
    for use in (
        lambda i: x[i],
        lambda i: x[i, 0],
        lambda i: operator.setitem(x, i, 0.0),
        lambda i: x.take(i, axis=0),
        lambda i: strict.take(x, i, axis=0),
    ):
        with pytest.raises(IndexError, match="length 2"):
            use(device(indices))


def test_assigning_the_real_part_to_its_own_array_is_refused():
    """CuPy sees one place, shape and stride, and leaves the imaginary part as it is."""
    z = device([1 + 2j, 3 + 4j])
    for key in (0, ...):
        with pytest.raises(ValueError, match="does nothing in CuPy"):
            z[key] = z[key].real
    z[...] = z.real.copy()
    np.testing.assert_array_equal(z.get(), [1, 3])


def test_assigning_twice_to_one_place_is_refused(x):
    """Which of the two threads is last?"""
    for indices, places in [([1, 1], slice(None)), ([0, 1, 0], device([2, 0, 2]))]:
        with pytest.raises(ValueError, match="comes twice"):
            x[device(indices), places] = 0.0
        with pytest.raises(ValueError, match="comes twice"):
            x[device(indices), places] += 1.0


def test_a_mask_may_be_assigned_a_number_without_waiting(x):
    with measured() as meter:
        x[x < 0] = 0.0
    assert meter.waits == []
    assert float(x.min()) == 0.0
    with pytest.raises(ValueError, match="waits"):
        x[x > 0] = x[0]


# ---- what CuPy does not have ----


@pytest.mark.parametrize("name", ["vecdot", "errstate", "einsum_path", "matvec", "unstack", "no_such_thing"])
def test_names_that_cupy_lacks_are_refused(name):
    with pytest.raises(AttributeError, match=name):
        getattr(strict, name)
    assert not hasattr(strict, name)


MISSING = {
    "sum(where=)": lambda x: strict.sum(x, where=x > 0),
    "sum(initial=)": lambda x: x.sum(initial=1.0),
    "var(correction=)": lambda x: strict.var(x, correction=1),
    "take(mode=)": lambda x: strict.take(x, device([0]), mode="clip"),
    "clip(min=, max=)": lambda x: strict.clip(x, min=0.0, max=1.0),
    "einsum(out=)": lambda x: strict.einsum("ij->i", x, out=strict.zeros(2, np.float32)),
    "exp(where=)": lambda x: strict.exp(x, where=x > 0),
    "setflags": lambda x: x.setflags(write=False),
    "flags.writeable": lambda x: x.flags.writeable,
    "add.reduceat": lambda x: strict.add.reduceat(x, device([0])),
    "a @= b": lambda x: operator.imatmul(x, x),
    "Generator.normal": lambda x: strict.random.default_rng(0).normal(),
    "random.seed": lambda x: strict.random.seed(0),
    "hash": lambda x: {x},
}


@pytest.mark.parametrize("name", MISSING)
def test_what_cupy_lacks_is_refused(name, x):
    with pytest.raises((TypeError, AttributeError)):
        MISSING[name](x)
