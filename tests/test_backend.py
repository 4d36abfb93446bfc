"""The switch between array libraries: `xp` follows it everywhere, and what cannot be used says how to get it.

CuPy is played by a small stand-in, so that these tests run, and say the same, on a machine with a GPU and without.
"""

import importlib
import os
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

import minitransformer.training  # noqa: F401 - which imports most modules that use `xp`
from minitransformer.backend import BackendUnavailableError, backend_name, to_device, to_host, use_backend, xp
from minitransformer.functional.embedding import scatter_add
from tests.helpers import relative_error
from tests.strict.strict import strict


class DeviceArray:
    """An array that is no NumPy array: it can only be made by the stand-in's `asarray` and read by `get`."""

    def __init__(self, values):
        self._values = np.array(values)

    def get(self):
        return self._values.copy()


def _cupy_stand_in(available=True):
    module = ModuleType("cupy")
    module.is_available = lambda: available
    module.asarray = lambda x: x if isinstance(x, DeviceArray) else DeviceArray(x)
    module.add = np.add
    module.only_here = object()
    return module


@pytest.fixture(autouse=True)
def numpy_before_and_after():
    """Every test starts on NumPy, and whatever it switched to is undone."""
    before = backend_name()
    use_backend("numpy")
    yield
    use_backend(before)


@pytest.fixture
def stand_in(monkeypatch):
    """`import cupy` finds the stand-in."""
    module = _cupy_stand_in()
    monkeypatch.setattr(importlib, "import_module", {"cupy": module}.__getitem__)
    return module


def test_xp_imported_before_a_switch_follows_it_for_good(stand_in):
    assert xp.zeros is np.zeros
    use_backend("cupy")
    assert xp.only_here is stand_in.only_here
    assert backend_name() == "cupy"
    use_backend("numpy")
    assert xp.zeros is np.zeros
    assert backend_name() == "numpy"


def _is_ours(module_name):
    return module_name.startswith("minitransformer.")


def test_xp_of_other_modules_is_the_same_object():
    held = {name: module.xp for name, module in sys.modules.items() if _is_ours(name) and hasattr(module, "xp")}
    assert len(held) > 5
    assert [name for name, its_xp in held.items() if its_xp is not xp] == []


def test_with_block_switches_only_inside(stand_in):
    with use_backend("cupy"):
        assert xp.only_here is stand_in.only_here
        with use_backend("numpy"):
            assert xp.zeros is np.zeros
        assert backend_name() == "cupy"
    assert backend_name() == "numpy"


def test_with_block_restores_after_an_exception(stand_in):
    with pytest.raises(ZeroDivisionError), use_backend("cupy"):
        1 / 0  # noqa: B018 - any exception will do
    assert backend_name() == "numpy"


def test_missing_cupy_says_how_to_install_it_and_changes_nothing(monkeypatch):
    def not_installed(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", not_installed)
    with pytest.raises(BackendUnavailableError, match=r"not installed.*pip install.*cuda12.*cuda13"):
        use_backend("cupy")
    assert backend_name() == "numpy"


def test_cupy_without_a_device_says_so_and_changes_nothing(monkeypatch):
    monkeypatch.setattr(importlib, "import_module", {"cupy": _cupy_stand_in(available=False)}.__getitem__)
    with pytest.raises(BackendUnavailableError, match=r"driver and device.*nvidia-smi"):
        use_backend("cupy")
    assert backend_name() == "numpy"


def _run_in_new_process(code, chosen):
    """Run `code` where MINITRANSFORMER_BACKEND is `chosen` (None: not set)."""
    environment = {name: value for name, value in os.environ.items() if name != "MINITRANSFORMER_BACKEND"}
    if chosen is not None:
        environment["MINITRANSFORMER_BACKEND"] = chosen
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


IMPORT_WITHOUT_CUPY = (
    "import sys; sys.modules['cupy'] = None\n"  # None makes `import cupy` fail, also where it is installed
    "from minitransformer.backend import backend_name; print(backend_name())"
)
IMPORT_WITH_CUPY = (
    "import sys, types; cupy = sys.modules['cupy'] = types.ModuleType('cupy')\n"
    "cupy.is_available, cupy.ndarray = lambda: True, type('ndarray', (), {})\n"
    "from minitransformer.backend import backend_name; print(backend_name())"
)


@pytest.mark.parametrize(
    ("code", "chosen", "expected"),
    [
        pytest.param(IMPORT_WITHOUT_CUPY, None, "numpy", marks=pytest.mark.exhaustive),
        pytest.param(IMPORT_WITH_CUPY, "numpy", "numpy", marks=pytest.mark.exhaustive),
        (IMPORT_WITH_CUPY, "cupy", "cupy"),
    ],
)
def test_environment_variable_chooses_the_backend_at_start(code, chosen, expected):
    result = _run_in_new_process(code, chosen)
    assert (result.returncode, result.stdout.strip()) == (0, expected), result.stderr


@pytest.mark.parametrize(
    ("chosen", "error", "hint"),
    [("abacus", "ValueError", "numpy, cupy"), ("cupy", "BackendUnavailableError", "pip install")],
)
def test_environment_variable_with_a_backend_that_cannot_be_is_refused(chosen, error, hint):
    result = _run_in_new_process(IMPORT_WITHOUT_CUPY, chosen)
    last_line = result.stderr.strip().splitlines()[-1]
    assert result.returncode != 0
    assert error in last_line
    assert repr(chosen) in last_line
    assert hint in last_line


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128, np.int64, bool])
def test_host_to_device_and_back_keeps_every_bit_and_the_dtype(stand_in, dtype):
    values = (3 * np.random.default_rng(0).standard_normal((2, 3, 5))).astype(dtype)
    for name in ("numpy", "cupy"):
        with use_backend(name):
            back = to_host(to_device(values))
        assert type(back) is np.ndarray
        assert back.dtype == dtype
        np.testing.assert_array_equal(back, values)


def test_to_device_gives_an_array_of_the_library_in_use(stand_in):
    values = np.arange(3.0)
    assert to_device(values) is values, "on the host nothing has to cross"
    with use_backend("cupy"):
        there = to_device(values)
        assert isinstance(there, DeviceArray)
        assert to_device(there) is there


def test_names_are_kept_until_another_library_is_chosen_and_never_after(stand_in, monkeypatch):
    monkeypatch.setattr(sys.modules[use_backend.__module__], "_has_switched", False)
    assert xp.asarray is np.asarray
    assert vars(xp) == {"asarray": np.asarray}
    with use_backend("numpy"):
        assert vars(xp) == {"asarray": np.asarray}, "it is the library in use"
    with use_backend("cupy"):
        assert vars(xp) == {}
        assert isinstance(xp.asarray(np.ones(3)), DeviceArray)
    assert xp.asarray is np.asarray
    assert vars(xp) == {}


def _scatter_add_one_by_one(table, ids, rows):
    table = [list(row) for row in table]
    for n, i in enumerate(ids):
        for c in range(len(table[0])):
            table[i][c] += rows[n][c]
    return np.array(table)


@pytest.mark.parametrize("module", [np, strict])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("id_dtype", [np.int64, np.int32, np.uint8])
def test_scatter_add_adds_every_row_of_a_repeated_id(module, dtype, id_dtype):
    rng = np.random.default_rng(1)
    table, rows = (rng.standard_normal(shape).astype(dtype) for shape in ((7, 3), (11, 3)))
    ids = np.array([6, 2, 2, 0, 6, 2, 4, 0, 6, 6, 2], dtype=id_dtype)
    expected = _scatter_add_one_by_one(table, ids, rows)
    for given_array in (ids, rows):
        given_array.flags.writeable = False
    with use_backend(module):
        there = to_device(table.copy())
        assert scatter_add(there, ids, to_device(rows)) is None
        got = to_host(there)
    assert got.dtype == dtype
    assert relative_error(got, expected) < (1e-6 if dtype == np.float32 else 1e-14)
    untouched = [1, 3, 5]
    np.testing.assert_array_equal(got[untouched], table[untouched])
