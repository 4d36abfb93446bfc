"""Formulas in the colours of the course: what the forward pass computes in blue, gradients in orange.

A formula is an indented block of a lesson's prose. It stays as it is, letter by letter, and so it stays aligned.
"""

import re

from pygments.lexer import Lexer
from pygments.token import Comment, Name, Number, Text

ARRAYS = "x_hat|x̂|dlogits|logits|gamma|beta|theta|sigma|mu|sum|scores|weights|PE|[xyWbarEeMqkvspozLγβμσθ]"
INDEX = r"(?:_(?:\([^)]*\)|[^\W_ᵀ]+))*[₀-₉]?[*']?"
SYMBOL = re.compile(
    rf"(?P<gradient>\bd(?:{ARRAYS}){INDEX}(?![a-zA-Z]))"
    rf"|(?P<array>\b(?:{ARRAYS}){INDEX}(?![\w(]))"
    r"|(?P<number>(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[-−+]?\d+)?(?!\w))"
    r"|(?P<words>[^\W\d_]{2,}(?:[ ,.-]+[^\W\d_]{2,})*)"
    r"|(?P<rest>\w+|.)"
)
SIGNS = re.compile(r"[=∂Σ∘√≈≤≥←]|·")  # a line without any is not a formula but a table or a text
ENGLISH = re.compile(r"a(?= [a-z]{2,})")  # the article
KINDS = {"gradient": Name.Exception, "array": Name.Variable, "number": Number, "words": Text, "rest": Text}


def tokens_of(line: str):
    """(kind of token, text) of one line."""
    if not SIGNS.search(line):
        yield Text, line
        return
    place = 0
    while place < len(line):
        found = ENGLISH.match(line, place) or SYMBOL.match(line, place)
        kind = KINDS[found.lastgroup] if found.lastgroup else Comment
        yield (Text if kind is Comment else kind), found.group()
        place = found.end()


class FormulaLexer(Lexer):
    """Gradients are exceptions, arrays are variables: the two kinds of name that the style sheet colours."""

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
