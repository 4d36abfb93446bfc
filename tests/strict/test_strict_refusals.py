"""What the stand-in refuses: host and device mixed, doubtful indices, and what CuPy does not have."""

import math
import operator

import numpy as np
import pytest

from tests.strict.meter import measured
from tests.strict.strict import strict


def device(values):
    return strict.asarray(np.array(values))


# ---- host and device never mix ----

MIXTURES = {
    "numpy function": lambda x, host: np.exp(x),
    "numpy function with axes": lambda x, host: np.sum(x, axis=0),
    "numpy function with both": lambda x, host: np.add(host, x),
    "numpy matmul": lambda x, host: np.matmul(host, x),
    "numpy concatenate": lambda x, host: np.concatenate([x, x]),
    "numpy asarray": lambda x, host: np.asarray(x),
    "numpy out": lambda x, host: np.exp(host, out=x),
    "device + host": lambda x, host: x + host,
    "host + device": lambda x, host: host + x,
    "device @ host": lambda x, host: x @ host.T,
    "host @ device": lambda x, host: host.T @ x,
    "device < host": lambda x, host: x < host,
    "host == device": lambda x, host: host == x,
    "device += host": lambda x, host: operator.iadd(x, host),
    "host += device": lambda x, host: operator.iadd(host, x),
    "strict function of host": lambda x, host: strict.exp(host),
    "strict function of both": lambda x, host: strict.maximum(x, host),
    "strict function of a list": lambda x, host: strict.sum([1.0, 2.0]),
    "strict out": lambda x, host: strict.exp(x, out=host),
    "strict concatenate": lambda x, host: strict.concatenate([x, host]),
    "device[host]": lambda x, host: x[np.array([0, 1])],
    "device[list]": lambda x, host: x[[0, 1]],
    "device[host] = number": lambda x, host: operator.setitem(x, np.array([0, 1]), 0.0),
    "device[...] = host": lambda x, host: operator.setitem(x, ..., host),
    "host[device]": lambda x, host: host[device([0, 1])],
    "host[...] = device": lambda x, host: operator.setitem(host, ..., x),
    "device.sum(out=host)": lambda x, host: x.sum(axis=0, out=host[0]),
    "device.take(host)": lambda x, host: x.take(np.array([0])),
    "list of device arrays to NumPy": lambda x, host: np.array([x, x]),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_host_and_device_do_not_mix(name, x, host):
    with pytest.raises((TypeError, IndexError)):
        MIXTURES[name](x, host)


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


def test_the_range_of_an_index_is_that_of_its_own_axis(x):
    assert x[..., device([0, 2])].shape == (2, 2)
    assert x[None, :, device([2])].shape == (1, 2, 1)
    with pytest.raises(IndexError, match="length 3"):
        x[..., device([3])]


def test_plain_negative_numbers_are_known_on_the_host_and_welcome(x, host):
    np.testing.assert_array_equal(x[-1, :-1].get(), host[-1, :-1])


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


def test_assigning_once_to_each_place_works(x, host):
    x[device([0, 1, 0]), device([2, 0, 1])] += 1.0
    host[[0, 1, 0], [2, 0, 1]] += 1.0
    np.testing.assert_array_equal(x.get(), host)


def test_a_mask_may_be_assigned_a_number_without_waiting(x, host):
    with measured() as meter:
        x[x < 0] = 0.0
    assert meter.waits == []
    np.testing.assert_array_equal(x.get(), np.where(host < 0, 0, host))
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
    "max(where=)": lambda x: x.max(where=x > 0),
    "var(correction=)": lambda x: strict.var(x, correction=1),
    "take(mode=)": lambda x: strict.take(x, device([0]), mode="clip"),
    "clip(min=, max=)": lambda x: strict.clip(x, min=0.0, max=1.0),
    "einsum(out=)": lambda x: strict.einsum("ij->i", x, out=strict.zeros(2, np.float32)),
    "exp(where=)": lambda x: strict.exp(x, where=x > 0),
    "zeros_like(subok=)": lambda x: strict.zeros_like(x, subok=False),
    "vector_norm": lambda x: strict.linalg.vector_norm(x),
    "setflags": lambda x: x.setflags(write=False),
    "flags.writeable": lambda x: x.flags.writeable,
    "add.reduceat": lambda x: strict.add.reduceat(x, device([0])),
    "maximum.reduce": lambda x: strict.maximum.reduce(x),
    "a @= b": lambda x: operator.imatmul(x, x),
    "Generator.normal": lambda x: strict.random.default_rng(0).normal(),
    "Generator.permutation": lambda x: strict.random.default_rng(0).permutation(3),
    "Generator.shuffle": lambda x: strict.random.default_rng(0).shuffle(x),
    "Generator.bit_generator.state": lambda x: strict.random.default_rng(0).bit_generator.state,
    "random.seed": lambda x: strict.random.seed(0),
    "hash": lambda x: {x},
}


@pytest.mark.parametrize("name", MISSING)
def test_what_cupy_lacks_is_refused(name, x):
    with pytest.raises((TypeError, AttributeError)):
        MISSING[name](x)
