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


def test_planted_faults_are_found(axes):
    axes.set_xticks([0.0, 0.1], ["one", "two"])
    axes.set(xlabel="", title="wide " * 30, ylim=(0.5, 3))
    axes.text(1.5, 1.5, "small", fontsize=5)
    axes.bar(1.0, 0.9)
    axes.legend(loc="lower center")
    axes.plot([1], [1], color="red", label="red")
    found = "\n".join(faults(axes.figure) + unclear_lines(axes.figure))
    for expected in (
        "'one' lies on 'two'",
        "leaves the figure",
        "'small' is too small",
        "no name on the x axis",
        "the legend hides 'loss'",
        "the legend hides a bar",
        "'red' is a single point without a marker",
        "'loss' leaves its panel",
        "'red' is 0 times in the legend",
        "'red' has the colour red",
    ):
        assert expected in found, found
