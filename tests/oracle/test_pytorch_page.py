"""The page "The same in PyTorch": its code runs and notices mistakes, and what it says about PyTorch is so."""

import re
from pathlib import Path

import numpy as np
import pytest

import minitransformer as mt

torch = pytest.importorskip("torch")
functional, nn = torch.nn.functional, torch.nn

PAGE = (Path(__file__).parents[2] / "docs" / "pytorch.md").read_text("utf-8")
MISTAKES = {  # what a block says: what somebody could write instead
    "self.beta.add_grad((slope * x)": "self.beta.add_grad((dy * x)",
    "return dy * s + beta * slope,": "return dy * s - beta * slope,",
    "return x * torch.sigmoid(self.beta * x)": "return x * torch.sigmoid(2 * self.beta * x)",
    "a, cache_1 = F.linear(x, W_1, b_1)": "a, cache_1 = F.linear(x, -W_1, b_1)",
    "attn_mask=torch.tensor(allowed))\nours": "attn_mask=torch.tensor(~allowed))\nours",
    "attn_mask=torch.tensor(~allowed), average": "attn_mask=torch.tensor(allowed), average",
    "da = dy * (a > 0)": "da = dy",
    "dz = p * (dp - (p * dp).sum(axis=-1, keepdims=True))": "dz = p * (1 - p) * dp",
    "(p - p_star) / len(ids)": "p - p_star",
    "np.add.at(dE, ids, de)": "dE[ids] += de",
    "return p @ v, ds @ k * scale": "return p @ v, ds @ k",
    "ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))\n    return": "ds = p * dp\n    return",
    "p = softmax(s) * allowed": "p = softmax(s)",
    "heads.swapaxes(0, 1).reshape(heads.shape[1], -1)": "heads.reshape(heads.shape[1], -1)",
    "dx_hat.mean(axis=-1, keepdims=True) - through_sigma)": "dx_hat.mean(axis=-1, keepdims=True))",
    "dtotal + dtotal @ W.T": "dtotal @ W.T",
    "torch.tensor(array.T) for name": "torch.tensor(array) for name",
    "~is_padding[:, None, None, :]": "is_padding[:, None, None, :]",
}


def run(page, judges=True):
    """All names that the blocks of a page leave; without the block in which judges are compared, it is faster."""
    names = {}
    for i, block in enumerate(re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)):
        if judges or "check_layer" not in block:
            exec(compile(block, f"block {i}", "exec"), names)
    return names


@pytest.fixture(scope="module")
def names():
    return run(PAGE)


def numbers(*shape):
    """Random numbers that require their gradient."""
    return torch.tensor(np.random.default_rng(0).standard_normal(shape), requires_grad=True)


def refusal(function, x, **options):
    """What gradcheck says about a function at x, or "" if it passes."""
    try:
        torch.autograd.gradcheck(function, x, **options)
    except RuntimeError as error:
        return str(error)
    return ""


def test_all_code_of_the_page_runs(names):
    assert len(names["NAMES"]) == 12


@pytest.mark.parametrize("right", MISTAKES)
def test_the_code_of_the_page_notices_a_mistake(right):
    assert PAGE.count(right) == 1
    with pytest.raises((AssertionError, RuntimeError)):
        run(PAGE.replace(right, MISTAKES[right]), judges=False)


def test_gradcheck_wants_float64_and_is_as_tolerant_as_the_page_says(names):
    with pytest.warns(UserWarning, match="not a double precision"), pytest.raises(RuntimeError):
        torch.autograd.gradcheck(torch.tanh, numbers(2, 3).detach().float().requires_grad_())
    square, x = names["Square"](2.001), numbers(2, 3)
    assert not refusal(lambda x: names["Bridge"].apply(x, square), x)
    assert refusal(lambda x: names["Bridge"].apply(x, square), x, rtol=1e-7, atol=1e-7)


class Noisy(torch.autograd.Function):
    """y = 2 x, whose backward pass is never the same twice."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, dy):
        return 2 * dy * (1 + 1e-9 * torch.rand((), dtype=dy.dtype))


class OverwritesUpstream(mt.Layer):
    """y = x * x, whose backward pass uses the array of dy for its own."""

    def forward(self, x, rng=None):
        return x * x, x

    def backward(self, dy, x):
        dy *= 2
        return dy * x


class Dropout(mt.Layer):
    """Half of x, another half in each forward pass."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def forward(self, x, rng=None):
        keep = 2.0 * (self.rng.random(x.shape) < 0.5)
        return x * keep, keep

    def backward(self, dy, keep):
        return dy * keep


def test_randomness_and_an_overwritten_gradient_are_seen_as_the_page_says(names):
    x = numbers(4, 5)
    said = refusal(lambda x: functional.dropout(x, 0.5), x)
    assert re.search(r"Jacobian mismatch(.|\n)*e\+06", said)
    assert "two forward passes" in str(mt.check_layer(Dropout(), np.ones((1, 2))))
    assert "Backward is not reentrant" in refusal(Noisy.apply, x)
    assert not refusal(Noisy.apply, x, nondet_tol=1e-6)
    assert names["passes_gradcheck"](OverwritesUpstream(), x.detach().numpy())
    assert not mt.check_layer(OverwritesUpstream(), np.ones((1, 2))).passed


def test_kinks_are_seen_as_the_page_says():
    zero, near = (torch.full((2, 3), value, dtype=torch.float64, requires_grad=True) for value in (0.0, 1e-7))
    assert "0.5500" in refusal(torch.relu, near)
    assert "0.5000" in refusal(torch.relu, zero)
    assert not refusal(torch.abs, zero)


class SharedProjection(nn.Module):
    """Attention that takes its values from the keys' matrix."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(4, 4, dtype=torch.float64) for _ in range(3))

    def forward(self, x):
        return functional.scaled_dot_product_attention(self.q(x), self.k(x), self.k(x))


def test_a_forgotten_parameter_passes_gradcheck_and_keeps_none_as_its_gradient():
    attention, x = SharedProjection(), numbers(2, 3, 4)
    assert not refusal(attention, x)
    attention(x).sum().backward()
    assert [name for name, p in attention.named_parameters() if p.grad is None] == ["v.weight", "v.bias"]
    with pytest.raises(RuntimeError, match="not have been used in the graph"):
        torch.autograd.grad(attention(x).sum(), attention.v.weight)


@pytest.mark.parametrize(
    "function",
    [lambda z: z.softmax(dim=-1), lambda z: functional.layer_norm(z, (3,)), torch.relu, functional.gelu],
    ids=["softmax", "layer norm", "ReLU", "GELU"],
)
def test_pytorch_refuses_complex_numbers_where_the_page_says_so(function):
    with pytest.raises((NotImplementedError, RuntimeError)):
        function(torch.ones(2, 3, dtype=torch.complex128))


def test_what_the_table_says_about_modules_is_so():
    module = nn.Linear(3, 2)
    state = module.state_dict()
    assert module.weight.shape == (2, 3)
    assert module.weight.grad is None
    module.weight.data[0, 0] = 7.0
    assert state["weight"][0, 0] == 7.0
    module(torch.ones(1, 3)).sum().backward()
    assert module.weight.grad is not None
    module.zero_grad()
    assert module.weight.grad is None
    assert nn.LayerNorm(3).eps == mt.TransformerConfig(5).norm_eps == 1e-5
    assert nn.CrossEntropyLoss().ignore_index == -100


def test_no_hook_of_an_encoder_layer_sees_attention_weights():
    layer, seen = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dtype=torch.float64), []
    layer.self_attn.register_forward_hook(lambda module, inputs, output: seen.append(output[1]))
    layer(numbers(1, 3, 4))
    assert seen == [None]


def test_a_mask_of_floats_is_added_to_the_scores():
    allowed, x = torch.ones(3, 3, dtype=torch.bool).tril(), numbers(1, 3, 4)
    added = torch.zeros(3, 3, dtype=torch.float64).masked_fill(~allowed, -torch.inf)
    attention = nn.MultiheadAttention(4, 2, batch_first=True, dtype=torch.float64)
    for function, mask in (
        (functional.scaled_dot_product_attention, allowed),
        (lambda *qkv, attn_mask: attention(*qkv, attn_mask=attn_mask)[0], ~allowed),
    ):
        assert torch.equal(function(x, x, x, attn_mask=added), function(x, x, x, attn_mask=mask))


def test_an_empty_row_of_multihead_attention_is_nan_unless_it_returns_no_weights_outside_the_fast_path():
    attention, x = nn.MultiheadAttention(4, 2, batch_first=True, dtype=torch.float64), numbers(1, 3, 4)
    everything = torch.ones(1, 3, dtype=torch.bool)
    assert attention(x, x, x, key_padding_mask=everything)[0].isnan().all()
    y, weights = attention(x, x, x, key_padding_mask=everything, need_weights=False)
    assert weights is None
    assert not y.isnan().any()
    with torch.no_grad():
        fast, _ = attention.eval()(x, x, x, key_padding_mask=everything, need_weights=False)
    assert fast.isnan().all()
