"""Planting a bug reaches every name of a function, and leaves no trace behind."""

import numpy as np
import pytest

from minitransformer import backend, functional, kernels, layers
from minitransformer.core import Parameter
from minitransformer.exercises.planting import PARTS, replaced
from minitransformer.functional import relu as other_name
from minitransformer.functional import relu_backward, softmax
from minitransformer.functional.softmax import _softmax_in_place
from minitransformer.layers import Linear, SelfAttention
from minitransformer.system.progress import tqdm
from minitransformer.training import Adam
from tests.museum.planting import Exhibit, planted

X = np.array([-1.0, 2.0])
RELU = (functional.relu, "xp.maximum(x, 0)", "xp.minimum(x, 0)")


def parts(function):
    return [getattr(function, part) for part in PARTS]


def test_the_bug_is_seen_under_every_name_and_gone_after_the_block():
    with planted(*RELU):
        assert functional.relu(X)[0].tolist() == [-1.0, 0.0]
        assert other_name(X)[0].tolist() == [-1.0, 0.0]
        assert layers.feed_forward.relu(X)[0].tolist() == [-1.0, 0.0]
    assert functional.relu(X)[0].tolist() == [0.0, 2.0]


def test_the_function_is_whole_again_also_after_an_error():
    before = parts(functional.relu)

    def fail_inside():
        with planted(*RELU):
            assert parts(functional.relu) != before
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert all(now is then for now, then in zip(parts(functional.relu), before, strict=True))


def test_a_method_with_super_can_carry_a_bug():
    old = "super().__init__(d_model, num_heads, dropout_rate)"
    with planted(SelfAttention.__init__, old, "super().__init__(d_model, 1, dropout_rate)"):
        assert SelfAttention(4, 2).num_heads == 1
    with pytest.raises(ValueError, match="num_heads = 3"):
        SelfAttention(4, 3)


def test_a_method_of_a_living_object_can_carry_a_bug():
    layer, x = Linear(2, 3), np.ones((1, 2), np.float32)
    with planted(layer.forward, "return linear(", "return x, None\n    return linear("):
        assert layer(x) is x
    assert layer(x).shape == (1, 3)


def test_a_decorated_method_can_carry_a_bug():
    with planted(tqdm.write, "real = _real_tqdm()", "return text"):
        assert tqdm.write("said") == "said"
    assert tqdm.write("said") is None


def test_a_default_can_be_wrong_positional_or_by_keyword():
    with planted(Adam.__init__, "eps: float=1e-09", "eps: float=1e-3"):
        assert Adam([Parameter(np.zeros(1))]).eps == 1e-3
    assert Adam([Parameter(np.zeros(1))]).eps == 1e-9
    with planted(Linear.__init__, "bias: bool=True", "bias: bool=False"):
        assert Linear(2, 3).b is None
    assert Linear(2, 3).b is not None


def test_a_text_that_is_not_there_or_there_twice_is_refused_with_the_count():
    for old, count in (("no such text", 0), ("dy", 3)):
        message = f"once in relu_backward, but occurs {count} times: '{old}'"
        with pytest.raises(ValueError, match=message), planted(relu_backward, old, "pass"):
            pass


def test_a_second_bug_in_one_function_is_refused():
    with planted(*RELU), pytest.raises(ValueError, match="relu carries a bug already"), planted(*RELU):
        pass
    assert functional.relu(X)[0].tolist() == [0.0, 2.0]


def test_changed_text_that_is_no_python_changes_nothing():
    before = parts(functional.relu)
    with pytest.raises(SyntaxError), planted(functional.relu, "xp.maximum(x, 0)", "xp.maximum(x"):
        pass
    assert parts(functional.relu) == before


def test_an_exhibit_plants_all_its_changes_and_takes_all_of_them_away():
    change = (_softmax_in_place, "p /= total", "p /= 2 * total")
    exhibit = Exhibit("a name", "a lesson", {RELU[0]: RELU[1:], change[0]: change[1:]})
    assert exhibit.level == "functional"
    with exhibit.planted():
        assert functional.relu(X)[0].tolist() == [-1.0, 0.0]
        assert softmax(X[:1])[0].tolist() == [0.5]
    assert functional.relu(X)[0].tolist() == [0.0, 2.0]
    assert softmax(X[:1])[0].tolist() == [1.0]


def test_the_layout_of_the_code_does_not_matter():
    for old in ("xp.maximum( x,0 )", "xp.maximum(\n        x,\n        0,\n    )  # a comment", "(xp.maximum)(x, (0))"):
        with planted(functional.relu, old, RELU[2]):
            assert functional.relu(X)[0].tolist() == [-1.0, 0.0]


def test_a_function_takes_the_place_of_another_with_all_its_names():
    with replaced(functional.relu, lambda x: (-x, None)):
        assert other_name(X)[0].tolist() == [1.0, -2.0]
    assert other_name(X)[0].tolist() == [0.0, 2.0]
    exhibit = Exhibit("a name", "a lesson", {"layers:Linear.forward": lambda layer, x: (7, None)})
    with exhibit.planted():
        assert Linear(2, 3)(X) == 7


def test_a_function_takes_the_place_of_a_kernel_too(monkeypatch):
    @backend.fused
    def formula(x):
        return "the formula"

    monkeypatch.setattr(kernels, "formula", lambda x: "the kernel", raising=False)
    monkeypatch.setattr(backend, "backend_name", lambda: "cupy")
    with replaced(formula, lambda x: "wrong"):
        assert formula(X) == "wrong"
    assert formula(X) == "the kernel"


def test_an_exhibit_with_one_impossible_change_plants_none_and_is_named():
    changes = {RELU[0]: RELU[1:], softmax: ("no such text", "")}
    with pytest.raises(ValueError, match=r"'a name' cannot be planted.*once in softmax"):
        Exhibit("a name", "a lesson", changes).planted().__enter__()
    assert functional.relu(X)[0].tolist() == [0.0, 2.0]
    with pytest.raises(LookupError, match=r"'a name' cannot be planted: there is no minitransformer\.functional:rely"):
        Exhibit("a name", "a lesson", {"functional:rely": RELU[1:]}).planted().__enter__()
