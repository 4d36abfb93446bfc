"""The checks of figures notice what they look for, and nothing in a figure that is fine."""

import pytest

from minitransformer import plotting
from tests.drawing import faults, unclear_lines


@pytest.fixture
def axes():
    """A small figure that is fine, as its axes."""
    figure, axes = plotting.pyplot().subplots(figsize=(4, 3))
    axes.plot([0, 1, 2], [2, 1, 0], color=plotting.BLUE, label="loss")
    axes.set(xlabel="step", ylabel="loss", title="A loss")
    yield axes
    plotting.pyplot().close(figure)


PLANTED = {
    "a text on another": (lambda axes: axes.set_xticks([0.0, 0.1], ["one", "two"]), "'one' lies on 'two'"),
    "a title too wide": (lambda axes: axes.set_title("wide " * 30), "leaves the figure"),
    "a text too small": (lambda axes: axes.text(1.5, 1.5, "small", fontsize=5), "'small' is too small"),
    "an axis without a name": (lambda axes: axes.set_xlabel(""), "no name on the x axis"),
    "a legend over a line": (lambda axes: axes.legend(loc="center"), "the legend hides 'loss'"),
    "a legend over a bar": (lambda axes: (axes.bar(1.0, 0.9), axes.legend(loc="lower center")), "hides a bar"),
    "a line of one point": (lambda axes: axes.plot([1], [1], color=plotting.BLUE), "single point without a marker"),
    "a line beyond its panel": (lambda axes: axes.set_ylim(0.5, 3), "'loss' leaves its panel"),
    "a line that no legend explains": (
        lambda axes: (axes.legend(), axes.plot([0, 1], [0, 1], color=plotting.BLUE)),
        "0 times in the legend",
    ),
    "a color of its own": (lambda axes: axes.plot([0, 1], [0, 1], color="red", label="red"), "has the colour red"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name, axes):
    plant, expected = PLANTED[name]
    plant(axes)
    assert any(expected in fault for fault in faults(axes.figure) + unclear_lines(axes.figure))


def test_a_figure_that_is_fine_has_no_faults(axes):
    axes.legend()
    assert faults(axes.figure) == unclear_lines(axes.figure) == []
