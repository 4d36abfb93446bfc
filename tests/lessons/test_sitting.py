"""The sitting: right answers pass, mistakes are named, and the whole runs from the stubs to the last gradient."""

import ast
import itertools
import json
import os
import re
import subprocess
import sys

from support import sitting
from support.stations import STATIONS, C, D, T, V

import numpy as np
import pytest

import minitransformer as mt
from docs.course_site.percent import read_outputs, stale_cells
from minitransformer.cli.init import as_notebook
from minitransformer.course import FOLDER
from tests.lessons.sitting_answers import ONE_SITTING, STYLES, answers, functions_of, written
from tests.lessons.test_notation import COMMON, unknown_letters, unknown_names

TASKS = {name: task for station in STATIONS for name, task in station.tasks.items()}
every_station = pytest.mark.parametrize("station", STATIONS, ids=lambda station: station.title)


@pytest.fixture(autouse=True)
def nothing_passed_yet(monkeypatch):
    monkeypatch.setattr(sitting, "passed", set())
    monkeypatch.setattr(sitting, "hints", {})


def functions(style):
    """The right functions of a style: name -> function."""
    names = {"np": np, "C": C, "D": D}
    for source in answers(style).values():
        exec(source, names)
    return {name: names[name] for name in TASKS}


RIGHT = {style: functions(style) for style in STYLES}


def answered(name, outputs):
    """A function of this name that returns these outputs."""
    (function,) = (eval("lambda *arguments: outputs", {"outputs": outputs}),)
    function.__name__ = name
    return function


def with_output(name, output, value):
    """A function that is right except for one output."""
    right = {**TASKS[name].right, output: value}
    return answered(name, tuple(right.values()) if len(right) > 1 else right[output])


OVERWRITING = """\
def loss_backward(p, right):
    dz = p
    dz[range(len(p)), right] -= 1
    dz /= len(p)
    return dz
"""


def said(capsys):
    """What was printed, without the breaks of lines."""
    return " ".join(capsys.readouterr().out.split())


def script_functions(*functions):
    """The script's names with these functions of it."""
    names, text = {}, ONE_SITTING.read_text("utf-8")
    exec("import numpy as np\nfrom support.sitting import PE, VOCABULARY\nC, H, D = 6, 2, 3", names)
    for name in functions:
        exec(ast.get_source_segment(text, functions_of(text)[name]), names)
    return names


def run_script(text, folder):
    """Run the script -> (exit status, what it printed)."""
    path = folder / "one_sitting.py"
    path.write_text(text, "utf-8")
    environment = dict(os.environ, PYTHONWARNINGS="error", PYTHONIOENCODING="utf-8", OPENBLAS_NUM_THREADS="1")
    command = [sys.executable, str(path)]
    options = {"env": environment, "cwd": folder, "encoding": "utf-8", "timeout": 300}
    finished = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    return finished.returncode, finished.stdout


def test_there_are_ten_stations_and_eleven_functions_which_the_script_has_as_stubs():
    assert len(STATIONS) == 10
    assert len(TASKS) == 11
    stubs = [name for name, node in functions_of(ONE_SITTING.read_text("utf-8")).items() if has_stub(node)]
    assert stubs == list(TASKS)


def has_stub(node):
    return any(isinstance(part, ast.Assign) and getattr(part.value, "value", 0) is ... for part in ast.walk(node))


@pytest.mark.parametrize("style", STYLES)
@every_station
def test_the_right_line_passes_in_two_styles_and_is_rewarded(station, style, capsys):
    assert sitting.judge(*(RIGHT[style][name] for name in station.tasks))
    out = capsys.readouterr().out
    assert out.startswith(f"station {STATIONS.index(station) + 1} of 10, {station.title}: ok\n")
    assert station.remember.split()[0] in out
    assert "note:" not in out
    assert sitting.passed == {station.title}


@pytest.mark.parametrize("name", TASKS)
def test_a_function_has_four_known_mistakes_or_more_and_each_is_wrong_and_is_named(name, capsys):
    assert len(TASKS[name].mistakes) >= 4
    assert TASKS[name].hints
    for mistake in TASKS[name].mistakes:
        wrong = np.asarray(mistake.formula(*TASKS[name].arguments))
        assert not sitting.judge(with_output(name, mistake.output, wrong))
        out = said(capsys)
        assert f"{mistake.output} WRONG" in out
        assert f"= {mistake.name}" in out
        assert f"-> {mistake.question}" in out


def test_two_mistakes_in_one_line_are_named_and_asked_about(capsys):
    p, right = TASKS["loss_backward"].arguments
    assert not sitting.judge(answered("loss_backward", np.eye(V)[right] - p))
    out = said(capsys)
    assert "= two mistakes: the sign is wrong, and" in out
    assert "-> " in out


def test_where_two_mistakes_coincide_both_are_named(capsys):
    p, right = TASKS["loss_backward"].arguments
    dz = np.zeros(p.shape)
    dz[range(T), right] = (p[range(T), right] - 1) / T
    assert not sitting.judge(answered("loss_backward", dz))
    assert capsys.readouterr().out.count("\n      = ") == 2


def test_a_factor_that_is_not_a_known_mistake_is_measured_and_anything_else_is_shown_at_its_worst_place(capsys):
    ds = TASKS["softmax_backward"].right["ds"]
    assert not sitting.judge(answered("softmax_backward", 5 * ds))
    assert "yours / right = 5 everywhere = T" in capsys.readouterr().out
    assert not sitting.judge(answered("softmax_backward", ds + 0.1 * (np.arange(ds.size).reshape(ds.shape) == 7)))
    out = capsys.readouterr().out
    assert "worst ds[0,1,3]" in out
    assert "not one of the known mistakes" in out


def test_a_stub_is_not_written_yet_and_a_half_written_one_is_not_finished(capsys):
    assert not sitting.judge(answered("softmax_backward", ...))
    assert capsys.readouterr().out == "station 7 of 10, the softmax of the scores: not written yet\n"
    assert not sitting.judge(with_output("mix_backward", "dv", ...))
    out = capsys.readouterr().out
    assert "weights and values: not finished\n" in out
    assert "dp ok" in out
    assert "dv: not written yet" in out


def test_a_crash_is_said_with_its_line_and_the_shapes_and_without_a_traceback(capsys):
    def output_backward(dz, y, E):
        return dz @ E.T, dz.T @ y

    assert not sitting.judge(output_backward)
    out = " ".join(capsys.readouterr().out.split())
    assert "ValueError: these do not fit: (5, 7) @ (6, 7), the inner sizes are 7 and 6 in line" in out
    assert "return dz @ E.T, dz.T @ y" in out
    assert "it was given dz (5, 7), y (5, 6), E (7, 6)" in out


def test_a_misfit_is_found_in_a_line_with_two_products_and_in_one_that_calls_a_function(capsys):
    def mix_backward(do, p, v):
        dp = np.matmul(do, v)
        return dp, p @ do

    def scores_backward(ds, q, k):
        return ds @ k / np.sqrt(D), ds @ q

    assert not sitting.judge(mix_backward)
    assert "ValueError: the inner sizes of @ do not fit in line" in said(capsys)
    assert not sitting.judge(scores_backward)
    assert "these do not fit: (2, 5, 4) @ (2, 5, 3), the inner sizes are 4 and 5" in said(capsys)


@pytest.mark.parametrize("returned", [None, 3, "dx", (1, 2), ([[1], [1, 2]], 1, 1)])
def test_a_function_that_returns_something_else_is_told_so(returned, capsys):
    assert not sitting.judge(answered("linear_backward", returned))
    assert re.search(r"must return dx, dW, db|must be an array of numbers", capsys.readouterr().out)


def test_an_argument_that_is_changed_is_noted(capsys):
    def loss_backward(p, right):
        p[range(T), right] -= 1
        return p / T

    assert sitting.judge(loss_backward)
    assert "it changes its argument p, which others still need. Begin with p.copy()." in said(capsys)


@pytest.mark.exhaustive
def test_the_words_are_counted_as_right_although_the_backward_overwrites_its_arguments(tmp_path):
    mine = {**answers("arrays"), "loss_backward": OVERWRITING}
    text = written(mine).replace("steps=50", "steps=0")
    assert "332 of 340 words right" in run_script(text, tmp_path)[1]


def test_an_output_that_begins_with_a_wrong_one_waits(capsys):
    assert not sitting.judge(with_output("encoder_backward", "dM", TASKS["encoder_backward"].arguments[0]))
    out = capsys.readouterr().out
    assert "= the memory gets only the gradient of its keys" in out
    assert "dx comes after dM" in out


def test_hints_come_one_by_one_and_a_name_of_no_station_is_refused(capsys):
    function = RIGHT["arrays"]["scores_backward"]
    for number in (1, 2, 1):
        sitting.hint(function)
        assert f"hint {number} of 2 for scores_backward" in capsys.readouterr().out
    assert not sitting.judge(len)
    assert "no station has len: the functions are loss_backward, " in capsys.readouterr().out


def test_a_function_that_is_missing_is_judged_wrong_by_its_name(capsys):
    assert not sitting.judge(eval("relu_backward", {}))
    out = said(capsys)
    assert "no function relu_backward found. Keep the names: the rest of the file calls them." in out
    assert "NameError" not in out


@pytest.mark.parametrize(
    ("name", "outputs", "message"),
    [
        ("loss_backward", None, "dz is None"),
        ("mix_backward", None, "mix_backward must return dp, dv: it returns None"),
        ("scores_backward", {"dq": np.full((2, 5, 3), np.nan)}, "dq has nan in it, first at dq[0,0,0]"),
        ("scores_backward", {"dk": 1j * np.ones((2, 4, 3))}, "dk is complex, should be real"),
        ("mix_backward", TASKS["mix_backward"].right, "dp and dv are swapped in the return"),
        ("norm_backward", TASKS["norm_backward"].right, "dgamma and dbeta are swapped in the return"),
    ],
)
def test_what_cannot_be_a_gradient_is_said_in_one_line(name, outputs, message, capsys):
    if outputs is not None:
        outputs = list({**TASKS[name].right, **outputs}.values())
        outputs = [*outputs[:-2], outputs[-1], outputs[-2]] if "swapped" in message else outputs
    assert not sitting.judge(answered(name, outputs))
    assert message in said(capsys)


def test_a_station_that_was_right_before_takes_one_line(capsys):
    assert sitting.judge(RIGHT["arrays"]["softmax_backward"])
    assert capsys.readouterr().out.count("\n") > 3
    assert sitting.judge(RIGHT["arrays"]["softmax_backward"])
    assert capsys.readouterr().out == "station 7 of 10, the softmax of the scores: ok\n"


def test_one_unit_is_off_in_all_rows_of_stop_and_21_words_wake_it():
    names = script_functions("split", "merge", "softmax", "forward", "pair")
    a = names["forward"](sitting.WEIGHTS, *sitting.STOP)["decoder.ffn.a"]
    (unit,) = np.flatnonzero((a < 0).all(axis=0))
    words = ["".join(letters) for length in (1, 2, 3, 4) for letters in itertools.product("opst", repeat=length)]
    awake = [
        word
        for word in words
        if (names["forward"](sitting.WEIGHTS, *names["pair"](word))["decoder.ffn.a"][:, unit] > 0).any()
    ]
    assert f"{len(awake)} of the {len(words)} words wake it" in " ".join(ONE_SITTING.read_text("utf-8").split())


@pytest.mark.exhaustive
def test_as_it_is_handed_out_the_script_runs_to_its_end(tmp_path):
    status, out = run_script(ONE_SITTING.read_text("utf-8"), tmp_path)
    assert status == 0, out
    assert out.count("not written yet") == 10
    assert "Open stations: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10" in out


@pytest.mark.weekly
def test_with_the_right_lines_all_gradients_are_right_and_the_model_learns(tmp_path):
    status, out = run_script(written(answers("arrays")), tmp_path)
    assert status == 0, out
    assert len(re.findall(r"^station \d+ of 10, .*: ok$", out, re.MULTILINE)) == 10
    assert "all 826 gradients are right, and 795 of them are not 0" in out
    assert "the file stopped" not in out
    zeros = [int(count) for count in re.findall(r": (\d+) of \d+ gradients are 0", out)]
    assert sorted(zeros) == [1, 6, 6, 6, 6, 6]
    steps = re.findall(r"step +(\d+): loss ([\d.]+), (\d+) of 340 words right", out)
    assert (steps[0][2], steps[-1][0]) == ("332", "50")
    assert float(steps[-1][1]) < 0.6 * float(steps[0][1])
    assert int(steps[-1][2]) >= 338


@pytest.mark.exhaustive
def test_the_bug_of_the_opening_is_found_by_the_witness_in_as_many_arrays_as_the_script_says(tmp_path):
    correct, bug = 'linear(at, "v", M)', 'linear(at, "k", M)'
    text = written(answers("arrays"))
    _, forward, rest = text.partition("def forward(")
    status, out = run_script(text.replace(forward + rest, forward + rest.replace(correct, bug, 1)), tmp_path)
    assert status == 0
    prose = " ".join(text.replace("\n# ", " ").split())
    assert f"change `{correct}` to `{bug}`" in prose
    (count,) = re.findall(r"the whole: (WRONG in \d+ of 43 arrays)", out)
    (first,) = re.findall(r"the first wrong one is (\S+): look there", " ".join(out.split()))
    assert f"The judge says {count}, and the first is {first}." in prose
    assert "words right" not in out


def test_the_whole_names_the_arrays_that_are_off():
    true = {name: sitting.NUMBERS[gradient_name(name)] for name in sitting.WEIGHTS}
    assert len(true) == 43
    assert sitting.wrong_arrays(true, true) == {}
    off = {**true, "cross.W_q": 2 * true["cross.W_q"], "E": true["E"].T}
    del off["encoder.ffn.b_1"]
    assert sorted(sitting.wrong_arrays(off, true).values()) == [
        "E has the shape (6, 7), not (7, 6)",
        "cross.W_q is off by 100% of its largest entry",
        "encoder.ffn.b_1: there is none",
    ]


def test_the_midpoint_has_its_own_ending_and_names_the_first_array_that_is_off(capsys):
    names = script_functions("split", "merge", "softmax", "forward", "half_backward")
    names.update(RIGHT["arrays"])
    assert not sitting.judge_half(names["forward"], names["half_backward"])
    assert said(capsys) == "half of it: not yet. Open stations: 1, 2, 3, 4, 5"
    sitting.passed.update(station.title for station in STATIONS[:5])
    assert sitting.judge_half(names["forward"], names["half_backward"])
    assert said(capsys).startswith("half done: 134 of the 826 gradients are right You can derive any network now")
    names["relu_backward"] = lambda dr, a: dr
    assert not sitting.judge_half(names["forward"], names["half_backward"])
    assert "half of it: WRONG in 4 of 8 arrays Going back from the loss, the first wrong one is decoder.ffn.W_1" in (
        said(capsys)
    )


def gradient_name(name):
    place, dot, symbol = name.rpartition(".")
    return f"{place}{dot}d{symbol}"


def test_the_forward_of_the_script_has_the_numbers_of_the_running_example():
    names = script_functions("split", "merge", "softmax", "forward")
    values = names["forward"](sitting.WEIGHTS, *sitting.STOP)
    for name in ("cross.p", "cross.q", "decoder.self.o", "decoder.ffn.a", "encoder.norm1.x_hat", "M"):
        assert np.abs(values[name] - sitting.NUMBERS[name]).max() < 1e-12, name
    slopes = sitting.complex_steps(names["forward"], sitting.WEIGHTS)
    for name in slopes:
        assert np.abs(slopes[name] - sitting.NUMBERS[gradient_name(name)]).max() < 1e-12, name
    assert sum(array.size for array in slopes.values()) == 826
    assert len(sitting.VOCABULARY) == V


def test_no_right_formula_stands_in_the_script_or_in_the_table_of_stations():
    for path in (ONE_SITTING, FOLDER / "support" / "stations.py"):
        text = "".join(path.read_text("utf-8").split())
        for line in (
            "p*(dp-(p*dp).sum(axis=-1,keepdims=True))\n",
            "x.T@dy,",
            "returndsum+dsub",
            "(p-wanted(p,right))/len(p)",
        ):
            assert line not in text, (path.name, line)


def test_the_script_uses_the_letters_of_the_course():
    text = ONE_SITTING.read_text("utf-8")
    assert unknown_letters(text, COMMON) == []
    assert unknown_names(text, COMMON) == []


def test_the_notebook_and_the_recorded_outputs_belong_to_the_script():
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("jupytext", reason="notebooks are not installed: pip install -e '.[notebook]'")
    text = ONE_SITTING.read_text("utf-8")
    notebook = ONE_SITTING.with_suffix(".ipynb").read_text("utf-8")
    assert notebook == as_notebook(text), "run python docs/record_outputs.py sitting"
    assert stale_cells(text, read_outputs("one_sitting")) == [], "run python docs/record_outputs.py sitting"
    nbformat.validate(nbformat.from_dict(json.loads(notebook)))


def test_losing_both_side_roads_of_a_wide_norm_changes_its_gradient_by_as_much_as_the_script_says():
    rng = np.random.default_rng(0)
    x, dy, gamma = rng.standard_normal((1000, 512)), rng.standard_normal((1000, 512)), np.ones(512)
    _, cache = mt.functional.layer_norm(x, gamma, np.zeros(512))
    right = mt.functional.layer_norm_backward(dy, cache)[0]
    directly = dy / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    changes = np.linalg.norm(right - directly, axis=-1) / np.linalg.norm(right, axis=-1)
    least, most = re.search(r"by about (\d) to (\d) % only", " ".join(ONE_SITTING.read_text("utf-8").split())).groups()
    assert int(least) / 100 < np.median(changes) < int(most) / 100


def test_the_function_that_is_wrong_has_its_hint_offered(capsys):
    sitting.judge(
        RIGHT["arrays"]["linear_backward"], with_output("relu_backward", "da", TASKS["relu_backward"].arguments[0])
    )
    assert "Stuck? hint(relu_backward)" in said(capsys)
