"""The judge of the blank file: three whole solutions pass, and each kind of mistake is recognized for what it is."""

import re
import types

from support import blank
from support.piece import Piece

import numpy as np
import pytest

from minitransformer.course import FOLDER

PAGE = (FOLDER.parent / "docs" / "blank-file.md").read_text("utf-8")
STYLES = dict(zip(("classes", "closures", "flat"), re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL), strict=True))
WEIGHTS = 96_240
QUICK = 5  # mistakes that are tried by default
# what is wrong: (style, what the solution says, what is written instead, sentences that the judge says)
MISTAKES = {
    "the road through sigma": (
        "classes",
        "d = d - x_hat * (d * x_hat).mean(axis=-1, keepdims=True)",
        "pass",
        [
            "WRONG Norm: wrong in 1 of 3 arrays",
            "x[1, 1, 3]: yours",
            "-> one path is missing: what x lacks is a multiple of x - mean(x) in each row",
        ],
    ),
    "the root of D": (
        "closures",
        "ds = scale * p",
        "ds = p",
        ["WRONG attend: wrong in 2 of 3 arrays", "-> q: yours / right = 2 everywhere"],
    ),
    "repeated ids": (
        "flat",
        "np.add.at(dE, values[at], dx * dx.shape[-1] ** 0.5)",
        "dE[values[at]] += dx * dx.shape[-1] ** 0.5",
        ["WRONG embed: wrong in 1 of 1 arrays", "-> E is wrong only at tokens that occur twice in one sequence"],
    ),
    "assigned": (
        "classes",
        "self.W.grad += np.einsum",
        "self.W.grad = np.einsum",
        ["WRONG Linear", "the gradient of W is assigned, not added: write `grad += ...`"],
    ),
    "no sum": (
        "closures",
        "dy.sum(axis=(0, 1))\n\n    return x @ W + b, back",
        "dy\n\n    return x @ W + b, back",
        ["WRONG linear", "the gradient of b has shape (2, 5, 3), not (3,)"],
    ),
    "not in the cache": (
        "classes",
        "return x @ self.W.data + self.b.data, x\n\n    def backward(self, dy, x):",
        "self.x = x\n        return x @ self.W.data + self.b.data, None\n\n"
        "    def backward(self, dy, _):\n        x = self.x",
        ["WRONG Linear", "backward gives another gradient if a second forward came in between"],
    ),
    "shapes": (
        "classes",
        "return dy @ self.W.data.T",
        "return dy @ self.W.data",
        [
            "WRONG Linear",
            "in backward (return dy @ self.W.data): ValueError: the inner sizes of @ don't fit, they are 3 and 4",
        ],
    ),
    "no cache": (
        "classes",
        "return x @ self.W.data + self.b.data, x\n",
        "return x @ self.W.data + self.b.data\n",
        ["WRONG Linear", "forward must return (y, cache), got ndarray"],
    ),
    "a weight without a gradient": (
        "classes",
        "Weight(np.zeros(n_out))\n\n    def forward(self, x):\n        return x @ self.W.data + self.b.data, x",
        "Weight(np.zeros(n_out))\n        self.c = np.ones(n_out)\n\n"
        "    def forward(self, x):\n        return x @ self.W.data + self.c * self.b.data, x",
        ["cannot tell Linear", "the output depends on c, which has no gradient beside it.", "c.setflags(write=False)"],
    ),
    "a key is missing": (
        "flat",
        'add_to(dw, f"{at}.beta", dy.sum(axis=(0, 1)))',
        "pass",
        ["WRONG norm", "backward returns no gradient for enc0.norm1.beta"],
    ),
}
OF_THE_WHOLE = {
    "looking ahead": ("np.tri(read.shape[1], dtype=bool)", "True", "the decoder looks ahead (lesson 07)"),
    "padding": ("(source != 0)[:, None, None, :]", "True", "padding at the end of the source: nobody may attend to it"),
    "positions": (" + self.PE[: ids.shape[1]]", "", "«stop» and «tsop» have the same scores"),
    "the last layer's dM": ("dM = dM + d\n", "dM = d\n", "wrong: embedding.E, encoder[0][0].f.q.W,"),
    "a use of E": ('np.einsum("btv,btc->vc", dz, y)', "0", "the whole: wrong in 1 of 85 arrays"),
    "the scores": ("return y @ self.embedding.E.data.T,", "return y,", "shape (2, 5, 48), not (2, 5, 29): a score for"),
}


def file_of(text, folder):
    """The text as a file that the judge has read -> its module."""
    path = folder / "mine.py"
    path.write_text(text, "utf-8")
    return blank.load(path, "mine")


def said(module):
    """Whether all is right, and what the judge says, in one line."""
    lines = []
    right = blank.prove(module, lines.append)
    return right, " ".join(" ".join(lines).split())


def without_model(text):
    return text.replace("def model(", "def not_yet(")


def changed(style, old, new):
    assert STYLES[style].count(old) >= 1, old
    return STYLES[style].replace(old, new, 1)


@pytest.mark.parametrize(
    "style", ["closures", *(pytest.param(s, marks=pytest.mark.exhaustive) for s in ("classes", "flat"))]
)
def test_a_solution_of_each_style_is_right_in_all_pieces_and_as_a_whole(style, tmp_path):
    right, text = said(file_of(STYLES[style], tmp_path))
    assert right, text
    assert text.count("ok ") >= 6
    assert "ok the whole: 85 gradients, off by at most" in text


@pytest.mark.parametrize(
    "mistake",
    [*[*MISTAKES][:QUICK], *(pytest.param(name, marks=pytest.mark.exhaustive) for name in [*MISTAKES][QUICK:])],
)
def test_a_wrong_piece_is_said_to_be_wrong_and_what_it_looks_like(mistake, tmp_path):
    style, old, new, sentences = MISTAKES[mistake]
    right, text = said(file_of(without_model(changed(style, old, new)), tmp_path))
    assert not right
    for sentence in sentences:
        assert sentence in text


@pytest.mark.exhaustive
@pytest.mark.parametrize("mistake", OF_THE_WHOLE)
def test_what_is_wrong_where_right_pieces_meet_is_said(mistake, tmp_path):
    old, new, sentence = OF_THE_WHOLE[mistake]
    right, text = said(file_of(changed("classes", old, new), tmp_path))
    assert not right
    assert "ok Attention: 10 gradients" in text
    assert sentence in text


def test_only_the_first_wrong_piece_is_explained(tmp_path):
    style, old, new, _ = MISTAKES["assigned"]
    _, text = said(file_of(without_model(changed(style, old, new)), tmp_path))
    assert text.count("is assigned, not added") == 1
    assert "WRONG FeedForward ok Norm" in text
    assert "only the first WRONG is explained, for it may be the reason for the others" in text


def test_a_class_without_an_example_and_a_stub_are_named(tmp_path):
    stub = "class Later:\n    def forward(self, x): ...\n\n\ndef example_open():\n    raise NotImplementedError\n"
    assert said(file_of(stub, tmp_path)) == (
        False,
        "open open: not written yet not tried by themselves, as they have no example(): Later there is no model() yet, "
        "the function that returns the whole",
    )


@pytest.mark.parametrize(
    ("example", "sentence"),
    [
        ("return 3", "an example must return (piece, inputs), got int"),
        ("return 3, (np.ones(3),)", "int is not a piece: it has no forward"),
        ("return (lambda x: (x, None)), np.ones(3)", "there is no backward, and forward returns (y, cache) instead of"),
        ("return (lambda x: (x, lambda dy: (dy, dy, dy))), np.ones(3)", "3 gradients, but these inputs have one: x"),
        (
            "return (lambda x, m: (m * x, lambda dy: dy)), (np.ones(3), np.ones(3))",
            "have one: x, m (a mask has none if",
        ),
        ("return (lambda x: (x * np.inf, lambda dy: dy)), np.ones(3)", "the output is not finite"),
        ("return (lambda x, w: (x, lambda dy: (dy, {}))), (np.ones(3), {'w': 'W'})", "hold weights, arrays of floats"),
        ("return 1 / 0, 1", "in example (return 1 / 0, 1): ZeroDivisionError"),
    ],
)
def test_what_is_not_an_example_is_refused_in_one_line(example, sentence, tmp_path):
    right, text = said(file_of(f"import numpy as np\n\n\ndef example():\n    {example}\n", tmp_path))
    assert not right
    assert sentence in text


SPREAD = """
import numpy as np


def spread(x):
    around = x - x.mean(axis=-1, keepdims=True)
    sigma = np.sqrt({variance})
    n = around / sigma

    def back(dy):
        d = dy - dy.mean(axis=-1, keepdims=True)
        return (d - {road} * n * (d * n).mean(axis=-1, keepdims=True)) / sigma

    return n, back


def example_spread():
    return spread, np.random.default_rng(0).normal(size=(2, 3, 5))
"""


@pytest.mark.parametrize("variance", ["x.var(axis=-1, keepdims=True)", "(around**2).mean(axis=-1, keepdims=True)"])
def test_a_variance_that_takes_no_complex_numbers_hides_no_path(variance, tmp_path):
    _, text = said(file_of(SPREAD.format(variance=variance, road=1), tmp_path))
    assert text.startswith("ok spread: 1 gradient")
    _, text = said(file_of(SPREAD.format(variance=variance, road=0), tmp_path))
    assert text.startswith("WRONG spread: wrong in 1 of 1 arrays")
    assert "what x lacks is a multiple of" in text


def test_arrays_with_gradients_beside_them_are_weights_wherever_they_are():
    class Own:
        def __init__(self):
            self.W, self.dW = np.ones((2, 3)), np.zeros((2, 3))
            self.b = types.SimpleNamespace(data=np.ones(3), grad=np.zeros(3))
            self.more = [{"gain": types.SimpleNamespace(data=np.ones(3), grad=np.zeros(3))}]
            self.constant = np.ones(3)

        def __call__(self, x):
            return self.forward(x)[0]

        def forward(self, x):
            return x @ self.W + self.b.data, x

    own = Own()
    weights = dict(Piece(own).named_parameters())
    assert sorted(weights) == ["W", "b", "more[0]['gain']"]
    weights["W"].grad += 2.0
    weights["b"].data = np.zeros(3)
    assert (own.dW == 2).all()
    assert not own.b.data.any()


def test_masks_and_ids_keep_their_place_and_gradients_of_all_inputs_may_be_returned():
    def gather(ids, E, weight, allowed):
        y = weight["a"]["w"] * E[ids] * allowed

        def back(dy):
            dE = np.zeros_like(E)
            np.add.at(dE, ids, dy * allowed * weight["a"]["w"])
            return None, dE, {"a": {"w": (dy * E[ids] * allowed).sum()}}, None

        return y, back

    rng = np.random.default_rng(0)
    inputs = np.array([[3, 1, 3]]), rng.normal(size=(5, 4)), {"a": {"w": np.array(2.0)}}, np.array([True, False] * 2)
    report = blank.try_piece(lambda: (gather, inputs))
    assert report.passed, report
    assert [check.name for check in report.checks] == ["E", "a.w"]


def test_a_whole_without_weights_is_refused_before_it_is_trained(tmp_path):
    text = "import numpy as np\n\n\ndef model():\n    return lambda source, read: (np.eye(29)[read], lambda dy: None)\n"
    right, text = said(file_of(text, tmp_path))
    assert not right
    assert (
        "WRONG the whole there is nothing to learn: no array has its gradient beside it, and none is an input" in text
    )


@pytest.mark.exhaustive
def test_the_whole_is_trained_asked_and_stopped_when_the_file_is_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(blank, "STEPS", 3)
    monkeypatch.setattr(blank, "WORDS", 20)
    module, lines = file_of(STYLES["closures"], tmp_path), []
    assert not blank.teach(module, lines.append, lambda: 0)
    text = " ".join(lines)
    assert f"training: {WEIGHTS:,} weights, 3 steps of 64 words" in text
    assert re.search(r"\d of 20 unseen words are reversed without a mistake; the loss is \d\.\d{3}", text)
    assert "the first weights have the wrong size" in text
    assert "float64" not in text
    monkeypatch.setattr(blank, "STEPS", 1)
    old = "scale = q.shape[-1] ** -0.5"
    wide = file_of(changed("closures", old, "scale = 1 / np.sqrt(q.shape[-1])"), tmp_path)
    assert not blank.teach(wide, lines.append, lambda: 0)
    assert blank.WIDENED in lines
    times = iter(range(9))
    assert not blank.teach(module, lines.append, lambda: next(times))
    assert lines[-1] == "the file was saved, so this training ends"


@pytest.mark.weekly
@pytest.mark.parametrize("style", STYLES)
def test_a_solution_of_each_style_learns_what_the_page_and_the_lesson_say(style, tmp_path):
    lines = []
    assert blank.teach(file_of(STYLES[style], tmp_path), lines.append, lambda: 0)
    assert int(re.search(r"([\d,]+) of 1,000 unseen words", " ".join(lines))[1].replace(",", "")) >= 990
    assert f"{WEIGHTS:,} weights" in lines[0]


def test_the_page_quotes_what_the_judge_says():
    source = (FOLDER / "support" / "blank.py").read_text("utf-8")
    for sentence in (
        "the decoder looks ahead (lesson 07)",
        "«stop» and «tsop» have the same scores",
        "cannot be read yet",
    ):
        assert sentence in PAGE
        assert sentence in source
