"""The choice of a normalisation, and its eps, reach every place that has one."""

import numpy as np
import pytest

from minitransformer.functional import layer_norm, rms_norm
from minitransformer.layers import LayerNorm, RMSNorm
from minitransformer.models import TransformerConfig
from minitransformer.models.build import builder
from tests.helpers import random_array, randomize, same

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
@pytest.mark.parametrize("eps", [1e-5, 0.2])
def test_a_norm_is_the_function_with_its_eps_and_starts_with_scale_one_and_no_shift(kind, eps):
    layer, x = KINDS[kind](C, eps=eps, dtype=np.float64), random_array(np.random.default_rng(21), B, T, C)
    starts = {"gamma": 1.0, "beta": 0.0} if kind == "layer" else {"gamma": 1.0}
    assert {name: set(parameter.data.tolist()) for name, parameter in layer.named_parameters()} == {
        name: {start} for name, start in starts.items()
    }
    randomize(layer)
    function = layer_norm if kind == "layer" else rms_norm
    assert same(layer(x), function(x, *(parameter.data for parameter in layer.parameters()), eps)[0])


@each_kind
@pytest.mark.parametrize("final_norm", [True, False])
@pytest.mark.parametrize(("stack", "in_each_layer"), [("encoder", 2), ("decoder", 3)])
def test_all_norms_of_a_stack_are_of_one_kind_and_have_one_eps(stack, in_each_layer, final_norm, kind):
    sizes = {"vocab_size": 11, "d_model": C, "num_heads": 3, "d_ff": 7, "num_layers": 2, "max_len": 9}
    config = TransformerConfig(**sizes, normalization=kind, norm_eps=EPS, final_norm=final_norm)
    norms = list(norms_of(getattr(builder(config), stack)()))
    assert len(norms) == 2 * in_each_layer + final_norm
    assert {(type(norm), norm.eps) for norm in norms} == {(KINDS[kind], EPS)}
