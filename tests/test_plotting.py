"""Figures: they show the numbers given, the same numbers give the same bytes, and a file is written whole or not."""

import dataclasses
import math
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure

from minitransformer import plotting
from minitransformer.data import Corpus, MaskedTask, TextTask, get_task
from minitransformer.models import GPT, Transformer, named_config
from minitransformer.recipes import RECIPES
from minitransformer.recipes.recipe import Trained
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.training import History
from tests.drawing import drawn_texts, faults, unclear_lines

QUERIES, KEYS = ["c", "b", "a", "eos"], ["a", "b", "c", "d", "eos"]


def history(steps=120, seed=0):
    """Losses that fall and wobble, and learning rates that rise."""
    rng = np.random.default_rng(seed)
    losses = 3.0 * np.exp(-np.arange(steps) / 40.0) + 0.3 + 0.1 * rng.random(steps)
    return History(losses=losses.tolist(), learning_rates=np.linspace(0.0, 0.01, steps).tolist())


def attention(heads=3, T=4, S=5, seed=0):
    """Weights (H, T, S) whose rows sum to 1; the usual ones fit QUERIES and KEYS."""
    weights = np.random.default_rng(seed).random((heads, T, S))
    return weights / weights.sum(axis=-1, keepdims=True)


def draw_training(path, seed=0, steps=120):
    plotting.plot_training(history(steps, seed), path, "The loss of each step", floor=0.3)


def draw_text_training(path, seed=0, steps=120, evaluations=10):
    run, at = history(steps, seed), list(range(steps, 0, -max(1, steps // evaluations)))[::-1]
    bits = [1.5 * run.losses[step - 1] for step in at]
    plotting.plot_text_training(run, at, bits, path, "masked", "masked character")


def draw_attention(path, seed=0, heads=4, queries=tuple("cba"), keys=tuple("abc"), title="Attention"):
    weights = attention(heads, len(queries), len(keys), seed)
    plotting.plot_attention(weights, queries, keys, path, title)


def draw_samples(path, *sizes):
    """Panels of so many queries and keys."""
    queries, keys = ["the", "goat", "▁$", *["I"] * 30], ["Zie", "ge", *["▁"] * 30]
    samples = [(attention(1, T, S, T)[0], queries[:T], keys[:S]) for T, S in sizes]
    plotting.plot_samples(samples, path, "Where tokens look in some sentences that nobody has read")


DRAWN = {
    "training": draw_training,
    "training, 1 step": partial(draw_training, steps=1),
    "training, 20 steps": partial(draw_training, steps=20),
    "training, 10,000 steps": partial(draw_training, steps=10_000),
    "text": draw_text_training,
    "text, 1 step": partial(draw_text_training, steps=1),
    "text, 30 steps": partial(draw_text_training, steps=30),
    "attention": draw_attention,
    "attention, 1 head": partial(draw_attention, heads=1, keys=tuple("5296+6003"), title="Where tokens look " * 4),
    "attention, 16 heads": partial(draw_attention, heads=16, queries=("a",), keys=("b", "<bos>")),
    "attention, GPT": partial(draw_attention, queries=[*"ltiwcbhdruzi", "eos"], keys=[*"izurdhbc", "eos"] * 3),
    "attention, 60 tokens": partial(draw_attention, queries=["eos"] * 60, keys=["bos"] * 60),
    "attention, 1 token": partial(draw_attention, heads=2, queries=["W"], keys=["W"]),
    "attention, 1 to 30": partial(draw_attention, heads=5, queries=["W"], keys=["W"] * 30),
    "samples": lambda path: draw_samples(path, (3, 6), (5, 2)),
    "samples, 1 of 1 token": lambda path: draw_samples(path, (1, 1)),
    "samples of sentences": lambda path: draw_samples(path, *[(28, 30), (12, 9)] * 5),
    "attention, long tokens": partial(
        draw_attention,
        heads=3,
        queries=["<|endoftext|> and more"] * 5,
        keys=["W" * 40, "$", "$x$", "\\foo", "a_b^"],
    ),
}
BY_DEFAULT = ("training", "text, 1 step", "attention", "samples")  # the others are drawn with --exhaustive


@pytest.fixture
def shown(monkeypatch):
    """The figures that would be saved."""
    figures = []
    monkeypatch.setattr(plotting, "save_figure", lambda figure, path: figures.append(figure))
    yield figures
    for figure in figures:
        plotting.pyplot().close(figure)


def test_a_figure_is_written_is_not_blank_and_does_not_stay_open(tmp_path):
    path, before = tmp_path / "new" / "folder" / "figure.png", plotting.pyplot().get_fignums()
    draw_attention(path)
    image = matplotlib.image.imread(path)
    assert min(image.shape[:2]) > 200
    assert image[..., :3].var() > 1e-3
    assert [file.name for file in path.parent.iterdir()] == ["figure.png"]
    assert plotting.pyplot().get_fignums() == before


@pytest.mark.exhaustive
@pytest.mark.parametrize("draw", [draw_training, draw_attention])
def test_the_same_numbers_give_the_same_bytes_and_others_do_not(draw, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        draw(tmp_path / f"{name}.png", seed)
    first, again, other = ((tmp_path / f"{name}.png").read_bytes() for name in "abc")
    assert first == again
    assert first != other


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


@pytest.mark.parametrize(
    "name", [name if name in BY_DEFAULT else pytest.param(name, marks=pytest.mark.exhaustive) for name in DRAWN]
)
def test_a_figure_can_be_read(name, shown):
    DRAWN[name](None)
    assert faults(shown[0]) == []
    assert unclear_lines(shown[0]) == []


def labels_of(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


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
    assert labels == ["each step", "mean of the last 2 steps", "floor of label smoothing, 0.300"]


def test_the_training_figure_can_do_without_a_floor(shown):
    for floor in (None, 0.0):
        plotting.plot_training(history(), None, "Short", floor)
        assert labels_of(shown[-1].axes[0]) == ["each step", "mean of the last 2 steps"]


def test_a_mean_of_one_step_is_no_mean(shown):
    draw_training(None, steps=99)
    draw_text_training(None, steps=99)
    assert labels_of(shown[0].axes[0]) == ["each step", "floor of label smoothing, 0.300"]
    assert labels_of(shown[1].axes[0]) == ["training text", "held-out text, a sample of windows"]
    assert list(shown[0].axes[0].lines[0].get_xdata()) == list(range(1, 100))


@pytest.mark.parametrize(("steps", "expected"), [(1, "after 1 step"), (2400, "after 2,400 steps")])
def test_the_title_of_a_text_says_the_last_loss_that_is_drawn(steps, expected, shown):
    run = history(steps)
    plotting.plot_text_training(run, [1, steps], [6.5, 2.254], None, "shakespeare", "character")
    title = f"shakespeare: 2.25 bits per character on held-out text {expected}"
    assert shown[0].axes[0].get_title() == title
    assert list(shown[0].axes[0].lines[1].get_ydata()) == [6.5, 2.254]
    bits = [loss / math.log(2) for loss in run.losses]
    window = max(1, steps // 50)
    assert np.allclose(shown[0].axes[0].lines[0].get_ydata()[0], np.mean(bits[:window]))


def test_held_out_losses_may_be_missing_or_infinite(shown):
    plotting.plot_text_training(history(60), [], [], None, "shakespeare", "character")
    assert shown[0].axes[0].get_title() == "Training loss of shakespeare"
    assert labels_of(shown[0].axes[0]) == ["training text"]
    plotting.plot_text_training(history(60), [30, 60], [math.inf, 4.0], None, "shakespeare", "character")
    assert 4.0 < shown[1].axes[0].get_ylim()[1] < 10.0


def test_the_attention_figure_shows_every_head_with_its_tokens(shown):
    weights = attention()
    plotting.plot_attention(weights, QUERIES, KEYS, None, "Where tokens look")
    *panels, _ = shown[0].axes  # the last one is the color bar
    assert len(panels) == 3
    for head, panel in enumerate(panels):
        assert np.array_equal(panel.images[0].get_array(), weights[head])
        assert panel.images[0].get_clim() == (0.0, 1.0)
        assert [label.get_text() for label in panel.get_xticklabels()] == KEYS
        assert panel.get_title() == f"head {head + 1}"
    assert [label.get_text() for label in panels[0].get_yticklabels()] == QUERIES
    assert shown[0].get_suptitle() == "Where tokens look"


def test_of_too_many_tokens_every_second_one_is_named_beside_its_own_row(shown):
    tokens = [f"{i}" for i in range(60)]
    plotting.plot_attention(attention(1, 60, 60), tokens, tokens, None, "Where tokens look")
    panel = shown[0].axes[0]
    assert [label.get_text() for label in panel.get_xticklabels()] == tokens[::2]
    assert list(panel.get_xticks()) == list(range(0, 60, 2))
    assert list(panel.get_yticks()) == list(range(0, 60, 2))


def test_a_token_is_no_formula(shown):
    plotting.plot_attention(attention(1, 2, 2), ["$x$", "$"], ["\\frac$$", "a"], None, "Where tokens look")
    assert {"$x$", "$", "\\frac$$", "a"} <= {text.get_text() for text in drawn_texts(shown[0])}


@pytest.mark.parametrize(
    ("model", "title"),
    [("transformer", "Cross-attention"), pytest.param("gpt", "Self-attention", marks=pytest.mark.exhaustive)],
)
def test_the_attention_figure_of_a_toy_task_says_which_attention_it_shows(model, title, shown, tmp_path):
    recipe = RECIPES["reverse"]
    options = dataclasses.replace(recipe.defaults, model=model, steps=1)
    new = {"transformer": Transformer, "gpt": GPT}[model](named_config("tiny", 29), seed=0)
    batch = get_task("reverse").held_out_batch(np.random.default_rng(0), 20)
    run = History(losses=[4.0], learning_rates=[0.001])
    recipe.draw(Trained(options, recipe.data(options), new, run, [], {}, (batch, None)), tmp_path)
    loss, attended = shown
    assert attended.get_suptitle().startswith(title)
    assert attended.get_suptitle().endswith("trained on reverse")
    assert loss.axes[0].get_title() == "Training loss of reverse"


def test_the_figure_of_a_text_takes_name_and_unit_from_the_recipe(shown, tmp_path):
    recipe, tokenizer = RECIPES["masked"], CharacterTokenizer.train("to be")
    data = MaskedTask(TextTask(Corpus("to be " * 9, "to be " * 9), tokenizer, 8))
    recipe.draw(Trained(recipe.defaults, data, None, history(50), [[25, 3.0], [50, 2.5]], {}, None), tmp_path)
    title = "masked: 2.50 bits per masked character on held-out text after 50 steps"
    assert shown[0].axes[0].get_title() == title
    assert shown[0].axes[0].get_ylabel() == "loss (bits per masked character)"


@pytest.mark.exhaustive
def test_a_home_that_cannot_be_written_is_not_mentioned():
    code = "from minitransformer.plotting import pyplot; pyplot()"
    environment = {name: value for name, value in os.environ.items() if name not in ("MPLCONFIGDIR", "XDG_CONFIG_HOME")}
    environment |= {"HOME": os.devnull, "XDG_CACHE_HOME": os.devnull}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
