"""Formulas in the colors of the course: what the forward pass computes in blue, gradients in orange.

A formula is an indented block of a lesson's prose. It stays as it is, letter by letter, and so it stays aligned.
"""

import re

from pygments.lexer import Lexer
from pygments.token import Name, Text

ARRAYS = "x_hat|x̂|logits|gamma|beta|theta|sigma|mu|PE|[xyWbarEeMqkvspozLγβμσθ]"
INDEX = r"(?:_(?:\([^)]*\)|[^\W_ᵀ]+))*[₀-₉]?[*']?(?=[ᵀ²³]|(?!\w))"  # v_j, W_1, m₂, p*, but not the v of "value"
SYMBOL = re.compile(
    r"(?P<quotient>\bd[\w()]+/d\w+)"  # of a Jacobian, as docstrings write it
    r"|(?P<euler>(?<=1/)e\b|(?<=→ )e\b)"  # the number, not the embeddings
    rf"|(?P<gradient>\bd(?:{ARRAYS}|sum){INDEX})"
    rf"|(?P<array>\b(?:{ARRAYS}){INDEX}(?!\())"  # f(x) is a function
    r"|(?P<rest>\w+|.)"
)
SIGNS = re.compile(r"[=∂Σ∘√≈≤≥←]|·")  # a line without any is not a formula but a table or a text
ENGLISH = re.compile(r"a(?= [a-z]{2,})")  # the article
KINDS = {"gradient": Name.Exception, "array": Name.Variable}


def tokens_of(line: str):
    """(kind of token, text) of one line."""
    if not SIGNS.search(line):
        yield Text, line
        return
    place = 0
    while place < len(line):
        found = ENGLISH.match(line, place) or SYMBOL.match(line, place)
        yield KINDS.get(found.lastgroup, Text), found.group()
        place = found.end()


class FormulaLexer(Lexer):
    """Gradients are exceptions, arrays are variables: the two kinds of name that the style sheet colors."""

    name = "Formula"
    aliases = ("formula",)

    def get_tokens_unprocessed(self, text):
        """(place, kind, text) for all of a block."""
        place = 0
        for line in text.splitlines(keepends=True):
            body = line.rstrip("\n")
            for kind, part in tokens_of(body):
                yield place, kind, part
                place += len(part)
            if body != line:
                yield place, Text, "\n"
                place += 1
