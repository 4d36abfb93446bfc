"""Interventions: heads left out of the sum over heads, by loops; gradients by complex steps; a reader's own layers."""

import contextlib
import copy
import dataclasses

import numpy as np
import pytest

from minitransformer.core import Layer, Parameter
from minitransformer.decoding import decoding_state
from minitransformer.gradcheck.judge.report import COMPLEX_STEP
from minitransformer.gradcheck.subjects.models import check_loss
from minitransformer.inspection import Change, Rows, heads, intervene, summarize
from minitransformer.inspection.interventions import AlteredCache
from minitransformer.layers import CrossAttention, Linear
from minitransformer.layers.attention import FullAttention
from minitransformer.models import BERT, GPT, Transformer, TransformerConfig, bert_config, gpt_config
from minitransformer.models.changed import changed_layers
from minitransformer.training import save_checkpoint
from tests.helpers import device, host, random_array, randomize, relative_error, same

V, C, H = 11, 12, 3
D = C // H
SIZES = {"d_model": C, "num_heads": H, "d_ff": 7, "num_layers": 2, "max_len": 20, "dropout": 0.0}
SOURCE = np.array([[3, 8, 4, 0, 0], [7, 5, 9, 4, 10]])
TARGET = np.array([[1, 6, 3, 5], [1, 4, 10, 7]])
MODELS = {  # the model, its ids, and the name of an attention and of a layer
    "Transformer": (
        Transformer,
        TransformerConfig(V, **SIZES),
        (SOURCE, TARGET),
        "decoder.layers.0",
        "cross_attention",
    ),
    "GPT": (GPT, gpt_config(V, **SIZES), (SOURCE,), "blocks.layers.1", "self_attention"),
    "BERT": (BERT, bert_config(V, **SIZES), (SOURCE,), "encoder.layers.0", "self_attention"),
}
every_model = pytest.mark.parametrize("kind", MODELS)


def make(kind):
    """(the model with order-one weights, its ids, the name of an attention, the name of a layer)."""
    model, config, ids, layer, attention = MODELS[kind]
    return randomize(model(config, dtype=np.float64), scale=0.4), ids, f"{layer}.{attention}.sublayer", layer


def softmax(scores):
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def attention_in_loops(layer, x, memory, given=lambda weights, b, h, t: weights, head=lambda z, h: z):
    """The output of a CrossAttention: the sum over heads of what each writes, one query at a time."""
    W_q, W_kv, W_o = host(layer.q.W.data), host(layer.kv.W.data), host(layer.output.W.data)
    b_q, b_kv, b_o = host(layer.q.b.data), host(layer.kv.b.data), host(layer.output.b.data)
    y = np.zeros(x.shape)
    for b, t, h in np.ndindex(*x.shape[:2], H):
        columns = slice(h * D, (h + 1) * D)
        q = (x[b, t] @ W_q + b_q)[columns]
        kv = [m @ W_kv + b_kv for m in memory[b]]
        weights = softmax(np.array([q @ one[:C][columns] for one in kv]) / D**0.5)
        weights = given(weights, b, h, t)
        z = sum(p * one[C:][columns] for p, one in zip(weights, kv, strict=True))
        y[b, t] += head(z, h) @ W_o[columns]
    return y + b_o


class Holder(Layer):
    """A model that is one layer."""

    def __init__(self, layer):
        self.attention = layer

    def forward(self, *inputs, rng=None):
        return self.attention.forward(*inputs, rng=rng)

    def backward(self, dy, cache):
        return self.attention.backward(dy, cache)


def cross():
    rng = np.random.default_rng(0)
    layer = randomize(CrossAttention(C, H, dtype=np.float64))
    return Holder(layer), layer, random_array(rng, 2, 4, C), random_array(rng, 2, 5, C)


@pytest.mark.parametrize("gone", [(0,), (2,), (0, 1)])
def test_without_a_head_the_output_is_the_sum_over_the_other_heads(gone):
    model, layer, x, memory = cross()
    expected = attention_in_loops(layer, host(x), host(memory), head=lambda z, h: 0.0 * z if h in gone else z)
    with intervene(model, *(heads(model)[h] for h in gone)):
        np.testing.assert_allclose(host(model(x, memory)), expected, rtol=1e-12, atol=1e-12)


def test_a_head_can_be_scaled_and_another_replaced_by_its_mean():
    model, layer, x, memory = cross()
    seen, mean = [], np.random.default_rng(1).standard_normal(D)
    zeroth, first, _ = heads(model)
    changes = zeroth._replace(scale=0.5), first._replace(value=mean, watch=seen.append)
    expected = attention_in_loops(layer, host(x), host(memory), head=lambda z, h: (0.5 * z, mean, z)[h])
    with intervene(model, *changes):
        np.testing.assert_allclose(host(model(x, memory)), expected, rtol=1e-12, atol=1e-12)
    assert [array.shape for array in seen] == [(2, 4, D)]


def test_chosen_queries_take_the_mean_of_the_values_with_the_given_weights():
    model, layer, x, memory = cross()
    weights = np.random.default_rng(1).random((2, H, 4, 5))
    chosen = np.random.default_rng(2).random((2, H, 4)) < 0.4
    given = lambda old, b, h, t: weights[b, h, t] if chosen[b, h, t] else old  # noqa: E731
    expected = attention_in_loops(layer, host(x), host(memory), given)
    with intervene(model, Rows("attention", weights, chosen)):
        y, cache = model.forward(x, memory)
    np.testing.assert_allclose(host(y), expected, rtol=1e-12, atol=1e-12)
    shown, own = host(cache.attention.weights), host(layer.forward(x, memory)[1].attention.weights)
    np.testing.assert_array_equal(shown, np.where(chosen[..., None], weights, own))


@every_model
def test_gradients_through_a_replaced_head_row_and_stream_are_those_of_complex_steps(kind):
    model, ids, attention, layer = make(kind)
    T = ids[-1].shape[1]
    rng = np.random.default_rng(3)
    knocked_out, scaled, replaced = heads(model)[:3]
    changes = (
        knocked_out,
        scaled._replace(scale=0.3),
        replaced._replace(value=rng.standard_normal(D)),
        Rows(attention, rng.random((1, 1, 5)), np.arange(T) == 2),
        Change(layer, scale=0.7, value=rng.standard_normal((T, 1))),
    )
    with intervene(model, *changes) as altered:
        report = check_loss(model, *ids, ids[-1], name=kind, method=COMPLEX_STEP, together=True, directions=2)
        assert report.passed, str(report)
        assert report.worst.error <= 1e-12
        assert all(host(one.grad).any() for layer in altered[:2] for one in (layer.scale, layer.value))
        assert host(altered[3].weights.grad).any()


def test_the_gradient_of_the_memory_goes_past_a_changed_input_of_the_cross_attention():
    model, ids, attention, _ = make("Transformer")
    with intervene(model, Change(attention, scale=0.7, output=False)):
        report = check_loss(model, *ids, ids[-1], name="input", method=COMPLEX_STEP, together=True, directions=2)
    assert report.passed, str(report)


@every_model
def test_what_was_cut_off_gets_no_gradient_and_the_rest_does(kind):
    model, ids, attention, layer = make(kind)
    holder = model
    for name in attention.split("."):
        holder = holder[int(name)] if name.isdigit() else getattr(holder, name)
    first = next(change for change in heads(model) if change.path.startswith(attention))
    with intervene(model, first):
        logits, cache = model.forward(*ids)
        model.backward(random_array(np.random.default_rng(4), *logits.shape), cache)
    gradient = np.abs(host((holder.qkv if hasattr(holder, "qkv") else holder.kv).W.grad)).sum(axis=0)
    parts = gradient.reshape(-1, H, D)  # of q, k and v
    assert not parts[:, 0].any()
    assert parts[:, 1:].all()
    model.zero_grad()
    with intervene(model, Change(layer)):
        logits, cache = model.forward(*ids)
        model.backward(random_array(np.random.default_rng(4), *logits.shape), cache)
    assert not any(host(one.grad).any() for name, one in model.named_parameters() if name.startswith(f"{layer}."))


@every_model
def test_with_scale_one_nothing_changes_in_any_head(kind):
    model, ids, *_ = make(kind)
    logits, found = model(*ids), heads(model)
    assert len(set(found)) == len(found) == H * (6 if kind == "Transformer" else 2)
    with intervene(model, *(change._replace(scale=1.0) for change in found)):
        assert same(model(*ids), logits)


@pytest.mark.parametrize("kind", ["Transformer", "GPT"])
def test_decoding_token_by_token_sees_the_change_too(kind):
    model, *_ = make(kind)
    source = np.array([[3, 8, 4, 6], [7, 5, 9, 10]])

    def read():
        state = decoding_state(model, source, 3)
        return host([state.extend(ids) for ids in (state.prompt, TARGET[:, 1:2], TARGET[:, 2:3])][-1])

    plain = read()
    with intervene(model, heads(model)[1], heads(model)[-1]):
        altered = read()
        whole = (source, TARGET[:, :3]) if kind == "Transformer" else (np.hstack([source, TARGET[:, 1:3]]),)
        np.testing.assert_allclose(altered, host(model(*whole))[:, -1], rtol=1e-12)
    assert relative_error(altered, plain) > 1e-3


def test_a_model_is_as_before_after_the_block_also_after_an_error_inside_another_block(tmp_path):
    model, ids, attention, layer = make("Transformer")
    logits, names = model(*ids), list(model.state_dict())
    outer, inner = (Change(layer, 0.5), heads(model)[0]), (heads(model)[0], Rows(attention, 1.0))
    with contextlib.suppress(ZeroDivisionError), intervene(model, *outer), intervene(model, *inner):
        assert changed_layers(model)
        summarize(model)
        with pytest.raises(ValueError, match="Altered"):
            save_checkpoint(tmp_path / "model", model)
        raise ZeroDivisionError
    with pytest.raises(ValueError, match="no layer 'nowhere'"), intervene(model, heads(model)[0], Change("nowhere")):
        pass
    assert not changed_layers(model)
    assert list(model.state_dict()) == names
    assert same(model(*ids), logits)


def test_blocks_inside_blocks_do_what_one_block_does():
    model, ids, attention, layer = make("Transformer")
    changes = Change(layer, 0.5), heads(model)[16], heads(model)[16]._replace(scale=3.0), Rows(attention, 0.2)
    with contextlib.ExitStack() as blocks:
        for change in changes:
            blocks.enter_context(intervene(model, change))
        nested = host(model(*ids))
        np.testing.assert_array_equal(host(model.attention_weights(*ids).cross[0]), 0.2)
    with intervene(model, *changes):
        np.testing.assert_array_equal(host(model(*ids)), nested)


@every_model
def test_each_use_of_a_shared_layer_is_changed_alone_as_if_it_were_a_layer_of_its_own(kind):
    model, ids, attention, layer = make(kind)
    shared = type(model)(dataclasses.replace(model.config, share_layers=True), dtype=np.float64)
    randomize(shared, scale=0.4)
    for name, parameter in model.named_parameters():
        stack, layers, rest = name.partition(".layers.")
        used = f"{stack}.layers.0{rest[rest.index('.') :]}" if layers else name
        parameter.data[...] = dict(shared.named_parameters())[used].data
    found = heads(shared)
    assert found == heads(model)
    inner = Change(layer, 0.7), found[-1]._replace(scale=0.3), found[0], Rows(attention, 0.2)
    logits = [host(one(*ids)) for one in (shared, model)]
    for changes in ([found[0]], [found[-1]], inner):
        with intervene(shared, *changes), intervene(model, *changes):
            assert same(shared(*ids), model(*ids))
            report = check_loss(shared, *ids, ids[-1], name=kind, method=COMPLEX_STEP, together=True, directions=2)
            assert report.passed, str(report)
            assert relative_error(shared(*ids), logits[0]) > 1e-3
    assert same(shared(*ids), logits[0])
    assert not changed_layers(shared)
    with intervene(shared, found[0]), intervene(shared, found[-1]):
        both = host(shared(*ids))
    with intervene(model, found[0], found[-1]):
        assert same(model(*ids), both)


class OwnAttention(Layer):
    """Attention of a reader, with names of its own: each token gets the sum of all up to it."""

    def __init__(self):
        self.P, self.mix = Parameter(np.zeros((C, C))), Linear(C, C, dtype=np.float64)

    def forward(self, x, *context, rng=None):
        z = device(np.tril(np.ones((x.shape[1],) * 2))) @ (x @ self.P.data)
        y, cache = self.mix.forward(z)
        return y, (x, cache)

    def backward(self, dy, cache):
        x, cache_mix = cache
        dv = device(np.triu(np.ones((x.shape[1],) * 2))) @ self.mix.backward(dy, cache_mix)
        self.P.grad += (x.swapaxes(-1, -2) @ dv).sum(axis=0)
        return dv @ self.P.data.T


def test_a_readers_own_attention_can_lose_a_head_or_be_replaced_as_a_whole():
    model, ids, attention, _ = make("GPT")
    model.blocks.layers[1].self_attention.sublayer = own = randomize(OwnAttention(), scale=0.4)
    logits = host(model(*ids))
    change = Change(f"{attention}.mix", piece=(1, 2), output=False)
    with intervene(model, change, Change(attention, scale=0.6)):
        found = host(model(*ids))
        report = check_loss(model, *ids, ids[-1], name="own", method=COMPLEX_STEP, together=True, directions=2)
        assert report.passed, str(report)
    own.mix.W.data[C // 2 :] = 0
    own.mix.W.data *= 0.6
    own.mix.b.data *= 0.6
    np.testing.assert_allclose(found, host(model(*ids)), rtol=1e-12, atol=1e-12)
    assert relative_error(found, logits) > 1e-3


class OwnKind(FullAttention):
    """A reader's kind of attention, with a cache that says nothing of weights."""

    def forward(self, q, k, v, allowed=None, **options):
        y, cache = super().forward(q, k, v, allowed, **options)
        return y, [cache]

    def backward(self, dy, cache):
        return super().backward(dy, cache[0])


def test_a_kind_that_keeps_no_weights_shows_those_that_were_given():
    model = randomize(GPT(gpt_config(V, **SIZES), dtype=np.float64), scale=0.4)
    model.blocks.layers[0].self_attention.sublayer.kind = OwnKind()
    chosen = np.arange(5) == 3
    with intervene(model, Rows("blocks.layers.0.self_attention.sublayer", np.full(5, 0.2), chosen)):
        report = check_loss(model, SOURCE, SOURCE, name="kind", method=COMPLEX_STEP, together=True, directions=2)
        shown = host(model.features(SOURCE)[1].blocks.layers[0].self_attention.sublayer.attention.weights)
    assert report.passed, str(report)
    np.testing.assert_array_equal(shown, np.broadcast_to(0.2 * chosen[:, None], shown.shape))


def test_a_copy_of_the_cache_of_an_altered_layer_is_one_of_the_whole_cache():
    own = np.arange(3.0)  # which has a way of its own to be copied
    copied = copy.deepcopy(AlteredCache(own, np.ones(2)))
    assert isinstance(copied, AlteredCache)
    assert same(copied.own, own)
    assert copied.own is not own


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Change("blocks.layers.7"), "there is no layer 'layers.7' in a LayerStack"),
        (Change(""), "there is no layer '' in a GPT"),
        (Change("blocks.layers.1.norm"), "there is no layer 'norm' in a EncoderLayer"),
        (Rows("blocks.layers.1", 1.0), "blocks.layers.1 is a EncoderLayer, which has no kind of attention"),
        (Change("embedding", piece=(0, 5)), "embedding: 12 features have no piece 0 of 5 equal ones"),
        (Change("embedding", piece=(3, 3)), "embedding: 12 features have no piece 3 of 3 equal ones"),
    ],
)
def test_a_place_that_does_not_exist_is_refused(change, message):
    model, ids, *_ = make("GPT")
    with pytest.raises(ValueError, match=message), intervene(model, change):
        model(*ids)
