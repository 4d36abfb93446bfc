"""Formulas as mathematics: a block of Unicode, as lessons and scripts have it, to a table of MathML.

    dp_tj = Σ_d do_td v_jd = do_t·v_j               dp = do vᵀ       (T, S)

Three spaces or more divide a line into columns: formulas, and comments, which stay text. The first signs of relation
stand below each other. A block with a line that is no equation or inequality (numbers under each
other, code, a matrix over two lines) gives None, and stays as it is.
"""

import html
import re
import unicodedata
from typing import NamedTuple

from .formulas import SYMBOL

RELATIONS = "=≈≤≥←<"
COLUMNS = re.compile(rf" {{3,}}(?=[^ {RELATIONS}])")
CALL = re.compile(r"(?<=\w)\([^()]*\)")  # of a function: words in it make no comment
FUNCTIONS = {
    *("exp", "ln", "log", "sin", "cos", "tan", "tanh", "sigmoid", "softmax", "mean", "max", "min", "Var", "Im", "Re"),
    *("sign", "sum", "split", "merge", "LayerNorm", "rms", "eps"),
}
TOKEN = re.compile(
    r"(?P<space> +)"
    r"|(?P<quoted>\"[^\"]*\")"
    r"|(?P<number>\d[\d,]*\d(?:\.\d+)?(?:e[-−]?\d+)?|\d(?:\.\d+)?(?:e[-−]?\d+)?)"
    r"|(?P<sum>[Σ∏∫])"
    r"|(?P<root>[√∛])"
    r"|(?P<euler>(?<=1/)e\b|(?<=→ )e\b)"
    r"|(?P<per>%)"
    r"|(?P<word>one_hot|∂?[^\W\d_ᵀΣ∏∫√∛∂][^\W\d_ᵀ₀-₉⁰¹²³⁴-⁹]*[\u0300-\u036f]?(?:-[a-z]{2,})*)"
    r"|(?P<dots>\.\.\.)"
    r"|(?P<open>[(\[{])|(?P<close>[)\]}])"
    r"|(?P<sign>[-=+−·∘/,;:≤≥≈←→<>&∞|‖×!?.])"
)
NAME = r"(?:order\(\w+\)|[^\W_ᵀ⁰¹²³⁴-⁹₀-₉]+)"  # in an index, such as tj; but p_model(w) is a call
INDEX = re.compile(rf"_(?:\{{([^}}]*)\}}|\(([^)]*)\)|({NAME}(?:,{NAME})*))")
DIGITS = {
    **dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True)),
    **dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᵀ", "0123456789−⊤", strict=True)),
}
LOW, HIGH = re.compile("[₀-₉]+"), re.compile("[⁰¹²³⁴-⁹⁻ᵀ]+")
POWER = re.compile(r"\^(?:\(((?:[^()]|\([^()]*\))*)\)|([-−]?(?:[^\W_]+(?:\.\d+)?|\([^()]*\))))")
# a name with an index, or a power, within a sentence
INLINE = re.compile(
    r"(?<![\w/^])[∂]?(?:[^\W\d_]+[\u0300-\u036f]?[*']?_(?:\([^()]*\)|[a-z0-9]{1,2})(?![^\Wᵀ²³]|_)[ᵀ²³]?"
    r"|\w+\^(?:[−-]?\([^()]*\)|[−-]?\w+))"
)
CODE = re.compile(r"\*\*|\bself\.|^\s*(?:for|def|if) .*:$", flags=re.MULTILINE)
COUNTERS = "[bcdhijkntw]{3}"  # three indices, and no word
STOPS = frozenset("+−=≈≤≥←→<>,;:&·∘×")  # what a spaced fraction does not reach across
ENDS = {"(": ")", "[": "]", "{": "}"}


class NoFormulaError(ValueError):
    """A text that cannot be read as a formula."""


class Part(NamedTuple):
    """A piece of a formula, and its MathML."""

    kind: str  # "atom", "sign", "group" (in round brackets), "quotient" (a fraction in them) or "space"
    text: str
    markup: str
    inner: str = ""  # of a group: what is between the brackets


SPACE = Part("space", " ", "")


def block(text: str) -> str | None:
    """A block as an HTML table of MathML, or None if it is no formula."""
    lines = [line for line in text.splitlines() if line.strip()]
    if CODE.search(text) or not all(set(line) & set(RELATIONS) for line in lines):
        return None
    try:
        rows = [row(line) for line in lines]
    except NoFormulaError:
        return None
    width = max(len(cells) for cells in rows)
    filled = ["".join(cells + ["<td></td>"] * (width - len(cells))) for cells in rows]
    return f'<div class="mathematics"><table role="presentation"><tr>{"</tr><tr>".join(filled)}</tr></table></div>'


def row(line: str) -> list[str]:
    """The cells of a line: what is left of the first relation, the rest of the formula, and the other columns."""
    first, *others = [part for part in COLUMNS.split(line.strip()) if part]
    place = first_relation(first)
    if first[0] in RELATIONS or not is_text(first[place:]):
        cells = [left(first[:place]), cell(first[place:])]
    elif others and not all(map(is_text, others)):
        cells = [cell(first), cell(others.pop(0))]
    else:
        raise NoFormulaError(line)
    return cells + [cell(other) for other in others]


def left(text: str) -> str:
    """What stands left of a relation: a formula, which may be a word or a call, or words."""
    text = text.strip()
    if neighbors(text):
        return f"<td><math><mtext>{html.escape(text)}</mtext></math></td>"
    return f"<td>{formula(text)}</td>" if text else "<td></td>"


def cell(text: str) -> str:
    """A cell of the table."""
    text = text.strip()
    if not text:
        return "<td></td>"
    if is_text(text):
        return f'<td class="comment">{html.escape(text)}</td>'
    return f"<td>{formula(text)}</td>"


def first_relation(text: str) -> int:
    """Where the first sign of relation is that is not inside brackets; 0 if there is none."""
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if sign in RELATIONS and depth == 0:
            return place
    return 0


def is_text(text: str) -> bool:
    """Whether a column is a comment: two words beside each other, or a word and no sign."""
    signs = any(sign in text for sign in RELATIONS + "·∘Σ√+^/")
    return text in FUNCTIONS or neighbors(text) or (not signs and not all(map(known, text.split())))


def neighbors(text: str) -> bool:
    """Whether two words stand beside each other, except for what a function is called with."""
    words = [not known(word) for word in CALL.sub("", text).split()]
    return any(words[i] and words[i + 1] for i in range(len(words) - 1))


def known(word: str) -> bool:
    """Whether a word is no English one: a sign, a number, a name, or what is stuck to them."""
    plain = re.fullmatch(r"\(?([A-Za-z-]{2,})[,.:;?)]*", word)
    if plain is None or plain[1] in FUNCTIONS or plain[1] in ("ih", "lr"):
        return True
    found = SYMBOL.fullmatch(plain[1])
    return bool(found and found.lastgroup != "rest")


def formula(text: str, display: bool = True) -> str:
    """A formula on one line, or within a sentence -> MathML. Raises NoFormulaError if it cannot be read."""
    parts, place = sequence(text, 0, "")
    if place != len(text):
        raise NoFormulaError(text)
    opening = '<math displaystyle="true">' if display else "<math>"
    return f"{opening}{joined(parts)}</math>"


def sequence(text: str, place: int, end: str) -> tuple[list[Part], int]:
    """The parts from `place` to the closing bracket `end`, or to the end of the text, and where that is."""
    parts: list[Part] = []
    while place < len(text):
        if end and text[place] == end:
            return parts, place + 1
        found = TOKEN.match(text, place)
        if found is None or found.lastgroup == "close":
            raise NoFormulaError(text)
        part, place = read(text, found)
        parts.append(part)
    if end:
        raise NoFormulaError(text)
    return parts, place


def read(text: str, found: "re.Match[str]") -> tuple[Part, int]:
    """The part that begins with a token, with its indices and powers, and where it ends."""
    kind, token, place = found.lastgroup, found.group(), found.end()
    if kind == "space":
        return Part("space", token, ""), place
    if token == "|" and place < len(text) and text[place] not in " |":
        parts, place = sequence(text, place, "|")
        markup, end = with_scripts(f"<mo>|</mo>{joined(parts)}<mo>|</mo>", text, place)
        return Part("atom", text[found.start() : end], markup), end
    if kind in ("sign", "dots"):
        return Part("sign", token, f"<mo>{html.escape(token)}</mo>"), place
    if kind == "quoted":
        return Part("atom", token, f"<mtext>{html.escape(token)}</mtext>"), place
    if kind == "root":
        return root(text, token, place)
    inner, name = "", "atom"
    if kind == "open":
        parts, place = sequence(text, place, ENDS[token])
        inner = joined(parts)
        base = f"<mrow><mo>{token}</mo>{inner}<mo>{ENDS[token]}</mo></mrow>"
        alone = len(trimmed(fractions(parts))) == 1 and inner.startswith("<mfrac>")
        name = ("quotient" if alone else "group") if token == "(" else "atom"
    elif kind == "number":
        base = f"<mn>{token}</mn>"
    elif kind in ("euler", "per"):
        base = f"<mtext>{token}</mtext>"
    elif kind == "sum":
        base = f'<mi mathvariant="normal">{token}</mi>'
    else:
        base = symbol(token)
    markup, end = with_scripts(base, text, place)
    return Part(name if end == place else "atom", text[found.start() : end], markup, inner), end


def root(text: str, token: str, place: int) -> tuple[Part, int]:
    """A root over the next part."""
    found = TOKEN.match(text, place)
    if found is None or found.lastgroup in ("space", "sign", "close"):
        raise NoFormulaError(text)
    part, end = read(text, found)
    under = part.inner or part.markup
    markup = f"<msqrt>{under}</msqrt>" if token == "√" else f"<mroot><mrow>{under}</mrow><mn>3</mn></mroot>"
    return Part("atom", token + part.text, markup), end


def symbol(token: str, colour: str = "") -> str:
    """A name: a gradient, an array, a function or another word."""
    if token.startswith("∂"):
        return f"<mrow><mo>∂</mo>{symbol(token[1:])}</mrow>" if token[1:] else "<mo>∂</mo>"
    if token == "ih":
        return "<mi>i</mi><mi>h</mi>"
    if token in FUNCTIONS:
        return f'<mi class="function">{token}</mi>'
    found = SYMBOL.fullmatch(token)
    kind = found.lastgroup if found and not colour else ""
    colour = colour or {"gradient": ' class="gradient"', "array": ' class="array"'}.get(kind, "")
    name = unicodedata.normalize("NFD", token)
    if kind == "gradient":
        return f'<mi{colour} mathvariant="normal">d</mi>' + symbol(name[1:], colour)
    if name.endswith("\u0302"):  # x̂
        return f"<mover accent='true'><mi{colour}>{name[:-1]}</mi><mo{colour}>^</mo></mover>"
    if len(name) == 1:
        return f"<mi{colour}>{name}</mi>"
    return f'<mi{colour} mathvariant="normal">{name}</mi>'


def with_scripts(base: str, text: str, place: int) -> tuple[str, int]:
    """What is written low and high after a base, such as _tj, ₁, ᵀ, ^(2i/C), ' and *."""
    low = high = ""
    while place < len(text):
        if index := INDEX.match(text, place):
            low += script(next(filter(None, index.groups()), ""))
        elif index := LOW.match(text, place):
            low += "".join(f"<mn>{DIGITS[digit]}</mn>" for digit in index.group())
        elif index := HIGH.match(text, place):
            raised = "".join(DIGITS[digit] for digit in index.group())
            high += f"<mo>{raised}</mo>" if "⊤" in raised else f"<mn>{raised}</mn>"
        elif index := POWER.match(text, place):
            high += joined(sequence(next(filter(None, index.groups())), 0, "")[0])
        elif index := re.compile("'+|\\*").match(text, place):
            high += f"<mo>{index.group().replace(chr(39), '′')}</mo>"
        else:
            break
        place = index.end()
    base, low, high = (
        f"<mrow>{base}</mrow>",
        f"<mrow>{low}</mrow>" if low else "",
        f"<mrow>{high}</mrow>" if high else "",
    )
    if low and high:
        return f"<msubsup>{base}{low}{high}</msubsup>", place
    if low or high:
        return f"<msub>{base}{low}</msub>" if low else f"<msup>{base}{high}</msup>", place
    return base, place


def script(text: str) -> str:
    """An index: letters that count stand by themselves, a word stays a word."""
    if " " in text or (re.fullmatch(r"[A-Za-z]{3,}", text) and not re.fullmatch(COUNTERS, text)):
        return f"<mtext>{html.escape(text)}</mtext>"
    return "".join(
        f"<mn>{one}</mn>" if one.isdigit() else f"<mi>{html.escape(one)}</mi>" for one in re.findall(r"\d+|\D", text)
    )


def joined(parts: list[Part]) -> str:
    """Parts in a row. A slash makes a fraction: of its two neighbors, or, with spaces, of all as far as a sign."""
    parts = fractions(parts)
    out: list[str] = []
    for i, part in enumerate(parts):
        before = trimmed(parts[:i])
        if part.text in ("−", "-") and (not before or before[-1].kind == "sign"):
            out.append(f'<mo form="prefix">{part.text}</mo>')
        elif part.kind == "quotient" and not (i and is_name(parts[i - 1])):
            out.append(part.inner)
        elif part.kind != "space":
            out.append(part.markup)
        elif 0 < i < len(parts) - 1 and "sign" not in (parts[i - 1].kind, parts[i + 1].kind):
            out.append('<mspace width="0.22em"></mspace>')
    return "".join(out)


def fractions(parts: list[Part]) -> list[Part]:
    """The parts with each slash and what belongs to it made one part."""
    done: list[Part] = []
    parts = list(parts)
    while parts:
        part = parts.pop(0)
        if part.text != "/" or not done or not parts:
            done.append(part)
            continue
        spaced = done[-1].kind == "space" and parts[0].kind == "space"
        above, below = [], []
        while done and reaches(done[-1], spaced):
            above.insert(0, done.pop())
        while parts and reaches(parts[0], spaced):
            below.append(parts.pop(0))
        if not trimmed(above) or not trimmed(below):
            raise NoFormulaError("a slash with nothing beside it")
        text = "/".join("".join(p.text for p in side) for side in (above, below))
        markup = f"<mfrac><mrow>{inside(above)}</mrow><mrow>{inside(below)}</mrow></mfrac>"
        ends = [side[place].kind == "space" for side, place in ((above, 0), (below, -1))]
        done += [SPACE] * ends[0] + [Part("atom", text, markup)] + [SPACE] * ends[1]
    return done


def reaches(part: Part, spaced: bool) -> bool:
    """Whether a fraction reaches across this part."""
    return part.text not in STOPS and part.text != "/" and (spaced or part.kind not in ("space", "sign"))


def is_name(part: Part) -> bool:
    """Whether what follows in brackets is its argument: f(x)."""
    return part.kind == "atom" and part.text[-1].isalpha()


def trimmed(parts: list[Part]) -> list[Part]:
    """The parts that are no spaces."""
    return [part for part in parts if part.kind != "space"]


def inside(parts: list[Part]) -> str:
    """What stands above or below a line: brackets around all of it are not needed."""
    (*rest,) = trimmed(parts)
    return rest[0].inner if len(rest) == 1 and rest[0].kind in ("group", "quotient") else joined(parts)
