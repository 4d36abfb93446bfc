"""`strict`: an array module that allows what CuPy allows, and refuses what CuPy forgives. It needs no GPU.

    with use_backend(strict): ...

It has exactly the names and keywords of cupy_api.json. Arrays of the host and of the device never mix, indices are
checked, and what makes the host wait is counted (meter.py). The numbers are NumPy's own, to the last bit.
"""

import numpy as np

from tests.strict.array import check_range_of_take, checked_scalar, ndarray, unwrap, unwrap_all, wrap
from tests.strict.indexing import check_range
from tests.strict.meter import count
from tests.strict.signatures import API, VERSION, bound

# the size of the result depends on the values, so the GPU must have computed them first
_WAITING = (
    "argwhere bincount compress extract flatnonzero intersect1d isin nonzero setdiff1d setxor1d trim_zeros union1d "
    "unique unique_all unique_counts unique_inverse unique_values"
)
# what they answer is known on the host
_ANSWERED_BY_THE_HOST = "can_cast iscomplexobj isfortran isrealobj isscalar may_share_memory shares_memory"
# parameters that hold several arrays, or numbers that describe a shape; all others hold one array or one number
_SEQUENCES = (
    "args arys arrays_and_dtypes axes axis choices choicelist condlist dimensions dims indices_or_sections keys "
    "multi_index new_shape newshape operands pad_width q reps repeats shape shift size source destination subscripts "
    "to tup varargs xi"
)
WAITING, ANSWERED_BY_THE_HOST, SEQUENCES = (
    frozenset(names.split()) for names in (_WAITING, _ANSWERED_BY_THE_HOST, _SEQUENCES)
)


class Function:
    """A function of the namespace: CuPy's signature, NumPy's arithmetic."""

    def __init__(self, name, text, numpy_function):
        self.__name__ = name
        self._text = text
        self._numpy_function = numpy_function

    def __call__(self, *args, **kwargs):
        arguments = bound(self.__name__, self._text, args, kwargs)
        for name, value in arguments.items():
            if isinstance(value, (list, tuple)) and name not in SEQUENCES:
                raise TypeError(f"{self.__name__} got a {type(value).__name__} for {name}, where CuPy wants an array")
        args, kwargs = unwrap_all(args), unwrap_all(kwargs)
        if self.__name__ in WAITING or (self.__name__ == "where" and len(arguments) == 1):
            count("waits", f"{self.__name__}()")
        if self.__name__ == "take":
            check_range_of_take(args[0], arguments)
        result = self._numpy_function(*args, **kwargs)
        if self.__name__ in ANSWERED_BY_THE_HOST:
            return result
        if arguments.get("out") is not None:
            return arguments["out"]
        return wrap(result)


class Ufunc(Function):
    """A function of single numbers, such as exp or add; `out=` is among its keywords, `where=` is not."""

    def __init__(self, name):
        function = getattr(np, name)
        inputs = ", ".join(f"x{i + 1}" for i in range(getattr(function, "nin", 1)))
        super().__init__(name, f"{inputs}, /, {API['ufunc keywords']}", function)

    def __call__(self, *args, **kwargs):
        arrays = [value.dtype for value in args if isinstance(value, ndarray)]
        scalars = [value for value in args if isinstance(value, np.generic)]
        for scalar in scalars if arrays else ():
            checked_scalar(scalar, np.result_type(*arrays))
        return super().__call__(*args, **kwargs)

    def at(self, a, indices, b=None):
        """a[indices] op= b, with an index that comes twice counted twice. Only add has it here."""
        if self.__name__ != "add":
            raise NotImplementedError(f"{self.__name__}.at: only add.at is used, and known to work in {VERSION}")
        host, places = unwrap(a), unwrap(indices)
        check_range(np.asarray(places), len(host))
        np.add.at(host, places, unwrap(b))

    def __getattr__(self, name):
        reason = API["ufunc methods refused"].get(name, f"{VERSION} has no such method")
        raise AttributeError(f"{self.__name__}.{name}: {reason}")


class Generator:
    """CuPy's random generator: fewer methods than NumPy's. The numbers are those of NumPy's SFC64."""

    def __init__(self, seed):
        self._host = np.random.Generator(np.random.SFC64(seed))

    def __getattr__(self, name):
        if name not in API["Generator"]:
            raise AttributeError(f"the Generator of {VERSION} has no {name!r}")
        draw = getattr(self._host, name)
        # one number is an array without axes, too
        return Function(name, API["Generator"][name], lambda *args, **kwargs: np.asarray(draw(*args, **kwargs)))


class _Namespace:
    """A module-like object that holds functions."""

    def __init__(self, name, **members):
        self.__name__ = name
        vars(self).update(members)

    def __getattr__(self, name):
        raise AttributeError(f"{VERSION} has no {self.__name__}.{name}, or it is left out of cupy_api.json on purpose")


def asarray(a, dtype=None, order=None, *, copy=None):
    """`a` on the device. From the host, this is the upload: always a copy, and counted."""
    if isinstance(a, ndarray):
        same = dtype is None or a.dtype == dtype
        return a if same and not copy else wrap(np.array(a._host, dtype, order=order or "K"))
    if isinstance(a, (list, tuple)):
        a = unwrap(a)
    count("uploads", f"an upload of shape {np.shape(a)}")
    return wrap(np.array(a, dtype, order=order or "K"))


def array(obj, dtype=None, copy=True, order="K", ndmin=0):
    """As `asarray`, but a copy."""
    copied = asarray(obj, dtype, order, copy=bool(copy))
    return wrap(np.array(copied._host, copy=False, ndmin=ndmin), new=False) if ndmin > copied.ndim else copied


def default_rng(seed=None):
    """A generator of the device."""
    return Generator(seed)


def _members():
    constants = {name: getattr(np, name) for name in API["constants"] if name in vars(np)}
    functions = {name: (text, getattr(np, name, None)) for name, text in API["functions"].items()}
    return {
        **constants,
        **{name: Function(name, text, function) for name, (text, function) in functions.items() if function},
        **{name: Ufunc(name) for name in API["ufuncs"] if hasattr(np, name)},
        "ndarray": ndarray,
        "array": array,
        "asarray": asarray,
        "asanyarray": asarray,
        "random": _Namespace("random", default_rng=default_rng, Generator=Generator),
        "linalg": _Namespace("linalg", norm=Function("norm", API["linalg"]["norm"], np.linalg.norm)),
    }


strict = _Namespace("strict", **_members())
