"""A chart of findings: a text in each cell, and a colour for the cells that matter. Lesson 15 shows its patients so.

figure, axis = plt.subplots(figsize=(7.2, 4.6))
chart(axis, [["0.3", "ok"]], orange=[[True, False]], rows=["patient 1"], columns=["leak", "score"])
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minitransformer.plotting import BLUE, GREY, ORANGE, pyplot

plt = pyplot()

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def chart(
    axes: "Axes", texts: Any, orange: Any, rows: Sequence[str], columns: Sequence[str], blue: Any = False
) -> None:
    """Draw the `texts`, rows of strings: white on orange or blue where these are True, else black on grey."""
    texts = np.array(texts)
    fills = np.where(orange, ORANGE, np.where(blue, BLUE, ""))
    for (i, j), text in np.ndenumerate(texts):
        fill = str(fills[i, j])
        box = {"facecolor": fill or GREY, "alpha": 1.0 if fill else 0.15, "edgecolor": "white", "linewidth": 2}
        axes.add_patch(plt.Rectangle((j, i), 1, 1, **box))
        axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", color="white" if fill else "black")
    axes.set(xlim=(0, texts.shape[1]), ylim=(texts.shape[0], 0))
    axes.set_xticks(np.arange(texts.shape[1]) + 0.5, columns)
    axes.set_yticks(np.arange(texts.shape[0]) + 0.5, rows)
    axes.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)
