"""T5's buckets hold near distances one by one and far ones together, and the bias is looked up by them.

The gradient of a bucket is the sum over all pairs in it.
"""

import math

import numpy as np
import pytest

from minitransformer.functional import relative_bias, relative_bias_backward, relative_buckets
from tests.helpers import device, host, random_array

H, N = 3, 8
SHAPES = [(5, 7, 2), (7, 5, 0), (1, 6, 5), (4, 1, 0), (1, 1, 0)]  # (T, S, start)
SMALL = {"num_buckets": N, "max_distance": 6}
directions = pytest.mark.parametrize("bidirectional", [True, False])


def naive_bucket(offset, num_buckets, max_distance, bidirectional):
    """The rule of the paper's authors for one offset, key minus query; a logarithm that is whole counts as whole."""
    n, first = num_buckets, 0
    if bidirectional:
        n = num_buckets // 2
        first = n if offset > 0 else 0
    distance = abs(offset) if bidirectional else max(-offset, 0)
    exact = n // 2
    if distance < exact:
        return first + distance
    place = math.log(distance / exact) / math.log(max_distance / exact) * (n - exact)
    place = round(place) if abs(place - round(place)) < 1e-9 else math.floor(place)
    return first + min(exact + place, n - 1)


def by_offset(reach=300, **options):
    """{offset: bucket} for keys up to `reach` before and behind the query."""
    (row,) = relative_buckets(1, 2 * reach + 1, start=reach, **options)
    return dict(zip(range(-reach, reach + 1), row.tolist(), strict=True))


@pytest.mark.host_only  # buckets are computed with NumPy whatever the backend
@directions
@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (N, 6), (12, 20), (10, 100), (64, 50), (4, 16)])
def test_buckets_are_those_of_the_logarithmic_rule(num_buckets, max_distance, bidirectional):
    options = {"num_buckets": num_buckets, "max_distance": max_distance, "bidirectional": bidirectional}
    got = by_offset(**options)
    assert got == {offset: naive_bucket(offset, **options) for offset in got}


@pytest.mark.host_only
@directions
def test_buckets_depend_on_the_distance_alone_and_start_takes_rows_of_the_whole(bidirectional):
    whole = relative_buckets(40, 40, bidirectional=bidirectional)
    for offset in range(-39, 40):
        assert len(set(np.diagonal(whole, offset).tolist())) == 1
    part = relative_buckets(7, 40, bidirectional=bidirectional, start=11)
    assert np.array_equal(part, whole[11:18])
    assert part.dtype.kind == "i"


def example(T, S, start, dtype=np.float64):
    """table (N, H), dy (H, T, S) and the buckets."""
    rng = np.random.default_rng(65)
    table, dy = random_array(rng, N, H, dtype=dtype), random_array(rng, H, T, S, dtype=dtype)
    return table, dy, relative_buckets(T, S, **SMALL, start=start)


def gradient_of_table(table, dy, buckets):
    dtable = device(np.zeros(table.shape, table.dtype))
    relative_bias_backward(dy, relative_bias(table, buckets)[1], dtable)
    return dtable


@pytest.mark.parametrize(
    ("dy", "table"),
    [((H, 5, 8), (N, H)), ((H, 6, 7), (N, H)), ((1, 5, 7), (N, H)), ((5, 7), (N, H)), ((H, 5, 7), (N, H + 1))],
)
def test_a_gradient_of_another_shape_is_refused_before_anything_is_added(dy, table):
    dtable = device(np.zeros(table))
    with pytest.raises(ValueError, match="dy must be of shape"):
        relative_bias_backward(device(np.ones(dy)), relative_buckets(5, 7, **SMALL), dtable)
    assert not host(dtable).any()
