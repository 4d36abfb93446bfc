"""The stand-in for CuPy keeps its promises: what CuPy has works as in NumPy, what it lacks or forgives does not.

Each test is one rule, and so one difference between the two libraries.
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


def device(values, dtype=None):
    return strict.asarray(np.array(values, dtype))


# ---- numbers: those of NumPy, to the last bit ----

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod, operator.floordiv]


@pytest.mark.parametrize("operation", [*OPERATORS, operator.lt, operator.ge, operator.eq, operator.ne])
def test_operators_between_arrays_and_with_python_numbers_equal_numpys(operation, x, host):
    for got, expected in [
        (operation(abs(x), x), operation(abs(host), host)),
        (operation(abs(x), 3.0), operation(abs(host), 3.0)),
        (operation(3, abs(x)), operation(3, abs(host))),
    ]:
        assert isinstance(got, strict.ndarray)
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got.get(), expected)


def test_matrix_product_transposes_and_reshapes_equal_numpys(x, host):
    np.testing.assert_array_equal((x @ x.T).get(), host @ host.T)
    np.testing.assert_array_equal(
        (x.reshape(3, 2) @ x.swapaxes(0, 1).reshape(2, -1)).get(), host.reshape(3, 2) @ host.T.reshape(2, -1)
    )
    np.testing.assert_array_equal(strict.einsum("ij,ij->i", x, x).get(), np.einsum("ij,ij->i", host, host))


def test_complex_numbers_work_as_in_numpy():
    z = device([1 + 2j, -3j], np.complex128)
    np.testing.assert_array_equal(strict.exp(z * z).get(), np.exp(z.get() * z.get()))
    np.testing.assert_array_equal(z.imag.get(), [2, -3])
    assert z.real.dtype == np.float64


@pytest.mark.parametrize("operation", [operator.iadd, operator.isub, operator.imul, operator.itruediv])
def test_in_place_operators_change_the_array_itself(operation, x, host):
    view, same = x[1], x
    same = operation(same, 2.0)
    assert same is x
    expected = operation(host, 2.0)
    np.testing.assert_array_equal(view.get(), expected[1])


def test_slices_single_elements_and_reshapes_are_views(x):
    for view in (x[:, 1:], x[1, 2], x.reshape(-1), x.T, x[None], x.view(np.uint32), strict.split(x, 3, axis=1)[0]):
        assert strict.shares_memory(view, x)
    x[1, 2][...] = 7.0
    assert float(x[1, 2]) == 7.0


def test_out_is_written_and_returned(x, host):
    out = strict.empty_like(x)
    assert strict.exp(x, out=out) is out
    np.testing.assert_array_equal(out.get(), np.exp(host))
    total = strict.zeros(3, np.float32)
    assert x.sum(axis=0, out=total) is total
    np.testing.assert_array_equal(total.get(), host.sum(axis=0))
    product = strict.empty((2, 2), np.float32)
    strict.matmul(x, x.T, out=product)
    np.testing.assert_array_equal(product.get(), host @ host.T)


def test_add_at_counts_every_repeat():
    table = strict.zeros((3, 2))
    strict.add.at(table, device([2, 0, 2]), device([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    np.testing.assert_array_equal(table.get(), [[3, 4], [0, 0], [6, 8]])
    with pytest.raises(IndexError, match="length 3"):
        strict.add.at(table, device([3]), device([[1.0, 1.0]]))


def test_generator_draws_what_numpys_sfc64_draws():
    ours, numpys = strict.random.default_rng([7, 2]), np.random.Generator(np.random.SFC64([7, 2]))
    np.testing.assert_array_equal(ours.random((2, 3)).get(), numpys.random((2, 3)))
    words = ours.integers(0, 2**64 - 1, size=5, dtype=strict.uint64, endpoint=True)
    np.testing.assert_array_equal(words.get(), numpys.integers(0, 2**64 - 1, size=5, dtype=np.uint64, endpoint=True))
    assert ours.standard_normal().shape == ()


# ---- no array becomes a number, or a NumPy array, by itself ----


def test_reductions_and_single_elements_are_arrays_without_axes(x):
    for value in (x.sum(), strict.max(x), x[0, 1], strict.vdot(x[0], x[1]), x[0] @ x[1], x.mean() + 1.0, 2.0 * x[0, 0]):
        assert isinstance(value, strict.ndarray)
        assert value.shape == ()
        assert value.dtype == np.float32


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


@pytest.mark.parametrize("how", READS)
def test_each_way_for_the_host_to_read_a_value_is_counted_as_a_wait(how, x):
    with measured() as meter:
        READS[how](x[0, 0])
    assert len(meter.waits) == 1
    assert meter.waits[0].startswith(how)
    assert "test_strict.py" in meter.waits[0], "the line that waits is named"
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


@pytest.mark.parametrize("name", IMPLIED_READS)
def test_reading_without_saying_so_is_counted_too(name, x):
    with measured() as meter:
        IMPLIED_READS[name](x)
    assert meter.waits


def test_shapes_flags_and_iteration_over_rows_do_not_wait(x):
    with measured() as meter:
        rows = list(x)
        assert (len(x), x.shape, x.ndim, x.size, x.nbytes, x.strides) == (2, (2, 3), 2, 6, 24, (12, 4))
        assert x.flags.c_contiguous
        assert not x.T.flags.c_contiguous
        assert x.data.ptr == x.reshape(-1).data.ptr != rows[1].data.ptr
        assert x.dtype == strict.float32
    assert meter.waits == []


def test_get_is_a_counted_copy_and_no_hidden_wait(x):
    with measured() as meter:
        copy = x.get()
    assert type(copy) is np.ndarray
    copy[...] = 0.0
    assert float(x[0, 0]) == 1.0
    assert (len(meter.downloads), meter.waits) == (1, [])


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


@pytest.mark.parametrize("use", [range, lambda i: [0, 1, 2][i], lambda i: np.arange(3)[i], lambda i: [0, 1, 2][:i]])
def test_an_array_is_no_index_of_the_host(use):
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
