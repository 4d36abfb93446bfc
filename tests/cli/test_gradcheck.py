"""`minitransformer gradcheck`: rows of the table, a learner's own layer, and a status that says if all is right."""

import json

import numpy as np
import pytest

from minitransformer.gradcheck.subjects import select_subjects
from tests.cli.run import assert_refused, run

RIGHT = """
import numpy as np
from minitransformer.core import Layer, Parameter

class Scale(Layer):
    def __init__(self, shape=(4,)):
        self.g = Parameter(np.zeros(shape))

    def forward(self, x, rng=None):
        return x * self.g.data, x

    def backward(self, dy, x):
        self.g.grad += (dy * x).reshape(-1, *self.g.data.shape).sum(axis=0)
        return dy * self.g.data
"""
WRONG = RIGHT.replace("return dy * self.g.data", "return 1.5 * dy * self.g.data")
UNDEFINED = RIGHT.replace("return dy * self.g.data", "return np.nan * dy")
OTHERS = """
import os
import numpy as np
from minitransformer.core import Layer, Parameter

class NeedsMore(Layer):
    def __init__(self, size):
        self.size = size

class NoBackward(Layer):
    def forward(self, x, rng=None):
        return 2 * x, None

class Relu(Layer):
    def forward(self, x, rng=None):
        return np.maximum(x, 0), x

    def backward(self, x, dy):
        return dy * (x > 0)

class Noise(Layer):
    def forward(self, x, rng=None):
        return x + np.random.standard_normal(x.shape), None

    def backward(self, dy, cache):
        return dy

class Abs(Layer):
    def forward(self, x, rng=None):
        return np.abs(x), x

    def backward(self, dy, x):
        return dy * np.sign(x)

class Leaves(Abs):
    def backward(self, dy, x):
        os._exit(0)

class EndsGenerators(Abs):
    def forward(self, x, rng=None):
        raise GeneratorExit

class Product(Layer):
    def forward(self, x, other, rng=None):
        return x * other, (x, other)

    def backward(self, dy, cache):
        x, other = cache
        return dy * other, dy * x

    @staticmethod
    def example():
        rng = np.random.default_rng(8)
        return Product(), (rng.standard_normal((3, 7)), rng.standard_normal((3, 7)))

class Times(Layer):
    def __init__(self, factor):
        self.factor = factor

    def forward(self, x, rng=None):
        return x * self.factor, None

    def backward(self, dy, cache):
        return dy * self.factor

def make():
    return Times(9)

def make_with_inputs():
    return Product.example()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Every test runs in a folder that has a learner's files in it, and nothing else."""
    (tmp_path / "sub").mkdir()
    files = {"right.py": RIGHT, "wrong.py": WRONG, "undefined.py": UNDEFINED, "sub/others.py": OTHERS}
    files["leaves.py"] = "import os\nos._exit(0)"
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_row_of_the_named_groups_is_printed_and_the_status_is_zero(capsys):
    status, out, err = run(capsys, "gradcheck", "Linear", "softmax")
    assert (status, err) == (0, "")
    names = [subject.name for subject in select_subjects(["Linear", "softmax"])]
    lines = out.splitlines()
    assert [line[:64].rstrip() for line in lines[: len(names)]] == names
    assert all(line.endswith("  ok") and len(line) <= 80 for line in lines[: len(names)])
    assert lines[-1].startswith(f"{len(names)} checks, all passed; worst relative error ")


def test_a_right_layer_of_your_own_passes(capsys):
    status, out, err = run(capsys, "gradcheck", "right.py:Scale")
    assert (status, err) == (0, "")
    assert "right.py:Scale" in out
    assert "1 check, all passed" in out


def test_a_wrong_layer_of_your_own_fails_with_status_one_and_the_tensor_also_among_others(capsys):
    status, out, err = run(capsys, "gradcheck", "relu", "wrong.py:Scale", "right.py:Scale")
    assert (status, err) == (1, "")
    assert "wrong.py:Scale: 1 of 2 gradients WRONG" in out
    assert "WRONG at input[" in out
    assert "3 checks, 1 WRONG" in out


def test_a_layer_that_is_not_analytic_passes_with_the_bound_of_differences(capsys):
    status, out, err = run(capsys, "gradcheck", "sub/others.py:Abs")
    assert (status, err) == (0, "")
    assert "  ok, Richardson, bound " in out.splitlines()[0]


@pytest.mark.exhaustive
def test_where_the_check_cannot_tell_the_status_is_three_and_one_if_another_layer_is_wrong(capsys):
    status, out, err = run(capsys, "gradcheck", "sub/others.py:Noise")
    assert (status, err) == (3, "")
    assert "cannot tell for 1 of 1 gradients (two forward passes of the same input gave different outputs)" in " ".join(
        out.split()
    )
    assert out.splitlines()[-1].startswith("1 check, cannot tell for 1; ")
    status, out, _ = run(capsys, "gradcheck", "sub/others.py:Noise", "wrong.py:Scale", "right.py:Scale")
    assert status == 1
    assert "3 checks, 1 WRONG, cannot tell for 1; worst relative error 5.0e-01; " in out


def test_help_explains_the_exit_status(capsys):
    _, out, _ = run(capsys, "gradcheck", "--help")
    assert "3 if none is WRONG but the check cannot tell" in " ".join(out.split())


def test_a_gradient_of_nan_is_the_worst_of_all(capsys):
    status, out, err = run(capsys, "gradcheck", "wrong.py:Scale", "undefined.py:Scale", "right.py:Scale")
    assert (status, err) == (1, "")
    assert "3 checks, 2 WRONG; worst relative error nan;" in out


def test_a_layer_whose_backward_has_its_arguments_exchanged_fails(capsys):
    """The command draws the input itself: it must not be the upstream gradient."""
    assert run(capsys, "gradcheck", "sub/others.py:Relu").status == 1


def test_the_input_has_the_shape_of_the_command_line(capsys):
    status, out, _ = run(capsys, "gradcheck", "right.py:Scale", "--shape", 5, 6, 4, "--verbose")
    assert status == 0
    assert "(5, 6, 4)" in out
    outcome = run(capsys, "gradcheck", "right.py:Scale", "--shape", 2, 3)
    assert_refused(outcome, "(2,3)", "(4,)")  # NumPy's own sentence on shapes that do not fit


def test_example_makes_the_layer_and_its_inputs(capsys):
    status, out, _ = run(capsys, "gradcheck", "sub/others.py:Product", "--verbose", "--shape", 9)
    assert status == 0
    lines = [line for line in out.splitlines() if line.startswith("  input")]
    assert [line.split()[:2] for line in lines] == [["input", "0"], ["input", "1"]]
    assert all("(3, 7)" in line for line in lines)


def test_a_function_makes_the_layer_with_or_without_its_inputs(capsys):
    status, out, _ = run(capsys, "gradcheck", "sub/others.py:make", "--verbose", "--shape", 2, 9)
    assert status == 0
    assert [line.split()[0] for line in out.splitlines() if "(2, 9)" in line] == ["input"]
    status, out, _ = run(capsys, "gradcheck", "sub/others.py:make_with_inputs", "--verbose")
    assert status == 0
    assert sum("(3, 7)" in line for line in out.splitlines()) == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sub:Scale", "sub is a folder, not a file"),
        ("sub/others.py:NeedsMore", "missing 1 required positional argument: 'size': write a function make()"),
        ("sub/others.py:NoBackward", "NoBackward has no backward yet"),
        ("sub/others.py:Leaves", "in backward (os._exit(0)): SystemExit: os._exit(0)"),
        ("sub/others.py:EndsGenerators", "in forward (raise GeneratorExit): GeneratorExit"),
        ("leaves.py:Scale", "leaves.py raised an error (--debug shows where): SystemExit: os._exit(0)"),
        ("right.py", "which class of right.py? type minitransformer gradcheck right.py:Scale"),
        ("right.py:Scales", "right.py has no class or function Scales: type minitransformer gradcheck right.py:Scale"),
    ],
)
def test_a_layer_that_cannot_be_checked_is_refused_in_one_line(name, message, capsys):
    assert_refused(run(capsys, "gradcheck", name), message)


def test_json_prints_every_report_in_the_last_line(capsys):
    status, out, err = run(capsys, "gradcheck", "linear", "wrong.py:Scale", "--json")
    assert (status, err) == (1, "")
    result = json.loads(out.splitlines()[-1])
    assert set(result) == {"checks", "failed", "unclear", "worst", "seconds", "reports"}
    assert (result["checks"], result["failed"], result["unclear"]) == (2, 1, 0)
    linear, scale = result["reports"]
    assert (linear["name"], linear["passed"]) == ("linear", True)
    assert [check["name"] for check in linear["checks"]] == ["x", "W", "b"]
    assert [check["passed"] for check in scale["checks"]] == [False, True]
    assert result["worst"] == scale["checks"][0]["error"]
    assert np.isclose(result["worst"], 0.5, rtol=1e-12)


@pytest.mark.parametrize("words", [("softmax",), ("--second-order", "relu", "LayerNorm"), ("--verbose", "relu")])
def test_no_line_is_wider_than_60_columns(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    out = run(capsys, "gradcheck", *words).out
    assert [line for line in out.splitlines() if len(line) > 60] == []


def test_second_order_prints_the_asymmetry_of_each_row(capsys):
    status, out, err = run(capsys, "gradcheck", "--second-order", "relu", "tanh", "LayerNorm")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["relu", "-", "ok,", "the", "Hessian", "is", "0"]
    assert lines[1].startswith("tanh ")
    assert "  ok, differences " in lines[1]
    assert ", all passed; worst asymmetry " in lines[-1]


def test_second_order_finds_a_wrong_layer_of_your_own(capsys):
    status, out, err = run(capsys, "gradcheck", "--second-order", "wrong.py:Scale", "right.py:Scale", "--json")
    assert (status, err) == (1, "")
    assert "wrong.py:Scale: WRONG: u.Hv and v.Hu differ by" in out
    wrong, right = json.loads(out.splitlines()[-1])["reports"]
    assert (wrong["passed"], right["passed"]) == (False, True)
