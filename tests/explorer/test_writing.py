"""How sources are typed: for toy tasks, for models with a tokenizer, and for all others."""

import pytest

from minitransformer.explorer.writing import ids_writing, toy_writing, unique, writing_of
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.tokenizers import BytePairTokenizer, CharacterTokenizer


@pytest.mark.parametrize(
    ("task", "source", "answer"),
    [
        ("copy", "stop", "stop"),
        ("reverse", "stop", "pots"),
        ("sort", "banana", "aaabnn"),
        ("addition", "57+8", "65"),
        ("addition", "9999+1", "10000"),
        ("recall", "a3k7c1k", "7"),
    ],
)
def test_toy_tasks_know_the_right_answer(task, source, answer):
    writing = toy_writing(task)
    answered = writing.solve(source)
    assert writing.text(answered).replace(" ", "") == answer
    assert writing.encode(answer) == answered


def test_some_sources_have_no_right_answer():
    wrong = {"addition": ["12", "1+2+3", "12345+1"], "recall": ["a3k7c", "k", "a3k7"], "reverse": [""]}
    for task, sources in wrong.items():
        for source in sources:
            toy_writing(task).encode(source)
            assert toy_writing(task).solve(source) is None


@pytest.mark.parametrize("task", ["copy", "reverse", "sort", "addition", "recall"])
def test_example_of_a_task_has_an_answer_and_is_typed_as_it_is_printed(task):
    writing = toy_writing(task)
    ids = writing.encode(writing.example)
    assert writing.solve(writing.example)
    typed = writing.text(ids)
    assert (typed.split(" ") if writing.separator else list(typed)) == [writing.tokens[id] for id in ids]
    assert typed.replace(" ", "") == writing.example
    assert writing.separator == (" " if task == "recall" else "")
    assert (writing.end, writing.task) == ((2,), task)


def test_unknown_symbols_are_refused():
    with pytest.raises(ValueError, match="unknown symbol 'ä'"):
        toy_writing("reverse").encode("bär")


def make_model(vocab_size):
    return Transformer(TransformerConfig(vocab_size, d_model=4, num_heads=2, d_ff=6, num_layers=1))


def test_metadata_decide_how_sources_are_written():
    model = make_model(29)
    assert writing_of(model, {"task": "reverse"}).example == "stop"
    assert writing_of(model, {"task": "translation", "tokenizer": CharacterTokenizer("ab").to_dict()}).tokens[3:] == (
        "a",
        "b",
    )
    assert writing_of(model, {}).tokens[-1] == "28"
    assert writing_of(model, {"task": "own"}).tokens == ids_writing(29).tokens


def test_tokens_of_sentences_are_visible_and_each_is_there_once():
    tokenizer = BytePairTokenizer.train("pad the pad on the pad\tpad " * 5, 300)
    writing = writing_of(make_model(tokenizer.vocab_size), {"tokenizer": tokenizer.to_dict()})
    assert len(set(writing.tokens)) == tokenizer.vocab_size
    assert writing.tokens[:3] == ("pad", "bos", "eos")
    assert all(token.isprintable() and " " not in token for token in writing.tokens)
    ids = writing.encode("  pad the   pad ")
    assert tokenizer.decode(ids) == "pad the pad"
    assert "\u2581" in writing.text(ids)
    assert writing.text(ids).split(" ") == [writing.tokens[id] for id in ids]
    assert (writing.solve("pad"), writing.example) == (None, None)


def test_ids_can_be_typed_for_a_model_of_which_nothing_is_known():
    writing = ids_writing(6)
    assert writing.tokens == ("pad", "bos", "eos", "3", "4", "5")
    assert writing.encode(" 5 3  eos") == [5, 3, 2]
    assert writing.text([5, 3, 2]) == "5 3 eos"
    assert (writing.end, writing.example, writing.solve("5")) == ((), None, None)
    for text in ("6", "pad", "0", "x"):
        with pytest.raises(ValueError, match=f"'{text}' is no token: write bos, eos, or ids from 3 to 5"):
            writing.encode(text)
    assert ids_writing(2).tokens == ("pad", "bos")


def test_repeated_names_get_their_ids():
    assert unique(["a", "b", "a", "a_2", "a"]) == ("a", "b", "a_2", "a_2_3", "a_4")
