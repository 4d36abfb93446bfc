"""An array that lives on a device we do not have: NumPy inside, CuPy's rules outside.

It wraps an array and is none: a subclass of numpy.ndarray would let `np.exp(x)`, `np.asarray(x)` and `x + host_array`
pass. Every result is an array again, those without axes too, and whoever wants a number in Python has to wait for it.
"""

import operator

import numpy as np

from tests.strict.indexing import check_copied, check_range, check_reading, check_writing, plain_index
from tests.strict.meter import count, count_array
from tests.strict.signatures import API, VERSION, bound


class ndarray:
    """CuPy's array class, on the CPU and stricter."""

    __slots__ = ("_host",)
    __array_ufunc__ = None  # np.exp(x) and host + x raise TypeError
    __hash__ = None

    def __init__(self, host):
        self._host = host

    # NumPy's doors, all shut -------------------------------------------------------------------------------------

    def __array__(self, *args, **kwargs):
        raise TypeError("a device array does not become a NumPy array by itself: call to_host, or .get()")

    def __array_function__(self, function, types, args, kwargs):
        raise TypeError(f"numpy.{function.__name__} got a device array: call it through xp")

    def __getattr__(self, name):
        raise AttributeError(f"arrays of {VERSION} have no {name!r}, or it is left out of cupy_api.json on purpose")

    # what is known without asking the GPU ------------------------------------------------------------------------

    dtype = property(lambda self: self._host.dtype)
    shape = property(lambda self: self._host.shape)
    strides = property(lambda self: self._host.strides)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    itemsize = property(lambda self: self._host.itemsize)
    nbytes = property(lambda self: self._host.nbytes)
    flags = property(lambda self: Flags(self._host.flags))
    data = property(lambda self: MemoryPointer(self._host))
    base = property(lambda self: None if self._host.base is None else wrap(self._host.base, new=False))
    T = property(lambda self: wrap(self._host.T, new=False))
    mT = property(lambda self: wrap(self._host.mT, new=False))
    real = property(lambda self: wrap(self._host.real, new=False))
    imag = property(lambda self: wrap(self._host.imag, new=False))

    def __len__(self):
        return len(self._host)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    # hidden waits ------------------------------------------------------------------------------------------------

    def _read(self, how):
        count("waits", how)
        return self._host

    def __bool__(self):
        return bool(self._read("bool()"))

    def __int__(self):
        return int(self._read("int()"))

    def __float__(self):
        return float(self._read("float()"))

    def __complex__(self):
        return complex(self._read("complex()"))

    def __repr__(self):
        return repr(self._read("repr()"))

    def __str__(self):
        return str(self._read("str()"))

    def __format__(self, specification):
        return format(self._read("format()")[()], specification)

    def item(self):
        """The one value, as a Python number."""
        return self._read(".item()").item()

    def tolist(self):
        """All values, as Python numbers."""
        return self._read(".tolist()").tolist()

    # the declared way home ---------------------------------------------------------------------------------------

    def get(self, order="C", out=None):
        """A copy on the host. It waits as well, but everybody can see it."""
        count("downloads", ".get()")
        if out is None:
            return self._host.copy(order)
        out[...] = self._host
        return out

    # indexing ----------------------------------------------------------------------------------------------------

    def __getitem__(self, key):
        keys = plain_index(key, self.shape, unwrap)
        check_reading(keys)
        part = self._host[keys]
        return wrap(part, new=not np.may_share_memory(part, self._host))

    def __setitem__(self, key, value):
        value = unwrap(value, "the value")
        keys = plain_index(key, self.shape, unwrap)
        check_writing(keys, value)
        check_copied(self._host[keys], value)
        self._host[keys] = value

    # methods whose calls need more than passing on ---------------------------------------------------------------

    def astype(self, *args, **kwargs):
        """CuPy's `casting` defaults to None, NumPy's to "unsafe", which is the same."""
        bound("ndarray.astype", API["methods"]["astype"], args, kwargs)
        return wrap(self._host.astype(*args, **kwargs))

    def take(self, *args, **kwargs):
        """As `strict.take`: indices must be in range."""
        arguments = bound("ndarray.take", API["methods"]["take"], args, kwargs)
        check_range_of_take(self._host, arguments)
        return wrap(self._host.take(*unwrap_all(args), **unwrap_all(kwargs)))

    def __matmul__(self, other):
        return wrap(np.asarray(self._host @ operand(self, other)))

    def __imatmul__(self, other):
        raise TypeError("CuPy has no `a @= b`: Python would rebind `a` to a new array, and views of the old one rot")


class Flags:
    """The memory layout; CuPy knows nothing of `writeable`."""

    def __init__(self, host):
        self.c_contiguous = host.c_contiguous
        self.f_contiguous = host.f_contiguous
        self.owndata = host.owndata


class MemoryPointer:
    """What `.data` is: an address on the device, and no buffer that the host could read."""

    def __init__(self, host):
        self.ptr = Address(host.ctypes.data)
        self.ptr.host = host


class Address(int):
    """A number that remembers the array it is the address of, so that a stand-in for a library can check its calls."""


def wrap(result, new=True):
    """NumPy's result as CuPy gives it: arrays, and numbers too, as arrays of the device; `new` ones are counted."""
    if isinstance(result, (tuple, list)):
        return (list if isinstance(result, list) else tuple)(wrap(part, new) for part in result)
    if not isinstance(result, (np.ndarray, np.generic, bool)):
        return result
    host = np.asarray(result)
    if new:
        count_array(host.dtype)
    return ndarray(host)


def unwrap(value, what="an argument"):
    """The NumPy array inside, or a Python value as it is; TypeError for an array of the host."""
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(f"{what} is a NumPy array, the others are on the device: call to_device first")
    if isinstance(value, (list, tuple)):
        return type(value)(unwrap(part, what) for part in value)
    return value


def unwrap_all(arguments):
    """`unwrap` for the arguments of a call, a tuple or a dictionary."""
    if isinstance(arguments, dict):
        return {name: unwrap(value, f"the argument {name}") for name, value in arguments.items()}
    return tuple(unwrap(value, f"argument {i}") for i, value in enumerate(arguments))


def operand(array, other):
    """The other side of an arithmetic operator, as NumPy takes it."""
    if isinstance(other, (ndarray, int, float, complex)) and not isinstance(other, np.generic):
        return unwrap(other)
    if isinstance(other, np.generic):
        return checked_scalar(other, array.dtype)
    raise TypeError(f"a device array cannot be combined with a {type(other).__module__}.{type(other).__name__}")


def checked_scalar(scalar, dtype):
    """A NumPy scalar, unless it would change the dtype of the result: float32 * np.sqrt(64) is float64."""
    if np.result_type(dtype, scalar.dtype) != dtype:
        raise TypeError(f"an array of {dtype} with a NumPy scalar of {scalar.dtype} gives another dtype: use float()")
    return scalar


def check_range_of_take(host, arguments):
    """The range of the indices of `take`."""
    axis = arguments.get("axis")
    indices = unwrap(arguments["indices"])
    check_range(np.asarray(indices), host.size if axis is None else host.shape[axis])


def _add_operators():
    """x + y, y + x and x += y, for each operator; the comparisons too."""
    names = "add sub mul truediv floordiv mod pow and or xor lshift rshift"
    for name in names.split():
        function = getattr(operator, f"{name}_" if name in ("and", "or") else name)

        def forward(self, other, function=function):
            return wrap(np.asarray(function(self._host, operand(self, other))))

        def reflected(self, other, function=function):
            return wrap(np.asarray(function(operand(self, other), self._host)))

        def in_place(self, other, name=name):
            getattr(self._host, f"__i{name}__")(operand(self, other))
            return self

        setattr(ndarray, f"__{name}__", forward)
        setattr(ndarray, f"__r{name}__", reflected)
        setattr(ndarray, f"__i{name}__", in_place)
    for function in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):

        def compared(self, other, function=function):
            return wrap(np.asarray(function(self._host, operand(self, other))))

        setattr(ndarray, f"__{function.__name__}__", compared)
    for function in (operator.neg, operator.pos, operator.abs, operator.invert):

        def alone(self, function=function):
            return wrap(np.asarray(function(self._host)))

        setattr(ndarray, f"__{function.__name__}__", alone)


def _add_methods():
    """The methods that only pass on: check the keywords, run NumPy's, wrap the result."""
    for name, text in API["methods"].items():
        if name not in vars(ndarray):

            def method(self, *args, name=name, text=text, **kwargs):
                arguments = bound(f"ndarray.{name}", text, args, kwargs)
                if name in ("nonzero", "compress"):
                    count("waits", f".{name}()")
                result = getattr(self._host, name)(*unwrap_all(args), **unwrap_all(kwargs))
                return wrap(result) if arguments.get("out") is None else arguments["out"]

            setattr(ndarray, name, method)


_add_operators()
_add_methods()
