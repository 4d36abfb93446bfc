"""A whole training step is true CuPy code: under the stand-in it neither waits nor creeps into float64, and what it
learns equals what NumPy learns, bit for bit.
"""

import numpy as np
import pytest

from minitransformer.backend import backend_name, to_host, use_backend
from tests.strict.meter import measured
from tests.strict.strict import strict
from tests.strict.training import SmallTraining, batches, batches_of_pairs, train_steps

STEPS = 3
VARIANTS = {
    "the paper": {},
    "pre-norm, three embeddings": {"norm": "pre", "tie_embeddings": False},
    "an LSTM with attention": {"recurrent": True, "bidirectional": True},
}


some_variants = ["the paper", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in list(VARIANTS)[1:])]


@pytest.fixture(params=some_variants, scope="module")
def runs(request):
    """{backend: (losses on the device, meters, weights on the host)} of the same training."""
    found = {}
    for module in (np, strict):
        with use_backend(module):
            assert backend_name() == module.__name__
            training = SmallTraining(**VARIANTS[request.param])
            losses, meters = train_steps(training, STEPS, batches_of_pairs)
            found[module.__name__] = losses, meters, to_host(training.optimizer.weights)
    return found


def test_the_batches_have_different_numbers_of_pairs_and_lengths():
    assert len({(batch.source.shape, batch.target_in.shape) for batch in batches_of_pairs(STEPS)}) == STEPS


def test_no_training_step_waits_for_the_gpu(runs):
    losses, meters, _ = runs["strict"]
    assert [meter.waits for meter in meters] == [[]] * STEPS
    assert [meter.downloads for meter in meters] == [[]] * STEPS
    assert all(isinstance(loss, strict.ndarray) for loss in losses), "the loss is read when it is logged, not before"


def test_no_training_step_makes_a_float64_array(runs):
    _, meters, _ = runs["strict"]
    assert [meter.lines_that_made("float64", "complex128", "complex64") for meter in meters] == [[]] * STEPS
    assert all(len(meter.lines_that_made("float32")) > 300 for meter in meters), "arrays are counted at all"


def test_losses_equal_numpys_bit_for_bit(runs):
    got = [loss.get() for loss in runs["strict"][0]]
    assert all(loss.dtype == np.float32 for loss in got)
    assert [loss.tobytes() for loss in got] == [np.asarray(loss).tobytes() for loss in runs["numpy"][0]]
    assert len(set(map(float, got))) == STEPS, "it learns, and draws new dropout masks"


def test_trained_weights_equal_numpys_bit_for_bit(runs):
    (_, _, got), (_, _, expected) = runs["strict"], runs["numpy"]
    assert got.dtype == expected.dtype == np.float32
    np.testing.assert_array_equal(got, expected)


def _rounds(ids):
    """In how many rounds `scatter_add` sums the gradients of the commonest id."""
    return int(np.ceil(np.log2(np.bincount(ids.ravel()).max())))


@pytest.mark.parametrize("variant", some_variants)
def test_a_step_uploads_ids_and_their_order_alone(variant):
    """7 for the batch: source three times, target twice, what is to be said, and where.

    For the gradients of each of the two embeddings 3 and one a round: the order of the rows, where each id's run
    starts, and which ids there are.
    """
    with use_backend(strict):
        _, meters = train_steps(SmallTraining(**VARIANTS[variant]), STEPS)
    for meter, batch in zip(meters, batches(STEPS), strict=True):
        expected = 7 + sum(3 + _rounds(ids) for ids in (batch.source, batch.target_in))
        assert len(meter.uploads) == expected, meter.uploads


def test_measuring_the_accuracy_does_not_wait_either():
    with use_backend(strict):
        training = SmallTraining()
        with measured() as meter:
            loss, accuracy = training.step(batches(1)[0], 1e-3, measure=True)
        assert meter.waits == []
        assert 0.0 <= float(accuracy) <= 1.0
        assert float(loss) > 0.0


def test_evaluation_and_the_state_go_home_by_declared_transfers_alone():
    with use_backend(strict):
        model = SmallTraining().model
        batch = batches(1)[0]
        with measured() as meter:
            model(batch.source, batch.target_in)
            state = model.state_dict()
            model.load_state_dict(state)
        assert meter.waits == []
        assert len(meter.downloads) == len(state)
        assert all(type(array) is np.ndarray for array in state.values())
