"""`minitransformer bench` runs both models on the same terms and reports what it measured; nothing here is timed."""

import json
from functools import partial

import matplotlib.image
import numpy as np
import pytest

from minitransformer.bench import (
    SIZES,
    attention,
    curves,
    interleave,
    median,
    numpy_step,
    peak_memory,
    recurrent,
    scaling,
    timing,
    torch_is_installed,
    training_step,
)
from minitransformer.bench.scaling import GROWTH, grown
from minitransformer.bench.timing import LEAST, WARM_UP
from minitransformer.data import Corpus, PairCorpus, TextTask, TranslationTask
from minitransformer.models import GPT, Transformer, TransformerConfig, gpt_config
from minitransformer.tokenizers import CharacterTokenizer
from tests.cli.run import assert_refused, run


def test_matmul_flops_are_those_of_a_plain_count():
    """Every product of the paper's forward pass written out, times three: backward takes two more for each."""
    size = SIZES["medium"]
    B, T, C, F, V = size.batch, size.length, size.d_model, size.d_ff, size.vocab_size
    D = C // size.num_heads

    def product(n, i, o):
        return 2 * n * i * o

    attention = size.num_heads * B * (product(T, D, T) + product(T, T, D))
    projections = 4 * product(B * T, C, C)
    network = product(B * T, C, F) + product(B * T, F, C)
    forward = size.num_layers * (3 * (attention + projections) + 2 * network) + product(B * T, C, V)
    assert size.matmul_flops == 3 * forward


def test_calls_take_turns_whose_first_calls_are_not_counted(monkeypatch):
    monkeypatch.setattr(timing, "TURN", 0.001)
    seen = []
    times = interleave({"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}, seconds=0.0)
    order = [name for i, name in enumerate(seen) if i == 0 or name != seen[i - 1]]
    assert "".join(order) == "ab" * (LEAST + 1)  # the warm-up, then turns
    counted = {name: seen.count(name) - WARM_UP - LEAST for name in "ab"}  # each turn's first call is not
    assert {name: len(values) for name, values in times.items()} == counted
    assert median([3.0, 1.0, 2.0]) == 2.0


def test_the_timed_step_learns():
    step = numpy_step(SIZES["tiny"], 0.0)
    losses = [step() for _ in range(30)]
    assert losses[-1] < losses[0] - 0.05


def test_both_models_have_the_same_parameters_and_first_loss_when_given_the_same_weights():
    torch = pytest.importorskip("torch")
    from minitransformer.bench.pytorch_model import PyTorchTransformer
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


def test_bench_prints_a_row_and_a_machine_readable_line(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, "bench", "tiny", "--dropout", 0.1, "--seconds", 0.01, "--json")
    assert (status, err) == (0, "")
    (row,) = json.loads(out.splitlines()[-1])["rows"]
    assert row["numpy"] > 0
    assert 0 < row["matmul_share"] < 1.5
    assert "tokens/s" in out
    figures = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.png")}
    assert figures == ({"runs/bench/bench.png"} if torch_is_installed() else set())


def test_adam_alone_is_one_row_without_a_figure(capsys, tmp_path, monkeypatch):
    small = partial(training_step.adam_steps, count=1000)
    monkeypatch.setattr(training_step, "adam_steps", small)
    monkeypatch.setattr(timing, "TURN", 0.001)
    status, out, err = run(capsys, "bench", "adam", "--seconds", 0.01, "--runs", tmp_path, "--json")
    assert (status, err) == (0, "")
    (row,) = json.loads(out.splitlines()[-1])["rows"]
    assert (row["size"], row["dropout"]) == ("adam", None)
    assert row["numpy"] > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.exhaustive
def test_peak_memory_is_that_of_the_step_alone():
    """At least the weights, their gradients and Adam's two moments, and not what the calling process holds."""
    size = SIZES["small"]
    ballast = np.ones(2**26)  # half a gigabyte
    weights = 4 * Transformer(size.config(0.0), seed=None).num_parameters()
    assert 4 * weights < peak_memory("numpy", size, 0.0, threads=1) < ballast.nbytes


def test_an_unknown_size_is_refused_with_the_known_ones(capsys):
    status, out, err = run(capsys, "bench", "huge")
    assert (status, out) == (2, "")
    assert "known sizes: tiny, small, medium, base-like, adam" in err


def test_each_growth_changes_one_thing_and_keeps_the_papers_shape():
    for what, (values, _) in GROWTH.items():
        for value in values:
            size = grown(what, value)
            assert getattr(size, what) == value
            assert size.d_ff == 4 * size.d_model
            assert size.d_model // size.num_heads == 32


@pytest.mark.exhaustive
@pytest.mark.draws
def test_scaling_prints_a_row_for_each_size_and_draws_them(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(scaling, "GROWTH", {"batch": ((1, 2), 1), "d_model": ((32, 64), 2)})
    monkeypatch.setattr(timing, "TURN", 0.001)
    status, out, err = run(capsys, "bench", "--scaling", "--seconds", 0.01, "--json")
    assert (status, err) == (0, "")
    rows = json.loads(out.splitlines()[-1])["rows"]
    assert [(row["what"], row["value"]) for row in rows] == [
        ("batch", 1),
        ("batch", 2),
        ("d_model", 32),
        ("d_model", 64),
    ]
    assert all(row["seconds"] > 0 and row["bytes"] > 0 for row in rows)
    assert (tmp_path / "runs" / "bench" / "bench_scaling.png").stat().st_size > 10_000


def test_recurrent_layers_take_turns_with_their_matrix_products_and_with_pytorch(capsys, monkeypatch):
    for name in ("WIDTH", "BATCH", "LENGTH"):
        monkeypatch.setattr(recurrent, name, 3)
    monkeypatch.setattr(timing, "TURN", 0.001)
    status, out, err = run(capsys, "bench", "--recurrent", "--seconds", 0.01, "--json")
    assert (status, err) == (0, "")
    rows = json.loads(out.splitlines()[-1])["rows"]
    assert [row["kind"] for row in rows] == ["LSTM", "GRU"]
    assert all(row["ours_ms"] > 0 and row["products_ms"] > 0 for row in rows)
    assert all(("ratio" in row) == torch_is_installed() for row in rows)


@pytest.mark.draws
def test_attention_prints_time_and_memory_of_each_kind_at_each_length(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(attention, "LENGTHS", (16, 32))
    monkeypatch.setattr(attention, "LONGEST", {"full": 16, "PyTorch math": 16})
    monkeypatch.setattr(attention, "peak_memory", lambda kind, length, threads: 1000 * length)
    monkeypatch.setattr(timing, "TURN", 0.001)
    status, out, err = run(capsys, "bench", "--attention", "--seconds", 0.01, "--runs", tmp_path, "--json")
    assert (status, err) == (0, "")
    rows = json.loads(out.splitlines()[-1])["rows"]
    expected = {(kind, 16) for kind in attention.KINDS} | {
        (kind, 32) for kind in ("tiled", "windowed", "strided", "linear", "PyTorch flash")
    }
    if not torch_is_installed():
        expected = {(kind, length) for kind, length in expected if "PyTorch" not in kind}
    assert {(row["kind"], row["length"]) for row in rows} == expected
    assert all(row["seconds"] > 0 and row["bytes"] == 1000 * row["length"] for row in rows)
    assert (tmp_path / "bench" / "bench_attention.png").stat().st_size > 10_000


def test_the_kinds_that_are_timed_compute_the_same_gradients():
    """At a length below the window, all kinds but the linear one are the same function."""
    kinds = [kind for kind in attention.KINDS if kind != "linear" and (torch_is_installed() or "Py" not in kind)]
    full, *others = ([np.asarray(x) for x in attention.make_call(kind, 24, 1)()] for kind in kinds)
    for other in others:
        for a, b in zip(full, other, strict=True):
            np.testing.assert_allclose(a, b, atol=2e-5)


@pytest.mark.exhaustive
def test_peak_memory_of_attention_is_that_of_the_weights_in_full_and_much_less_in_tiles():
    weights = 4 * attention.HEADS * 1024**2
    assert weights < attention.peak_memory("full", 1024, 1) < 8 * weights
    assert attention.peak_memory("tiled", 1024, 1) < weights


@pytest.fixture
def small_curves(monkeypatch):
    """The comparison of curves on small data, with small models, for a few steps."""
    text = "".join(f"{i} and {i + 1} are {2 * i + 1}, " for i in range(300))
    pairs = [(f"{i} and {i}", f"{2 * i}") for i in range(99)]
    tokenizer, sizes = CharacterTokenizer.train(text), {"d_model": 12, "num_heads": 3, "d_ff": 20, "num_layers": 1}
    gpt = gpt_config(tokenizer.vocab_size, dropout=0.0, max_len=16, **sizes)
    encoder_decoder = TransformerConfig(tokenizer.vocab_size, norm="pre", dropout=0.0, max_len=16, **sizes)
    windows = TextTask(Corpus(text, text[:200]), tokenizer, 16)
    sentences = TranslationTask(PairCorpus(pairs, pairs[:3], pairs[3:6]), tokenizer, 16)
    how = {"steps": 3, "warmup": 1, "peak": 1e-3}
    problems = {
        "shakespeare": curves.Problem("Windows", GPT, gpt, windows, batch_size=4, **how),
        "translation": curves.Problem("Sentences", Transformer, encoder_decoder, sentences, batch_size=80, **how),
    }
    monkeypatch.setattr(curves, "PROBLEMS", {name: lambda name=name: problems[name] for name in problems})


@pytest.mark.draws
@pytest.mark.parametrize(
    ("option", "title", "figure"),
    [
        (["--curves"], "Windows", "bench_curves.png"),
        (["--curves", "shakespeare"], "Windows", "bench_curves.png"),
        (["--curves", "translation"], "Sentences", "bench_curves_translation.png"),
    ],
)
def test_both_losses_are_drawn_and_printed(small_curves, capsys, tmp_path, option, title, figure):
    pytest.importorskip("torch")
    status, out, _ = run(capsys, "bench", *option, "--runs", tmp_path, "--json")
    assert status == 0
    losses = json.loads(out.splitlines()[-1])
    assert len(losses["numpy"]) == len(losses["pytorch"]) == 3
    np.testing.assert_allclose(losses["numpy"], losses["pytorch"], rtol=1e-5)
    assert out.startswith(title)
    assert f"ours {losses['numpy'][-1]:.4f}" in out
    assert matplotlib.image.imread(tmp_path / "bench" / figure)[..., :3].std() > 0.01


def test_curves_without_pytorch_say_what_is_missing(small_curves, capsys, monkeypatch):
    monkeypatch.setattr(curves, "torch_is_installed", lambda: False)
    assert_refused(run(capsys, "bench", "--curves"), "PyTorch, which is not installed")


def test_curves_of_something_else_are_refused(capsys):
    assert_refused(run(capsys, "bench", "--curves", "copy"), "--curves: invalid choice: 'copy'")
