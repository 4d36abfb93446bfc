"""The choice of a normalisation, and its eps, reach every place that has one."""

import numpy as np
import pytest

from minitransformer.layers import Decoder, Encoder, LayerNorm, Linear, Residual, RMSNorm
from minitransformer.layers.normalization import NORMALIZATIONS, make_norm
from minitransformer.models import TransformerConfig
from tests.functional.test_linear import naive_linear
from tests.functional.test_rms_norm import naive_rms_norm
from tests.helpers import host, random_array, randomize, relative_error

B, T, C, EPS = 2, 4, 6, 0.2
KINDS = {"layer": LayerNorm, "rms": RMSNorm}
each_kind = pytest.mark.parametrize("kind", KINDS)


def norms_of(layer):
    """Every normalisation inside a layer."""
    for _, child in layer.children():
        if isinstance(child, (LayerNorm, RMSNorm)):
            yield child
        else:
            yield from norms_of(child)


@each_kind
def test_a_norm_is_made_by_its_name_with_its_eps_and_dtype(kind):
    layer = make_norm(kind, C, EPS, np.float64)
    assert (type(layer), layer.eps, layer.gamma.data.dtype) == (KINDS[kind], EPS, np.float64)
    assert layer.gamma.data.shape == (C,)
    assert set(NORMALIZATIONS) == set(KINDS)


def test_an_unknown_normalisation_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="normalization must be one of layer, rms, got 'batch'"):
        Residual(Linear(C, C), C, normalization="batch")


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_residual_with_rms_norm_equals_its_equation(norm):
    made = Residual(Linear(C, C, dtype=np.float64), C, norm=norm, normalization="rms", norm_eps=EPS, dtype=np.float64)
    layer, x = randomize(made), random_array(np.random.default_rng(31), B, T, C)
    W, b, gamma = host(layer.sublayer.W.data), host(layer.sublayer.b.data), host(layer.norm.gamma.data)

    def normalise(x):
        return np.apply_along_axis(naive_rms_norm, -1, x, gamma, EPS)

    def sublayer(x):
        return np.apply_along_axis(naive_linear, -1, x, W, b)

    values = host(x)
    expected = normalise(values + sublayer(values)) if norm == "post" else values + sublayer(normalise(values))
    assert relative_error(layer(x), expected) <= 1e-12


def test_a_residual_has_the_papers_layer_norm_unless_told_otherwise():
    layer = Residual(Linear(C, C), C)
    assert (type(layer.norm), layer.norm.eps) == (LayerNorm, 1e-5)


@each_kind
@pytest.mark.parametrize("final_norm", [True, False])
@pytest.mark.parametrize(("stack", "in_each_layer"), [(Encoder, 2), (Decoder, 3)])
def test_all_norms_of_a_stack_are_of_one_kind_and_have_one_eps(stack, in_each_layer, final_norm, kind):
    sizes = {"vocab_size": 11, "d_model": C, "num_heads": 3, "d_ff": 7, "num_layers": 2, "max_len": 9}
    config = TransformerConfig(**sizes, normalization=kind, norm_eps=EPS, final_norm=final_norm)
    norms = list(norms_of(stack(config)))
    assert len(norms) == 2 * in_each_layer + final_norm
    assert {(type(norm), norm.eps) for norm in norms} == {(KINDS[kind], EPS)}
