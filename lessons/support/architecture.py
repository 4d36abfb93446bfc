"""The picture of the whole model, figure 1 of the paper, and the strip at the head of a lesson, in which it is small.

    lesson.save(strip(MAPS["05"]), "map")
    lesson.save(architecture(), "whole")

And the picture of the running example's model, with the size of each gradient: `gradient_sizes`. Forward is blue and
gradient orange, as in all pictures of the course.
"""

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from support.graph import Graph
from support.pictures import BLACK, canvas, mix, number, plt

from minitransformer.plotting import BLUE, GREY, ORANGE, YELLOW

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENCODER, DECODER, SIDE = 1.42, 4.12, 0.92  # where the columns of boxes are, and half a box's width, in inches
BOXES = {  # name: x and y of the middle, text
    "source embedding": (ENCODER, 0.62, "embedding"),
    "source positions": (ENCODER, 1.10, "+ positions"),
    "encoder self-attention": (ENCODER, 1.74, "self-attention"),
    "encoder add & norm 1": (ENCODER, 2.10, "add & norm"),
    "encoder feed-forward": (ENCODER, 2.74, "feed-forward"),
    "encoder add & norm 2": (ENCODER, 3.10, "add & norm"),
    "target embedding": (DECODER, 0.62, "embedding"),
    "target positions": (DECODER, 1.10, "+ positions"),
    "decoder self-attention": (DECODER, 1.74, "masked self-attention"),
    "decoder add & norm 1": (DECODER, 2.10, "add & norm"),
    "cross-attention": (DECODER, 2.74, "cross-attention"),
    "decoder add & norm 2": (DECODER, 3.10, "add & norm"),
    "decoder feed-forward": (DECODER, 3.74, "feed-forward"),
    "decoder add & norm 3": (DECODER, 4.10, "add & norm"),
    "output": (DECODER, 4.80, "linear, shared matrix E"),
    "softmax": (DECODER, 5.34, "softmax"),
    "loss": (DECODER, 5.98, "cross-entropy loss"),
    "optimizer": (ENCODER, 4.12, "optimizer (Adam)"),
    "decoding": (5.86, 5.34, "decoding"),
}
HALF = 0.14  # half a box's height
SUBLAYERS = {  # name: the add & norm to which its residual path leads
    "encoder self-attention": "encoder add & norm 1",
    "encoder feed-forward": "encoder add & norm 2",
    "decoder self-attention": "decoder add & norm 1",
    "cross-attention": "decoder add & norm 2",
    "decoder feed-forward": "decoder add & norm 3",
}
ENCODER_BOXES, DECODER_BOXES = (
    [name for name, (x, _, _) in BOXES.items() if x == column and name != "optimizer"] for column in (ENCODER, DECODER)
)
ATTENTIONS = ("encoder self-attention", "decoder self-attention", "cross-attention")
EMBEDDINGS = ("source embedding", "target embedding")


class Place(NamedTuple):
    """Where in the model a lesson is."""

    text: str
    lit: tuple[str, ...]  # names of BOXES


MAPS = {  # the number of each lesson: its place
    "00": Place("the whole machine", tuple(BOXES)),
    "01": Place("the loss, and its gradient", ("loss",)),
    "02": Place("feed-forward", ("encoder feed-forward", "decoder feed-forward")),
    "03": Place("softmax and loss", ("softmax", "loss")),
    "04": Place("embeddings, and the output", (*EMBEDDINGS, "output")),
    "05": Place("cross-attention", ("cross-attention",)),
    "06": Place("cross-attention, backward", ("cross-attention",)),
    "07": Place("masks in self-attention", ATTENTIONS[:2]),
    "08": Place("heads, in each attention", ATTENTIONS),
    "09": Place("positions", ("source positions", "target positions")),
    "10": Place("norms", tuple(SUBLAYERS.values())),
    "11": Place("the paths around each sub-layer", tuple(SUBLAYERS.values())),
    "12": Place("the whole machine, backward", tuple(BOXES)[:-2]),
    "13": Place("optimizer", ("optimizer",)),
    "14": Place("shifted targets, and writing", ("target embedding", "loss", "decoding")),
    "15": Place("everywhere a bug can hide", tuple(BOXES)),
    "16": Place("decoding", ("decoding",)),
    "17": Place("what attention replaced", ATTENTIONS),
    "18": Place("what comes before the embedding", EMBEDDINGS),
    "19": Place("the block since 2017", tuple(BOXES)[1:14]),
    "20": Place("self-attention, in two layers", ("decoder self-attention",)),
    "21": Place("the weights of attention", ATTENTIONS),
    "22": Place("self-attention, in tiles", ATTENTIONS[:2]),
    "23": Place("what can replace self-attention", ("decoder self-attention",)),
    "24": Place("the length of a step", ("optimizer",)),
    "25": Place("everywhere, on two machines", tuple(BOXES)[:-1]),
    "26": Place("all of it, and you are alone", tuple(BOXES)),
    "27": Place("an encoder that others trained", tuple(ENCODER_BOXES)),
}


def strip(place: Place) -> "Figure":
    """The model as two rows of small boxes, lit where the lesson is, with the name of the place -> Figure."""
    figure, axes = canvas(7.2, 0.56)
    width, height, top, bottom = 0.24, 0.15, 0.38, 0.08
    corners = {name: (0.08 + 0.28 * i, top) for i, name in enumerate(ENCODER_BOXES)}
    corners |= {name: (0.08 + 0.28 * i, bottom) for i, name in enumerate(DECODER_BOXES)}
    corners |= {"optimizer": (corners["softmax"][0], top), "decoding": (corners["loss"][0] + 0.34, bottom)}
    for name, (x, y) in corners.items():
        fill, edge = (YELLOW, BLACK) if name in place.lit else (mix(GREY, 0.1), mix(GREY, 0.5))
        box = plt.Rectangle((x, y), width, height, facecolor=fill, edgecolor=edge, linewidth=0.8, gid=name, zorder=3)
        axes.add_patch(box)
    for names, y in ((ENCODER_BOXES, top), (DECODER_BOXES, bottom)):
        _line(axes, [(0.1, y + height / 2), (corners[names[-1]][0], y + height / 2)], BLUE, head=False)
    end, across = corners["encoder add & norm 2"][0] + width, corners["cross-attention"][0] + width / 2
    _line(axes, [(end, top + height / 2), (end + 0.1, top + height / 2), (across, bottom + height)], BLUE)
    axes.text(3.75, 0.29, place.text, fontsize=12, weight="bold", color=BLACK, va="center")
    return figure


def architecture() -> "Figure":
    """The Transformer, with shapes and the ways of the gradient -> Figure. Source: section 3.1 and figure 1."""
    figure, axes = canvas(6.4, 6.5)
    _frames(axes)
    for name, (x, y, text) in BOXES.items():
        _box(axes, name, x, y, 0.48 if name == "decoding" else SIDE, text)
    _columns(axes)
    _residual_paths(axes)
    _memory(axes)
    _around(axes)
    _legend(axes)
    return figure


def _box(axes: "Axes", name: str, x: float, y: float, half: float, text: str) -> None:
    """A box around the middle (x, y), which carries its name as `gid`."""
    box = plt.Rectangle((x - half, y - HALF), 2 * half, 2 * HALF, facecolor=mix(GREY, 0.1), gid=name, zorder=3)
    box.set(edgecolor=BLACK, linewidth=0.8)
    axes.add_patch(box)
    axes.text(x, y - 0.01, text, fontsize=9, color="black", ha="center", va="center", zorder=4)


def _line(axes: "Axes", points: list[tuple[float, float]], color: str, head: bool = True) -> None:
    """A line through the points, with an arrow head at its end."""
    width = 1.0 if color == BLUE else 0.8
    if head:
        style: dict[str, Any] = {"arrowstyle": "-|>", "color": color, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
        style["mutation_scale"] = 7
        axes.annotate("", points[-1], points[-2], arrowprops=style, zorder=2)
        points = points[:-1]
    axes.plot(*zip(*points, strict=True), color=color, linewidth=width, zorder=2, solid_capstyle="butt")


def _say(axes: "Axes", x: float, y: float, text: str, color: str = BLUE, **options: Any) -> None:
    """Text of 8.5 points, to the right of (x, y) unless `options` say something else."""
    axes.text(x, y, text, **{"fontsize": 8.5, "color": color, "ha": "left", "va": "center", **options})


def _frames(axes: "Axes") -> None:
    """The dashed frames around one layer of the encoder and one of the decoder, and what stands below the columns."""
    for x, y, width, height, name, beside in (
        (ENCODER - 1.12, 1.34, 2.18, 1.98, "encoder layer, 6 times in the paper", ENCODER - 1.24),
        (DECODER - 1.06, 1.34, 2.18, 2.98, "decoder layer, 6 times in the paper", DECODER + 1.24),
    ):
        options: dict[str, Any] = {"edgecolor": GREY, "linestyle": (0, (4, 3)), "linewidth": 0.8, "zorder": 1}
        axes.add_patch(plt.Rectangle((x, y), width, height, fill=False, **options))
        _say(axes, beside, y + height / 2, name, GREY, rotation=90, ha="center")
    _say(axes, ENCODER, 0.13, "source ids (S)", ha="center")
    _say(axes, DECODER, 0.13, "target ids (T), shifted right", ha="center")


def _columns(axes: "Axes") -> None:
    """The arrows up the two columns, with shapes, and the gradient's arrows down."""
    shapes = {
        "source positions": "(S, C)",
        "encoder self-attention": "Q, K, V (S, C)",
        "encoder feed-forward": "(S, C)",
        "target positions": "(T, C)",
        "decoder self-attention": "Q, K, V (T, C)",
        "cross-attention": "Q (T, C)",
        "decoder feed-forward": "(T, C)",
        "output": "(T, C)",
        "softmax": "logits (T, V)",
        "loss": "probabilities (T, V)",
    }
    for column, names in ((ENCODER, ENCODER_BOXES), (DECODER, DECODER_BOXES)):
        _line(axes, [(column, 0.21), (column, BOXES[names[0]][1] - HALF)], BLUE)
        for below, above in itertools.pairwise(names):
            low, high = BOXES[below][1] + HALF, BOXES[above][1] - HALF
            short = above in SUBLAYERS.values()
            _line(axes, [(column, low), (column, high)], BLUE, head=not short)
            _line(axes, [(column - 0.14, high), (column - 0.14, low)], ORANGE, head=not short)
            if not short:
                _say(axes, column + 0.07, (low + high) / 2 + 0.01, shapes[above])


def _residual_paths(axes: "Axes") -> None:
    """The lines around the sub-layers into add & norm: left of the encoder, right of the decoder."""
    for below, above in SUBLAYERS.items():
        x, y, _ = BOXES[below]
        side = -1 if x == ENCODER else 1
        fork, outer, end = y - HALF - 0.07, x + side * (SIDE + 0.11), BOXES[above][1]
        _line(axes, [(x, fork), (outer, fork), (outer, end), (x + side * SIDE, end)], BLUE)


def _memory(axes: "Axes") -> None:
    """The encoder's output to cross-attention, and its gradient back."""
    top, across, end = BOXES["encoder add & norm 2"][1] + HALF, 2.80, DECODER - SIDE
    y = BOXES["cross-attention"][1]
    _line(axes, [(ENCODER, top), (ENCODER, 3.56), (across, 3.56), (across, y - 0.07), (end, y - 0.07)], BLUE)
    _line(axes, [(across, y + 0.02), (end, y + 0.02)], BLUE)
    back = [(end, y + 0.10), (across + 0.08, y + 0.10), (across + 0.08, 3.64), (ENCODER - 0.14, 3.64)]
    _line(axes, [*back, (ENCODER - 0.14, top)], ORANGE)
    _say(axes, ENCODER + 0.07, 3.45, "memory M (S, C)")
    _say(axes, across - 0.05, y - 0.02, "K, V", ha="right")


def _around(axes: "Axes") -> None:
    """What is not a layer: labels and loss, the optimizer's arrows, the loop of decoding."""
    y, right = BOXES["loss"][1], DECODER + SIDE
    _line(axes, [(right + 0.34, y), (right, y)], BLUE)
    _say(axes, right + 0.40, y, "labels (T)")
    _line(axes, [(DECODER, y + HALF), (DECODER, y + 0.38)], BLUE)
    _say(axes, DECODER + 0.07, y + 0.28, "L, one number")
    _line(axes, [(DECODER - 0.14, y + 0.38), (DECODER - 0.14, y + HALF)], ORANGE)
    _say(axes, DECODER - 0.22, y + 0.28, "dL/dL = 1", ORANGE, ha="right")

    x, y, _ = BOXES["optimizer"]
    _line(axes, [(DECODER - 1.06, y + 0.05), (x + SIDE, y + 0.05)], ORANGE)
    _line(axes, [(x + SIDE, y - 0.05), (DECODER - 1.06, y - 0.05)], BLUE)
    middle = (x + SIDE + DECODER - 1.06) / 2
    _say(axes, middle, y + 0.15, "gradients", ORANGE, ha="center")
    _say(axes, middle, y - 0.16, "parameters", ha="center")

    x, y, _ = BOXES["decoding"]
    _line(axes, [(right, y), (x - 0.48, y)], BLUE)
    _line(axes, [(x, y - HALF), (x, 0.13), (DECODER + 0.86, 0.13)], BLUE)
    _say(axes, x + 0.13, 2.8, "next token, until the end", rotation=90, ha="center")


def _legend(axes: "Axes") -> None:
    """What colors and letters mean."""
    axes.text(0.2, 6.28, "The Transformer", fontsize=12, weight="bold", color=BLACK, va="center")
    for y, color, text in ((6.0, BLUE, "forward, with the shape"), (5.8, ORANGE, "gradient, the same way back")):
        _line(axes, [(0.2, y), (0.5, y)] if color == BLUE else [(0.5, y), (0.2, y)], color)
        _say(axes, 0.6, y, text, color)
    letters = {"S": "source length", "T": "target length", "C": "features, d_model", "V": "size of the vocabulary"}
    for line, (letter, meaning) in enumerate(letters.items()):
        _say(axes, 0.27, 5.54 - 0.18 * line, letter, BLACK, weight="bold")
        _say(axes, 0.6, 5.54 - 0.18 * line, meaning, GREY)


EXAMPLE = {  # the boxes of the running example's model, which has one layer: x and y of the middle in inches, text
    "source": (1.2, 1.0, "embed s t o p"),
    "encoder self": (1.2, 1.8, "self-attention, add & norm"),
    "encoder ffn": (1.2, 2.6, "feed-forward, add & norm"),
    "target": (5.6, 1.0, "embed bos p o t s"),
    "decoder self": (5.6, 1.8, "masked self-attention, add & norm"),
    "cross": (5.6, 2.6, "cross-attention, add & norm"),
    "decoder ffn": (5.6, 3.4, "feed-forward, add & norm"),
    "output": (5.6, 4.2, "z = y Eᵀ"),
    "loss": (5.6, 4.9, "softmax, loss L"),
}
WIRES = [  # from, to, shape, name of the gradient in minitransformer.example
    ("source", "encoder self", "(4, 6)", "source.dx"),
    ("encoder self", "encoder ffn", "(4, 6)", "encoder.norm1.dy"),
    ("encoder ffn", "cross", "M (4, 6)", "dM"),
    ("target", "decoder self", "(5, 6)", "target.dx"),
    ("decoder self", "cross", "(5, 6)", "decoder.norm1.dy"),
    ("cross", "decoder ffn", "(5, 6)", "decoder.norm2.dy"),
    ("decoder ffn", "output", "(5, 6)", "decoder.norm3.dy"),
    ("output", "loss", "(5, 7)", "output.dz"),
]


def gradient_sizes(sizes: Mapping[str, float]) -> "Figure":
    """The running example's model, with the shape of each value and the size of its gradient -> Figure.

    `sizes` maps each name of a gradient in WIRES to its size, and "source", "target" and "output" to the sizes of the
    gradients that these three uses give to E. KeyError if one is missing.

    gradient_sizes({name: np.linalg.norm(value) for name, value in gradients.items()})
    """
    graph = Graph()
    for name, (x, y, text) in EXAMPLE.items():
        graph.node(name, (x, y), text)
    for use, x, y in (("source", 1.2, 0.25), ("target", 5.6, 0.25), ("output", 3.2, 4.2)):
        graph.node(f"E {use}", (x, y), "E", lit=True)
        graph.edge(f"E {use}", use, forward="(7, 6)", gradient=number(sizes[use], 3))
    for below, above, shape, name in WIRES:
        graph.edge(below, above, forward=shape, gradient=number(sizes[name], 3))
    return graph.draw(title="Forward: the shape. Backward: the size of the gradient.")
