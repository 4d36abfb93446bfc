"""Formulas and docstrings stay as they are, letter by letter, and their gradients get the colour of gradients."""

import pytest

pytest.importorskip("pygments", reason="the site's tools are missing: pip install -e '.[docs]'")
pytest.importorskip("sphinx", reason="the site's tools are missing: pip install -e '.[docs]'")
docutils_core = pytest.importorskip("docutils.core", reason="the site's tools are missing: pip install -e '.[docs]'")

from docs.course_site.docstrings import as_rest  # noqa: E402
from docs.course_site.formulas import FormulaLexer  # noqa: E402
from docs.course_site.percent import read_cells  # noqa: E402
from tests.lessons.conftest import LESSONS  # noqa: E402

GRADIENT, ARRAY = "Token.Name.Exception", "Token.Name.Variable"


def coloured(formula, kind):
    """The parts of a formula that have a colour."""
    return [text for _, found, text in FormulaLexer().get_tokens_unprocessed(formula) if str(found) == kind]


@pytest.mark.parametrize(
    ("formula", "gradients", "arrays"),
    [
        ("dv = pᵀ do       (S, D)", ["dv", "do"], ["p"]),
        ("dp_tj = Σ_d do_td v_jd = do_t·v_j", ["dp_tj", "do_td", "do_t"], ["v_jd", "v_j"]),
        ("     = p_j (dp_j − p·dp)", ["dp_j", "dp"], ["p_j", "p"]),
        ("dx̂_i = γ_i dy_i", ["dx̂_i", "dy_i"], ["γ_i"]),
        ("dx_hat = gamma dy", ["dx_hat", "dy"], ["gamma"]),
        ("sum  = x + f(x)       dsum is the gradient of a row", ["dsum"], ["x", "x"]),
        ("∂p_i/∂s_j = p_i (1[i = j] − p_j)", [], ["p_i", "s_j", "p_i", "p_j"]),
        ("Jacobian   dp_i/ds_j = 1[i = j]", [], []),
        ("letter       s        t        o        p", [], []),
        ("does doubt = a doubt, and a row of a = x W_1 + b_1", [], ["a", "x", "W_1", "b_1"]),
    ],
)
def test_gradients_and_arrays_are_told_from_words(formula, gradients, arrays):
    assert coloured(formula, GRADIENT) == gradients
    assert coloured(formula, ARRAY) == arrays


def test_no_letter_of_any_formula_is_lost_or_moved():
    for lesson in LESSONS:
        for cell in read_cells(lesson.path.read_text("utf-8")):
            pieces = list(FormulaLexer().get_tokens_unprocessed(cell.source))
            assert "".join(text for _, _, text in pieces) == cell.source
            assert all(cell.source.startswith(text, place) for place, _, text in pieces)


DOCSTRING = r"""
Weights of x_i and y_, a * b * c, |dx|, `p*_i`, <a>, [1]_ and \p{L}; see `softmax`s.

- this is no list, and 1. neither: it is text::

Forward    p_i = exp(s_i) / sum_j exp(s_j)        after
           a second line
Check      each row

Fields:
    window: of *windowed* attention
        and strided.
    stride: another.
"""


def test_docstring_is_shown_as_it_is():
    shown = docutils_core.publish_doctree("\n".join(as_rest(DOCSTRING)), settings_overrides={"report_level": 5})
    first, second, *_ = shown.findall(lambda node: node.tagname == "paragraph")
    assert first.astext() == r"Weights of x_i and y_, a * b * c, |dx|, p*_i, <a>, [1]_ and \p{L}; see softmaxs."
    assert second.astext() == "- this is no list, and 1. neither: it is text::"
    items = [item.astext() for item in shown.findall(lambda node: node.tagname == "list_item")]
    assert items == ["window: of *windowed* attention and strided.", "stride: another."]
    assert not list(shown.findall(lambda node: node.tagname in ("system_message", "problematic")))


def test_aligned_lines_of_a_docstring_keep_every_space():
    rest = "\n".join(as_rest(DOCSTRING))
    block = rest.partition(".. code-block:: formula\n\n")[2].partition("\n\n")[0]
    assert block.splitlines() == [
        "   Forward    p_i = exp(s_i) / sum_j exp(s_j)        after",
        "              a second line",
        "   Check      each row",
    ]
