"""Writes cupy_api.json: which names CuPy has, and which keywords each takes. No GPU is needed, `import cupy` is enough.

    python -m tests.strict.freeze_cupy_api

Only what NumPy has too is kept, as the same line must run on both. A parameter ends in "=" if it may be left out.
"""

import inspect
import json
import re
import textwrap
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("cupy_api.json")

# names that no mathematics needs: text and files, helpers of the host, and what NumPy itself calls old
_NAMES_LEFT_OUT = (
    "apply_along_axis apply_over_axes array2string array_repr array_str asarray_chkfinite base_repr binary_repr "
    "broadcast common_type flatiter format_float_positional format_float_scientific from_dlpack frombuffer fromfile "
    "fromfunction fromiter fromstring generic genfromtxt get_printoptions isdtype issubdtype iterable load loadtxt "
    "mask_indices mintypecode ndindex piecewise poly poly1d polyadd polyfit polymul polysub polyval printoptions "
    "require roots row_stack save savetxt savez savez_compressed set_printoptions show_config typename ufunc "
    "vectorize"
)
LEFT_OUT = frozenset(_NAMES_LEFT_OUT.split())
MEMBERS_LEFT_OUT = ("byteswap", "device", "dump", "dumps", "flat", "tobytes", "tofile")

# what an installed CuPy does not tell: both take anything, and refuse it later
KNOWN = {
    "matmul": "x1, x2, /, out=",  # its other keywords are those of every generalised ufunc, and raise in this one
    "einsum": "subscripts, *operands, dtype=, optimize=",  # from its docstring: no out=, order= or casting=
    "meshgrid": "*xi, copy=, sparse=, indexing=",
}

# keywords that stand in a signature but are of no use, or refused at run time
KEYWORDS_LEFT_OUT = {
    "subok": "CuPy has no array subclasses: any value but None or False raises",
    "stream": "NumPy has no such keyword",
    "blocking": "NumPy has no such keyword",
}

# NumPy's keywords and functions that CuPy lacks need no entry, as they are in no signature: where= and initial= of
# the reductions, var(correction=), take(mode=), clip(min=, max=) as a function, einsum(out=), linalg.vector_norm,
# vecdot, errstate, einsum_path. These three are there, and yet better refused:
UFUNC_METHODS_REFUSED = {
    "reduceat": "add.reduceat subtracts running totals from one another, which loses digits; no other ufunc has it",
    "reduce": "only add and multiply have it: take sum and prod",
    "accumulate": "only add and multiply have it: take cumsum and cumprod",
}


def collect():
    """The API of the installed CuPy as plain dictionaries and lists of names."""
    import cupy

    shared = [name for name in dir(cupy) if not name.startswith("_") and hasattr(np, name) and name not in LEFT_OUT]
    kinds = {name: type(getattr(cupy, name)).__name__ for name in shared}
    ufuncs = [name for name in shared if kinds[name] == "ufunc" and getattr(cupy, name).nout == 1]
    functions = [name for name in shared if kinds[name] in ("function", "builtin_function_or_method", "_GUFunc")]
    members = [*_public_names(cupy.ndarray, np.ndarray, MEMBERS_LEFT_OUT), "get"]
    methods = [name for name in members if callable(getattr(cupy.ndarray, name))]
    draws = _public_names(cupy.random.Generator, np.random.Generator)
    return {
        "made with": {"cupy": cupy.__version__, "numpy": np.__version__},
        "constants": [name for name in shared if kinds[name] in ("float", "NoneType", "type", "_DTypeMeta")],
        "ufuncs": ufuncs,
        "ufunc keywords": _of_all_ufuncs([getattr(cupy, name) for name in ufuncs]),
        "ufunc methods refused": UFUNC_METHODS_REFUSED,
        "functions": {name: KNOWN.get(name) or _signature(getattr(cupy, name)) for name in functions},
        "linalg": {"norm": _signature(cupy.linalg.norm)},
        "attributes": [name for name in members if name not in methods],
        "methods": {name: _signature(getattr(cupy.ndarray, name)) for name in methods},
        "Generator": {name: _signature(getattr(cupy.random.Generator, name)) for name in draws},
        "keywords left out": KEYWORDS_LEFT_OUT,
    }


def _public_names(cupy_class, numpy_class, left_out=()):
    names = (name for name in dir(cupy_class) if not name.startswith("_") and name not in left_out)
    return [name for name in names if hasattr(numpy_class, name)]


def _of_all_ufuncs(ufuncs):
    """The keywords that every ufunc's signature ends with."""
    (ending,) = {_signature(ufunc).partition("/, ")[2] for ufunc in ufuncs}
    return ending


def _signature(function):
    """The parameters as one line of text, from the signature or, for compiled code, from the docstring's first line."""
    try:
        text = str(inspect.signature(function).replace(return_annotation=inspect.Signature.empty))
    except ValueError:
        text = function.__doc__.strip().partition("\n")[0].replace("\\", "")
    text = text[text.index("(") + 1 : text.rindex(")")]
    outer_commas = r",\s*(?![^()\[\]]*[)\]])"
    parameters = [_parameter(part) for part in re.split(outer_commas, text)]
    kept = [part for part in parameters if part != "self" and part.rstrip("=") not in KEYWORDS_LEFT_OUT]
    return ", ".join(kept[:-1] if kept and kept[-1] == "*" else kept)


def _parameter(part):
    """One parameter without its type and the value of its default."""
    name, default, _ = part.partition("=")
    return name.partition(":")[0].split()[-1] + default


def as_text(api):
    """What stands in the file."""
    lists = re.compile(r"(?<=\[\n).*?(?=\n \])", re.DOTALL)
    wrap = textwrap.TextWrapper(118, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    return lists.sub(lambda names: wrap.fill(" ".join(names[0].split())), json.dumps(api, indent=1)) + "\n"


if __name__ == "__main__":
    FILE.write_text(as_text(collect()), encoding="utf-8")
