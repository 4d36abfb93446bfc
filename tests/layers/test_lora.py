"""LoRA: the derivation in loops, what is exactly 0 at first, merging to the last bit, and any Linear of any model."""

import numpy as np
import pytest

from minitransformer.backend import to_device, to_host
from minitransformer.data import get_task
from minitransformer.decoding import decoding_state, generate_from
from minitransformer.layers import CrossEntropyLoss, Linear, LoRALinear, add_lora, lora_adapters, remove_lora
from minitransformer.models import GPT, Transformer, TransformerConfig, gpt_config
from minitransformer.training import Adam, training_step
from tests.helpers import host, random_array, randomize

SIZES = {"d_model": 12, "num_heads": 2, "d_ff": 20, "num_layers": 2, "max_len": 24}


def adapter(rank=3, alpha=1.5, I=5, O=4):
    layer = LoRALinear(Linear(I, O, rng=np.random.default_rng(0), dtype=np.float64), rank, alpha)
    randomize(layer, scale=1.0)
    return layer


def test_at_first_the_output_is_that_of_the_base_and_only_B_has_a_gradient():
    base = Linear(5, 4, rng=np.random.default_rng(0), dtype=np.float64)
    x, dy = random_array(np.random.default_rng(1), 6, 5), random_array(np.random.default_rng(2), 6, 4)
    before = host(base(x))
    layer = LoRALinear(base, rank=2, rng=np.random.default_rng(3))
    y, cache = layer.forward(x)
    layer.backward(dy, cache)
    assert np.array_equal(host(y), before)
    assert not host(layer.A.grad).any()
    assert host(layer.B.grad).all()
    assert 0 < np.abs(host(layer.A.data)).max() <= 5**-0.5


def test_merging_keeps_the_function_and_unmerging_restores_every_bit():
    layer, x = adapter(), random_array(np.random.default_rng(1), 6, 5)
    W, y = host(layer.W.data).copy(), host(layer(x))
    layer.merge()
    layer.merge()
    np.testing.assert_allclose(host(layer(x)), y, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(host(layer.W.data), W + 0.5 * host(layer.A.data) @ host(layer.B.data), rtol=1e-13)
    with pytest.raises(ValueError, match="merged into its matrix has no gradient"):
        layer.backward(y, layer.forward(x)[1])
    layer.unmerge()
    assert np.array_equal(host(layer.W.data), W)
    assert np.array_equal(host(layer(x)), y)


@pytest.mark.parametrize(
    ("names", "count"), [(["qkv"], 4), (["q", "kv"], 4), (["self_attention.sublayer.output", "expand"], 8)]
)
def test_adapters_go_to_every_linear_of_a_name_and_train_alone(names, count):
    model = Transformer(TransformerConfig(29, **SIZES), seed=4, dtype=np.float64)
    before, batch = model.state_dict(), get_task("reverse").batch(np.random.default_rng(1), 3)
    adapters = add_lora(model, names, rank=2)
    assert adapters == lora_adapters(model)
    assert all(any(f".{name}".endswith(f".{end}") for end in names) for name in adapters)
    assert len(adapters) == count
    optimizer = Adam(model.parameters(), lr=0.01)
    assert optimizer.weights.size == sum(each.A.data.size + each.B.data.size for each in adapters.values())
    losses = [float(training_step(model, CrossEntropyLoss(), optimizer, batch)[0]) for _ in range(8)]
    assert losses[-1] < losses[0]
    after = model.state_dict()
    assert all(np.array_equal(after[name], array) for name, array in before.items())
    for each in adapters.values():
        assert to_host(each.B.data).any()
    logits = host(model(*batch.inputs))
    remove_lora(model)
    assert not lora_adapters(model)
    assert model.state_dict().keys() == before.keys()
    np.testing.assert_allclose(host(model(*batch.inputs)), logits, rtol=1e-10, atol=1e-11)


def test_a_model_with_adapters_writes_what_the_merged_one_writes():
    model = GPT(gpt_config(29, **SIZES), seed=1, dtype=np.float64)
    adapters = add_lora(model, ["qkv", "output", "expand", "contract"], rank=2)
    for each in adapters.values():
        each.B.data[...] = to_device(np.random.default_rng(5).standard_normal(each.B.data.shape))
    prompt = np.array([[5, 6, 7]])

    def written(model):
        state = decoding_state(model, prompt, 8)
        return generate_from(state, state.prompt, 8, eos=None).ids

    before = written(model)
    remove_lora(model)
    assert np.array_equal(written(model), before)
    assert not np.array_equal(written(GPT(gpt_config(29, **SIZES), seed=1, dtype=np.float64)), before)


def test_whatever_is_refused_leaves_the_model_as_it_was():
    model = GPT(gpt_config(29, **{**SIZES, "d_ff": 8}), seed=1)
    for names, rank, message in (
        (["qkv", "contract"], 9, r"rank must be from 1 to 8 for a matrix \(8, 12\), got 9"),
        (["qkv"], 0, r"rank must be from 1 to 12 for a matrix \(12, 36\), got 0"),
        (["qkv", "query"], 2, r"no Linear's name ends in 'query': .* qkv, output, expand, contract"),
    ):
        with pytest.raises(ValueError, match=message):
            add_lora(model, names, rank=rank)
        assert not lora_adapters(model)
        assert not any(parameter.frozen for parameter in model.parameters())


def test_the_generator_that_is_given_draws_the_first_weights():
    A = [
        host(
            add_lora(GPT(gpt_config(7, d_model=6, num_heads=2, d_ff=8, num_layers=1)), ["qkv"], 2, rng=rng)[
                "blocks.layers.0.self_attention.sublayer.qkv"
            ].A.data
        )
        for rng in map(np.random.default_rng, (1, 2, 1))
    ]
    assert (A[0] == A[2]).all()
    assert (A[0] != A[1]).all()


def test_a_second_adapter_around_one_linear_is_refused_and_around_another_is_not():
    model = GPT(gpt_config(29, **SIZES), seed=1)
    first = add_lora(model, ["qkv"], rank=2)
    with pytest.raises(
        ValueError, match=r"layers\.0\.self_attention\.sublayer\.qkv has an adapter already: remove_lora"
    ):
        add_lora(model, ["output", "qkv"], rank=2)
    with pytest.raises(ValueError, match="has an adapter already"):
        LoRALinear(next(iter(first.values())), rank=2)
    assert lora_adapters(model) == first
    assert len(first | add_lora(model, ["output"], rank=3)) == len(lora_adapters(model)) == 4
    trained = [name for name, parameter in model.named_parameters() if not parameter.frozen]
    assert trained == [f"{name}.{matrix}" for name in lora_adapters(model) for matrix in "AB"]


def test_a_whole_name_means_one_linear_although_others_end_in_it():
    model = GPT(gpt_config(29, **SIZES), seed=1)
    model.qkv = Linear(3, 4, rng=np.random.default_rng(0))
    assert list(add_lora(model, ["qkv"], rank=2)) == ["qkv"]


def test_a_subclass_of_linear_keeps_its_forward():
    class Doubled(Linear):
        def forward(self, x, rng=None):
            return super().forward(2 * x)

    model = GPT(gpt_config(29, **SIZES), seed=1)
    own = model.blocks.layers[1].self_attention.sublayer.qkv = Doubled(12, 36, rng=np.random.default_rng(0))
    assert list(add_lora(model, ["qkv"], rank=2)) == ["blocks.layers.0.self_attention.sublayer.qkv"]
    assert model.blocks.layers[1].self_attention.sublayer.qkv is own


def test_a_merged_adapter_of_the_least_or_the_largest_rank_is_removed_without_its_addition():
    for rank in (1, 12):
        model = GPT(gpt_config(29, **SIZES), seed=1, dtype=np.float64)
        before = model.state_dict()
        for each in add_lora(model, ["qkv"], rank=rank).values():
            each.B.data[...] = 1.0
            each.merge()
        remove_lora(model, merge=False)
        for name, array in model.state_dict().items():
            np.testing.assert_allclose(array, before[name], rtol=0, atol=1e-12)
