"""Files of sentence pairs: what is read, what is refused, and that the split depends on the source of a pair alone."""

import hashlib
import re

import pytest

from minitransformer.data import PairCorpus, load_pairs
from minitransformer.data.pairs import read_pairs, without_sources_of

LINES = {  # name: (line, pair)
    "umlauts": ("Schöne Häuser\tnice houses", ("Schöne Häuser", "nice houses")),
    "umlauts of two characters": ("Scho\u0308ne Ha\u0308user\tnice houses", ("Schöne Häuser", "nice houses")),
    "accents and a narrow space": (
        "Où est l'e\u0301cole\u202f?\twhere is the school?",
        ("Où est l'école ?", "where is the school?"),
    ),
    "quotes": ('"Ja\tshe said "yes" and \'no"', ('"Ja', 'she said "yes" and \'no"')),
    "white space of all kinds": ("  zu \u00a0 viel\u3000Platz \ttoo  much room  ", ("zu viel Platz", "too much room")),
    "line ends of Unicode": ("eins\u2028zwei\x85drei\tone\x0btwo\x1cthree", ("eins zwei drei", "one two three")),
    "a third column": ("Hallo!\tHello!\tCC-BY 2.0 #1 (someone)", ("Hallo!", "Hello!")),
    "empty columns": ("Hallo!\tHello!\t\t", ("Hallo!", "Hello!")),
    "numbers of Tatoeba": ("77\tHallo!\t1234\tHello!", ("Hallo!", "Hello!")),
    "four columns of another kind": ("7\tseven\ta number\t2", ("7", "seven")),
    "a number": ("7\tseven", ("7", "seven")),
    "no letters": ("猫がいる\t🐈 is here", ("猫がいる", "🐈 is here")),
}


def write(folder, data):
    path = folder / "pairs.tsv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def many_pairs(count, start=0):
    return [(f"Satz {i}", f"sentence {i}") for i in range(start, start + count)]


def lines_of(pairs):
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def loaded(folder, pairs):
    return load_pairs(write(folder, lines_of(pairs)))


def test_swapped_pairs_are_those_of_a_file_with_its_columns_swapped(tmp_path):
    pairs = many_pairs(500)
    swapped = load_pairs(write(tmp_path, lines_of(pairs)), swap=True)
    assert swapped == loaded(tmp_path, [(target, source) for source, target in pairs])
    assert swapped.train[0][0].startswith("sentence")


@pytest.mark.parametrize(("line", "pair"), LINES.values(), ids=LINES)
def test_a_line_is_a_pair_of_tidy_sentences(line, pair, tmp_path):
    assert read_pairs(write(tmp_path, line)) == [pair]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", ["", "\n"])
def test_line_ends_and_a_byte_order_mark_do_not_matter(ending, mark, last, tmp_path):
    text = mark + ending.join(["eins\tone", "zwei\ttwo", "drei\tthree"]) + last
    assert read_pairs(str(write(tmp_path, text))) == [("eins", "one"), ("zwei", "two"), ("drei", "three")]


def test_empty_lines_are_left_out(tmp_path):
    assert read_pairs(write(tmp_path, "\n \neins\tone\n\t\t\n\u3000\n\nzwei\ttwo\n\n")) == [
        ("eins", "one"),
        ("zwei", "two"),
    ]


def test_a_repeated_pair_is_kept_once_where_it_came_first_and_another_translation_is_another_pair(tmp_path):
    text = "ja\tyes\nnein\tno\nja\tyes\nja\tyeah\nnein  \tno\nü\tu\nu\u0308\tu\n"
    assert read_pairs(write(tmp_path, text)) == [("ja", "yes"), ("nein", "no"), ("ja", "yeah"), ("ü", "u")]


@pytest.mark.parametrize(
    "line", ["one column only", "no translation\t", "no translation\t \u2028", "\tno source", "5\t"]
)
def test_a_line_without_two_sentences_is_refused_with_its_number(line, tmp_path):
    path = write(tmp_path, f"eins\tone\n\n{line}\nvier\tfour\n")
    message = f"{path}, line 3: a sentence, a tab and its translation were expected"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        read_pairs(path)


def test_pairs_in_memory_are_those_of_a_file_that_has_them(tmp_path):
    sources, targets = zip(*many_pairs(500), strict=True)
    untidy = [*zip(sources, (f" {target}\t" for target in targets), strict=True), (sources[0], targets[0])]
    assert load_pairs(untidy) == loaded(tmp_path, many_pairs(500))
    assert load_pairs(iter(untidy), swap=True) == load_pairs(write(tmp_path, lines_of(many_pairs(500))), swap=True)
    with pytest.raises(ValueError, match=r"^there are too few pairs to .+, got 2$"):
        load_pairs([("ja", "yes"), ("ja ", "yes"), ("nein", "no")])


@pytest.mark.parametrize("count", [3, 4, 40, 100])
def test_few_pairs_have_one_source_at_least_in_each_part(count):
    pairs = many_pairs(count)
    parts = load_pairs([*pairs, *((source, f"{target} again") for source, target in pairs)])
    sources = [{source for source, _ in part} for part in parts]
    assert all(sources)
    assert sum(map(len, sources)) == count == len(set.union(*sources))


def test_each_pair_is_in_one_part_and_the_parts_keep_the_order_of_the_file(tmp_path):
    pairs = many_pairs(2000)
    corpus = loaded(tmp_path, pairs)
    assert sorted(pair for part in corpus for pair in part) == sorted(pairs)
    places = {pair: place for place, pair in enumerate(pairs)}
    for part in corpus:
        assert part == sorted(part, key=places.get)


def test_the_side_of_a_source_never_changes(tmp_path):
    """So that the published numbers of a file stay comparable: the first four bytes of its SHA-256 decide."""
    corpus = loaded(tmp_path, many_pairs(3000))
    for name, low, high in (("test", 0.0, 0.03), ("validation", 0.03, 0.04), ("train", 0.04, 1.0)):
        for source, _ in getattr(corpus, name):
            number = int.from_bytes(hashlib.sha256(source.encode()).digest()[:4], "big")
            assert low <= number / 2**32 < high, source


def test_the_hash_of_a_corpus_sees_every_sentence_its_side_and_its_order():
    corpora = [
        PairCorpus([("a", "b"), ("c", "d")], [("e", "f")], [("g", "h")]),
        PairCorpus([("c", "d"), ("a", "b")], [("e", "f")], [("g", "h")]),
        PairCorpus([("a", "b")], [("c", "d"), ("e", "f")], [("g", "h")]),
        PairCorpus([("b", "a"), ("c", "d")], [("e", "f")], [("g", "h")]),
        PairCorpus([("a", "b"), ("c", "d")], [("e", "f")], [("g", "ä")]),
        PairCorpus([("a", "b"), ("c", "d")], [("g", "h")], [("e", "f")]),
    ]
    hashes = [corpus.sha256 for corpus in corpora]
    assert len(set(hashes)) == len(corpora)
    assert hashes == [corpus.sha256 for corpus in corpora]
    assert all(re.fullmatch("[0-9a-f]{64}", each) for each in hashes)


def test_pairs_are_left_out_by_their_sources_alone():
    pairs, others = [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4")], [("a", "9"), ("d", "2")]
    assert without_sources_of(pairs, others) == [("b", "2"), ("c", "4")]
    assert without_sources_of(iter(pairs), iter([])) == pairs
