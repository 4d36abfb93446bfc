"""Parsing (paper section 6.3): Python's own expressions, and the trees that `ast` makes of them, as pairs of sequences.

    n . n ( 0 )  ->  (Call (Attribute N ) K )

The sources are all expressions and simple statements in the standard library, so every Python has them. As in Vinyals
et al. 2015, words are hidden (a name is n, a string 's', any other constant 0), and a tree is written in brackets, the
children in the order of the text. N and K are names and constants. Not in the tree are the names of attributes,
arguments and keywords, which part of a slice is given, and the operator of an augmented assignment.
"""

import ast
import contextlib
import functools
import io
import itertools
import keyword
import sysconfig
import tokenize
import warnings
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.data.tasks import Batch, ToyTask, is_held_out, make_batch, pad_rows
from minitransformer.vocabulary import PAD, SPECIAL_TOKENS

Node = tuple[str, Sequence[Any]]  # a label, and the nodes below it

WORDS, LEAVES, LABELS = (
    names.split()
    for names in (
        "n 0 's' ( ) [ ] { } , : . ... = := + - * / // % @ ** << >> & | ^ ~ < > <= >= == != += -= *= /= //= %= **= &= "
        "|= ^= <<= >>= and or not in is if else for lambda await async yield from return raise assert del",
        "N K Eq NotEq Lt LtE Gt GtE Is IsNot In NotIn List Tuple Dict Slice Yield arguments arg",
        "Attribute Call keyword Subscript Slice Starred Compare IfExp Lambda arguments NamedExpr Await Yield YieldFrom "
        "List Tuple Set Dict ListComp SetComp DictComp GeneratorExp comprehension And Or Not USub UAdd Invert Add Sub "
        "Mult MatMult Div FloorDiv Mod Pow LShift RShift BitAnd BitOr BitXor Assign AugAssign Return Raise Assert "
        "Delete",
    )
)
INNER = [f"({label}" for label in LABELS]
VOCABULARY = (*SPECIAL_TOKENS, *WORDS, *LEAVES, *INNER)  # a bracket that closes is one of the words
IDS = {token: i for i, token in enumerate(VOCABULARY)}
STATEMENTS = (ast.Assign, ast.AugAssign, ast.Return, ast.Raise, ast.Assert, ast.Delete)
WITHOUT_PLACE = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3"}  # not in every Python
SHORTEST, LONGEST = 4, 20  # words of an example
LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def hidden(token: tokenize.TokenInfo) -> str:
    """The word that stands for a token of Python; for an f-string and what else has none, the token itself."""
    if token.type == tokenize.NUMBER or token.string in ("None", "True", "False"):
        return "0"
    if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
        return "n"
    is_plain = token.type == tokenize.STRING and "f" not in token.string.partition(token.string[-1])[0].lower()
    return "'s'" if is_plain else token.string


def read_tokens(text: str) -> list[tokenize.TokenInfo]:
    """The tokens of Python in `text`, without line ends, comments and indentation. ValueError if it is not Python."""
    try:
        return [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in LAYOUT]
    except (tokenize.TokenError, SyntaxError) as error:
        raise ValueError(f"{text!r} is not Python: {error.args[0]}") from error


def tree_of(text: str) -> Node:
    """The tree of an expression or a simple statement, by `ast`. Raises ValueError if `text` is neither."""
    try:
        (node,) = ast.parse(text).body
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"{text!r} is not one expression or statement of Python") from error
    return to_node(node.value if isinstance(node, ast.Expr) else node)


def to_node(node: ast.AST) -> Node:
    """A node of `ast` and all below it, with the children in the order of the text."""
    if isinstance(node, ast.Name | ast.Constant):
        return "N" if isinstance(node, ast.Name) else "K", []
    if isinstance(node, ast.Compare):  # its operators stand between its parts
        pairs = zip(node.ops, node.comparators, strict=True)
        return "Compare", [to_node(part) for part in (node.left, *itertools.chain.from_iterable(pairs))]
    kinds = (ast.expr, ast.keyword, ast.comprehension, ast.arguments, ast.arg)
    children: list[Any] = [child for child in ast.iter_child_nodes(node) if isinstance(child, kinds)]
    if all(hasattr(child, "col_offset") for child in children):  # `a if b else c` has b first
        children.sort(key=lambda child: (child.lineno, child.col_offset))
    kind = node.op if isinstance(node, ast.BinOp | ast.BoolOp | ast.UnaryOp) else node
    return type(kind).__name__, [to_node(child) for child in children]


def linearize(node: Node) -> list[str]:
    """The tokens of a tree: its label, or "(label", the tokens of its children, and ")"."""
    label, children = node
    return [f"({label}", *itertools.chain.from_iterable(map(linearize, children)), ")"] if children else [label]


def read_trees(tokens: Iterable[str]) -> list[Node]:
    """The trees that `linearize` wrote. What is still open at the end is closed, and a ")" too many is ignored."""
    root: Node = ("", [])
    open_nodes: list[Any] = [root]
    for token in tokens:
        if token == ")":
            del open_nodes[max(1, len(open_nodes) - 1) :]
            continue
        open_nodes[-1][1].append((token.removeprefix("("), []))
        if token.startswith("("):
            open_nodes.append(open_nodes[-1][1][-1])
    return list(root[1])


def brackets(nodes: Iterable[Node], start: int = 0) -> tuple[Counter, int]:
    """(label, first leaf, end) of each node with children, counted, and the number of leaves after the last one."""
    found: Counter = Counter()
    for label, children in nodes:
        inside, end = brackets(children, start) if children else (Counter(), start + 1)
        found += inside
        found[label, start, end] += bool(children)
        start = end
    return found, start


def bracket_f1(answers: Iterable[Iterable[str]], expected: Iterable[Iterable[str]]) -> float:
    """The harmonic mean of precision and recall of all brackets, each with its label and its leaves (PARSEVAL)."""
    both = right = 0
    for pair in zip(answers, expected, strict=True):
        ours, theirs = (brackets(read_trees(tokens))[0] for tokens in pair)
        right, both = right + (ours & theirs).total(), both + ours.total() + theirs.total()
    return 2 * right / both if both else 0.0


def draw_tree(nodes: Iterable[Node], indent: str = "") -> Iterator[str]:
    """A line for each node, indented below the one that it belongs to."""
    for label, children in nodes:
        yield indent + label
        yield from draw_tree(children, indent + "  ")


@functools.cache
def examples() -> dict[str, str]:
    """{expression or statement: tree}, as tokens between spaces, each once, in the order of the library's files."""
    found, words, labels = {}, set(WORDS), {*LEAVES, *INNER, ")"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about strings such as "\\d" in the library
        for piece in dict.fromkeys(itertools.chain.from_iterable(map(pieces, library()))):
            with contextlib.suppress(ValueError):  # a part of something else, such as a slice
                tree = linearize(tree_of(" ".join(piece))) if words.issuperset(piece) else [""]
                if labels.issuperset(tree):
                    found[" ".join(piece)] = " ".join(tree)
    return found


def library() -> Iterator[str]:
    """The text of each module of the standard library that is all ASCII."""
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        if not WITHOUT_PLACE.intersection(path.relative_to(root).parts) and path.read_bytes().isascii():
            yield path.read_text("ascii")


def pieces(module: str) -> Iterator[tuple[str, ...]]:
    """The hidden words of every expression and simple statement in the text of a module, if they are not too many."""
    try:
        nodes, tokens = list(ast.walk(ast.parse(module))), read_tokens(module)
    except (SyntaxError, ValueError):  # such as the examples of an older Python
        return
    starts, words = [token.start for token in tokens], [hidden(token) for token in tokens]
    for node in nodes:
        if isinstance(node, (ast.expr, *STATEMENTS)) and not isinstance(node, ast.Starred | ast.Slice):
            ends = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
            first, end = (bisect_left(starts, place) for place in ends)
            if SHORTEST <= end - first <= LONGEST:
                yield tuple(words[first:end])


@functools.cache
def encoded(held_out: bool) -> tuple[np.ndarray, np.ndarray]:
    """One side of the split in a random order, as ids padded at the end: the sources (N, S) and their trees (N, T)."""
    texts = examples()
    both = ([to_ids(text.split()) for text in column] for column in (texts, texts.values()))
    source, tree = (pad_rows(rows, max(map(len, rows))) for rows in both)
    rows = np.random.default_rng(0).permutation(np.flatnonzero(is_held_out(source) == held_out))
    return source[rows], tree[rows]


def to_ids(tokens: Sequence[str]) -> np.ndarray:
    """Words or labels -> ids (length,). Raises ValueError for one that the vocabulary lacks."""
    for token in tokens:
        if token not in IDS:
            raise ValueError(f"{token!r} is in none of the expressions and statements that this task has")
    return np.array([IDS[token] for token in tokens], dtype=np.int64)


class ParsingTask(ToyTask):
    """Batches of expressions and statements with their trees; the task trains on the first `limit`, or on all."""

    vocabulary = VOCABULARY
    symbols = "of Python's expressions and simple statements"
    separator = " "
    max_len = LONGEST
    growth = 2  # each node but a leaf has a word of its own

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit

    def tokens(self, text: str) -> list[str]:
        """The hidden words of a text."""
        return [hidden(token) for token in read_tokens(text)]

    def encode(self, text: str) -> np.ndarray:
        """The ids of a text, (length,) int64. Raises ValueError for one that is not Python, or has other words."""
        return to_ids(self.tokens(text))

    def batch(self, rng: np.random.Generator, size: int, held_out: bool = False, min_len: int = 1) -> Batch:
        """`size` different pairs from one side of the split, or all of them if there are fewer."""
        source, tree = (ids[: None if held_out else self.limit] for ids in encoded(held_out))
        rows = rng.choice(len(source), min(size, len(source)), replace=False)
        return make_batch(source[rows], tree[rows])

    def epoch(self, rng: np.random.Generator, size: int) -> Iterator[Batch]:
        """All training pairs once, those of about the same length together, in random batches of at most `size`."""
        source, tree = (ids[: self.limit] for ids in encoded(False))
        rows = rng.permutation(len(source))
        rows = rows[np.lexsort([(ids[rows] != PAD).sum(axis=1) for ids in (source, tree)])]
        for start in size * rng.permutation(-(-len(rows) // size)):
            yield make_batch(source[rows[start : start + size]], tree[rows[start : start + size]])

    def show(self, prompt: str, answer: str) -> list[str]:
        """The tree that a model has answered, beside that of `ast` if it is another."""
        true, found = tree_of(" ".join(self.tokens(prompt))), read_trees(answer.split())
        if answer.split() == linearize(true):
            return [*draw_tree(found), "right"]
        columns = ["the model", *draw_tree(found)], ["ast", *draw_tree([true])]
        width = max(map(len, columns[0])) + 4
        lines = [f"{ours:<{width}}{theirs}".rstrip() for ours, theirs in itertools.zip_longest(*columns, fillvalue="")]
        return [*lines, "WRONG"]
