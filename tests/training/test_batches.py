"""The batches of a run, epoch by epoch or one by one, and the same batches again after `load_state`."""

import itertools
import json

import numpy as np
import pytest

from minitransformer.training.batches import Batches

pytestmark = pytest.mark.host_only

LENGTH = 5  # batches in an epoch


class Endless:
    """Data without epochs: a batch is a list of random numbers."""

    def batch(self, rng, size):
        return rng.integers(0, 10**9, size).tolist()


class Shuffled:
    """Data with epochs that draws its order at the beginning of each."""

    def epoch(self, rng, size):
        for number in rng.permutation(LENGTH):
            yield [int(number)] * size


class DrawnOnTheWay:
    """Data with epochs that draws a number before and after each batch, and one more at the end."""

    def epoch(self, rng, size):
        for number in range(LENGTH):
            yield [number, *rng.integers(0, 10**9, size).tolist()]
            rng.random()
        rng.random()


class DrawnAtOnce:
    """Data whose `epoch` is no generator: it draws when it is called."""

    def epoch(self, rng, size):
        return iter([[int(number)] * size for number in rng.permutation(LENGTH)])


WITH_EPOCHS = (Shuffled, DrawnOnTheWay, DrawnAtOnce)


def make(kind, size=3, seed=11):
    return Batches(kind(), size, seed)


def take(batches, count):
    return [next(batches) for _ in range(count)]


@pytest.mark.parametrize("kind", WITH_EPOCHS)
def test_epochs_follow_each_other_as_from_one_generator(kind):
    rng = np.random.default_rng([11, 1])
    expected = [batch for _ in range(4) for batch in kind().epoch(rng, 3)]
    assert take(make(kind), 4 * LENGTH) == expected


def test_data_without_epochs_draws_one_batch_after_another():
    rng = np.random.default_rng([11, 1])
    assert take(make(Endless), 7) == [Endless().batch(rng, 3) for _ in range(7)]


@pytest.mark.parametrize("taken", range(2 * LENGTH + 2))  # before the first, inside of an epoch, and at its exact end
@pytest.mark.parametrize("kind", [Endless, *WITH_EPOCHS])
def test_a_loaded_state_continues_with_the_next_batch(kind, taken):
    expected = take(make(kind), taken + 3 * LENGTH)
    batches = make(kind)
    take(batches, taken)
    saved = json.loads(json.dumps(batches.state()))
    for used in (0, 4):  # a new object, and one that is somewhere else
        other = make(kind, seed=99)
        take(other, used)
        other.load_state(saved)
        assert take(other, 3 * LENGTH) == expected[taken:]
    assert take(batches, 3 * LENGTH) == expected[taken:], "saving changes nothing"


@pytest.mark.parametrize("kind", [Endless, *WITH_EPOCHS])
def test_a_loaded_state_can_be_saved_again(kind):
    batches, expected = make(kind), take(make(kind), 40)
    got = []
    for count in itertools.chain([0, 1, 4, 5, 6, 0, 10], [1] * 9):
        other = make(kind, seed=5)
        other.load_state(batches.state())
        assert other.state() == batches.state()
        batches = other
        got += take(batches, count)
    assert got == expected[: len(got)]


def test_only_data_with_epochs_saves_a_position():
    assert make(Endless).state().keys() == {"data_rng"}
    batches = make(Shuffled)
    positions = [batches.state()["position"]]
    for _ in range(LENGTH + 2):
        next(batches)
        positions.append(batches.state()["position"])
    assert positions == [0, 1, 2, 3, 4, 5, 1, 2]


@pytest.mark.parametrize("name", ["data_rng", "position"])
def test_an_incomplete_state_is_refused(name):
    state = make(Shuffled).state()
    del state[name]
    with pytest.raises(KeyError, match=name):
        make(Shuffled).load_state(state)


@pytest.mark.parametrize(
    ("position", "error"), [(-1, ValueError), (2.0, TypeError), ("2", TypeError), (None, TypeError)]
)
def test_a_position_must_be_a_whole_number_of_at_least_0(position, error):
    batches = make(Shuffled)
    with pytest.raises(error, match=r"^position must be "):
        batches.load_state({**batches.state(), "position": position})


def test_data_with_empty_epochs_is_refused():
    class Nothing:
        def epoch(self, rng, size):
            return iter(())

    with pytest.raises(ValueError, match=r"^an epoch of the data has no batches$"):
        next(make(Nothing))
