"""One layer used N times (ALBERT): the gradients of all uses add up, and whatever walks a model meets it once."""

import copy

from support.tensor_parallel import cuts_of, join_states, shard

import numpy as np
import pytest

from minitransformer.decoding import decoding_state
from minitransformer.inspection import count_parameters, summarize
from minitransformer.layers import add_lora, lora_adapters, remove_lora
from minitransformer.models import BERT, GPT, Transformer, TransformerConfig
from minitransformer.system.generators import make_generator
from minitransformer.training import save_checkpoint
from minitransformer.training.parallel.threads import replica
from minitransformer.training.watching.anomaly_hooks import AnomalyHooks
from tests.helpers import device, host, random_array, randomize, relative_error, same
from tests.models.learning import loss_and_gradients
from tests.ranks import in_ranks

N, V, B, T, C, F = 3, 11, 2, 5, 12, 7
SIZES = {"vocab_size": V, "d_model": C, "num_heads": 2, "d_ff": F, "num_layers": N, "max_len": 9}
SOURCE, TARGET = np.array([[4, 9, 6, 0], [8, 4, 7, 2]]), np.array([[1, 5, 3, 6, 0], [1, 5, 8, 8, 7]])  # (B, S), (B, T)
ANSWERS = np.array([[5, 3, 6, 2, 0], [5, 8, 8, 7, 2]])
INPUTS = {Transformer: (SOURCE, TARGET), GPT: (TARGET,), BERT: (TARGET,)}
every_kind = pytest.mark.parametrize("kind", INPUTS)


def build(kind, share=True, dtype=np.float64, **changes):
    return randomize(
        kind(TransformerConfig(**{**SIZES, "dropout": 0.0, **changes}, share_layers=share), dtype=dtype), scale=0.4
    )


def stacks(model):
    """The stacks of layers of a model, by name."""
    return {name: getattr(model, name) for name in ("encoder", "decoder", "blocks") if hasattr(model, name)}


@every_kind
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_gradient_is_the_sum_of_those_of_as_many_layers_with_equal_weights(kind, norm):
    one = build(kind, norm=norm)
    many = build(kind, share=False, norm=norm)
    for name, parameter in many.named_parameters():
        stack, layers, rest = name.partition(".layers.")
        used = f"{stack}.layers.0{rest[rest.index('.') :]}" if layers else name
        parameter.data[...] = device(one.state_dict()[used])
    loss, found = loss_and_gradients(one, INPUTS[kind], ANSWERS)
    loss_of_many, expected = loss_and_gradients(many, INPUTS[kind], ANSWERS)
    assert relative_error(loss, loss_of_many) <= 1e-14
    assert len(expected) > len(found) > 12  # a layer has 12 tensors
    for name, gradient in found.items():
        uses = [name.replace(".layers.0.", f".layers.{i}.") for i in range(N)] if ".layers.0." in name else [name]
        assert relative_error(gradient, sum(expected[use] for use in uses)) <= 1e-12, name
        if len(uses) > 1 and not name.endswith("qkv.b"):  # keys have no gradient there
            assert relative_error(gradient, expected[name]) > 1e-3, name


@every_kind
def test_each_parameter_is_counted_saved_and_listed_once(kind):
    one, many = build(kind), build(kind, share=False)
    names = [name for name, _ in one.named_parameters()]
    assert names == [name for name, _ in many.named_parameters() if ".layers." not in name or ".layers.0." in name]
    assert one.state_dict().keys() == set(names)
    assert count_parameters(one.config, kind) == one.num_parameters() < many.num_parameters()
    rows = summarize(one)
    assert sum(row.parameters for row in rows) == one.num_parameters()
    assert {row.parameters for row in rows if ".layers.1." in row.name} == {0}


def test_each_use_draws_its_own_dropout():
    encoder = build(Transformer, dropout=0.5).encoder
    _, cache = encoder.forward(random_array(np.random.default_rng(1), B, T, C), rng=make_generator(0))
    first, second, third = (host(layer.feed_forward.dropout.keep) for layer in cache.layers)
    assert (first != second).any()
    assert (second != third).any()


@pytest.mark.parametrize("kind", [Transformer, GPT])
def test_decoding_in_pieces_equals_the_whole_because_each_use_has_its_own_kv_cache(kind):
    model = build(kind)
    source, ids = (SOURCE, TARGET[1:]) if kind is Transformer else (TARGET[1:, :2], TARGET[1:])
    expected = model(SOURCE[1:], ids) if kind is Transformer else model(ids)
    state = decoding_state(model, source[-1:], 7)
    for end in range(1 if kind is Transformer else 2, T + 1):
        start = 0 if end <= 2 and kind is GPT else end - 1
        assert relative_error(state.extend(ids[:, start:end]), expected[:, end - 1]) <= 1e-12


@every_kind
def test_replicas_of_threads_share_their_own_layer(kind):
    for name, stack in stacks(replica(build(kind))).items():
        assert len({id(layer) for layer in stack.layers}) == 1, name


def test_a_stack_divided_among_ranks_stays_one_layer_and_has_its_gradients():
    whole = build(Transformer).encoder
    x, dy = (random_array(np.random.default_rng(seed), B, T, C) for seed in (2, 3))

    def gradients(layer):
        layer.zero_grad()
        y, cache = layer.forward(x)
        dx = layer.backward(dy, cache)
        return host(y), host(dx), {name: host(parameter.grad) for name, parameter in layer.named_parameters()}

    def one_rank(ranks):
        part = shard(copy.deepcopy(whole), ranks)
        assert len({id(layer) for layer in part.layers}) == 1
        return *gradients(part), cuts_of(part)

    y, dx, expected = gradients(whole)
    ys, dxs, parts, cuts = zip(*in_ranks(2, one_rank), strict=True)
    joined = join_states(parts, cuts[0])
    assert joined.keys() == expected.keys()
    assert relative_error(ys[0], y) <= 1e-12
    assert relative_error(dxs[1], dx) <= 1e-12
    for name, gradient in expected.items():
        assert relative_error(joined[name], gradient) <= 1e-12, name


def test_lora_puts_one_adapter_around_a_matrix_of_the_layer_and_takes_it_out_again():
    model = build(BERT)
    before, logits = model.state_dict(), host(model(TARGET))
    adapters = add_lora(model, ["qkv"], rank=2)
    assert list(adapters) == ["encoder.layers.0.self_attention.sublayer.qkv"]
    assert len({id(adapter) for adapter in lora_adapters(model).values()}) == 1
    randomize(adapters["encoder.layers.0.self_attention.sublayer.qkv"])
    remove_lora(model, merge=True)
    assert model.state_dict().keys() == before.keys()
    assert relative_error(host(model(TARGET)), logits) > 1e-3


def test_anomaly_hooks_watch_all_uses_and_leave_the_layer_as_it_was():
    model = build(GPT)
    plain = host(model(TARGET))
    with AnomalyHooks([model]):
        assert same(host(model.forward(TARGET)[0]), plain)
    assert not {"forward", "backward"} & vars(model.blocks.layers[0]).keys()


def test_layers_that_are_shared_against_the_configuration_are_not_saved_as_it(tmp_path):
    shared_by_hand, parted = build(GPT, share=False), build(GPT)
    shared_by_hand.blocks.layers = [shared_by_hand.blocks.layers[0]] * N
    parted.blocks.layers = [copy.deepcopy(layer) for layer in parted.blocks.layers]
    for model in (shared_by_hand, parted):
        with pytest.raises(ValueError, match="is not what a saved configuration builds"):
            save_checkpoint(tmp_path / "model", model)
