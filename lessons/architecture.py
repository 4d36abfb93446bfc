"""The picture of the whole model, figure 1 of the paper, in which a lesson lights the boxes that it is about.

    lesson.save(architecture(MAPS["05"]))

And the picture of the running example's model, with the size of each gradient: `gradient_sizes`. Forward is blue and
gradient orange, as in all pictures of the course.
"""

import itertools
from collections.abc import Collection, Mapping
from graph import Graph
from pictures import BLACK, canvas, mix, number, plt
from typing import TYPE_CHECKING, Any

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
PATHS = ("gradients", "residual paths")  # not boxes: orange arrows at the lit boxes, lines around the sub-layers
EVERYTHING = ("everything",)
HALF = 0.14  # half a box's height
SUBLAYERS = {  # name: the add & norm to which its residual path leads
    "encoder self-attention": "encoder add & norm 1",
    "encoder feed-forward": "encoder add & norm 2",
    "decoder self-attention": "decoder add & norm 1",
    "cross-attention": "decoder add & norm 2",
    "decoder feed-forward": "decoder add & norm 3",
}
MAPS: dict[str, tuple[str, ...]] = {  # the lit boxes of each lesson
    "00": EVERYTHING,
    "01": ("loss", "gradients"),
    "02": ("encoder feed-forward", "decoder feed-forward"),
    "03": ("softmax", "loss"),
    "04": ("source embedding", "target embedding", "output"),
    "05": ("cross-attention",),
    "06": ("cross-attention", "gradients"),
    "07": ("encoder self-attention", "decoder self-attention"),
    "08": ("encoder self-attention", "decoder self-attention", "cross-attention"),
    "09": ("source positions", "target positions"),
    "10": tuple(SUBLAYERS.values()),
    "11": (*SUBLAYERS.values(), "residual paths"),
    "12": (
        *("source embedding", "target embedding", "output"),  # E
        *("encoder self-attention", "decoder self-attention", "cross-attention", "residual paths"),
    ),
    "13": ("optimizer", "gradients"),
    "14": ("target embedding", "loss", "decoding"),
    "15": EVERYTHING,
    "16": ("decoding",),
}


def architecture(lit: Collection[str] = ()) -> "Figure":
    """The Transformer with the boxes named in `lit` filled and bold, and all others pale -> Figure.

    The names are the keys of BOXES, "gradients" (the orange arrows at lit boxes), "residual paths" (the lines around
    the sub-layers) and "everything". ValueError for another name. Source: section 3.1 and figure 1 of the paper.

    architecture(["cross-attention"])
    architecture(MAPS["06"])
    """
    names = (*BOXES, *PATHS, *EVERYTHING)
    for name in lit:
        if name not in names:
            raise ValueError(f"there is no box {name!r}: names are {', '.join(names)}")
    lit = {*BOXES, *lit} if "everything" in lit else set(lit)
    figure, axes = canvas(6.4, 6.5)
    _frames(axes)
    for name, (x, y, text) in BOXES.items():
        half = 0.48 if name == "decoding" else SIDE
        _box(axes, name, x, y, half, text, name in lit)
    _columns(axes, lit)
    _residual_paths(axes, "residual paths" in lit)
    _memory(axes, lit)
    _around(axes, lit)
    _legend(axes)
    return figure


def _box(axes: "Axes", name: str, x: float, y: float, half: float, text: str, lit: bool) -> None:
    """A box around the middle (x, y), which carries its name as `gid`."""
    fill, edge, color = (YELLOW, BLACK, "black") if lit else (mix(GREY, 0.1), mix(GREY, 0.4), "#555555")
    box = plt.Rectangle((x - half, y - HALF), 2 * half, 2 * HALF, facecolor=fill, edgecolor=edge, gid=name, zorder=3)
    box.set_linewidth(1.4 if lit else 0.8)
    axes.add_patch(box)
    weight = "bold" if lit else "normal"
    axes.text(x, y - 0.01, text, fontsize=9, color=color, weight=weight, ha="center", va="center", zorder=4)


def _line(axes: "Axes", points: list[tuple[float, float]], color: str, strong: bool = False, head: bool = True) -> None:
    """A line through the points, with an arrow head at its end."""
    width = 2.2 if strong else 1.0 if color == BLUE else 0.8
    if head:
        style: dict[str, Any] = {"arrowstyle": "-|>", "color": color, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
        style["mutation_scale"] = 12 if strong else 7
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


def _columns(axes: "Axes", lit: set[str]) -> None:
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
    for column in (ENCODER, DECODER):
        names = [name for name, (x, _, _) in BOXES.items() if x == column and name != "optimizer"]
        _line(axes, [(column, 0.21), (column, BOXES[names[0]][1] - HALF)], BLUE)
        for below, above in itertools.pairwise(names):
            low, high = BOXES[below][1] + HALF, BOXES[above][1] - HALF
            short = above in SUBLAYERS.values()
            _line(axes, [(column, low), (column, high)], BLUE, head=not short)
            strong = "gradients" in lit and bool({below, above} & lit)
            _line(axes, [(column - 0.14, high), (column - 0.14, low)], ORANGE, strong, head=not short)
            if not short:
                _say(axes, column + 0.07, (low + high) / 2 + 0.01, shapes[above])


def _residual_paths(axes: "Axes", strong: bool) -> None:
    """The lines around the sub-layers into add & norm: left of the encoder, right of the decoder."""
    for below, above in SUBLAYERS.items():
        x, y, _ = BOXES[below]
        side = -1 if x == ENCODER else 1
        fork, outer, end = y - HALF - 0.07, x + side * (SIDE + 0.11), BOXES[above][1]
        _line(axes, [(x, fork), (outer, fork), (outer, end), (x + side * SIDE, end)], BLUE, strong)


def _memory(axes: "Axes", lit: set[str]) -> None:
    """The encoder's output to cross-attention, and its gradient back."""
    top, across, end = BOXES["encoder add & norm 2"][1] + HALF, 2.80, DECODER - SIDE
    y = BOXES["cross-attention"][1]
    _line(axes, [(ENCODER, top), (ENCODER, 3.56), (across, 3.56), (across, y - 0.07), (end, y - 0.07)], BLUE)
    _line(axes, [(across, y + 0.02), (end, y + 0.02)], BLUE)
    back = [(end, y + 0.10), (across + 0.08, y + 0.10), (across + 0.08, 3.64), (ENCODER - 0.14, 3.64)]
    strong = {"gradients", "cross-attention"} <= lit
    _line(axes, [*back, (ENCODER - 0.14, top)], ORANGE, strong)
    _say(axes, ENCODER + 0.07, 3.45, "memory M (S, C)")
    _say(axes, across - 0.05, y - 0.02, "K, V", ha="right")


def _around(axes: "Axes", lit: set[str]) -> None:
    """What is not a layer: labels and loss, the optimizer's arrows, the loop of decoding."""
    y, right = BOXES["loss"][1], DECODER + SIDE
    _line(axes, [(right + 0.34, y), (right, y)], BLUE)
    _say(axes, right + 0.40, y, "labels (T)")
    _line(axes, [(DECODER, y + HALF), (DECODER, y + 0.38)], BLUE)
    _say(axes, DECODER + 0.07, y + 0.28, "L, one number")
    _line(axes, [(DECODER - 0.14, y + 0.38), (DECODER - 0.14, y + HALF)], ORANGE, {"gradients", "loss"} <= lit)
    _say(axes, DECODER - 0.22, y + 0.28, "dL/dL = 1", ORANGE, ha="right")

    x, y, _ = BOXES["optimizer"]
    _line(axes, [(DECODER - 1.06, y + 0.05), (x + SIDE, y + 0.05)], ORANGE, {"gradients", "optimizer"} <= lit)
    _line(axes, [(x + SIDE, y - 0.05), (DECODER - 1.06, y - 0.05)], BLUE)
    middle = (x + SIDE + DECODER - 1.06) / 2
    _say(axes, middle, y + 0.15, "gradients", ORANGE, ha="center")
    _say(axes, middle, y - 0.16, "parameters", ha="center")

    x, y, _ = BOXES["decoding"]
    _line(axes, [(right, y), (x - 0.48, y)], BLUE)
    _line(axes, [(x, y - HALF), (x, 0.13), (DECODER + 0.86, 0.13)], BLUE)
    _say(axes, x + 0.13, 2.8, "next token, until the end", rotation=90, ha="center")


def _legend(axes: "Axes") -> None:
    """What colours and letters mean."""
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
