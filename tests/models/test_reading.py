"""Reading without a backward pass: the same numbers, with the arrays of one layer at a time."""

import functools
import tracemalloc

import numpy as np
import pytest

from minitransformer.config import ConvConfig, Experts
from minitransformer.data.text import TextBatch
from minitransformer.decoding.rereading import RereadingState, decoding_state
from minitransformer.evaluation import mean_loss, strided_windows, windowed_loss
from minitransformer.inspection.interventions import Change, intervene
from minitransformer.layers.stack import LayerStack
from minitransformer.models import (
    BERT,
    GPT,
    ConvLM,
    Seq2Seq,
    Seq2SeqConfig,
    Transformer,
    TransformerConfig,
    bert_config,
    gpt_config,
    reading,
)
from minitransformer.models.reading import read
from minitransformer.models.since_2017.vision import ViT
from minitransformer.system.generators import make_generator
from minitransformer.system.process import ThreadTeam
from tests.helpers import randomize, relative_error, same

V, B, S, T = 19, 11, 7, 5
SIZES = {"d_model": 12, "num_heads": 3, "d_ff": 20, "num_layers": 3, "max_len": 16}
MODELS = {
    "Transformer": (Transformer, TransformerConfig(V, **SIZES, dropout=0.2), {}),
    "T5": (Transformer, TransformerConfig(V, **SIZES, positions="relative", start=0, norm="pre"), {}),
    "GPT": (GPT, gpt_config(V, **SIZES, dropout=0.2), {}),
    "GPT with experts": (GPT, gpt_config(V, **SIZES, experts=Experts(4, per_token=2)), {}),
    "GPT with tiled attention": (GPT, gpt_config(V, **SIZES, attention="tiled"), {}),
    "BERT": (BERT, bert_config(V, **SIZES), {}),
    "a classifier": (BERT, bert_config(V, **SIZES), {"num_classes": 4}),
    "ViT": (ViT, bert_config(V, **{**SIZES, "max_len": 5}), {"num_classes": 3, "patch_size": 4}),
    "ConvLM": (ConvLM, ConvConfig(V, 12, num_layers=2), {}),
    "Seq2Seq": (Seq2Seq, Seq2SeqConfig(V, 8, 8, attention="additive"), {}),
}
WITHOUT_STACKS = ("ConvLM", "Seq2Seq")


def build(name, dtype=np.float32):
    kind, config, options = MODELS[name]
    return randomize(kind(config, dtype=dtype, **options), 3, 0.4)


def inputs_of(model):
    rng = np.random.default_rng(2)
    source, target = rng.integers(3, V, (B, S)), rng.integers(3, V, (B, T))
    source[4, -2:] = target[7, -1:] = 0
    if isinstance(model, ViT):
        return (rng.integers(1, V, (B, 16)),)
    return (source, target) if isinstance(model, Transformer | Seq2Seq) else (target,)


@pytest.fixture
def sizes(monkeypatch):
    """How many sequences each stack has read at a time."""
    found, original = [], LayerStack.forward

    @functools.wraps(original)  # it still counts as the library's
    def forward(self, x, *context, **options):
        found.append(len(x))
        return original(self, x, *context, **options)

    monkeypatch.setattr(LayerStack, "forward", forward)
    return found


@pytest.mark.parametrize("name", MODELS)
def test_a_call_gives_what_forward_gives_bit_by_bit(name):
    model = build(name)
    inputs = inputs_of(model)
    assert same(model(*inputs), model.forward(*inputs)[0])
    assert same(model(*inputs, rng=make_generator(1)), model.forward(*inputs, rng=make_generator(1))[0])


@pytest.mark.host_only  # a GPU reads a batch as a whole
@pytest.mark.parametrize("name", MODELS)
def test_a_large_batch_is_read_in_slices_that_give_the_same_numbers(name, sizes, monkeypatch):
    """Products of fewer rows may be rounded otherwise, in the last bits."""
    model = build(name, np.float64)
    inputs = inputs_of(model)
    monkeypatch.setattr(reading, "SLICE", 3 * (S if len(inputs) == 2 else T) + 2)
    for method in (model.forward, model.features):
        expected, _ = method(*inputs)
        sizes.clear()
        found = read(method, *inputs)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert relative_error(found, expected) < 1e-14
        if name not in WITHOUT_STACKS:  # those are read as a whole
            assert sizes == [rows for rows in (3, 3, 3, 2) for _ in range(len(inputs))]
    sizes.clear()
    model(*inputs, rng=make_generator(1))  # one generator for all masks
    assert set(sizes) <= {B}


@pytest.mark.host_only
def test_two_threads_read_a_half_each_and_slices_that_are_too_small_are_not_cut(sizes, monkeypatch):
    model = build("GPT", np.float64)
    (ids,) = inputs_of(model)
    expected, _ = model.forward(ids)
    monkeypatch.setattr(reading, "team_of_blas", lambda: ThreadTeam(2))
    for least, rows in ((1, [6, 5]), (9 * T * SIZES["d_model"], [9, 2]), (B * T * SIZES["d_model"], [B])):
        monkeypatch.setattr(reading, "MIN_NUMBERS", least)
        sizes.clear()
        assert relative_error(read(model.forward, ids), expected) < 1e-14
        assert sorted(sizes, reverse=True) == rows


@pytest.mark.host_only
def test_encoder_and_decoder_are_read_in_slices_too(sizes, monkeypatch):
    model = build("Transformer", np.float64)
    source, target = inputs_of(model)
    monkeypatch.setattr(reading, "SLICE", 4 * S)
    memory = read(model.encode, source)
    assert relative_error(memory, model.encode(source)[0]) < 1e-14
    assert relative_error(read(model.decode, target, memory, source), model.decode(target, memory, source)[0]) < 1e-14
    assert sizes == [4, 4, 3, B, 4, 4, 3, B]


def test_a_batch_that_is_wrong_in_its_last_slice_is_refused(monkeypatch):
    monkeypatch.setattr(reading, "SLICE", T)
    model = build("Transformer")
    source, target = inputs_of(model)
    with pytest.raises(ValueError, match=f"got {B} and {B - 1} sequences|got {B}, {B - 1} and {B} sequences"):
        model(source, target[:-1])
    target[-1, -1] = V
    with pytest.raises(IndexError, match=f"target has the token id {V}"):
        model(source, target)
    with pytest.raises(ValueError, match="source is empty"):
        model(source[:0], target[:0])


def peak(function, *inputs):
    function(*inputs)  # the first call reads modules, too
    tracemalloc.start()
    function(*inputs)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def deep(kind, layers):
    return kind(TransformerConfig(V, **{**SIZES, "num_layers": layers, "max_len": 64}))


@pytest.mark.host_only
@pytest.mark.parametrize("kind", [GPT, BERT, Transformer])
def test_reading_holds_the_arrays_of_one_layer_at_a_time(kind, monkeypatch):
    """So that eight layers take what two take, and three slices what one takes, besides the output."""
    monkeypatch.setattr(reading, "SLICE", 1024)
    ids = np.random.default_rng(1).integers(3, V, (48, 64))
    inputs = (ids,) * (2 if kind is Transformer else 1)
    one_slice = [each[:16] for each in inputs]
    two, eight = deep(kind, 2), deep(kind, 8)
    assert peak(eight.features, *one_slice) > 3 * peak(two.features, *one_slice)
    assert peak(eight, *one_slice) < 1.1 * peak(two, *one_slice) < 0.7 * peak(two.features, *one_slice)
    assert peak(eight, *inputs) < 1.1 * peak(eight, *one_slice) + 4 * ids.size * V


@pytest.mark.host_only
def test_evaluation_and_decoding_read_without_keeping():
    """A loss, the loss of a long text, decoding that reads again, and the source of a translation."""
    few, many = (deep(GPT, layers) for layers in (2, 8))
    pair = [deep(Transformer, layers) for layers in (2, 8)]
    ids = np.random.default_rng(1).integers(3, V, (40, 64))
    text, windows = ids.reshape(-1)[:1000], strided_windows(1000, 64, 64)
    ways = {
        "loss": lambda model: mean_loss(model, [TextBatch(ids, ids)]),
        "long text": lambda model: windowed_loss(model, text, windows),
        "again": lambda model: RereadingState(model, ids[:, :0]).extend(ids),
    }
    for name, way in ways.items():
        assert peak(way, many) < 1.15 * peak(way, few), name
    source = np.repeat(ids, 2, axis=0)
    first, second = (peak(decoding_state, model, source, 1) for model in pair)
    kept = 2 * 4 * source.size * 12  # bytes of the keys and values that a decoder layer does keep
    assert second < first + 6 * 1.1 * kept


class BatchNormalized(GPT):
    """Somebody's own model, whose output for one sequence depends on the others."""

    def forward(self, ids, rng=None):
        logits, cache = super().forward(ids, rng)
        self.weights = cache.features.blocks.attention_weights()
        return logits - logits.mean(axis=0), cache


class Looking(LayerStack):
    """Somebody's own stack, which looks into its caches."""

    def forward(self, x, *context, rng=None):
        y, cache = super().forward(x, *context, rng=rng)
        return y * cache.attention_weights()[0].mean(), cache


def test_models_and_stacks_of_ones_own_are_called_as_they_are(monkeypatch):
    monkeypatch.setattr(reading, "SLICE", 2 * T)
    model = BatchNormalized(MODELS["GPT"][1])
    (ids,) = inputs_of(model)
    assert same(model(ids), model.forward(ids)[0])
    model = build("GPT")
    model.blocks = Looking(model.blocks.layers, model.blocks.norm)
    assert relative_error(model(ids), model.forward(ids)[0]) < 1e-6
    x = model.embedding(ids)
    assert same(model.blocks(x), model.blocks.forward(x)[0])


def test_a_model_with_changed_layers_reads_a_batch_as_a_whole(monkeypatch):
    """An intervention may have a value for each sequence, and `watch` is called with all of them."""
    monkeypatch.setattr(reading, "SLICE", 2 * T)
    model, seen = build("GPT", np.float64), []
    (ids,) = inputs_of(model)
    value = np.random.default_rng(3).standard_normal((B, 1, model.config.d_model))
    with intervene(model, Change("blocks.layers.0", value=value, watch=seen.append)):
        found, expected = model(ids), model.forward(ids)[0]
    assert same(found, expected)
    assert [len(x) for x in seen] == [B, B]
