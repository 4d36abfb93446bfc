"""The figures of the benchmarks show the numbers given, and can be read whatever these are."""

from functools import partial

import numpy as np
import pytest

from minitransformer import plotting
from minitransformer.bench import communication_figure, figures
from tests.drawing import faults, unclear_lines


def draw_bench(sizes=("tiny", "small", "medium", "base-like"), rates=(0.1, 0.0), threads=2, highest=2.4):
    rng = np.random.default_rng(0)
    rows = [
        {"size": size, "dropout": rate, "ratio": highest * rng.random(), "matmul_share": rng.random()}
        for size in sizes
        for rate in rates
    ]
    figures.plot_bench(rows, None, threads)


def draw_scaling(powers=(("batch", 1), ("length", 2), ("d_model", 2), ("num_layers", 1)), values=7):
    noise = np.random.default_rng(0).random(values)
    rows = [
        {"what": what, "value": 2**i, "seconds": 1e-3 * (2 + 2 ** (power * i) + noise[i]), "bytes": 1e7 * (3 + 2**i)}
        for what, power in powers
        for i in range(values)
    ]
    figures.plot_scaling(rows, dict(powers), None)


def draw_attention(
    kinds=("full", "tiled", "windowed", "strided", "linear", "PyTorch flash", "PyTorch math"), lengths=6
):
    noise = np.random.default_rng(0).random((len(kinds), lengths))
    rows = [
        {"kind": kind, "length": 256 * 2**j, "seconds": 1e-3 * 4**j * (i + 1), "bytes": 1e6 * 2**j * (1 + noise[i, j])}
        for i, kind in enumerate(kinds)
        for j in range(lengths if i % 6 else max(1, lengths - 2))
    ]
    figures.plot_attention(rows, None, 1)


def draw_lengths(tasks=("copy", "reverse"), lengths=(6, 9, 12, 13, 14, 16, 20, 24, 32, 48)):
    rng = np.random.default_rng(0)
    rows = [
        {"task": task, "positions": positions, "exact_match": rng.integers(0, 201, len(lengths)) / 200}
        for task in tasks
        for positions in ("sinusoidal", "learned", "relative", "rope", "alibi", "none")
    ]
    figures.plot_lengths(rows, tasks, lengths, 12, None)


def draw_decoding(tokens=1024, recomputed=(16, 64, 256, 1024)):
    rng = np.random.default_rng(0)
    title = f"Cost of one more token, small model, batch 1, up to {tokens} tokens"
    figures.plot_decoding(1e-4 + 1e-5 * rng.random(tokens), {n: 1e-3 + 4e-5 * n for n in recomputed}, None, title)


def draw_curves(steps=300, apart=1e-7):
    noise = np.random.default_rng(0).standard_normal((2, steps))
    losses = 2.0 + 3.0 * np.exp(-np.arange(steps) / 40.0) + 0.1 * noise[0]
    other = losses + apart * noise[1]
    figures.plot_curves(np.stack([losses, other]), None, "Shakespeare: our loss and PyTorch's")


def draw_communication(sizes=(2, 3, 4), cases=(("tiny", "CPU"), ("base", "CPU"), ("base", "P100"), ("big", "P100"))):
    noise = np.random.default_rng(0).random((len(sizes), 9))
    sums = [
        {
            "processes": size,
            "parameters": round(10 ** (4 + j / 2)),
            "seconds": 10 ** (j / 2 - 4.5) * (i + 1 + noise[i, j]),
        }
        for i, size in enumerate(sizes)
        for j in range(9)
    ]
    fits = [{"processes": size, "latency": 2e-5 * size, "bandwidth": 2e9 / size} for size in sizes]
    simulated = [
        {
            "model": model,
            "machine": machine,
            "network": f"{speed} Gbit/s",
            "machines": n,
            "speedup": n / (1 + n * i / speed),
        }
        for i, (model, machine) in enumerate(cases, start=1)
        for speed in (10, 100)
        for n in (1, 2, 4, 8, 16, 32, 64, 128)
    ]
    communication_figure.plot_communication(sums, fits, simulated, None)


DRAWN = {
    "bench": draw_bench,
    "bench, 1 row": partial(draw_bench, sizes=("base-like",), rates=(0.0,), threads=1),
    "bench, 5 rates": partial(draw_bench, rates=(0.0, 0.1, 0.2, 0.3, 0.5), threads=16, highest=120.0),
    "bench, slower than PyTorch": partial(draw_bench, highest=0.1),
    "scaling": draw_scaling,
    "scaling, 1 size": partial(draw_scaling, powers=(("length", 2),), values=2),
    "attention": draw_attention,
    "attention, 1 kind": partial(draw_attention, kinds=("linear",), lengths=1),
    "lengths": draw_lengths,
    "lengths, 1 task": partial(draw_lengths, tasks=("copy",), lengths=(6, 12, 1000)),
    "decoding": draw_decoding,
    "decoding, 3 tokens": partial(draw_decoding, tokens=3, recomputed=(2,)),
    "communication": draw_communication,
    "communication, 1 case": partial(draw_communication, sizes=(2,), cases=(("base", "CPU"),)),
    "curves": draw_curves,
    "curves, 1 step": partial(draw_curves, steps=1),
    "curves, far apart": partial(draw_curves, apart=2.0),
}


@pytest.fixture
def shown(monkeypatch):
    """The figures that would be saved."""
    saved = []
    for module in (figures, communication_figure):
        monkeypatch.setattr(module, "save_figure", lambda figure, path: saved.append(figure))
    yield saved
    for figure in saved:
        plotting.pyplot().close(figure)


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_can_be_read(name, shown):
    DRAWN[name]()
    assert faults(shown[0]) == []
    assert unclear_lines(shown[0]) == []


def test_the_figure_of_lengths_says_every_share_without_rounding_it_up(shown):
    rows = [{"task": "copy", "positions": "rope", "exact_match": [1.0, 0.995, 0.005, 0.0]}]
    figures.plot_lengths(rows, ["copy"], [6, 12, 13, 48], 12, None)
    panel = shown[0].axes[0]
    assert [text.get_text() for text in panel.texts] == ["100", "99.5", "0.5", "0"]
    assert set(panel.lines[0].get_xdata()) == {1.5}  # between 12, the longest in training, and 13
    assert [label.get_text() for label in panel.get_xticklabels()] == ["6", "12", "13", "48"]
    assert shown[0].get_suptitle() == "Exact answers to sources of up to 48 letters, in %"


def test_the_difference_of_two_curves_is_drawn_with_its_sign_and_its_zeros(shown):
    figures.plot_curves(np.array([[3.0, 2.0, 1.5], [3.0, 2.5, 1.0]]), None, "Two losses")
    assert list(shown[0].axes[1].lines[0].get_ydata()) == [0.0, -0.5, 0.5]
