"""Where the kernels run: their own source on the CPU, if g++ is here, and a GPU, if one is. The tests are the same."""

import pytest

from minitransformer.backend import use_backend
from tests.conftest import CUPY
from tests.kernels.cuda_on_cpu import COMPILER, CudaOnCpu, forget_kernels


@pytest.fixture(scope="session")
def cuda_on_cpu(tmp_path_factory):
    """NumPy that compiles and runs CUDA source; one for all tests, so that each source is compiled once."""
    if COMPILER is None:
        pytest.skip("g++ is not here")
    return CudaOnCpu(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(params=["cpu", "gpu"] if CUPY else ["cpu"])
def device(request):
    """Inside the test `xp` is CuPy, or what plays its part; compiled kernels are forgotten before and after."""
    forget_kernels()
    if request.param == "cpu":
        with use_backend(request.getfixturevalue("cuda_on_cpu")):
            yield request.param
    else:
        with use_backend("cupy"):
            yield request.param
    forget_kernels()
