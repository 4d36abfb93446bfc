"""The stand-in for a GPU sees what is wrong with a kernel or its launch: two kernels are right, the others are not."""

import numpy as np
import pytest

from tests.strict.strict import strict

pytestmark = pytest.mark.exhaustive  # a second source to compile
N = 64
SOURCE = r"""
typedef REAL real;

extern "C" __global__ void add_neighbour(const real* x, real* y, long long n, real factor) {
    __shared__ real all[64];
    int i = threadIdx.x;
    all[i] = x[i];
    __syncthreads();
    y[i] += factor * all[(i + 1) % n];
}

extern "C" __global__ void add_warp(const real* x, real* y) {
    real sum = x[threadIdx.x];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffff, sum, distance);
    y[threadIdx.x] = sum;
}

extern "C" __global__ void no_barrier(const real* x, real* y) {
    __shared__ real all[64];
    all[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = all[63 - threadIdx.x];
}

extern "C" __global__ void two_blocks_one_place(const real* x, real* y) { y[threadIdx.x] = blockIdx.x; }

extern "C" __global__ void no_second_barrier(const real* x, real* y) {
    __shared__ real sum[2];
    real total = 0;
    for (int round = 0; round < 2; round++) {
        sum[threadIdx.x / 32] = x[threadIdx.x / 32 + round];
        __syncthreads();
        total += sum[0] + sum[1];
    }
    y[threadIdx.x] = total;
}

extern "C" __global__ void one_too_many(const real* x, real* y) { y[threadIdx.x + 1] = x[threadIdx.x]; }

extern "C" __global__ void writes_to_const(const real* x, real* y) { ((real*)x)[threadIdx.x] = 7; }

extern "C" __global__ void some_leave_before_a_barrier(const real* x, real* y) {
    if (threadIdx.x < 3) return;
    __syncthreads();
}

extern "C" __global__ void some_leave_before_a_shuffle(const real* x, real* y) {
    if (threadIdx.x < 3) return;
    y[threadIdx.x] = __shfl_xor_sync(0xffffffff, x[threadIdx.x], 1);
}
"""


@pytest.fixture
def launch(cuda_on_cpu):
    """Run a kernel of SOURCE on one block of 64 threads."""
    module = cuda_on_cpu.RawModule(code=SOURCE, options=("-std=c++17", "-DREAL=float"))
    return lambda name, *args, grid=(1,), block=(N,): module.get_function(name)(grid, block, args)


@pytest.fixture
def x(cuda_on_cpu):
    return cuda_on_cpu.asarray(np.random.default_rng(0).standard_normal(N).astype(np.float32))


@pytest.fixture
def y(cuda_on_cpu, x):
    return cuda_on_cpu.empty_like(x)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("no_barrier", "other bits"),
        ("no_second_barrier", "other bits"),
        ("two_blocks_one_place", "other bits"),
        ("one_too_many", "beside an array"),
        ("writes_to_const", "const array"),
        ("some_leave_before_a_barrier", "never come"),
        ("some_leave_before_a_shuffle", "never come"),
    ],
)
def test_faulty_kernel_is_found_out(launch, x, y, name, complaint):
    with pytest.raises(AssertionError, match=complaint):
        launch(name, x, y, grid=(2,))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({0: np.zeros(N, np.float32)}, "got an array of the host"),
        ({0: strict.zeros(N, np.float64)}, "argument 0 of add_neighbour is declared const real"),
        ({1: strict.zeros(N, np.int64)}, "argument 1"),
        ({1: 7}, "argument 1"),
        ({2: np.int32(N)}, "declared long long"),
        ({3: 0.5}, "declared real"),
        ({3: np.float64(0.5)}, "declared real"),
    ],
)
def test_argument_of_another_type_is_refused(launch, x, y, change, complaint):
    arguments = [x, y, N, np.float32(0.5)]
    for place, value in change.items():
        arguments[place] = value
    with pytest.raises(AssertionError, match=complaint):
        launch("add_neighbour", *arguments)


def test_other_misuse_is_refused(launch, x, y):
    with pytest.raises(AssertionError, match="takes 4 arguments, got 3"):
        launch("add_neighbour", x, y, N)
    with pytest.raises(AssertionError, match="empty grid"):
        launch("add_warp", x, y, grid=(0,))
    with pytest.raises(AssertionError, match="whole warps"):
        launch("add_warp", x, y, block=(33,))
    both = strict.concatenate([x, x])
    with pytest.raises(AssertionError, match="overlap"):
        launch("add_warp", both[1 : N + 1], both[:N])
