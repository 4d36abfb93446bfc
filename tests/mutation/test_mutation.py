"""The mutants are those that one expects, and the verdicts on them are right."""

import ast
import contextlib
import importlib
import os
import signal
import subprocess
import sys
import time

import pytest

from minitransformer.functional.softmax import softmax_backward
from tests.mutation import judging, measuring, report
from tests.mutation.__main__ import chosen, parse
from tests.mutation.checks import Check
from tests.mutation.judging import KILLED, SURVIVED, TIMED_OUT, Judge, Verdict
from tests.mutation.measuring import Measured
from tests.mutation.mutants import Key, difference, full_name, header, modules_of, mutants_called, mutants_of, places
from tests.mutation.operators import changes

GROUP = "tests.functional.test_softmax"
needs_linux = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="processes are waited for as Linux does it")

# a piece of a function, and all that it can become
OPERATORS = [
    ("x = a + b", ["a + b -> a - b"]),
    ("x = a - b", ["a - b -> a + b"]),
    ("x = a * b", ["a * b -> a / b"]),
    ("x = a / b", ["a / b -> a * b"]),
    ("x = a // b", ["a // b -> a * b"]),
    ("x = a ** b", ["a ** b -> a * b"]),
    ("x = a @ b", ["a @ b -> a * b", "a @ b -> b @ a"]),
    ("x = a & b", ["a & b -> a | b"]),
    ("x = -a", ["-a -> a"]),
    ("x = ~a", ["~a -> a"]),
    ("x = not a", ["not a -> a"]),
    ("x = a < b", ["a < b -> a <= b", "a < b -> a >= b"]),
    ("x = a >= b", ["a >= b -> a > b", "a >= b -> a < b"]),
    ("x = a == b", ["a == b -> a != b"]),
    ("x = a is None", ["a is None -> a is not None"]),
    ("x = a in b", ["a in b -> a not in b"]),
    ("x = a <= b == c", ["a <= b == c -> a < b == c", "a <= b == c -> a > b == c", "a <= b == c -> a <= b != c"]),
    ("x = a and b", ["a and b -> a or b"]),
    ("x = a or b", ["a or b -> a and b"]),
    ("x = 0", ["0 -> 1"]),
    ("x = 3", ["3 -> 4"]),
    ("x = -1", ["-1 -> -2", "-1 -> 0"]),
    ("x = 0.5", ["0.5 -> 1.0"]),
    ("x = 0.0", ["0.0 -> 1.0"]),
    ("x = True", ["True -> False"]),
    ("x = 'text'", []),
    ("x = a.sum(axis=-1, keepdims=True)", ["-1 -> -2", "-1 -> 0", "True -> False"]),
    ("x = a.reshape(-1, 2)", ["a.reshape(-1, 2) -> a.reshape(2, -1)", "2 -> 3"]),
    ("x = a.T", ["a.T -> a"]),
    ("x = a.swapaxes(b, c)", ["a.swapaxes(b, c) -> a"]),
    ("x = xp.transpose(a, b)", ["xp.transpose(a, b) -> a"]),
    ("x = f(a, b, c)", ["f(a, b, c) -> f(b, a, c)", "f(a, b, c) -> f(a, c, b)"]),
    ("x = f(a, a)", []),
    ("x = max(a, b)", []),
    ("x = a[b:c]", ["b:c -> b + 1:c", "b:c -> b:c + 1"]),
    ("x = a[1:]", ["1 -> 2"]),
    ("x = a[..., 0]", ["0 -> 1"]),
    ("f(a)", ["f(a) -> deleted"]),
    ("a[b] = c", ["a[b] = c -> deleted"]),
    ("a.b = c", ["a.b = c -> deleted"]),
    ("a += b", ["a += b -> a -= b", "a += b -> a = b", "a += b -> deleted"]),
    ("a /= b", ["a /= b -> a *= b", "a /= b -> a = b", "a /= b -> deleted"]),
    ("return a, b", ["return (a, b) -> return (b, a)"]),
    ("return a", []),
    ("if a: x = b", ["a -> True", "a -> False", "a -> not a"]),
    ("if a < b: x = c", ["a < b -> True", "a < b -> False", "a < b -> a <= b", "a < b -> a >= b"]),
    ("if not a: x = b", ["not a -> True", "not a -> False", "not a -> a"]),
    ("while a: x = b", ["a -> False", "a -> not a"]),
    ("x = b if a else c", ["a -> True", "a -> False", "a -> not a"]),
    ("x = [a for a in b if c]", ["for a in b if c -> for a in b"]),
    ("raise ValueError(f'{a + 1} is not {b - 1}')", []),
    ("if a: raise ValueError('no')", ["a -> True", "a -> False", "a -> not a"]),
    ("'''A docstring.'''", []),
    ("x: list[0] = a", []),
    ("def g(a: list[0], b=None, c=True) -> list[1]: pass", ["True -> False"]),
    ("def __repr__(self): return a + b", []),
    ("if TYPE_CHECKING: x = 1", []),
    ("if backend_name() == 'cupy': x = 1", []),
]  # fmt: skip


def all_changes(source):
    """Every change of a piece of a function, in the order in which it is found."""
    definition = ast.parse("def function():\n    " + source).body[0]
    places_of_it = places(definition, header(definition))
    return [
        " -> ".join(difference(node, new)) for parent, _, _, node, _ in places_of_it for new in changes(node, parent)
    ]


@pytest.mark.parametrize(("source", "expected"), OPERATORS, ids=[source for source, _ in OPERATORS])
def test_every_piece_of_code_is_changed_in_all_the_ways_of_its_kind(source, expected):
    assert all_changes(source) == expected


def the_mutant(change, function="functional.softmax.softmax_backward"):
    """The mutant of the softmax with this change."""
    (found,) = [
        mutant
        for mutant in mutants_of("minitransformer.functional.softmax")
        if mutant.key.function == function and mutant.key.change == change
    ]
    return found


def test_a_mutant_is_planted_and_leaves_no_trace():
    mutant = the_mutant("ds *= p -> ds /= p")
    plain, before = mutant.function, mutant.function.__code__
    text = ast.unparse(mutant.definition)
    with mutant.planted():
        assert plain.__code__ is not before
        assert softmax_backward.__wrapped__ is plain
        assert "ds /= p" in ast.unparse(mutant.definition)
    assert plain.__code__ is before
    assert ast.unparse(mutant.definition) == text


@pytest.mark.exhaustive
def test_mutants_of_a_folder_are_those_of_its_files_and_keys_are_unique():
    modules = modules_of("functional.since_2017")
    assert {"minitransformer.functional.since_2017.rotary"} <= set(modules)
    assert modules_of("functional.softmax") == ["minitransformer.functional.softmax"]
    mutants = [mutant for module in modules for mutant in mutants_of(module)]
    assert len({mutant.key for mutant in mutants}) == len(mutants) > 500


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The tests of the softmax with the lines that they run."""
    path = tmp_path_factory.mktemp("measured") / "softmax.json"
    measuring.in_child(lambda: measuring.write(path, GROUP))
    return measuring.read(path)


@pytest.mark.exhaustive
@needs_linux
def test_measuring_finds_which_lines_a_check_runs(measured):
    mutant = the_mutant("ds *= p -> ds /= p")
    running = {check.name.partition("::")[2].partition("[")[0] for check in measured if check.runs(mutant)}
    assert running
    assert running < {check.name.partition("::")[2].partition("[")[0] for check in measured}
    assert all(check.seconds > 0 for check in measured)


@pytest.mark.exhaustive
@needs_linux
@pytest.mark.parametrize("workers", [1, 2])
def test_mutants_of_the_softmax_are_killed_and_the_last_killer_is_tried_first(measured, workers):
    mutants = [the_mutant(f"ds *= p -> {new}") for new in ("ds /= p", "ds = p", "deleted")]
    judge = Judge(measured, workers=workers)
    verdicts = dict(judge.judge(mutants))
    assert [verdicts[mutant].outcome for mutant in mutants] == [KILLED] * 3
    assert judge.order(mutants[0])[0].name in {verdict.by for verdict in verdicts.values()}
    assert mutants[0].function.__code__.co_filename.endswith("softmax.py")


def fake(monkeypatch, *functions):
    """Checks of these functions that run line 82 of the softmax."""
    found = {f"fake {i}": Check(f"fake {i}", "functional", function) for i, function in enumerate(functions)}
    monkeypatch.setattr(judging, "checks_of", lambda group: found)
    lines = {the_mutant("ds *= p -> ds /= p").file: -1}
    return [Measured(name, "fake", "functional", 0.001, lines) for name in found]


def forever():
    while True:
        pass


@pytest.mark.exhaustive
@needs_linux
def test_a_check_without_end_is_a_time_out_and_no_kill(monkeypatch):
    mutant = the_mutant("ds *= p -> ds /= p")
    started = time.monotonic()
    ((_, verdict),) = Judge(fake(monkeypatch, forever), limit=0.1).judge([mutant])
    assert verdict == Verdict(TIMED_OUT, "fake 0", 1, 1)
    assert not verdict.killed
    assert time.monotonic() - started < 60


@pytest.mark.exhaustive
@needs_linux
def test_a_mutant_that_no_check_notices_or_runs_has_survived(monkeypatch):
    mutant = the_mutant("ds *= p -> ds /= p")
    assert list(Judge([]).judge([mutant])) == [(mutant, Verdict(SURVIVED))]
    ((_, verdict),) = Judge(fake(monkeypatch, int, int)).judge([mutant])
    assert verdict == Verdict(SURVIVED, "", 2, 2)


@pytest.mark.exhaustive
@needs_linux
def test_a_check_that_alarms_without_a_change_kills_nobody(monkeypatch):
    def planted():
        assert mutant.function.__code__.co_filename.endswith("softmax.py")

    mutant = the_mutant("ds *= p -> ds /= p")
    ((_, verdict),) = Judge(fake(monkeypatch, planted)).judge([mutant])
    assert verdict.outcome == SURVIVED


@pytest.mark.exhaustive
@needs_linux
def test_a_crash_of_the_whole_process_is_a_kill(monkeypatch):
    def crash():
        if mutant.function(2.0, 3.0) == 2.0 / 3.0:
            os.kill(os.getpid(), signal.SIGKILL)

    mutant = the_mutant("ds *= p -> ds /= p")
    monkeypatch.setitem(mutant.function.__globals__, "row_dot", lambda dp, p: 0.0)
    ((_, verdict),) = Judge(fake(monkeypatch, crash)).judge([mutant])
    assert verdict.outcome == KILLED


GELU = ["functional.since_2017.activations.gelu", "functional.since_2017.activations.gelu_backward"]
DROPOUT = [f"layers.dropout.Dropout.{name}" for name in ("__init__", "backward", "forward")]


@pytest.mark.parametrize(
    ("name", "functions"),
    [("functional.gelu", GELU), ("gelu", GELU), (GELU[1], GELU[1:]), ("Dropout", DROPOUT), ("layers.Dropout", DROPOUT)],
)
def test_functions_and_classes_are_found_by_the_names_that_a_reader_types(name, functions):
    assert sorted({mutant.key.function for mutant in mutants_called(full_name(name))}) == functions


def test_a_bare_name_means_the_file_before_what_it_defines():
    assert full_name("softmax") == "functional.softmax"
    assert full_name("functional.softmax_backward") == "functional.softmax.softmax_backward"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("functional.gelo", "nothing is called functional.gelo; did you mean functional.gelu?"),
        ("linear", "linear may be any of functional.linear, layers.linear"),
        ("xyzzy", "nothing is called xyzzy"),
    ],
)
def test_a_name_that_nothing_has_or_several_things_is_refused_in_one_line(name, words, capsys):
    with pytest.raises(SystemExit, match="2"):
        parse([name])
    assert capsys.readouterr().err == f"python -m tests.mutation: {words}\n"


def test_equivalents_are_known_by_their_content_and_not_tried():
    mutants = mutants_of("minitransformer.functional.softmax")
    listed = {Key(*mutants[3].key): "a reason"}
    moved = [mutant._replace(lines=range(mutant.line + 7, mutant.line + 8)) for mutant in mutants]
    tried = chosen(moved, listed, {}, parse(["functional.softmax"]))
    assert tried == moved[:3] + moved[4:]
    assert chosen(moved, listed, {}, parse(["functional.softmax", "--equivalents"])) == [moved[3]]
    row = next(line for line in report.table(mutants, {}, listed) if line.startswith("functional.softmax"))
    assert row.split()[4] == "1"


def module_of(function):
    """The name of the module that defines `layers.linear.Linear.forward` or the like."""
    name = f"minitransformer.{function}"
    while True:
        name = name.rpartition(".")[0]
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(name).__name__


@pytest.mark.exhaustive
def test_every_equivalent_is_still_a_mutant_and_has_a_reason():
    equivalents = report.read_equivalents()
    modules = {module_of(key.function) for key in equivalents}
    existing = {mutant.key for module in modules for mutant in mutants_of(module)}
    assert equivalents.keys() - existing == set(), "no longer mutants: delete these lines of equivalent.json"
    assert all(reason.strip() for reason in equivalents.values())
    assert report.EQUIVALENT.read_text("utf-8").count('"function"') == len(equivalents), "a mutant is listed twice"


@needs_linux
@pytest.mark.weekly
def test_a_sample_of_the_mutants_of_functional_leaves_no_survivor():
    """Another sample whenever the number of mutants changes; tried by the tests and gradient checks of the folder."""
    number = sum(len(mutants_of(module)) for module in modules_of("functional"))
    options = ["--tests", "own", "--sample", "40", "--seed", str(number)]
    command = [sys.executable, "-m", "tests.mutation", "functional", *options]
    ended = subprocess.run(command, cwd=measuring.ROOT, capture_output=True, text=True, check=False)
    listing = measuring.ROOT / "runs" / "mutation" / "functional.txt"
    assert ended.returncode == 0, ended.stderr + listing.read_text("utf-8")
