"""The rules of the house, read from the source: who may import whom, and what keeps the code right on two devices.

Each rule is a generator of (line, what is wrong). A rule is first shown a few lines that break it, so that we know that
it can see, and then the whole package.
"""

import ast
import fnmatch
import functools
import re
import sys
from typing import NamedTuple

import pytest

from minitransformer.course import FOLDER, PACKAGE

# a part may import from earlier lines alone, and from itself
LAYERING = [
    {"backend", "course", "lazy", "vocabulary"},
    {"system"},
    {"checks", "kernels"},
    {"core", "tokenizers"},
    {"functional"},
    {"config"},
    {"layers"},
    {"models"},
    {"decoding"},
    {"data", "evaluation", "example", "inspection", "interop"},
    {"training", "gradcheck", "plotting"},
    {"exercises", "explorer"},
    {"recipes"},
    {"__init__"},
    {"cli"},
    {"__main__"},
    {"experiments"},  # those of the lessons
]
LEVEL = {part: level for level, parts in enumerate(LAYERING) for part in parts}
ON_A_GPU = ("backend.py", "system/devices.py", "kernels/*")  # the only files that know CuPy
# which files may import what is neither ours nor Python's
THIRD_PARTY = {
    "numpy": ("*",),
    "tqdm": ("system/progress.py",),
    "safetensors": ("system/files.py",),
    "threadpoolctl": ("system/process.py",),
    "cupy": ON_A_GPU,
    "cupyx": ON_A_GPU,
    "matplotlib": ("plotting.py",),
    "torch": ("experiments/*.py",),
    "sacrebleu": ("evaluation/translation.py",),
    "sklearn": ("data/labelled.py", "experiments/digits.py"),
    "transformers": ("experiments/decoders.py",),
    "jupytext": ("cli/init.py",),
    "nbformat": ("cli/init.py",),
    "mpi4py": ("training/parallel/mpi.py",),
    "experiments": ("experiments/*", "course.py"),  # which finds them in the lessons' folder
}
# the only files that know that there can be several processes, beside the commands and the experiments about them
PROCESSES = re.compile(r"\b(communicator|mpiexec|mpi4py|is_root)\b", re.IGNORECASE)
KNOW_PROCESSES = (
    "training/parallel/*",
    "training/saving/checkpointer.py",  # one process writes
    "training/run.py",  # one process shows progress
    "system/devices.py",
    "system/generators.py",
    "system/launcher.py",
)
HOST_FILES = (
    "functional/since_2017/patterns.py",
    "functional/positions.py",
    "functional/since_2017/relative.py",
    "functional/since_2017/rotary.py",
    "functional/embedding.py",
    "layers/since_2017/attention_kinds.py",
    "layers/initializers.py",
    "layers/since_2017/kv_cache.py",
    "layers/losses.py",
)  # tables, weights, targets, and the positions that a pattern is made of, are computed with NumPy
# of NumPy, everywhere: what annotations name (np.ndarray, np.random.Generator), and which warnings are not given
HOST_TYPES = {"ndarray", "random", "errstate"}
HOST_NAMES = {"float32", "zeros", "ones"}  # of NumPy, in all other layers: the default dtype, and initial weights
RANDOM_NAMES = {"default_rng", "Generator", "SFC64"}
AXIS_LENGTHS = set("BCDFHIMNOSTV")
SPECIAL_IDS = {
    "PAD",
    "BOS",
    "EOS",
}  # of the toy tasks, of our own tokenizers, and of experiments with data of their own
HAVE_SPECIAL_IDS = (
    "vocabulary.py",
    *(f"data/{name}.py" for name in ("denoising", "parsing", "prompted", "tasks", "translation")),
    "recipes/toy.py",
    "example/model.py",
    "explorer/writing.py",
    *(f"experiments/{name}.py" for name in ("coreference", "curves", "faithfulness", "measuring/steps")),
)  # everything else asks the model's configuration
ONE_NUMBER_EACH = {"sqrt", "exp", "log", "sin", "cos", "tanh", "power", "square"}
# parts whose public functions and methods are annotated
ANNOTATED = set(LEVEL) - {"__init__", "__main__"}
MAX_LINES_OF_A_FILE, MAX_LINES_OF_A_FUNCTION = 350, 40


parsed = functools.cache(ast.parse)  # each rule reads all of the package


@functools.cache
def walked(text):
    """All nodes of a source."""
    return tuple(ast.walk(parsed(text)))


class Source(NamedTuple):
    """A file of the package, or of the experiments."""

    path: str  # inside the package, as in "functional/softmax.py", or "experiments/speed.py"
    text: str

    @property
    def part(self):
        """The name that stands in `LAYERING`."""
        return self.path.split("/")[0].removesuffix(".py")

    @property
    def nodes(self):
        return walked(self.text)


def _last_name(node):
    """The name of a variable or an attribute, "c" of a.b.c; else ""."""
    return getattr(node, "attr", getattr(node, "id", ""))


def _imports(source):
    """(line, dotted name) of everything imported, also inside functions and through importlib; "*" is kept.

    A module's name may be given to importlib as a string, or as a constant of the file that holds one.
    """
    strings = {
        target.id: node.value
        for node in parsed(source.text).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and _last_name(node.func).endswith(("import_module", "__import__")):
            names = [strings.get(name.id) if isinstance(name, ast.Name) else name for name in node.args]
            yield from ((node.lineno, name.value) for name in names if isinstance(name, ast.Constant))


def upward_imports(source):
    for line, name in _imports(source):
        first, _, rest = name.partition(".")
        if first != "minitransformer":
            continue
        part = rest.split(".")[0] if rest.split(".")[0] in LEVEL else "__init__"
        if source.part not in LEVEL:
            yield line, f"give {source.part} a place in LAYERING"
        elif (source.path, part) == ("backend.py", "kernels"):
            continue  # it sends calls there, on a GPU
        elif part != source.part and LEVEL[part] >= LEVEL[source.part]:
            yield line, f"{source.part} must not import {part}"
        elif (source.part, part) == ("functional", "core"):
            yield line, "functional is pure arrays and knows nothing of core"


def foreign_imports(source):
    for line, name in _imports(source):
        first = name.split(".")[0]
        if not first:
            yield line, f"write {name} as an absolute import"
        elif name.endswith(".*"):
            yield line, f"star import of {name[:-2]}"
        elif first not in {"minitransformer", *sys.stdlib_module_names}:
            allowed = THIRD_PARTY.get(first, ())
            if not any(fnmatch.fnmatch(source.path, pattern) for pattern in allowed):
                yield line, f"{first} may be imported by {', '.join(allowed) or 'no file'}"


def _annotations(function):
    """The annotations of a function's parameters and of its result, None where one is missing."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in [*named, *filter(None, (arguments.vararg, arguments.kwarg))]:
        if argument.arg not in ("self", "cls"):
            yield argument.annotation
    if function.name != "__init__":
        yield function.returns


def numpy_where_xp_belongs(source):
    if source.part not in ("functional", "layers") or source.path in HOST_FILES:
        return
    allowed = HOST_TYPES | (HOST_NAMES if source.part == "layers" else set())
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np", "numpy") and node.attr not in allowed:
            yield node.lineno, f"{ast.unparse(node)} works on the host alone: use xp, or math for a single number"
        if (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").split(".")[0] == "numpy"
            and node.module != "numpy.typing"
        ):
            yield node.lineno, "import numpy as np, so that the host can be told from the device"


def _is_python_number(node):
    """Whether an expression is surely a plain number: a literal, an axis length, or made of such."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float)
    if isinstance(node, ast.Name):
        return node.id in AXIS_LENGTHS
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in ("len", "int", "float") or ast.unparse(node.func).startswith("math.")
    if isinstance(node, ast.BinOp):
        return _is_python_number(node.left) and _is_python_number(node.right)
    return isinstance(node, ast.UnaryOp) and _is_python_number(node.operand)


def array_functions_of_python_numbers(source):
    """np.sqrt(64) is a float64, and turns every float32 array that it meets into one."""
    for node in source.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
            continue
        library = ast.unparse(node.func.value)
        if library in ("np", "xp") and node.func.attr in ONE_NUMBER_EACH and _is_python_number(node.args[0]):
            yield node.lineno, f"use math for {ast.unparse(node)}: it makes a float64"


def _is_random_module(node):
    return _last_name(node) == "random" and ast.unparse(node) in ("np.random", "numpy.random", "xp.random")


def global_randomness(source):
    for line, name in _imports(source):
        if name.split(".")[0] == "random" or name.startswith("numpy.random"):
            yield line, f"import of {name}: randomness comes in as a Generator"
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr not in RANDOM_NAMES and _is_random_module(node.value):
            yield node.lineno, f"{ast.unparse(node)} draws from a state that all share: take a Generator"


def _public_definitions(nodes, prefix="", methods=()):
    """(name, node) of each public class, function and method, and of the special methods called `methods`."""
    for node in nodes:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if node.name.startswith("_") and node.name not in methods:
            continue
        yield prefix + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from _public_definitions(node.body, f"{prefix}{node.name}.", methods)


def missing_annotations(source):
    if source.part not in ANNOTATED:
        return
    for name, node in _public_definitions(parsed(source.text).body, methods=("__init__", "__call__")):
        if isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base) for base in node.bases}
            decorators = {ast.unparse(each).split("(")[0].split(".")[-1] for each in node.decorator_list}
            if "NamedTuple" in bases or "dataclass" in decorators:
                for field in node.body:
                    if isinstance(field, ast.AnnAssign) and re.search(r"\bobject\b", ast.unparse(field.annotation)):
                        yield field.lineno, f"{name}.{ast.unparse(field.target)} is any object: give its type"
        elif None in _annotations(node):
            yield node.lineno, f"{name} is not fully annotated"


def missing_docstrings(source):
    tree = parsed(source.text)
    for name, node in [("the file", tree), *_public_definitions(tree.body)]:
        if not ast.get_docstring(node):
            yield getattr(node, "lineno", 1), f"{name} has no docstring"


def long_functions(source):
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node):
                lines -= node.body[0].end_lineno - node.body[0].lineno + 1
            if lines > MAX_LINES_OF_A_FUNCTION:
                yield node.lineno, f"{node.name} has {lines} lines, at most {MAX_LINES_OF_A_FUNCTION} are allowed"


def ids_of_the_toy_tasks(source):
    if source.path not in HAVE_SPECIAL_IDS:
        imported = [(line, name) for line, name in _imports(source) if "vocabulary" in name.split(".")]
        named = [(node.lineno, node.attr) for node in source.nodes if isinstance(node, ast.Attribute)]
        for line, name in imported + named:
            if name.split(".")[-1] in SPECIAL_IDS:
                yield line, f"{name}: ask the model's configuration, in which id 0 may be a word"


def several_processes(source):
    """Names and strings of the code, without its comments and docstrings."""
    if source.part in ("cli", "recipes", "experiments", "bench") or any(
        fnmatch.fnmatch(source.path, p) for p in KNOW_PROCESSES
    ):
        return
    for node in source.nodes:
        name = getattr(node, "attr", None) or getattr(node, "id", None) or getattr(node, "arg", None)
        if isinstance(name, str) and PROCESSES.fullmatch(name):
            yield node.lineno, f"{name}: the parts of a step know nothing of processes"


def decides_by_class(source):
    if source.path in ("training/loop.py", "training/step.py"):
        for node in source.nodes:
            if isinstance(node, ast.Name) and node.id in ("isinstance", "Communicator"):
                yield node.lineno, f"{node.id}: what a step consists of is decided in training/parallel/strategy.py"


def long_files(source):
    lines = len(source.text.splitlines())
    if lines > MAX_LINES_OF_A_FILE:
        yield lines, f"{lines} lines, at most {MAX_LINES_OF_A_FILE} are allowed"


LONG_BODY = "\n".join("    pass" for _ in range(40))
BROKEN_RULES = [
    (upward_imports, "functional/a.py", "from minitransformer.layers import Linear", "must not import layers"),
    (upward_imports, "functional/a.py", "from minitransformer.core import Layer", "knows nothing of core"),
    (upward_imports, "models/a.py", "def f():\n    import minitransformer.cli", "models must not import cli"),
    (upward_imports, "training/a.py", "from minitransformer import plotting", "training must not import plotting"),
    (upward_imports, "checks.py", "import minitransformer.core", "checks must not import core"),
    (upward_imports, "backend.py", "def f():\n    import_module('minitransformer.layers')", "must not import layers"),
    (upward_imports, "backend.py", "K = 'minitransformer.layers'\nimport_module(K)", "must not import layers"),
    (upward_imports, "kernels/a.py", "from minitransformer import functional", "kernels must not import functional"),
    (upward_imports, "novelty/a.py", "import minitransformer.core", "give novelty a place"),
    (foreign_imports, "core.py", "import cupy.cuda", "cupy may be imported by backend.py"),
    (foreign_imports, "core.py", "importlib.import_module('cupy')", "cupy may be imported by backend.py"),
    (foreign_imports, "core.py", "C = 'cupy'\nimportlib.import_module(C)", "cupy may be imported by backend.py"),
    (foreign_imports, "cli/train.py", "def f():\n    from matplotlib import pyplot", "by plotting.py"),
    (foreign_imports, "models/a.py", "import torch", "torch may be imported by experiments"),
    (foreign_imports, "cli/a.py", "from tests.helpers import x", "tests may be imported by no file"),
    (foreign_imports, "cli/a.py", "import lessons", "lessons may be imported by no file"),
    (foreign_imports, "cli/a.py", "from experiments import speed", "experiments may be imported by experiments/*"),
    (foreign_imports, "layers/a.py", "from . import linear", "absolute import"),
    (foreign_imports, "layers/a.py", "from minitransformer.functional import *", "star import"),
    (numpy_where_xp_belongs, "functional/a.py", "y = np.exp(x)", "np.exp works on the host alone"),
    (numpy_where_xp_belongs, "functional/a.py", "y = np.zeros(3)", "np.zeros works on the host alone"),
    (numpy_where_xp_belongs, "layers/a.py", "y = np.sqrt(x)", "np.sqrt works on the host alone"),
    (numpy_where_xp_belongs, "layers/a.py", "from numpy import sqrt", "import numpy as np"),
    (array_functions_of_python_numbers, "models/a.py", "s = np.sqrt(64)", "use math"),
    (array_functions_of_python_numbers, "models/a.py", "s = xp.sqrt(D)", "use math"),
    (array_functions_of_python_numbers, "models/a.py", "s = 1 / xp.sqrt(2.0 * q.shape[-1])", "use math"),
    (array_functions_of_python_numbers, "models/a.py", "s = xp.log(len(x))", "use math"),
    (global_randomness, "layers/a.py", "x = np.random.rand(3)", "np.random.rand draws from a state"),
    (global_randomness, "layers/a.py", "xp.random.seed(0)", "xp.random.seed draws from a state"),
    (global_randomness, "data/a.py", "import random", "import of random"),
    (global_randomness, "data/a.py", "from numpy.random import rand", "import of numpy.random.rand"),
    (missing_annotations, "core.py", "def f(x: int, *rest) -> int: pass", "f is not fully annotated"),
    (missing_annotations, "core.py", "def f(x: int): pass", "f is not fully annotated"),
    (missing_annotations, "layers/a.py", "class A:\n    def f(self, *, x) -> int: pass", "A.f is not fully annotated"),
    (missing_annotations, "layers/a.py", "class A:\n    def __init__(self, x): pass", "A.__init__ is not"),
    (missing_annotations, "layers/a.py", "class A(NamedTuple):\n    x: tuple[object, int]", "A.x is any object"),
    (missing_annotations, "models/a.py", "@dataclass(frozen=True)\nclass A:\n    x: object = 1", "A.x is any object"),
    (missing_docstrings, "core.py", "x = 1", "the file has no docstring"),
    (missing_docstrings, "core.py", '"""."""\ndef f(): pass', "f has no docstring"),
    (missing_docstrings, "core.py", '"""."""\nclass A:\n    """."""\n    def f(self): pass', "A.f has no docstring"),
    (long_functions, "core.py", f'def f():\n    """\n    More."""\n{LONG_BODY}', "f has 41 lines"),
    (ids_of_the_toy_tasks, "decoding/a.py", "from minitransformer.vocabulary import PAD", "in which id 0 may be"),
    (ids_of_the_toy_tasks, "decoding/a.py", "from minitransformer import vocabulary as v\nv.EOS", "in which id 0"),
    (several_processes, "training/loop.py", "if self.communicator.size: pass", "know nothing of processes"),
    (decides_by_class, "training/loop.py", "isinstance(1, int)", "is decided in training/parallel/strategy.py"),
    (long_files, "core.py", "x = 1\n" * 351, "351 lines"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "path", "text", "complaint"), BROKEN_RULES)
def test_rule_sees_what_breaks_it(rule, path, text, complaint):
    (found,) = rule(Source(path, text))
    assert complaint in found[1]


def test_rules_let_good_code_pass():
    text = '"""."""\nimport numpy as np\nfrom minitransformer.core import Layer\nrng = np.random.default_rng(0)\n'
    text += "def _f(x, dtype=np.float32):\n    return x * math.sqrt(2), xp.sqrt(x), np.zeros(3, dtype)\n"
    text += 'def f(self, x: np.ndarray, *rest: object) -> None:\n    """."""\n    y: np.ndarray = x\n'
    text += 'class A(NamedTuple):\n    """."""\n    x: int\n'
    for rule in {rule for rule, *_ in BROKEN_RULES} - {numpy_where_xp_belongs}:
        assert list(rule(Source("layers/a.py", text))) == []
    assert list(numpy_where_xp_belongs(Source("layers/a.py", text.replace("np.random.", "")))) == []
    assert list(foreign_imports(Source("experiments/a.py", "import torch"))) == []
    assert list(foreign_imports(Source("kernels/a.py", "import cupy"))) == []
    typed = "from numpy.typing import DTypeLike\ndef f(ids: np.ndarray, rng: np.random.Generator): pass"
    assert list(numpy_where_xp_belongs(Source("functional/a.py", typed))) == []


@pytest.mark.parametrize("rule", dict.fromkeys(rule for rule, *_ in BROKEN_RULES))
def test_package_keeps_the_rule(rule):
    paths = {PACKAGE: PACKAGE.rglob("*.py"), FOLDER: (FOLDER / "experiments").rglob("*.py")}
    sources = [
        Source(path.relative_to(root).as_posix(), path.read_text("utf-8"))
        for root, found in paths.items()
        for path in sorted(found)
    ]
    known = {"backend.py", "functional/softmax.py", "models/transformer.py", "experiments/speed.py"}
    assert known <= {source.path for source in sources}
    found = [f"{source.path}:{line}: {what}" for source in sources for line, what in rule(source)]
    assert not found, "\n".join(["", *found])


def test_every_part_of_the_package_has_a_place_in_the_layering():
    parts = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or list(path.glob("*.py"))}
    assert parts - set(LEVEL) == set()
