"""Agreement with the library `tokenizers`: the same merges in the same order and the same ids, for any text.

The comparison is live if the library is installed. Its results for a few texts are stored, and always compared.
"""

import functools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minitransformer
from minitransformer.tokenizers import BytePairTokenizer
from minitransformer.tokenizers.visible import to_visible
from minitransformer.vocabulary import SPECIAL_TOKENS
from tests.tokenizers.texts import TEXTS, trained

untimed = settings(deadline=None)  # a slow machine is not a failure
# the first merges that tokenizers 0.23.3 learns from each of the texts, with two spaces between them
STORED = {
    "English": (
        "h e  t he  l l  n d  Ġ s  Ġ the  i ll  Ġ m  Ġ w  a i  "
        "a nd  i nd  o r  Ġ d  Ġs t  Ġm ill  a t  e r  Ġ c  Ġw ind  "
        "Ġd a  ' s  T he  a n  e e"
    ),
    "Unicode": (
        "Ã ©  Ð ¸  Ñ Ģ  ã Ģ  ² Ð  µ Ñ  Ð Ł  Ð ²Ð  ä º  ð Ł  "
        "Ð¸ Ð²Ð  ÑĢ Ð¸Ð²Ð  µÑ Ĥ  ÐŁ ÑĢÐ¸Ð²Ð  ÐŁÑĢÐ¸Ð²Ð µÑĤ  G r  a f  c af  ¶ Ã  ¼ Î  "
        "Ã ¶Ã  Î ±  Î ¼Î  × ķ  × ľ"
    ),
    "code": (
        "Ġ Ġ  Ġ r  e f  Ġ i  Ċ ĠĠ  ) :  e l  g h  i gh  l ef  "
        "s el  Ġ a  Ġr igh  ĊĠĠ Ġ  lef t  sel f  Ġrigh t  _ _  d d  d ef  "
        "e t  i n  r n  u rn  Ġ b"
    ),
    "repeats": (
        "a a  ! !  aa aa  1 1  a b  !! !!  Ġ Ġ  ab ab  Ċ Ċ  aa b  "
        "11 11  !!!! !!!!  Ġ aaaa  Ġ abab  aa a  ĠĠ ĠĠ  aab aab  aaaa aaaa  Ġ 1111  Ġ aabaab  "
        "ĠĠ ĊĊ  abab ab  ĊĊ ĠĠ  1111 1  !!!!!!!! !!!!!!!!"
    ),
}


def _merges(tokenizer):
    return [(to_visible(left), to_visible(right)) for left, right in tokenizer.merges]


@functools.cache
def _library():
    return pytest.importorskip("tokenizers")


def _train_library(text, vocab_size, min_count):
    library = _library()
    byte_level = library.pre_tokenizers.ByteLevel
    tokenizer = library.Tokenizer(library.models.BPE())
    tokenizer.pre_tokenizer = byte_level(add_prefix_space=False)
    trainer = library.trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_count,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=byte_level.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def _library_merges(tokenizer):
    return [tuple(merge) for merge in json.loads(tokenizer.to_str())["model"]["merges"]]


@functools.cache
def _library_twin(ours):
    """The library's tokenizer with our merges, but without special tokens, which it would find in a text."""
    library = _library()
    names = (to_visible(ours.decode_bytes([i])) or SPECIAL_TOKENS[i] for i in range(ours.vocab_size))
    vocabulary = {name: i for i, name in enumerate(names)}
    twin = library.Tokenizer(library.models.BPE(vocabulary, _merges(ours)))
    twin.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    twin.decoder = library.decoders.ByteLevel()
    return twin


@pytest.mark.parametrize("name", TEXTS)
def test_merges_equal_the_stored_ones_of_the_library(name):
    merges = _merges(BytePairTokenizer.train(TEXTS[name], 1000))
    stored = STORED[name].split("  ")
    assert len(stored) == 25
    assert [f"{left} {right}" for left, right in merges[:25]] == stored


def test_merges_of_source_code_equal_those_of_the_library():
    files = sorted(Path(minitransformer.__file__).parent.rglob("*.py"))
    text = "\n".join(file.read_text("utf-8") for file in files)[:60_000]
    theirs, ours = _train_library(text, 1000, 2), BytePairTokenizer.train(text, 1000)
    assert len(ours.merges) == 1000 - 259
    assert _merges(ours) == _library_merges(theirs)
    assert ours.encode(text).tolist() == _library_twin(ours).encode(text).ids


@untimed
@given(ids=st.lists(st.integers(3, trained().vocab_size - 1), max_size=20))
def test_text_of_any_ids_equals_that_of_the_library(ids):
    assert trained().decode(ids) == _library_twin(trained()).decode(ids)
