"""Two models on one page: their names, and what they must have in common."""

import numpy as np
import pytest

from minitransformer.explorer.pair import pair_data, pair_names
from tests.explorer.test_export import make_data, make_model

NAMES = ("first", "second")
FILES = ("runs/a/model.safetensors", "runs/b/model.safetensors")


@pytest.mark.parametrize(
    ("runs", "names"),
    [
        (("runs/a", "runs/b/"), ("a", "b")),
        (FILES, FILES),
        (("one/reverse", "two/reverse"), ("one/reverse", "two/reverse")),
        (("seeds/10", "seeds/9"), ("run 10", "run 9")),
    ],
)
def test_runs_are_named_by_what_differs_and_never_by_a_number_alone(runs, names):
    assert pair_names(runs) == names


def test_the_same_run_twice_is_refused():
    with pytest.raises(ValueError, match="got runs/a twice"):
        pair_names(["runs/a", "runs/b/../a/"])


def test_page_has_the_weights_of_both_models_exactly():
    first, second = make_data(make_model()), make_data(make_model(np.float64))
    data = pair_data(first, second, NAMES)
    assert list(data["weights"]) == list(NAMES)
    for name, made in zip(NAMES, (first, second), strict=True):
        for array, values in made["weights"]["trained"].items():
            assert data["weights"][name][array].dtype == np.float64
            np.testing.assert_array_equal(data["weights"][name][array], values)
    assert {key for key in data if data[key] is not first[key]} == {"weights"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d_ff": 12}, "the same d_ff: 10 in first, 12 in second"),
        ({"num_layers": 1}, "the same num_layers: 2 in first, 1 in second"),
        ({"norm_eps": 1e-3}, "the same norm_eps: 1e-05 in first, 0.001 in second"),
    ],
)
def test_models_that_differ_in_more_than_their_weights_are_refused(change, message):
    with pytest.raises(ValueError, match=f"the two models must have {message}"):
        pair_data(make_data(make_model()), make_data(make_model(**change)), NAMES)


def test_models_of_different_tasks_are_refused():
    first = make_data(make_model())
    with pytest.raises(ValueError, match="the two models must have the same task: None in first, copy in second"):
        pair_data(first, {**first, "task": "copy"}, NAMES)
