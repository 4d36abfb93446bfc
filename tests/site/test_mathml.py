"""Formulas as mathematics: what MathML the site makes of a line of Unicode, and which blocks stay text."""

import re
import xml.etree.ElementTree as ET

import pytest

pytest.importorskip("pygments", reason="the site's tools are missing: pip install -e '.[docs]'")
pytest.importorskip("sphinx", reason="the site's tools are missing: pip install -e '.[docs]'")

from docs.course_site.mathml import INLINE, block, formula
from docs.course_site.percent import read_cells
from tests.lessons.conftest import LESSONS

BLOCK = re.compile(r"(?:^    .*(?:\n|\Z))+", flags=re.MULTILINE)
BLOCKS = [
    (lesson.number, text)
    for lesson in LESSONS
    for cell in read_cells(lesson.path.read_text("utf-8"))
    if cell.prose
    for text in BLOCK.findall(cell.source)
]


def spoken(markup):
    """MathML as text in which each structure has its name: "frac(p_i, x)"."""
    return speak(ET.fromstring(markup.replace("&nbsp;", " ")))


def speak(element):
    inner = [speak(child) for child in element]
    if element.tag in ("mi", "mn", "mo", "mtext"):
        return element.text
    if element.tag in ("math", "mrow"):
        return "".join(inner)
    if element.tag == "msqrt":
        return f"sqrt({''.join(inner)})"
    if element.tag == "mspace":
        return " "
    return f"{element.tag.removeprefix('m')}({', '.join(inner)})"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("s = q kᵀ / √D", "s=frac(q sup(k, ⊤), sqrt(D))"),
        ("dp_tj = Σ_d do_td v_jd", "sub(dp, tj)=sub(Σ, d) sub(do, td) sub(v, jd)"),
        ("∂p_i/∂s_j = p_i (1[i = j] − p_j)", "frac(sub(∂p, i), sub(∂s, j))=sub(p, i) (1[i=j]−sub(p, j))"),
        ("∂exp(z_i)/∂z_j", "frac(∂exp(sub(z, i)), sub(∂z, j))"),
        ("p_i = exp(z_i) / Σ_j exp(z_j)", "sub(p, i)=frac(exp(sub(z, i)), sub(Σ, j) exp(sub(z, j)))"),
        ("−(1/N) Σ_n ln p_n", "−frac(1, N) sub(Σ, n) ln sub(p, n)"),
        ("ln(p_i/p_j)", "ln(frac(sub(p, i), sub(p, j)))"),
        ("(f(x + h) − f(x − h)) / 2h", "frac(f(x+h)−f(x−h), 2h)"),
        ("dx̂_c / σ²", "frac(sub(dover(x, ^), c), sup(σ, 2))"),
        ("q_d² + y_tc²", "subsup(q, d, 2)+subsup(y, tc, 2)"),
        ("√(mean((x − μ)²) + ε)", "sqrt(mean(sup((x−μ), 2))+ε)"),
        ("10000^(2i/C) · (β₁/√β₂)^i", "sup(10000, frac(2i, C))·sup((frac(sub(β, 1), sqrt(sub(β, 2)))), i)"),
        ("|f''|/2 = ‖J‖", "frac(|sup(f, ′′)|, 2)=‖J‖"),
        ("Σ_{allowed i} p*_ti", "sub(Σ, allowed i) subsup(p, ti, *)"),
        ('p("po", eos) = 0.5', 'p("po",eos)=0.5'),
        ("(1 + 1/T)^−(T−1)", "sup((1+frac(1, T)), −(T−1))"),
        ("Σ_d scorer_d match_tjd", "sub(Σ, d) sub(scorer, d) sub(match, tjd)"),
        ("p_right", "sub(p, right)"),
        ("p_model(w) ln(1/p_copy(w))", "sub(p, model)(w) ln(frac(1, sub(p, copy)(w)))"),
        ("s_order(t),order(j)", "sub(s, order(t),order(j))"),
        ("e = one_hot E", "e=one_hot E"),
        ("one_hot_nw E_wc", "sub(one_hot, nw) sub(E, wc)"),
        ("0.39 % of all", "0.39 % of all"),
        ("0 < a < 1,024 & 6.1e-17", "0<a<1,024&6.1e-17"),
    ],
)
def test_a_formula_becomes_the_mathematics_that_it_means(text, said):
    assert spoken(formula(text)) == said


def test_a_name_with_an_index_is_found_in_a_sentence_and_a_name_of_code_is_not():
    sentence = "so y_(t−1) and dp_tj, W_q and d_k grow as 2^−(T−1), W_xᵀ, not use_backend or runs/my_run or gradcheck"
    assert INLINE.findall(sentence) == ["y_(t−1)", "dp_tj", "W_q", "d_k", "2^−(T−1)", "W_xᵀ"]
    assert spoken(formula("y_(t−1)", display=False)) == "sub(y, t−1)"


def test_columns_are_formulas_or_comments_and_relations_stand_below_each_other():
    text = "    p·dp = Σ_j p_tj dp_tj        (T, S)   one number for each row\n         = do_t·o_t\n"
    first, second = block(text).split("</tr><tr>")
    assert [cell.count("<math") for cell in first.split("<td")[1:]] == [1, 1, 1, 0]
    assert '<td class="comment">one number for each row</td>' in first
    assert second.startswith("<td></td><td><math")
    assert second.count("<td") == first.count("<td")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("    rms = √(mean(x ∘ x) + ε)", ["rms", "=sqrt(mean(x∘x)+ε)"]),
        ("    dvalue = dr ∘ silu(gate)", ["dvalue", "=dr∘silu(gate)"]),
        ("    p(next | last) = 1/2", ["p(next|last)", "=frac(1, 2)"]),
        ('    ln p("pots", eos) = −0.554', ['ln p("pots",eos)', "=−0.554"]),
        ("    bits per character = −ln p(text) / (K ln 2)", ["bits per character", "=−frac(ln p(text), K ln 2)"]),
        ("    L(θ − lr g) ≈ L − lr g·g", ["L(θ−lr g)", "≈L−lr g·g"]),
        ("    0 < lr λ < 2", ["0", "<lr λ<2"]),
    ],
)
def test_words_and_calls_stand_left_of_a_relation_like_any_formula(line, said):
    markup = block(line)
    assert [spoken(found) for found in re.findall(r"<math.*?</math>", markup)] == said
    assert "comment" not in markup


def test_the_equations_of_the_lstm_are_mathematics():
    (text,) = [text for number, text in BLOCKS if number == "17" and "cell_t = forget_t" in text and "sums_t" in text]
    assert text.count("\n") == block(text).count("<tr>") == 5
    gates = "sub(read, t),sub(write, t),sub(forget, t)", "=sigmoid(the first three)"
    rows = [re.findall(r"<math.*?</math>", row) for row in block(text).split("</tr>")]
    assert gates in [tuple(map(spoken, row)) for row in rows]


def test_e_is_the_number_below_one_and_the_embeddings_elsewhere():
    array = '<mi class="array">e</mi>'
    assert array in formula("x = √C e + PE")
    assert array not in formula("(1 + 1/T)^T → e")
    assert array not in formula("→ 1/e = 0.368")


@pytest.mark.parametrize(
    "text",
    [
        "    letter      s       t\n    weight  0.044   0.218\n",  # numbers under each other
        "    for i in range(0, C, 2):\n        PE[t, i] = 1\n",  # code
        "    value = self.k_proj(value)\n",
        "    (a, b) = [ cos x   −sin x ]\n             [ sin x    cos x ]\n",  # a matrix over two lines
        "    If a value is used twice, its gradient is a sum.\n",
        "    x = (1 + 2\n",
        "    x = / 2\n",
    ],
)
def test_what_is_no_formula_stays_as_it_is(text):
    assert block(text) is None


def test_most_blocks_of_the_lessons_are_mathematics_and_no_number_is_lost():
    made = [(text, block(text)) for _, text in BLOCKS]
    assert sum(markup is not None for _, markup in made) >= 0.7 * len(made)
    for text, markup in made:
        if markup:
            shown = re.sub(r"<[^>]*>", " ", markup)
            for number in re.findall(r"\d+\.\d+", text):
                assert number in shown, text
