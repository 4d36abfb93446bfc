"""The layer protocol: which parameters a layer has, under which names, and that their arrays are never swapped unseen.

Optimisers and flat vectors hold references to the arrays of a model. So loading copies in place, tying is sharing one
object, and a refused state leaves everything as it was.
"""

import numpy as np
import pytest

from minitransformer.backend import backend_name, xp
from minitransformer.core import Layer, Parameter
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training.flat import FlatParameter
from tests.helpers import device, host, randomize


class Scale(Layer):
    """A user's own smallest layer: y = x w, with w (C,)."""

    def __init__(self, width, seed=0):
        self.w = Parameter(np.random.default_rng(seed).standard_normal(width))

    def forward(self, x, rng=None):
        return x * self.w.data, x

    def backward(self, dy, x):
        self.w.grad += (dy * x).sum(axis=tuple(range(dy.ndim - 1)))
        return dy * self.w.data


class Chain(Layer):
    """A user's own composite: a child, a list, things that are no layers, and a parameter shared with the child."""

    def __init__(self):
        self.bias = Parameter(np.zeros(3))
        self.first = Scale(3, seed=1)
        self.title = "no layer"
        self.rest = [Scale(3, seed=2), "no layer either", Scale(3, seed=3)]
        self.nothing = None
        self.tied = Scale(3)
        self.tied.w = self.first.w


def test_xp_is_the_library_that_this_test_is_repeated_on(request):
    """Or else all tests could be NumPy's, three times over."""
    assert backend_name() == request.node.callspec.params["backend"]
    assert isinstance(Parameter(np.zeros(3)).data, xp.ndarray)


def _names(layer):
    return [name for name, _ in layer.named_parameters()]


def test_parameters_are_named_after_attributes_children_and_places_in_lists():
    assert _names(Chain()) == ["bias", "first.w", "rest.0.w", "rest.2.w"]


def test_shared_parameter_is_listed_once_under_its_first_name():
    chain = Chain()
    assert dict(chain.named_parameters())["first.w"] is chain.tied.w
    assert len(chain.parameters()) == len({id(parameter) for parameter in chain.parameters()}) == 4
    assert chain.num_parameters() == 3 + 3 + 3 + 3


def test_children_are_the_layers_directly_inside():
    chain = Chain()
    expected = [("first", chain.first), ("rest.0", chain.rest[0]), ("rest.2", chain.rest[2]), ("tied", chain.tied)]
    assert list(chain.children()) == expected
    assert list(chain.first.children()) == []


def test_parameter_starts_with_a_zero_gradient_of_its_shape_and_dtype():
    for dtype in (np.float32, np.float64, np.complex128):
        parameter = Parameter(np.ones((2, 3), dtype))
        np.testing.assert_array_equal(host(parameter.grad), np.zeros((2, 3)))
        assert parameter.grad.dtype == parameter.data.dtype == dtype
    assert repr(parameter) == "Parameter(shape=(2, 3), dtype=complex128)"


def test_zero_grad_clears_every_gradient_in_place():
    chain = Chain()
    gradients = [parameter.grad for parameter in chain.parameters()]
    for gradient in gradients:
        gradient[...] = 7.0
    chain.zero_grad()
    for gradient, parameter in zip(gradients, chain.parameters(), strict=True):
        assert parameter.grad is gradient
        assert not gradient.any()


def test_layer_without_forward_or_backward_names_itself():
    class Unfinished(Layer):
        pass

    with pytest.raises(NotImplementedError, match="Unfinished has no forward"):
        Unfinished()(np.ones(3))
    with pytest.raises(NotImplementedError, match="Unfinished has no backward"):
        Unfinished().backward(np.ones(3), None)


def test_state_dict_holds_copies():
    chain = Chain()
    state = chain.state_dict()
    assert list(state) == _names(chain)
    state["first.w"][...] = 99.0
    assert not (chain.first.w.data == 99.0).any()
    chain.bias.data[...] = 5.0
    assert not state["bias"].any()


def test_load_state_dict_copies_in_place():
    chain, other = Chain(), randomize(Chain(), seed=6)
    arrays = [parameter.data for parameter in chain.parameters()]
    view = chain.first.w.data[1:]
    state = other.state_dict()
    chain.load_state_dict(state)
    for array, parameter, wanted in zip(arrays, chain.parameters(), other.parameters(), strict=True):
        assert parameter.data is array
        np.testing.assert_array_equal(host(array), host(wanted.data))
    np.testing.assert_array_equal(host(view), host(other.first.w.data)[1:])
    assert chain.tied.w is chain.first.w
    state["first.w"][...] = 99.0
    assert not (chain.first.w.data == 99.0).any(), "the model must not keep the caller's array"


def _spoil(state, how):
    if how == "missing":
        del state["rest.2.w"]
    elif how == "unexpected":
        state["extra.w"] = np.zeros(1)
    elif how == "shape":
        state["rest.2.w"] = np.zeros((3, 1))
    elif how == "dtype":
        state["rest.2.w"] = state["rest.2.w"].astype(np.float32)
    return state


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("missing", r"Chain.*missing \['rest\.2\.w'\], unexpected nothing"),
        ("unexpected", r"Chain.*missing nothing, unexpected \['extra\.w'\]"),
        ("shape", r"rest\.2\.w as float64\(3, 1\).*needs float64\(3,\)"),
        ("dtype", r"rest\.2\.w as float32\(3,\).*needs float64\(3,\)"),
    ],
)
def test_refused_state_is_named_and_changes_nothing(how, message):
    chain = randomize(Chain(), seed=7)
    before = chain.state_dict()
    with pytest.raises(ValueError, match=message):
        chain.load_state_dict(_spoil(randomize(Chain(), seed=8).state_dict(), how))
    for name, value in chain.state_dict().items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)


def test_of_many_wrong_names_three_are_given_and_a_count():
    many = {f"extra.{i}": np.zeros(1) for i in range(5)}
    message = r"missing nothing, unexpected \['extra\.0', 'extra\.1', 'extra\.2'\] and 2 more$"
    with pytest.raises(ValueError, match=message):
        Chain().load_state_dict({**Chain().state_dict(), **many})


def test_flatten_keeps_values_and_gradients_and_has_a_tied_parameter_once():
    chain = randomize(Chain(), seed=9)
    for i, parameter in enumerate(chain.parameters()):
        parameter.grad[...] = device(np.array([i, 10.0 + i, 20.0 + i]))
    values = [parameter.data.tolist() for parameter in chain.parameters()]
    flat = FlatParameter(chain.parameters())
    assert flat.data.shape == flat.grad.shape == (12,)
    assert flat.data.tolist() == [number for value in values for number in value]
    assert flat.grad.tolist() == [0, 10, 20, 1, 11, 21, 2, 12, 22, 3, 13, 23]
    assert [parameter.data.tolist() for parameter in chain.parameters()] == values
    assert chain.tied.w is chain.first.w


def test_flat_vector_and_pieces_share_memory_both_ways():
    chain = Chain()
    flat = FlatParameter(chain.parameters())
    flat.data[...] = device(np.arange(12.0))
    flat.grad[...] = device(-np.arange(12.0))
    assert chain.rest[0].w.data.tolist() == [6, 7, 8]
    assert chain.rest[0].w.grad.tolist() == [-6, -7, -8]
    chain.tied.w.data[2] = 100.0
    chain.zero_grad()
    assert flat.data[5] == 100.0
    assert not flat.grad.any()


def test_flattening_twice_leaves_the_second_vector_in_charge():
    chain = randomize(Chain(), seed=12)
    first = FlatParameter(chain.parameters())
    second = FlatParameter(chain.parameters())
    np.testing.assert_array_equal(host(first.data), host(second.data))
    second.data[...] = 3.0
    assert all((parameter.data == 3.0).all() for parameter in chain.parameters())


# one layer in each stack, vocabulary 7, d_model 4, d_ff 6
NORM = ("norm.gamma (4,)", "norm.beta (4,)")
QUERIES = ("sublayer.q.W (4, 4)", "sublayer.q.b (4,)")
OUTPUT = ("sublayer.output.W (4, 4)", "sublayer.output.b (4,)", *NORM)
CONTRACT = ("sublayer.contract.W (6, 4)", "sublayer.contract.b (4,)", *NORM)
PARTS = {
    "self_attention": ("sublayer.qkv.W (4, 12)", "sublayer.qkv.b (12,)", *OUTPUT),
    "cross_attention": (
        "sublayer.q.W (4, 4)",
        "sublayer.q.b (4,)",
        "sublayer.kv.W (4, 8)",
        "sublayer.kv.b (8,)",
        *OUTPUT,
    ),
    "feed_forward": ("sublayer.expand.W (4, 6)", "sublayer.expand.b (6,)", *CONTRACT),
}
STACKS = {"encoder": ("self_attention", "feed_forward"), "decoder": tuple(PARTS)}


def _one_layer_model(**changes):
    sizes = {"d_model": 4, "num_heads": 2, "d_ff": 6, "num_layers": 1, "max_len": 9}
    return Transformer(TransformerConfig(vocab_size=7, **sizes, **changes))


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("tied", [True, False])
def test_names_and_shapes_of_the_transformers_parameters_are_stable(norm, tied):
    """Checkpoints are read by these names: a change here makes every file that was ever saved unreadable."""
    model = _one_layer_model(norm=norm, tie_embeddings=tied)
    expected = ["source_embedding.tokens.E (7, 4)"]
    expected += [] if tied else ["target_embedding.tokens.E (7, 4)"]
    for stack, parts in STACKS.items():
        expected += [f"{stack}.layers.0.{part}.{name}" for part in parts for name in PARTS[part]]
        expected += [f"{stack}.norm.gamma (4,)", f"{stack}.norm.beta (4,)"] if norm == "pre" else []
    expected += [] if tied else ["output.E (7, 4)"]
    assert [f"{name} {parameter.data.shape}" for name, parameter in model.named_parameters()] == expected


def test_gradients_are_added_and_the_array_that_was_given_is_not_kept():
    parameter, gradient = Parameter(np.ones((2, 3))), device(np.full((2, 3), 2.0))
    parameter.add_grad(gradient)
    gradient[...] = 5.0
    assert host(parameter.grad).tolist() == [[2.0] * 3] * 2
    parameter.add_grad(gradient)
    assert host(parameter.grad).tolist() == [[7.0] * 3] * 2
    assert host(gradient).tolist() == [[5.0] * 3] * 2


def test_a_model_that_only_computes_forward_has_no_arrays_for_gradients():
    chain = Chain()
    chain.first(device(np.ones(3)))
    assert not any("grad" in vars(parameter) for parameter in chain.parameters())


def test_assigning_a_gradient_keeps_it_in_the_flat_vector():
    chain = Chain()
    flat = FlatParameter(chain.parameters())
    for parameter in chain.parameters():
        parameter.grad = parameter.grad + 2.0
    assert (flat.grad == 2.0).all()


class Leaf(Layer):
    def __init__(self, rows, columns=3):
        self.W, self.b = Parameter(np.zeros((rows, columns))), Parameter(np.zeros(columns))


class Branch(Layer):
    def __init__(self, *leaves):
        self.first, self.leaves = Leaf(2), list(leaves)


def test_a_layer_prints_as_a_tree_with_the_shapes_of_its_parameters():
    expected = """\
Branch: 71 parameters
  first: Leaf W (2, 3), b (3,)
  leaves.0 to 1: Leaf W (4, 3), b (3,)
  leaves.2: Branch
    first: Leaf W (2, 3), b (3,)
    leaves.0: Leaf W (5, 3), b (3,)
  leaves.3: Leaf W (4, 1), b (1,)"""
    layer = Branch(Leaf(4), Leaf(4), Branch(Leaf(5)), Leaf(4, 1))
    assert repr(layer) == expected
    assert repr(Leaf(2, 5)) == "Leaf W (2, 5), b (5,): 15 parameters"
