"""Training FLOPs are those of the products that a training step computes, counted while it runs."""

import re
from pathlib import Path

import numpy as np
import pytest

import minitransformer
from experiments.measuring.tracing import Trace
from minitransformer.inspection import flops_by_parameters, training_flops
from minitransformer.inspection.activation_memory import count_parameters
from minitransformer.models import (
    Seq2Seq,
    Seq2SeqConfig,
    Transformer,
    TransformerConfig,
    named_config,
    named_seq2seq_config,
)

B, S, T, V = 2, 3, 5, 29  # none of them 1: a product with an axis of length 1 is counted as a sum
C, H, F = 12, 6, 14
CONFIGS = {
    "post-norm": TransformerConfig(V, d_model=C, num_heads=H, d_ff=F, num_layers=3),
    "pre-norm, untied": TransformerConfig(
        V, d_model=C, num_heads=H, d_ff=F, num_layers=1, norm="pre", tie_embeddings=False
    ),
    "two heads of keys": TransformerConfig(V, d_model=C, num_heads=H, num_kv_heads=2, d_ff=F, num_layers=2),
    "narrow queries": TransformerConfig(V, d_model=C, num_heads=H, num_kv_heads=2, d_k=5, d_ff=F, num_layers=2),
    "wide heads": TransformerConfig(V, d_model=C, num_heads=H, num_kv_heads=2, d_k=5, d_v=5, d_ff=F, num_layers=2),
    "shared layers": TransformerConfig(V, d_model=C, num_heads=H, d_ff=F, num_layers=3, share_layers=True),
    "gated, without biases": TransformerConfig(
        V, d_model=C, num_heads=H, d_ff=F, num_layers=2, activation="swiglu", bias=False
    ),
}
SIZES = {"d_model": 6, "hidden_size": 8, "num_layers": 2}


def traced(model):
    """The multiply-adds of the matrix products in forward and in backward, without sums written as products."""
    rng = np.random.default_rng(0)
    source, target = rng.integers(3, V, (B, S)), rng.integers(3, V, (B, T))
    source[0, -1] = target[0, -1] = 0  # padding costs the same
    trace = Trace(products_only=True)
    with trace.recording(model):
        logits, cache = model.forward(source, target)
        forward = trace.multiply_adds.copy()
        model.backward(logits, cache)
    both = trace.multiply_adds
    return forward.total() - forward["sums"], both.total() - both["sums"] - forward.total() + forward["sums"]


def formula(config):
    """The FLOPs of this batch."""
    return sum(training_flops(config, B * S, B * T, S, T).values())


@pytest.mark.parametrize("name", CONFIGS)
def test_a_transformer_computes_exactly_the_products_of_the_formula(name):
    config = CONFIGS[name]
    forward, backward = traced(Transformer(config))
    assert backward == 2 * forward
    assert 2 * (forward + backward) == formula(config)


@pytest.mark.parametrize(("cell", "directions"), [("lstm", 2), ("gru", 1)])
@pytest.mark.parametrize("attention", ["none", "dot", "general", "additive"])
def test_a_recurrent_model_computes_exactly_the_products_of_the_formula(cell, attention, directions):
    config = Seq2SeqConfig(V, cell=cell, attention=attention, bidirectional=directions == 2, **SIZES)
    forward, backward = traced(Seq2Seq(config))
    if attention == "additive":  # both gradients of w . u are made without a matrix product
        backward += 2 * B * T * S * config.hidden_size
    assert backward == 2 * forward
    assert 2 * (forward + backward) == formula(config)


def test_each_term_is_the_product_that_it_names():
    """Each doubles with its own length alone."""
    config = CONFIGS["post-norm"]
    terms = training_flops(config, B * S, B * T, S, T)
    longer = training_flops(config, B * S, B * T, 2 * S, 2 * T)
    assert [name for name in terms if longer[name] != terms[name]] == ["scores and mixtures"]
    assert longer["scores and mixtures"] == 2 * terms["scores and mixtures"]
    assert terms["logits"] == 6 * B * T * C * V
    assert terms["feed-forward"] == 6 * 3 * 2 * C * F * B * (S + T)


def test_six_operations_for_each_parameter_and_token_are_close_for_a_model_with_tied_embeddings():
    base, lstm = named_config("base", 37000), named_seq2seq_config("base", 30000)
    for config, low, high in (
        (base, 0.98, 1.02),
        (lstm, 1.5, 2.0),
    ):  # an LSTM's tables of embeddings are not multiplied
        exact = sum(training_flops(config, 25_000, 25_000, 30, 30).values())
        assert low < flops_by_parameters(config, 25_000, 25_000) / exact < high


# the paper, sections 5.1, 5.2 and 6.1: steps, and the seconds that they took on 8 GPUs
PAPER = {"base": (100_000, 12 * 3600), "big": (300_000, 3.5 * 24 * 3600)}
TABLE_2 = {"base": 3.3e18, "big": 2.3e19}
TOKENS, GPUS, RATE = 25_000, 8, 9.5e12


def scientific(number):
    """Such as "3.28 · 10^18"."""
    digits, exponent = f"{number:.2e}".split("e+")
    return f"{digits} · 10^{exponent}"


@pytest.mark.parametrize(("name", "column"), [("base", 0), ("big", 1)])
def test_the_page_on_translation_states_what_the_functions_return(name, column):
    page = (Path(minitransformer.__file__).parents[1] / "docs" / "translation.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (.+?) \| (.+) \|$", page, flags=re.MULTILINE))
    config, (steps, seconds) = named_config(name, 37_000), PAPER[name]
    tokens, in_paper = steps * TOKENS, seconds * GPUS * RATE
    estimate = flops_by_parameters(config, tokens, tokens)
    flops = {length: training_flops(config, tokens, tokens, length, length) for length in (10, 30, 100)}
    expected = {
        "parameters N": f"{count_parameters(config, Transformer):,}",
        "training: steps": f"{steps:,}",
        "paper's estimate: time · 8 · 9.5 TFLOPS": scientific(in_paper),
        "6 N D with D = 25,000 tokens · steps": scientific(estimate),
        "matrix products, 30 tokens in a sentence": scientific(sum(flops[30].values())),
        "6 N D as a share of the paper's estimate": f"{100 * estimate / in_paper:.1f} %",
        "6 N D per second and GPU": f"{estimate / seconds / GPUS / 1e12:.1f} TFLOPS",
    }
    assert {row: rows[row].split(" | ")[column] for row in expected} == expected
    assert in_paper == pytest.approx(TABLE_2[name], rel=0.01)
    text = " ".join(page.split())
    assert f"{100 * estimate / in_paper:.0f} %" in text
    assert f"{in_paper / estimate:.1f}" in text
    if name == "base":
        shares = [100 * terms["scores and mixtures"] / sum(terms.values()) for terms in flops.values()]
        words = (
            "{:.1f} % of the base model's operations with 10 tokens in a sentence, {:.1f} % with 30 and {:.1f} % with"
        )
        assert words.format(*shares) in text
