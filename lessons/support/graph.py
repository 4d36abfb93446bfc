"""Computing graphs with their numbers on the wires: forward above in blue, gradient below in orange.

graph = Graph()
graph.node("x", (0, 1))
graph.node("times", (2, 0.5), "×")
graph.edge("x", "times", forward="2.00", gradient="−0.45")
lesson.save(graph.draw())
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from support.pictures import BLACK, canvas, mix, plt

from minitransformer.plotting import BLUE, GREY, ORANGE, YELLOW, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MONOSPACE = 0.602  # the width of a letter of DejaVu Sans Mono, in its size
LINE = 1.22  # the height of a line of text, in the size of its letters
MARGIN = 0.1  # inches around the picture


class _Node(NamedTuple):
    """A box around a point, or a circle if its text is a sign such as ×."""

    x: float
    y: float
    text: str
    lit: bool

    @property
    def round(self) -> bool:
        """Whether it is a circle."""
        return len(self.text) == 1 and not self.text.isalpha()

    @property
    def half(self) -> tuple[float, float]:
        """Half its width and height."""
        if self.round:
            return 0.17, 0.17
        width, height = _extent(self.text, 9)
        return max(width / 2 + 0.1, 0.19), height / 2 + 0.07

    def way_out(self, dx: float, dy: float) -> float:
        """How far its edge is from its middle in the direction (dx, dy), whose length is 1."""
        across, up = self.half
        if self.round:
            return across
        return min(across / abs(dx) if dx else math.inf, up / abs(dy) if dy else math.inf)


class _Edge(NamedTuple):
    """An arrow and what is written at it."""

    a: str
    b: str
    forward: str
    gradient: str
    label: str
    at: float
    flip: bool


class Graph:
    """A computing graph: first its nodes, then its edges, then `draw`.

    graph.node("dot", (2, 0), "q·k")
    graph.edge("q", "dot", forward="0.50", gradient="−0.12", label="q_0")
    """

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._edges: list[_Edge] = []

    def node(self, name: str, xy: tuple[float, float], text: str | None = None, lit: bool = False) -> None:
        """A node around `xy`, in inches: a box, or a circle if `text` (by default `name`) is a sign. `lit` fills it.

        graph.node("s", (0, 0), "s = q kᵀ / √D")
        graph.node("plus", (1.5, 0), "+", lit=True)
        """
        self._nodes[name] = _Node(xy[0], xy[1], name if text is None else text, lit)

    def edge(
        self,
        a: str,
        b: str,
        forward: str = "",
        gradient: str = "",
        label: str = "",
        at: float = 0.5,
        flip: bool = False,
    ) -> None:
        """An arrow from node `a` to node `b`; ValueError for a node that is not there.

        The text `forward` stands above it (left of an upright arrow) in blue, with `label`, the name of the value, on
        top, and `gradient` below it (on the right) in orange. Without `forward` but with `gradient`, the arrow is the
        gradient's: it is orange, and the text stands above. Lines of a text, from `matrix_text`, stay in columns. The
        texts stand at the share `at` of the way; `flip` swaps the sides.

        graph.edge("x", "times", forward="2.00", gradient="−0.45", label="x")
        graph.edge("dp", "ds", gradient=matrix_text(dp), label="dp")
        """
        for name in (a, b):
            if name not in self._nodes:
                raise ValueError(f"there is no node {name!r}: nodes are {', '.join(self._nodes)}")
        self._edges.append(_Edge(a, b, forward, gradient, label, at, flip))

    def draw(self, title: str = "") -> "Figure":
        """The graph as a Figure as large as it needs to be.

        figure = graph.draw()
        figure = graph.draw(title="One multiplication, forward and backward")
        """
        boxes = [(node.x, node.y, *node.half) for node in self._nodes.values()]
        texts = [text for edge in self._edges for text in self._texts(edge)]
        for x, y, text, _, _ in texts:
            width, height = _extent(text, 8)
            boxes.append((x, y, width / 2, height / 2))
        left, right = min(x - w for x, _, w, _ in boxes) - MARGIN, max(x + w for x, _, w, _ in boxes) + MARGIN
        low, high = min(y - h for _, y, _, h in boxes) - MARGIN, max(y + h for _, y, _, h in boxes) + MARGIN
        missing = max(0.0, text_width(title, 10) + 2 * MARGIN - (right - left)) / 2
        left, right, high = left - missing, right + missing, high + (0.3 if title else 0.0)
        figure, axes = canvas(right - left, high - low)
        axes.set(xlim=(left, right), ylim=(low, high))
        _write(axes, (left + right) / 2, high - 0.2, title, fontsize=10, color=BLACK)
        for edge in self._edges:
            self._arrow(axes, edge)
        for node in self._nodes.values():
            _draw_node(axes, node)
        for x, y, text, color, weight in texts:
            _write(axes, x, y, text, fontsize=8, color=color, weight=weight)
        return figure

    def _way(self, edge: _Edge) -> tuple[float, float, float, float, float]:
        """Where the arrow begins, its direction (of length 1), and its length."""
        a, b = self._nodes[edge.a], self._nodes[edge.b]
        distance = math.hypot(b.x - a.x, b.y - a.y)
        dx, dy = (b.x - a.x) / distance, (b.y - a.y) / distance
        begin = a.way_out(dx, dy)
        return a.x + begin * dx, a.y + begin * dy, dx, dy, distance - begin - b.way_out(dx, dy)

    def _arrow(self, axes: "Axes", edge: _Edge) -> None:
        """The arrow of an edge."""
        x, y, dx, dy, length = self._way(edge)
        color = ORANGE if edge.gradient and not edge.forward else BLUE
        style = {"arrowstyle": "-|>", "color": color, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 9}
        axes.annotate("", (x + length * dx, y + length * dy), (x, y), arrowprops=style, zorder=2)

    def _texts(self, edge: _Edge) -> list[tuple[float, float, str, str, str]]:
        """What is written at an edge: middle, text, color and weight of each, as near as they do not touch it."""
        x, y, dx, dy, length = self._way(edge)
        x, y = x + edge.at * length * dx, y + edge.at * length * dy
        above = (-dy, dx) if dx > 1e-9 or (abs(dx) <= 1e-9 and dy > 0) else (dy, -dx)
        above = (-above[0], -above[1]) if edge.flip else above
        first, color = (edge.forward, BLUE) if edge.forward else (edge.gradient, ORANGE)
        second = edge.gradient if edge.forward else ""
        texts = _beside(x, y, above, [(edge.label, BLACK, "bold"), (first, color, "normal")])
        return texts + _beside(x, y, (-above[0], -above[1]), [(second, ORANGE, "normal")])


def _beside(
    x: float, y: float, normal: tuple[float, float], lines: list[tuple[str, str, str]]
) -> list[tuple[float, float, str, str, str]]:
    """Texts over each other as one block, which begins 0.05 inches from the line through (x, y) with that normal."""
    lines = [line for line in lines if line[0]]
    extents = [_extent(text, 8) for text, _, _ in lines]
    width, height = max((w for w, _ in extents), default=0.0), sum(h for _, h in extents)
    away = abs(normal[0]) * width / 2 + abs(normal[1]) * height / 2 + 0.05
    x, top = x + away * normal[0], y + away * normal[1] + height / 2
    placed = []
    for (text, color, weight), (_, h) in zip(lines, extents, strict=True):
        placed.append((x, top - h / 2, text, color, weight))
        top -= h
    return placed


def _extent(text: str, size: float) -> tuple[float, float]:
    """The width and height of a text in inches. Several lines are in monospace."""
    lines = text.split("\n")
    width = max(map(len, lines)) * MONOSPACE * size / 72 if len(lines) > 1 else text_width(text, size) * 1.08
    return width, len(lines) * LINE * size / 72


def _draw_node(axes: "Axes", node: _Node) -> None:
    """A node with its text."""
    across, up = node.half
    fill = {"facecolor": YELLOW if node.lit else mix(GREY, 0.1), "edgecolor": BLACK if node.lit else GREY, "zorder": 3}
    if node.round:
        axes.add_patch(plt.Circle((node.x, node.y), across, **fill))
    else:
        axes.add_patch(plt.Rectangle((node.x - across, node.y - up), 2 * across, 2 * up, **fill))
    _write(axes, node.x, node.y, node.text, fontsize=9, color=BLACK, zorder=4)


def _write(axes: "Axes", x: float, y: float, text: str, **options: Any) -> None:
    """Text around a point. Several lines are in monospace."""
    family = {"family": "monospace"} if "\n" in text else {}
    axes.text(x, y, text, **{"ha": "center", "va": "center", **family, **options})
