"""The share of exact answers, the headline number: of every row, of the whole answer, its eos included."""

from types import SimpleNamespace

import numpy as np
import pytest

from minitransformer.evaluation import decode_and_score, exact_match
from minitransformer.evaluation.exact_match import DECODED, SLACK
from tests.decoding.scripted import EOS, PAD
from tests.helpers import same

V = 8


class Answering:
    """A model that says what `answers` has for the first id of a source, then repeats its last token."""

    def __init__(self, answers):
        self.answers = answers
        self.asked = []  # how many sources, for each token

    def forward(self, source, target):
        self.asked.append(len(source))
        said = np.arange(target.shape[1])
        answers = [np.array(self.answers[first]) for first in source[:, 0].tolist()]
        return 5.0 * np.eye(V)[[answer[np.minimum(said, len(answer) - 1)] for answer in answers]]

    __call__ = forward


def rows(*answers):
    """Answers of any length as one array, padded at the end."""
    width = max(map(len, answers))
    return np.array([[*answer, *[PAD] * (width - len(answer))] for answer in answers])


def batch_of(sources, answers):
    """One source of three ids for each number in `sources`, with its right answer."""
    return SimpleNamespace(source=np.repeat(np.array(sources)[:, None], 3, axis=1), target_out=rows(*answers))


RIGHT = rows([5, 6, EOS], [7, EOS], [4, 4, EOS], [EOS])


@pytest.mark.parametrize(
    ("said", "share"),
    [
        ([[5, 6, EOS], [7, EOS], [4, 4, EOS], [EOS]], 1.0),
        ([[5, 6, EOS], [7, EOS], [4, 4, EOS], [7, EOS]], 0.75),  # something where nothing is right
        ([[5, 6, EOS], [7, EOS], [4, EOS], [EOS]], 0.75),  # a token is missing
        ([[5, 6, EOS], [6, EOS], [4, 5, EOS], [EOS]], 0.5),
        ([[5, 6, 6], [7, EOS], [4, 4, EOS], [EOS]], 0.75),  # no eos
        ([[5, 6, EOS], [7, 7, 7, 7, 7], [4, 4, EOS], [EOS]], 0.75),  # wider than the right answers
        ([[5, 6], [7, EOS], [4, 4], [EOS]], 0.5),  # narrower: the end is missing
        ([[5, 6, EOS], [7], [4, 4, EOS], [EOS]], 0.75),  # padding where eos is right
        ([[6], [6], [6], [6]], 0.0),
    ],
)
def test_an_answer_is_right_if_all_of_it_is_right(said, share):
    assert exact_match(rows(*said), RIGHT) == share


def test_exact_match_of_random_answers_is_that_of_a_loop():
    rng = np.random.default_rng(0)
    said, right = rng.integers(0, 3, (400, 3)), rng.integers(0, 3, (400, 4))
    said = np.where(np.cumprod(said != PAD, axis=1) == 1, said, PAD)  # after the first padding, only padding
    right = np.where(np.cumprod(right != PAD, axis=1) == 1, right, PAD)
    pairs = zip(said.tolist(), right.tolist(), strict=True)
    count = sum([i for i in a if i] == [i for i in b if i] for a, b in pairs)
    assert 5 < count < 395
    assert exact_match(said, right) == count / 400


def test_every_source_is_decoded_and_counts_however_many_there_are():
    count = 2 * DECODED + 30
    sources = [3] * count
    for wrong in (0, DECODED - 1, DECODED, 2 * DECODED, count - 1):
        sources[wrong] = 4
    model = Answering({3: [5, 6, EOS], 4: [5, EOS]})
    decoded, share = decode_and_score(model, batch_of(sources, [[5, 6, EOS]] * count))
    assert share == (count - 5) / count
    assert model.asked == [DECODED] * 3 + [DECODED] * 3 + [30] * 3
    assert same(decoded, rows(*(model.answers[source] for source in sources)))


@pytest.mark.parametrize("late", [False, True])
def test_answers_stay_in_their_rows_where_some_parts_are_longer_than_others(late):
    sources = [3] * DECODED + [4] * DECODED
    sources = sources[::-1] if late else sources
    model = Answering({3: [7, EOS], 4: [4, 5, 6, EOS]})
    answers = [model.answers[source] for source in sources]
    decoded, share = decode_and_score(model, batch_of(sources, answers))
    assert share == 1.0
    assert same(decoded, rows(*answers))


def test_an_answer_without_an_end_is_shown_beyond_the_right_one():
    model = Answering({3: [5, 6]})
    decoded, share = decode_and_score(model, batch_of([3], [[5, 6, EOS]]))
    assert share == 0.0
    assert SLACK == 2
    assert decoded.tolist() == [[5, 6, 6, 6, 6]]


def test_the_longest_right_answer_sets_the_limit_for_all():
    model = Answering({3: [5, EOS], 4: [6]})
    decoded, share = decode_and_score(model, batch_of([3, 4], [[5, EOS], [6, 6, 6, EOS]]))
    assert decoded.tolist() == [[5, EOS, 0, 0, 0, 0], [6] * 6]
    assert share == 0.5
