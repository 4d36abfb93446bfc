"""The estimate of what training needs, against what it takes: numbers of weights, kept arrays, and peaks of memory."""

import itertools
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from experiments.measuring.steps import SIZES
from experiments.measuring.timing import peak_memory
from minitransformer.config import POSITIONS, Windowed
from minitransformer.data import Batch
from minitransformer.data.text import TextBatch
from minitransformer.inspection.activation_memory import count_parameters, kept_activations
from minitransformer.inspection.memory_estimate import PROCESS, training_memory
from minitransformer.layers import recomputed
from minitransformer.models import (
    BERT,
    GPT,
    Seq2Seq,
    Seq2SeqConfig,
    Transformer,
    TransformerConfig,
    bert_config,
    gpt_config,
)
from minitransformer.vocabulary import PAD
from tests.helpers import Trainer

pytestmark = pytest.mark.host_only  # it watches the memory of the host

KINDS = (Transformer, GPT, BERT)
TODAY = (  # of configurations
    {"num_kv_heads": 2, "d_k": 6, "d_v": 6, "qk_norm": True, "bias": False, "qkv_bias": True},
    {"d_k": 6, "d_v": 5, "norm": "sandwich", "normalization": "rms"},
    {"num_kv_heads": 1, "d_v": 8, "attention": Windowed(3, full_layers=(1,))},
)


def config_of(vocab_size=50, **changes):
    sizes = {"d_model": 32, "num_heads": 4, "d_ff": 72, "num_layers": 3, "max_len": 40}
    return TransformerConfig(vocab_size, **{**sizes, **changes})


@pytest.mark.parametrize(("kind", "positions"), list(itertools.product(KINDS, POSITIONS)))
def test_parameters_are_counted_without_a_model(kind, positions):
    for activation, tied in (("relu", True), ("swiglu", False)):
        config = config_of(positions=positions, activation=activation, tie_embeddings=tied or kind is BERT, norm="pre")
        assert count_parameters(config, kind) == kind(config).num_parameters()


@pytest.mark.parametrize(("kind", "changes"), list(itertools.product(KINDS, TODAY)), ids=str)
def test_parameters_of_todays_layers_are_counted_without_a_model(kind, changes):
    config = config_of(positions="rope", **changes)
    assert count_parameters(config, kind) == kind(config).num_parameters()


def test_parameters_of_a_recurrent_model_are_counted():
    config = Seq2SeqConfig(50, 30, 36, num_layers=3, bidirectional=True)
    assert count_parameters(config) == Seq2Seq(config).num_parameters()


def batch_for(kind, config, rows, length):
    rng = np.random.default_rng(0)
    ids = [rng.integers(3, config.vocab_size, (rows, length)) for _ in range(3)]
    ids[0][0, -1] = ids[1][0, -1] = ids[2][0, -1] = PAD
    return Batch(*ids) if kind is Transformer else TextBatch(*ids[:2])


def traced(function):
    """-> the result, the bytes that are held after the call and were not before, and the peak."""
    tracemalloc.start()
    try:
        result = function()
        return result, *tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("kind", "positions", "attention", "length"),
    [
        (GPT, "rope", "full", 40),
        (GPT, "relative", "full", 40),
        (GPT, "relative", "tiled", 40),
        (GPT, "rope", "full", 600),  # long enough for tiles
        (BERT, "learned", "full", 40),
        (BERT, "alibi", "full", 40),
        (BERT, "alibi", "tiled", 40),
        (BERT, "alibi", "full", 600),
    ],
)
def test_kept_activations_of_gpt_and_bert_are_those_in_their_caches(kind, positions, attention, length):
    config = config_of(
        positions=positions, attention=attention, dropout=0.1, attention_dropout=0.1, max_len=length, num_layers=2
    )
    model, batch = kind(config), batch_for(kind, config, 9, length)
    rng = np.random.default_rng(0)
    model.features(*batch.inputs, rng=rng)
    _, held, _ = traced(lambda: model.features(*batch.inputs, rng=rng))
    expected = sum(row.bytes * row.count for row in kept_activations(config, 9, length, length, kind))
    assert held == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(("kind", "layers"), [(GPT, 3), (Transformer, 2)])
def test_kept_activations_of_recomputed_layers_are_their_inputs(kind, layers):
    config = config_of(positions="rope", dropout=0.1, attention_dropout=0.1, num_layers=layers)
    model, batch = recomputed(kind(config)), batch_for(kind, config, 9, 40)
    rng = np.random.default_rng(0)
    model.features(*batch.inputs, rng=rng)
    _, held, _ = traced(lambda: model.features(*batch.inputs, rng=rng))
    rows = kept_activations(config, 9, 40, 40, kind, recompute=True)
    assert held == pytest.approx(sum(row.bytes * row.count for row in rows), rel=0.02)
    inputs = [row for row in rows if ".layers.*.inputs." in row.name and row.letters == ("B", "T", "C")]
    assert all(row.bytes == 4 * 9 * 40 * 32 for row in inputs)


CASES = {
    "many short sequences": (Transformer, config_of(dropout=0.1), 200, 10),
    "dropout of the attention": (Transformer, config_of(max_len=200, attention_dropout=0.1), 3, 200),
    "long sentences": (Transformer, config_of(max_len=600, dropout=0.1), 2, 600),
    "many tokens to choose from": (Transformer, config_of(vocab_size=5000), 20, 30),
    "logits in several blocks": (GPT, gpt_config(40_000, d_model=16, num_heads=2, d_ff=32, num_layers=1), 10, 40),
    "more weights than activations": (Transformer, config_of(d_model=128, d_ff=1024, vocab_size=3000), 4, 10),
    "a wide inner layer": (Transformer, config_of(d_ff=1500, dropout=0.1), 10, 30),
    "text": (GPT, gpt_config(90, d_model=64, num_heads=4, d_ff=256, num_layers=3, positions="rope"), 8, 128),
    "gated text": (GPT, gpt_config(90, d_model=64, num_heads=4, d_ff=256, num_layers=2, activation="swiglu"), 16, 64),
    "long text": (GPT, gpt_config(90, d_model=64, num_heads=4, d_ff=256, num_layers=2, max_len=600), 2, 600),
    "hidden text": (BERT, bert_config(90, d_model=64, num_heads=4, d_ff=256, num_layers=3, dropout=0.1), 8, 128),
}


SOME = {"text", "dropout of the attention"}  # all are tried with `--exhaustive`


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.exhaustive) if case not in SOME else case for case in CASES]
)
def test_the_estimate_is_within_a_tenth_of_what_the_arrays_take(case, record_property):
    kind, config, rows, length = CASES[case]
    batch = batch_for(kind, config, rows, length)

    def learn():
        trainer = Trainer(kind(config), threads=1)
        for _ in range(2):
            trainer.step(batch, 1e-3)

    _, _, peak = traced(learn)
    memory = training_memory(config, rows, (length, length) if kind is Transformer else (length,), kind)
    estimate = memory._replace(saving=0).total - PROCESS  # Python's arrays alone, and no checkpoint
    record_property("estimate / peak", round(estimate / peak, 3))
    assert estimate == pytest.approx(peak, rel=0.1)


@pytest.mark.parametrize("layers", [4, *(pytest.param(count, marks=pytest.mark.exhaustive) for count in (12, 24))])
def test_the_estimate_with_recompute_is_within_a_tenth_of_what_the_arrays_take(layers, record_property):
    config = gpt_config(90, d_model=64, num_heads=4, d_ff=256, num_layers=layers, max_len=64)
    batch = batch_for(GPT, config, 32, 64)

    def peak(recompute):
        model = GPT(config)
        trainer = Trainer(model, threads=1)
        if recompute:
            trainer.workers.gradients[0].model = recomputed(model)
        trainer.step(batch, 1e-3)
        return traced(lambda: trainer.step(batch, 1e-3))[2]

    for recompute in (False, True):
        estimate = training_memory(config, 32, (64,), GPT, recompute=recompute)
        step = estimate.kept + estimate.work
        record_property(f"estimate / peak, {recompute=}", round(step / peak(recompute), 3))
        assert step == pytest.approx(peak(recompute), rel=0.1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's own peak")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("tiny", marks=pytest.mark.exhaustive),
        *(pytest.param(name, marks=pytest.mark.weekly) for name in ("small", "medium")),
    ],
)
def test_the_estimate_is_within_a_fifth_of_what_a_whole_process_takes(name, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    size = SIZES[name]
    memory = training_memory(size.config(0.1), size.batch, (size.length, size.length))
    assert memory.total == pytest.approx(peak_memory("numpy", size, 0.1, threads=1), rel=0.2)


SAVING = """
import tempfile
from experiments.measuring.timing import resident_peak
from minitransformer.data import get_task
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import Checkpointer, TrainingSettings, train
import safetensors.numpy
before = resident_peak()
config = TransformerConfig(29, d_model=384, num_heads=4, d_ff=1536, num_layers=2, max_len=16)
with tempfile.TemporaryDirectory() as folder:
    checkpointer, settings = Checkpointer(folder, interval=1), TrainingSettings(steps=2, batch_size=2)
    train(Transformer(config), get_task("copy"), settings=settings, checkpointer=checkpointer)
print(resident_peak() - before)
"""


@pytest.mark.weekly
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's own peak")
def test_the_estimate_counts_the_copies_of_a_checkpoint_of_a_large_model(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    result = subprocess.run([sys.executable, "-c", SAVING], capture_output=True, text=True, check=True)
    config = TransformerConfig(29, d_model=384, num_heads=4, d_ff=1536, num_layers=2, max_len=16)
    memory = training_memory(config, 2, (13, 13))
    assert memory.saving > memory.kept + memory.work
    assert memory.total == pytest.approx(int(result.stdout), rel=0.2)


def test_half_the_sequences_keep_half_and_each_member_has_a_gradient():
    config = config_of()
    whole, half = (training_memory(config, rows, (20, 15)) for rows in (16, 8))
    assert half.kept == pytest.approx(whole.kept / 2, rel=0.01)
    assert half.weights == whole.weights == whole.moments / 2
    team = training_memory(config, 16, (20, 15), num_threads=3, averages=5)
    assert (team.gradients, team.averages) == (3 * whole.weights, 5 * whole.weights)
    assert team.kept == whole.kept
    assert team.total > whole.total > half.total


def test_a_sharded_optimizer_has_its_part_of_the_running_means():
    config = config_of()
    whole, quarter = (training_memory(config, 4, (10, 10), shards=shards) for shards in (1, 4))
    assert 4 * quarter.moments == whole.moments == 8 * count_parameters(config, Transformer)
    assert quarter._replace(moments=whole.moments) == whole
