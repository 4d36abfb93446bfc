"""What a step computes is counted while it runs, and costs that are known are found again."""

import numpy as np
import pytest

from experiments.measuring.steps import Size
from experiments.measuring.tracing import Trace
from experiments.step_growth import XL, arithmetic, fit, grown, kind_and_config, largest, step_memory, training
from minitransformer import CrossEntropyLoss
from minitransformer.data.text import TextBatch
from minitransformer.system.generators import make_generator
from minitransformer.training.parallel.parts import gradients_of
from tests.experiments.conftest import COST, measured
from tests.numbers import write_tables

SMALL = Size("encoder-decoder", 29, 12, 2, 20, 3, batch=3, length=5)  # fewer than 4 sequences: no padding
SIZES = {
    "encoder-decoder": SMALL,
    "a wide one": SMALL._replace(vocab_size=17, d_model=30, num_heads=5, d_ff=14, num_layers=1, batch=2, length=7),
    "GPT": SMALL._replace(name=XL.name, length=640),
    "a wide GPT": SMALL._replace(name=XL.name, d_model=30, num_heads=5, d_ff=14, num_layers=1, batch=2, length=1024),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_step_computes_the_products_and_exponentials_of_the_arithmetic(name, monkeypatch):
    size, exponentials = SIZES[name], []
    kind, config = kind_and_config(size)
    ids = np.random.default_rng(0).integers(3, size.vocab_size, (2, size.batch, size.length))
    model, batch = kind(config), TextBatch(*ids) if name.endswith("GPT") else size.make_batch()
    gradients = gradients_of(model, CrossEntropyLoss(0.1), make_generator(0))
    trace, exp = Trace(products_only=True), np.exp

    def counted(x, *out, **options):
        exponentials.append(np.size(x))
        return exp(x, *out, **options)

    with trace.recording(model):
        gradients(batch)
    monkeypatch.setattr(np, "exp", counted)
    gradients(batch)
    counts = arithmetic(size)
    assert 2 * (trace.multiply_adds.total() - trace.multiply_adds["sums"]) == counts["products"]
    assert sum(exponentials) == pytest.approx(counts["softmaxes"], rel=0.05)
    assert model.num_parameters() == counts["parameters"]


def test_the_fit_finds_costs_that_are_known():
    sizes = [grown(what, value) for what in ("batch", "length", "num_layers") for value in (8, 32)]
    sizes += [grown("d_model", value) for value in (64, 256)]
    found = fit([{**counts, **measured(counts)} for counts in map(arithmetic, sizes)])
    assert found == pytest.approx(COST)


def test_the_largest_model_fits_and_one_layer_more_does_not():
    for bound in (8e9, 20e9):
        size = largest(bound)
        assert step_memory(size) < bound <= step_memory(size._replace(num_layers=size.num_layers + 1))


def test_a_training_on_many_machines_takes_its_work_and_the_messages():
    ran, whole = arithmetic(XL._replace(num_layers=2)), {**arithmetic(XL), "what": "GPT"}
    steps = [{**ran, "what": "GPT", "seconds": 10.0}, whole]
    slow, fast = training(steps)[:2]
    work = 10.0 * whole["products"] / ran["products"]
    talk = 1998 * (30e-6 + 4 * whole["parameters"] / 1000 / 1.25e9)
    steps_of_20_tokens = 20 * whole["parameters"] / (1000 * 1024)
    assert slow["work"] == fast["work"] == pytest.approx(work)
    assert slow["sum"] == pytest.approx(talk)
    assert slow["days"] * 86400 == pytest.approx(steps_of_20_tokens * (work + talk))
    assert slow["days hidden"] * 86400 == pytest.approx(steps_of_20_tokens * work), "behind two thirds of the work"
    gpu = training(steps)[2]
    assert gpu["speed"] == pytest.approx(6 * 214_245_376 * 25_000 / 8, rel=0.05), "6 N D, a step of 1.0 s, 8 GPUs"
    assert gpu["days hidden"] * 86400 == pytest.approx(steps_of_20_tokens * (gpu["work"] / 3 + gpu["sum"]))


def test_recorded_steps_compute_what_the_arithmetic_says():
    for row in write_tables().read("step-growth")["rows"]["steps"]:
        gpt = row["what"] == "GPT"
        size = XL._replace(num_layers=row["value"]) if gpt else grown(row["what"], row["value"])
        assert {name: row[name] for name in arithmetic(size)} == arithmetic(size)
