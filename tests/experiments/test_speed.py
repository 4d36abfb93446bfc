"""The parts that experiments measure with run both libraries on the same terms; nothing here is timed."""

import json
import math
from functools import partial

import numpy as np
import pytest

from experiments import attention_cost as attention
from experiments import decoding, speed
from experiments.measuring import steps, timing
from experiments.measuring.steps import SIZES, Size, numpy_step, torch_is_installed
from experiments.measuring.timing import LEAST, WARM_UP, interleave, medians, peak_memory
from minitransformer.inspection import training_flops
from minitransformer.models import Transformer
from minitransformer.system.files import load_module
from minitransformer.system.process import ThreadTeam
from tests.cli.run import run


@pytest.mark.parametrize("threads", [1, 2])
def test_the_products_that_are_timed_alone_are_those_of_the_formulas(threads, monkeypatch):
    """All that `training_flops` counts, without the logits of padding, and none that is only a sum; in each thread."""
    size = Size("odd", 11, 6, 2, 20, 3, batch=8, length=7)
    lists = []
    monkeypatch.setattr(steps, "useful_threads", lambda *_: threads)
    monkeypatch.setattr(ThreadTeam, "map", lambda self, function, each: lists.extend(each) or [*map(function, each)])
    steps.products_alone(size, 0.1)()
    assert len(lists) == threads
    counted = sum(2 * math.prod((a @ b).shape) * a.shape[-1] for factors in lists for a, b in factors)
    flops = training_flops(size.config(0.1), 56, 56, 7, 7)
    logits = flops.pop("logits") * np.count_nonzero(size.make_batch().targets) / 56
    assert counted == sum(flops.values()) + logits


def test_calls_take_turns_whose_first_calls_are_not_counted(monkeypatch):
    monkeypatch.setattr(timing, "TURN", 0.001)
    seen = []
    times = interleave({"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}, seconds=0.0)
    order = [name for i, name in enumerate(seen) if i == 0 or name != seen[i - 1]]
    assert "".join(order) == "ab" * (LEAST + 1)  # the warm-up, then turns
    counted = {name: seen.count(name) - WARM_UP - LEAST for name in "ab"}  # each turn's first call is not
    assert {name: len(values) for name, values in times.items()} == counted
    monkeypatch.setattr(timing, "interleave", lambda calls, seconds, progress: {"a": [3.0, 1.0, 2.0]})
    assert medians({}, 1.0) == {"a": 2.0}


@pytest.mark.exhaustive
def test_the_timed_step_learns():
    step = numpy_step(SIZES["tiny"], 0.0)
    losses = [step() for _ in range(30)]
    assert losses[-1] < losses[0] - 0.05


@pytest.mark.exhaustive
def test_both_models_have_the_same_parameters_and_first_loss_when_given_the_same_weights():
    torch = pytest.importorskip("torch")
    from experiments.measuring.pytorch_model import PyTorchTransformer
    from minitransformer.interop.pytorch import from_pytorch

    size = SIZES["tiny"]
    theirs, ours = PyTorchTransformer(size.config(0.0)), Transformer(size.config(0.0))
    assert sum(p.numel() for p in theirs.parameters()) == ours.num_parameters()
    state = {name: p.detach().numpy() for name, p in theirs.state_dict().items()}
    stacks = {name: p for name, p in state.items() if name.startswith(("encoder.", "decoder."))}
    converted = from_pytorch(stacks, ours.config)
    ours.load_state_dict(ours.state_dict() | converted | {"source_embedding.tokens.E": state["embedding.weight"]})
    source, target, _ = size.make_batch()
    with torch.no_grad():
        expected = theirs(torch.from_numpy(source), torch.from_numpy(target)).numpy()
    np.testing.assert_allclose(ours(source, target), expected, atol=2e-5)


def test_jax_takes_the_same_steps():
    pytest.importorskip("jax")
    theirs = load_module("docs/peers/jax_step.py").step(SIZES["tiny"], 0.0, 1)
    ours = numpy_step(SIZES["tiny"], 0.0)
    np.testing.assert_allclose([theirs() for _ in range(5)], [ours() for _ in range(5)], atol=1e-5)


def test_a_step_of_ones_own_is_timed_beside_ours(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "TURN", 0.0)
    monkeypatch.setattr(speed, "torch_is_installed", lambda: False)
    monkeypatch.setitem(SIZES, "tiny", SIZES["tiny"]._replace(d_model=8, d_ff=8, num_layers=1, batch=4))
    file = tmp_path / "mine.py"
    file.write_text("def step(size, dropout, threads):\n    return lambda: (size.name, dropout, threads)\n", "utf8")
    options = ("tiny", "--dropout", 0.1, "--peer", file, "--seconds", 0.01, "--runs", tmp_path, "--json")
    status, out, err = run(capsys, "bench", *options)
    assert (status, err) == (0, "")
    (row,) = json.loads(out.splitlines()[-1])["rows"]["steps"]
    assert 0 < row["mine.py_ratio"] < 1 < row["times_products"]
    assert " mine.py " in out
    assert (tmp_path / "experiments" / "speed.json").exists(), "bench is the short name of this experiment"


def test_a_file_without_a_step_is_refused_before_anything_is_measured(capsys, tmp_path):
    (tmp_path / "empty.py").write_text("", "utf8")
    outcome = run(capsys, "bench", "tiny", "--peer", tmp_path / "empty.py", "--runs", tmp_path)
    assert outcome.status == 2
    assert "step(size, dropout, threads)" in outcome.err


@pytest.mark.exhaustive
def test_adam_alone_is_one_row_without_a_figure(capsys, tmp_path, monkeypatch):
    small = partial(speed.adam_steps, count=1000)
    monkeypatch.setattr(speed, "adam_steps", small)
    monkeypatch.setattr(timing, "TURN", 0.001)
    status, out, err = run(capsys, "bench", "adam", "--seconds", 0.01, "--runs", tmp_path, "--json")
    assert (status, err) == (0, "")
    (row,) = json.loads(out.splitlines()[-1])["rows"]["steps"]
    assert (row["size"], row["dropout"]) == ("adam", None)
    assert row["numpy"] > 0
    assert list(tmp_path.rglob("*.png")) == []


@pytest.mark.weekly
def test_peak_memory_is_that_of_the_step_alone():
    """At least the weights, their gradients and Adam's two moments, and not what the calling process holds."""
    size = SIZES["small"]
    ballast = np.ones(2**26)  # half a gigabyte
    weights = 4 * Transformer(size.config(0.0), seed=None).num_parameters()
    assert 4 * weights < peak_memory("numpy", size, 0.0, threads=1) < ballast.nbytes


@pytest.mark.exhaustive
def test_the_kinds_that_are_timed_compute_the_same_gradients():
    """At a length below the window, all kinds but the linear one are the same function."""
    kinds = [kind for kind in attention.KINDS if kind != "linear" and (torch_is_installed() or "Py" not in kind)]
    full, *others = ([np.asarray(x) for x in attention.make_call(kind, 24, 1)()] for kind in kinds)
    for other in others:
        for a, b in zip(full, other, strict=True):
            np.testing.assert_allclose(a, b, atol=2e-5)


@pytest.mark.weekly
def test_peak_memory_of_attention_is_that_of_the_weights_in_full_and_much_less_in_tiles():
    weights = 4 * attention.HEADS * 1024**2
    assert weights < attention.peak_memory("full", 1024, 1) < 8 * weights
    assert attention.peak_memory("tiled", 1024, 1) < weights


@pytest.mark.exhaustive
@pytest.mark.parametrize("batch", [1, 3])
def test_both_sides_of_the_decoding_benchmark_decode_the_same_tokens(batch, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(decoding, "COUNT", 9)
    ours, theirs = decoding.numpy_decoding("tiny", batch)(), decoding.pytorch_decoding("tiny", batch, 1)()
    assert ours.shape == (batch, 9)
    np.testing.assert_array_equal(ours, theirs)


def test_curves_without_pytorch_say_what_is_missing(capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    outcome = run(capsys, "experiment", "curves")
    assert outcome.status == 2
    assert "curves needs torch, which is not installed" in outcome.err
