"""An array module whose numbers are SymPy expressions: `use_backend(Symbols())` runs the library on symbols.

An array is one of NumPy's, of objects, that says its dtype is float64. So the functions of the package take it, and
each of their operations makes expressions. Four things differ from numbers:

constants      A float stands for the simplest fraction that rounds to it: 0.1 for 1/10, and 1.0 / 3 for 1/3. If none
               has a denominator up to a million, it stands for its own value, which is a fraction, too.
functions      Values of exp, log, tanh and roots are names (see names.py).
maxima         The largest entry of a row is subtracted so that nothing overflows, and the next power of 2 scales a row.
               Whatever they are, they must cancel. So `max` and `exp2` give new free symbols, listed in `free`.
comparisons    SymPy decides those that follow from the signs of the symbols. The others get `answer`: a proof is one of
               a branch. Without an answer they raise TypeError.
"""

import contextlib
import numbers
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import sympy

from tests.algebra import names

REAL, COMPLEX = np.dtype("float64"), np.dtype("complex128")
SIMPLE = 10**6  # the largest denominator of a fraction that a float may stand for
COMPARISONS = {
    np.less: lambda x, y: x < y,
    np.less_equal: lambda x, y: x <= y,
    np.greater: lambda x, y: x > y,
    np.greater_equal: lambda x, y: x >= y,
}
_answer: list[bool | None] = [None]


class Open(sympy.Dummy):
    """A symbol whose comparisons get the answer of the branch, also in plain Python; `float` of it is NaN."""

    __slots__ = ()

    def __lt__(self, other):
        return decided(sympy.Lt(self, other, evaluate=False))

    __le__ = __gt__ = __ge__ = __lt__

    def __float__(self):
        return float("nan")


numbers.Real.register(Open)  # so that `check_rate` takes it


class ndarray(np.ndarray):
    """NumPy's array, of expressions, integers or booleans."""

    def __array_finalize__(self, source):
        self.is_complex = getattr(source, "is_complex", False)

    @property
    def dtype(self):
        """float64 or complex128, if the entries are expressions."""
        if _holds_expressions(self):
            return COMPLEX if self.is_complex else REAL
        return _plain(self).dtype

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **options):
        operands = [_plain(x) if isinstance(x, np.ndarray) else x for x in inputs]
        if not all(np.asarray(x).dtype.kind in "biu" for x in operands):
            operands = list(map(_as_expressions, operands))
            result = _compute(ufunc, method, operands, options)
        else:
            result = getattr(ufunc, method)(*operands, **options)
        if out and out[0] is not None:
            _plain(out[0])[...] = result
            return out[0]
        return wrap(result, any(_is_complex(x) for x in inputs))

    def __array_function__(self, function, types, arguments, options):
        result = super().__array_function__(function, types, arguments, options)
        if isinstance(result, (list, tuple)):
            return [wrap(part, self.is_complex) for part in result]
        return wrap(result, self.is_complex) if isinstance(result, np.ndarray) else result

    def __setitem__(self, key, value):
        if _holds_expressions(self):
            value = _as_expressions(value)
        _plain(self)[key] = value

    def max(self, axis=None, keepdims=False):
        """A new free symbol for each maximum, or -oo if all entries are."""
        if not _holds_expressions(self):
            return super().max(axis=axis, keepdims=keepdims)
        is_lowest = np.all(_plain(self) == -sympy.oo, axis=axis, keepdims=keepdims)
        return wrap(np.vectorize(lambda lowest: -sympy.oo if lowest else _new("max"), otypes=[object])(is_lowest))

    def astype(self, dtype, copy=True):
        """Integers and booleans become expressions."""
        return wrap(_as_expressions(_plain(self)).copy()) if np.dtype(dtype).kind in "fc" else super().astype(dtype)

    def view(self, dtype):
        """Neighbours as the real and the imaginary part of one number, or the other way round."""
        if dtype not in (REAL, COMPLEX):
            return super().view(dtype)
        plain = _plain(self)
        if dtype == COMPLEX:
            return wrap(plain[..., 0::2] + sympy.I * plain[..., 1::2], True)
        parts = [z.as_real_imag() for z in map(sympy.expand, plain.reshape(-1))]
        return wrap(_as_expressions(np.array(parts, object)).reshape(*plain.shape[:-1], -1))


def _plain(x):
    return np.ndarray.view(x, np.ndarray)


def _holds_expressions(x):
    return _plain(x).dtype.kind == "O"


def _is_complex(x):
    return getattr(x, "is_complex", False) is True or isinstance(x, complex)


def _as_expressions(x):
    """Numbers of any kind, as NumPy's own array of expressions, or as a single one."""
    if not isinstance(x, np.ndarray):
        return exact(x)
    plain = _plain(x)
    if plain.dtype.kind == "O" and all(isinstance(entry, sympy.Expr) for entry in plain.flat):
        return plain
    return np.frompyfunc(exact, 1, 1)(plain)


def exact(x):
    """A number without rounding: a float stands for the simplest fraction that rounds to it."""
    if isinstance(x, sympy.Expr):
        return x.xreplace({number: exact(float(number)) for number in x.atoms(sympy.Float)})
    if isinstance(x, bool | np.bool_ | int | np.integer):
        return sympy.Integer(int(x))
    if isinstance(x, complex):
        return exact(x.real) + sympy.I * exact(x.imag)
    if not np.isfinite(x):
        return sympy.nan if np.isnan(x) else sympy.oo if x > 0 else -sympy.oo
    simple = Fraction(float(x)).limit_denominator(SIMPLE)
    return sympy.Rational(simple if float(simple) == x else Fraction(float(x)))


def wrap(result, is_complex=False):
    """A result as an array of this module: without floats, and still a view if it was one."""
    plain = np.asarray(result)
    if plain.dtype.kind not in "biu":
        plain = np.asarray(_as_expressions(plain))
    array = plain.view(ndarray)
    array.is_complex = is_complex
    return array


def decided(relation):
    """True or False, if SymPy knows; otherwise the answer of the branch, and TypeError without one."""
    if relation in (True, False):
        return bool(relation)
    if _answer[-1] is None:
        raise TypeError(f"undecided: {relation}")
    return _answer[-1]


def _larger(x, y):
    if isinstance(x, Open) or isinstance(y, Open):
        return y if x == -sympy.oo else x if y == -sympy.oo else _new("max")
    return x if decided(x >= y) else y


def _smaller(x, y):
    return x if decided(x <= y) else y


free: list[sympy.Symbol] = []


def _new(name, **assumptions):
    symbol = Open(name, **(assumptions or {"real": True}))
    free.append(symbol)
    return symbol


FUNCTIONS = {
    np.exp: names.exp,
    np.log: names.log,
    np.tanh: names.tanh,
    np.sqrt: names.sqrt,
    np.maximum: _larger,
    np.minimum: _smaller,
    np.true_divide: lambda x, y: x / y if y.is_number else x * names.reciprocal(y),
    np.isfinite: lambda x: x not in (sympy.oo, -sympy.oo, sympy.nan),
    np.absolute: lambda x: sympy.Abs(x, evaluate=x.is_number),
    np.log2: lambda x: _new("log2"),
    np.floor: lambda x: _new("floor"),
    np.exp2: lambda x: _new("exp2", positive=True),
    **{ufunc: lambda x, y, compare=compare: decided(compare(x, y)) for ufunc, compare in COMPARISONS.items()},
}


def _compute(ufunc, method, operands, options):
    if ufunc not in FUNCTIONS or method != "__call__":
        return getattr(ufunc, method)(*operands, **options)
    result = np.frompyfunc(FUNCTIONS[ufunc], ufunc.nin, 1)(*operands, **options)
    return np.asarray(result, bool if ufunc in COMPARISONS or ufunc is np.isfinite else object)


class Symbols:
    """The array module. Under the name "numpy", the library takes the branches that it takes on a CPU."""

    ndarray = ndarray

    def __init__(self, name: str = "symbols") -> None:
        self.__name__ = name

    def __getattr__(self, attribute):
        return getattr(np, attribute)

    def asarray(self, x, dtype=None):
        """Numbers become expressions; integers and booleans remain, unless `dtype` says otherwise."""
        array = wrap(x, _is_complex(x))
        return array if dtype is None else array.astype(dtype)

    def full(self, shape, value, dtype=REAL):
        """`value`, as often as `shape` says."""
        if np.dtype(dtype).kind not in "fc":
            return wrap(np.full(shape, value, dtype))
        array = wrap(np.full(shape, exact(value), object))
        array.is_complex = np.dtype(dtype) == COMPLEX
        return array

    def empty(self, shape, dtype=REAL):
        """NaN, which no expression can hide."""
        return self.full(shape, np.nan, dtype)

    def zeros(self, shape, dtype=REAL):
        """Zeros."""
        return self.full(shape, 0, dtype)

    def ones(self, shape, dtype=REAL):
        """Ones."""
        return self.full(shape, 1, dtype)

    def empty_like(self, x):
        """As `empty`."""
        return self.empty(x.shape, x.dtype)

    def zeros_like(self, x):
        """As `zeros`."""
        return self.zeros(x.shape, x.dtype)

    def ones_like(self, x):
        """As `ones`."""
        return self.ones(x.shape, x.dtype)

    def result_type(self, *arrays):
        """complex128 if one is complex, and float64 otherwise."""
        return COMPLEX if any(map(_is_complex, arrays)) else REAL

    def ascontiguousarray(self, x):
        """A copy: NumPy's function would return one of its own arrays."""
        return x.copy()

    def copyto(self, target, values, where=True):
        """Values from an array or a number, in the places where `where` is true."""
        np.copyto(_plain(target), _as_expressions(values), where=where)

    def where(self, condition, x, y):
        """Entries of x where the condition holds, and of y elsewhere."""
        return wrap(np.where(condition, _as_expressions(x), _as_expressions(y)))


@contextlib.contextmanager
def comparisons_are(answer: bool | None) -> Iterator[None]:
    """Inside a `with` block this is the answer to comparisons that SymPy leaves open."""
    _answer.append(answer)
    try:
        yield
    finally:
        _answer.pop()
