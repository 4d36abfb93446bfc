"""The drawing tools of the lessons: every picture can be read, and shows the names and numbers that it was given."""

import importlib
import io
import math
from functools import partial

import numpy as np
import pytest
from matplotlib import colors, pyplot

from minitransformer.course import FOLDER, find_lessons
from minitransformer.plotting import BLUE, ORANGE, YELLOW, save_figure
from tests.drawing import drawn_texts, faults

MATRIX = np.array([[0.5, -1.25, 0.0], [-0.004, 2.0, 10.0]])


@pytest.fixture
def module():
    """module("pictures"): that file of the lessons' support. All figures are closed afterwards."""
    yield lambda name: importlib.import_module(f"support.{name}")
    pyplot.close("all")


def texts(figure):
    return [text.get_text() for text in drawn_texts(figure)]


def filled(figure):
    """The names of the boxes that have the colour of light."""
    boxes = [patch for patch in figure.axes[0].patches if patch.get_gid()]
    return sorted(box.get_gid() for box in boxes if box.get_facecolor() == colors.to_rgba(YELLOW))


def test_a_strip_lights_the_boxes_of_its_place_and_no_other(module):
    architecture = module("architecture")
    for name in list(architecture.BOXES)[::6]:
        figure = architecture.strip(architecture.Place("here", (name,)))
        assert filled(figure) == [name]
        assert "here" in texts(figure)
        pyplot.close(figure)


def test_no_two_boxes_of_the_architecture_and_of_a_strip_overlap(module):
    architecture = module("architecture")
    for figure in (architecture.architecture(), architecture.strip(architecture.MAPS["00"])):
        boxes = [patch for patch in figure.axes[0].patches if patch.get_gid()]
        assert len(boxes) == len(architecture.BOXES)
        for i, one in enumerate(boxes):
            for other in boxes[:i]:
                assert not one.get_bbox().overlaps(other.get_bbox()), (one.get_gid(), other.get_gid())


def test_gradient_sizes_shows_each_size_once_and_readable(module):
    architecture = module("architecture")
    names = [name for *_, name in architecture.WIRES] + ["source", "target", "output"]
    sizes = {name: 1.0 + i / 8 for i, name in enumerate(names)}
    figure = architecture.gradient_sizes(sizes)
    shown = texts(figure)
    assert all(shown.count(f"{size:.3f}") == 1 for size in sizes.values())
    assert not faults(figure)


def test_maps_cover_all_lessons_and_name_known_boxes_only(module):
    architecture = module("architecture")
    assert [lesson.number for lesson in find_lessons(FOLDER)] == list(architecture.MAPS)
    for number, place in architecture.MAPS.items():
        assert place.lit, number
        assert set(place.lit) <= set(architecture.BOXES), number


@pytest.mark.exhaustive
def test_every_map_can_be_read_and_is_a_small_file(module, tmp_path):
    architecture = module("architecture")
    draw = [architecture.architecture, *(partial(architecture.strip, place) for place in architecture.MAPS.values())]
    for figure in (each() for each in draw):
        assert faults(figure) == []
        assert min(text.get_fontsize() for text in drawn_texts(figure)) >= 8
        save_figure(figure, tmp_path / "map.png")
        assert (tmp_path / "map.png").stat().st_size < 100_000
        pyplot.close(figure)


def test_a_figure_of_a_given_layout_stays_as_it_is_when_it_is_saved_twice(module):
    figure, axes = module("pictures").canvas(3.0, 2.0)
    for _ in range(2):
        figure.savefig(io.BytesIO(), format="png", bbox_inches="tight")
        assert axes.get_position().bounds == (0, 0, 1, 1)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (-0.451, 2, "−0.45"),
        (-0.004, 2, "0.00"),
        (0.0, 1, "0.0"),
        (12.345, 0, "12"),
        (np.int64(-3), 2, "−3"),
        (True, 2, "1"),
        (-np.inf, 2, "−∞"),
        (np.inf, 2, "∞"),
        (math.nan, 2, "nan"),
    ],
)
def test_a_number_is_written_with_its_digits_and_a_minus_sign(module, value, digits, text):
    assert module("pictures").number(value, digits) == text


def test_a_grid_shows_its_numbers_and_labels(module):
    figure, axes = pyplot.subplots()
    module("pictures").grid(axes, MATRIX, rows=["c", "a"], columns=["x", "y", "$"], title="q")
    expected = ["0.50", "−1.25", "0.00", "0.00", "2.00", "10.00", "c", "a", "x", "y", "$", "q"]
    assert sorted(texts(figure)) == sorted(expected)


def test_a_grid_shows_the_sign_by_the_colour_and_the_size_by_its_strength(module):
    _, axes = pyplot.subplots()
    module("pictures").grid(axes, [[1.0, 2.0, -2.0, 0.0, -np.inf]], color=ORANGE)
    small, large, negative, zero, infinite = (cell.get_facecolor()[:3] for cell in axes.patches[:5])
    assert zero == (1, 1, 1)
    assert large[2] < small[2] < 1
    assert large[0] > large[2]  # orange
    assert np.ptp(negative) < 1e-12
    assert np.ptp(infinite) < 1e-12  # both are grey
    assert negative != infinite


def test_a_grid_frames_the_highlighted_cells(module):
    _, axes = pyplot.subplots()
    module("pictures").grid(axes, MATRIX, highlight=[(1, 2)])
    thick = [patch.get_xy() for patch in axes.patches if not patch.get_fill() and patch.get_linewidth() > 1]
    assert thick == [(2, 1)]


def test_grids_name_every_matrix_with_its_shape_and_can_be_read(module):
    values = {"q (T, D)": MATRIX, "kᵀ (D, S)": np.ones((3, 4)), "scores (T, S)": MATRIX @ np.ones((3, 4))}
    figure = module("pictures").grids(values, {"T": ["c", "a"]}, between="×=", gradients={"scores"}, title="A head")
    assert faults(figure) == []
    found = texts(figure)
    assert {"q", "(T, D) = 2 × 3", "kᵀ", "(D, S) = 3 × 4", "(T, S) = 2 × 4", "×", "=", "A head"} <= set(found)
    assert found.count("c") == 2  # the rows of q and of the scores
    assert found.count("10.00") == 1


def test_a_graph_shows_the_numbers_as_given_and_can_be_read(module):
    graph = module("graph").Graph()
    for name, xy in {
        "x": (0, 1.2),
        "y": (0, 0),
        "z": (1.6, -0.6),
        "+": (1.6, 0.6),
        "×": (3.2, 0),
        "L": (4.6, 0),
    }.items():
        graph.node(name, xy)
    graph.edge("x", "+", "−2.00", "−4.00", "x")
    graph.edge("y", "+", "5.00", "−4.000")
    graph.edge("z", "×", "−4", "3.00")
    graph.edge("+", "×", "3.0", "−4.0")
    graph.edge("×", "L", "−12.00", "1.00")
    figure = graph.draw("(x + y) z")
    assert faults(figure) == []
    assert {"−2.00", "−4.00", "5.00", "−4.000", "−4", "−12.00", "1.00", "(x + y) z"} <= set(texts(figure))
    hues = {text.get_text(): text.get_color() for text in figure.axes[0].texts}
    assert (hues["5.00"], hues["−4.000"]) == (BLUE, ORANGE)


@pytest.mark.parametrize("angle", [0, 60, 150, 240, 330])
def test_the_numbers_of_an_edge_lie_on_neither_side_on_its_arrow(module, angle):
    graph = module("graph").Graph()
    graph.node("a", (0, 0))
    graph.node("b", (3 * math.cos(math.radians(angle)), 3 * math.sin(math.radians(angle))))
    graph.edge("a", "b", forward="−12.00", gradient="1.00\n2.00", label="value")
    figure = graph.draw()
    assert faults(figure) == []
    (arrow,) = (text.arrow_patch for text in figure.axes[0].texts if getattr(text, "arrow_patch", None))
    points = arrow.get_transform().transform(arrow.get_path().interpolated(50).vertices)
    for text in drawn_texts(figure):
        box = text.get_window_extent()
        assert text.get_text() in "ab" or not any(box.contains(*point) for point in points), text.get_text()


def test_rectangles_are_to_scale_with_letters_on_their_sides(module):
    parts = [("q", "T", "D"), "×", ("kᵀ", "D", "S"), "=", ("scores", "T", "S")]
    figure = module("pictures").rectangles(parts, {"T": 20, "D": 8, "S": 40}, gradients={"scores"}, title="Scores")
    assert faults(figure) == []
    frames = [patch for patch in figure.axes[0].patches if patch.get_linewidth() > 1]
    unit = frames[0].get_width() / 8
    sides = [(frame.get_height() / unit, frame.get_width() / unit) for frame in frames]
    assert np.allclose(sides, [(20, 8), (8, 40), (20, 40)])
    assert [frame.get_edgecolor() == colors.to_rgba(ORANGE) for frame in frames] == [False, False, True]
    found = texts(figure)
    assert [found.count(text) for text in ("T = 20", "D = 8", "S = 40", "×", "=", "q", "Scores")] == [
        2,
        2,
        2,
        1,
        1,
        1,
        1,
    ]
