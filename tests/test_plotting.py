"""Figures: they show the numbers given, the same numbers give the same bytes, and a file is written whole or not."""

from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure

from minitransformer import plotting
from minitransformer.training import History

QUERIES, KEYS = ["c", "b", "a", "eos"], ["a", "b", "c", "d", "eos"]


def history(steps=120, seed=0):
    """Losses that fall and wobble, and learning rates that rise."""
    rng = np.random.default_rng(seed)
    losses = 3.0 * np.exp(-np.arange(steps) / 40.0) + 0.3 + 0.1 * rng.random(steps)
    return History(losses=losses.tolist(), learning_rates=np.linspace(0.0, 0.01, steps).tolist())


def attention(heads=3, seed=0):
    """Weights (H, T, S) whose rows sum to 1."""
    weights = np.random.default_rng(seed).random((heads, len(QUERIES), len(KEYS)))
    return weights / weights.sum(axis=-1, keepdims=True)


def draw_training(path, seed=0):
    plotting.plot_training(history(seed=seed), path, "The loss falls", floor=0.3)


def draw_attention(path, seed=0):
    plotting.plot_attention(attention(seed=seed), QUERIES, KEYS, path, "Where tokens look")


every_figure = pytest.mark.parametrize("draw", [draw_training, draw_attention])


@pytest.fixture
def shown(monkeypatch):
    """The figures that would be saved."""
    figures = []
    monkeypatch.setattr(plotting, "save_figure", lambda figure, path: figures.append(figure))
    yield figures
    for figure in figures:
        plotting.pyplot().close(figure)


@every_figure
def test_a_figure_is_written_and_is_not_blank(draw, tmp_path):
    path = tmp_path / "new" / "folder" / "figure.png"
    draw(path)
    image = matplotlib.image.imread(path)
    assert min(image.shape[:2]) > 200
    assert image[..., :3].var() > 1e-3
    assert [file.name for file in path.parent.iterdir()] == ["figure.png"]


@every_figure
def test_the_same_numbers_give_the_same_bytes_and_others_do_not(draw, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        draw(tmp_path / f"{name}.png", seed)
    first, again, other = ((tmp_path / f"{name}.png").read_bytes() for name in "abc")
    assert first == again
    assert first != other


@every_figure
def test_no_figure_stays_open(draw, tmp_path):
    before = plotting.pyplot().get_fignums()
    draw(tmp_path / "figure.png")
    assert plotting.pyplot().get_fignums() == before


@pytest.mark.parametrize("existing", [None, b"an older figure"])
def test_a_save_that_fails_leaves_no_half_written_file(existing, tmp_path, monkeypatch):
    path = tmp_path / "figure.png"
    if existing is not None:
        path.write_bytes(existing)

    def breaks_off(self, target, **options):
        """As on a full disk: some bytes, then an error."""
        if hasattr(target, "write"):
            target.write(b"half")
        else:
            Path(target).write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(Figure, "savefig", breaks_off)
    with pytest.raises(OSError, match="no space left on device"):
        draw_training(path)
    plotting.pyplot().close("all")
    files = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert files == ({} if existing is None else {"figure.png": existing})


def test_the_training_figure_shows_losses_their_mean_the_floor_and_the_learning_rate(shown):
    run = history()
    plotting.plot_training(run, None, "The loss falls", floor=0.3)
    top, bottom = shown[0].axes
    each, mean, floor = top.lines
    assert top.get_title() == "The loss falls"
    assert list(each.get_xdata()) == list(range(1, 121))
    assert list(each.get_ydata()) == run.losses
    assert list(mean.get_xdata()) == list(range(2, 121))  # a fiftieth of 120 steps is 2
    expected = [(run.losses[i - 1] + run.losses[i]) / 2 for i in range(1, 120)]
    assert np.allclose(mean.get_ydata(), expected, rtol=1e-14, atol=0)
    assert set(floor.get_ydata()) == {0.3}
    assert list(bottom.lines[0].get_ydata()) == run.learning_rates
    labels = [text.get_text() for text in top.get_legend().get_texts()]
    assert labels == ["each step", "mean of 2 steps", "floor of label smoothing, 0.300"]


@pytest.mark.parametrize("floor", [None, 0.0])
@pytest.mark.parametrize("steps", [1, 2, 51])
def test_the_training_figure_can_do_without_a_floor_and_with_few_steps(steps, floor, tmp_path, shown):
    plotting.plot_training(history(steps), tmp_path / "loss.png", "Short", floor)
    assert len(shown[0].axes[0].lines) == 2


@pytest.mark.parametrize("heads", [1, 3])
def test_the_attention_figure_shows_every_head_with_its_tokens(heads, shown):
    weights = attention(heads)
    plotting.plot_attention(weights, QUERIES, KEYS, None, "Where tokens look")
    panels = shown[0].axes[:heads]
    assert len(shown[0].axes) == heads + 1  # the panels and the colour bar
    for head, panel in enumerate(panels):
        assert np.array_equal(panel.images[0].get_array(), weights[head])
        assert panel.images[0].get_clim() == (0.0, 1.0)
        assert [label.get_text() for label in panel.get_xticklabels()] == KEYS
        assert [label.get_text() for label in panel.get_yticklabels()] == QUERIES
        assert panel.get_title() == f"head {head + 1}"
    assert shown[0].get_suptitle() == "Where tokens look"
