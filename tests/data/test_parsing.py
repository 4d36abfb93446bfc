"""Parsing: trees are written and read back, brackets are counted, and no expression is on both sides of the split."""

import ast
import itertools

import numpy as np
import pytest

from minitransformer.data import parsing
from minitransformer.data.parsing import ParsingTask, bracket_f1, brackets, linearize, read_trees, tree_of
from minitransformer.data.tasks import is_held_out
from minitransformer.vocabulary import EOS, PAD
from tests.data.library import small_library

EVERY_KIND = (
    """
n . n ( n , * n , n = 0 , ** n ) [ n [ 0 : ] ] $ n if not n else ~ n $ lambda n , * n : n $ lambda : [ ] $ ( n := ( ) )
n < n <= n > n >= n == n != n is n is not n in n not in n $ { ** n , 0 : { } } $ { n , n } $ n [ : ] $ ( yield )
[ n for n in n if n ] $ { n for n in n } $ { n : n for n in n } $ ( n for n in n ) $ ( yield n ) $ ( yield from n )
await n $ - n + + n - n * n @ n / n // n % n ** n << n >> n & n ^ n $ n | n and n or n $ n = n , [ n ] = n $ n += 0
return n $ raise n from n $ assert n , 's' $ del n
""".strip()
    .replace("\n", " $ ")
    .split(" $ ")
)


@pytest.fixture
def library(monkeypatch):
    """The standard library is one small module."""
    small_library(monkeypatch)


@pytest.mark.parametrize("text", EVERY_KIND)
def test_a_tree_is_read_back_as_it_was_written(text):
    tree = tree_of(text)
    assert read_trees(linearize(tree)) == [tree]


def test_these_texts_have_every_label():
    found = {token for text in EVERY_KIND for token in linearize(tree_of(text))}
    assert found >= {*parsing.LEAVES, *parsing.INNER}


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("f(x, 1)", "(Call N N K )"),
        ("a.b[1:]", "(Subscript (Attribute N ) (Slice K ) )"),
        ("a if not b else 0", "(IfExp N (Not N ) K )"),  # in the order of the text, and `ast` has the condition first
        ("{a: 1, b: -c}", "(Dict N K N (USub N ) )"),
        ("0 < a is None", "(Compare K Lt N Is K )"),
        ("f(a=1, *b)", "(Call N (keyword K ) (Starred N ) )"),
        ("x = y = []", "(Assign N N List )"),
    ],
)
def test_tree_of_an_expression_has_its_parts_in_the_order_of_the_text(text, tree):
    task = ParsingTask()
    assert linearize(tree_of(text)) == tree.split()
    assert tree_of(" ".join(task.tokens(text))) == tree_of(text), "the hidden words have the same tree"


def test_words_are_hidden_and_a_hidden_text_stays_as_it_is():
    task = ParsingTask()
    hidden = "n . n ( 's' , 0 , 0 ) is not 0"
    assert " ".join(task.tokens("self.add('a', 1.5e3, None)  is not ...".replace("...", "True"))) == hidden
    assert " ".join(task.tokens(hidden)) == hidden
    assert task.decode(task.encode("a + b")) == "n + n"


@pytest.mark.parametrize(
    ("text", "said"),
    [("f(", "is not Python"), ("f'{a}'", "is in none"), ("while", "is in none"), ("a $ b", "is in none")],
)
def test_what_is_no_expression_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        ParsingTask().encode(text)


@pytest.mark.parametrize("text", ["a b", "", "a; b", "a +"])
def test_a_tree_of_what_is_not_one_expression_is_refused(text):
    with pytest.raises(ValueError, match="not one expression"):
        tree_of(text)


def test_brackets_have_their_label_and_the_leaves_that_they_span():
    found, leaves = brackets(read_trees(["(Call", "(Attribute", "N", ")", "N", "(Subscript", "N", "K", ")", ")"]))
    assert found == {("Call", 0, 4): 1, ("Attribute", 0, 1): 1, ("Subscript", 2, 4): 1}
    assert leaves == 4


@pytest.mark.parametrize(
    ("answer", "f1"),
    [
        ("(Call N (Subscript N K ) )", 1.0),
        ("(Call N (Attribute N ) K )", 2 * 1 / (2 + 2)),  # (Call, 0, 3) is right, (Attribute, 1, 2) is not
        ("(Call N N K )", 2 * 1 / (1 + 2)),
        ("(Call N (Subscript N", 0.0),  # both end too early
        ("(Call N (Subscript N K", 1.0),  # what is open is closed at the end
        ("(Call N (Subscript N K ) ) )", 1.0),
        ("(Add N K )", 0.0),
        ("N", 0.0),
    ],
)
def test_bracket_f1_is_that_counted_by_hand(answer, f1):
    assert bracket_f1([answer.split()], [["(Call", "N", "(Subscript", "N", "K", ")", ")"]]) == pytest.approx(f1)


def test_bracket_f1_counts_the_brackets_of_all_trees_together():
    answers, trees = ["(Add N K )", "(Call N (Attribute N ) )"], ["(Add N K )", "(Call N (Attribute N ) N )"]
    assert bracket_f1(*([text.split() for text in side] for side in (answers, trees))) == 2 * 2 / (3 + 3)


def test_pieces_of_a_module_are_its_expressions_and_simple_statements():
    found = list(map(" ".join, parsing.pieces("if a.b(c):\n    x = (d +  # why\n  e)\n    f(*g, h=i[1:2])\n")))
    assert sorted(found) == ["n ( * n , n = n [ 0 : 0 ] )", "n . n ( n )", "n = ( n + n )", "n [ 0 : 0 ]"]
    assert list(parsing.pieces("print 'an older Python'")) == []


def test_every_tree_of_a_batch_is_that_of_its_source(library):
    task = ParsingTask()
    for held_out in (False, True):
        batch = task.batch(np.random.default_rng(0), 20, held_out)
        for source, target in zip(batch.source, batch.target_out, strict=True):
            assert task.decode(target).split() == linearize(tree_of(task.decode(source)))
            assert EOS in source
            assert EOS in target


def test_no_example_is_on_both_sides_of_the_split(library):
    task = ParsingTask()
    sides = [task.batch(np.random.default_rng(0), 10**6, held_out).source for held_out in (False, True)]
    train, held_out = ({task.decode(row) for row in side} for side in sides)
    assert not is_held_out(sides[0]).any()
    assert is_held_out(sides[1]).all()
    assert not train & held_out
    assert train | held_out == set(parsing.examples())
    assert len(train) > len(held_out) > 0


@pytest.mark.parametrize("limit", [None, 13])
def test_an_epoch_has_every_training_example_once_and_those_of_one_length_together(library, limit):
    task = ParsingTask(limit)
    batches = list(task.epoch(np.random.default_rng(0), 8))
    seen = sorted(task.decode(row) for batch in batches for row in batch.source)
    everything = {task.decode(row) for row in task.batch(np.random.default_rng(0), 10**6).source}
    assert seen == sorted(everything)
    assert len(everything) == (limit or len(parsing.encoded(False)[0]))
    lengths = [(batch.target_out != PAD).sum(axis=1) for batch in batches]
    ranges = sorted((int(each.min()), int(each.max())) for each in lengths)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ranges))


def test_a_right_answer_is_drawn_once_and_a_wrong_one_beside_the_tree_of_ast():
    task = ParsingTask()
    assert task.show("f(x, 1)", "(Call N N K )") == ["Call", "  N", "  N", "  K", "right"]
    assert task.show("f(x)", "(Add N") == [
        "the model    ast",
        "Add          Call",
        "  N            N",
        "               N",
        "WRONG",
    ]


@pytest.mark.weekly
def test_the_standard_library_has_thousands_of_examples_that_all_read_back():
    found = parsing.examples()
    assert len(found) > 15_000
    assert all(linearize(tree) == written.split() for written in found.values() for tree in read_trees(written.split()))
    assert all(len(tree.split()) <= 2 * len(text.split()) for text, tree in found.items())
    assert all(isinstance(ast.parse(text), ast.Module) for text in found)
