"""On a GPU every operation costs a launch, however small its arrays: inputs must not be cut into many small ones."""

from unittest import mock

import numpy as np
import pytest

from minitransformer import functional as F
from minitransformer.backend import to_device, use_backend
from minitransformer.core import Parameter
from minitransformer.functional.since_2017.patterns import Pattern
from minitransformer.layers import CrossEntropyLoss, embedding
from minitransformer.layers.since_2017 import blockwise
from minitransformer.models import GPT, gpt_config
from tests.strict.meter import measured
from tests.strict.strict import strict


def tiled(q, k, v, dy):
    F.tiled_attention_backward(dy, F.tiled_attention(q, k, v, pattern=Pattern(causal=True))[1])


def linear(q, k, v, dy):
    F.linear_attention_backward(dy, F.linear_attention(q, k, v, causal=True)[1])


def arrays_made(function, *arguments):
    """How many arrays a call makes, about as many as it launches kernels."""
    with measured() as meter:
        function(*arguments)
    return len(meter.lines_that_made("float32"))


@pytest.mark.parametrize("attend", [tiled, linear])
def test_attention_to_a_long_text_takes_few_launches(attend):
    rng = np.random.default_rng(0)
    with use_backend(strict):
        few, many = (
            arrays_made(attend, *(to_device(rng.standard_normal((2, 4, T, 2), dtype=np.float32)) for _ in range(4)))
            for T in (64, 512)
        )
    assert few == many < 100


@pytest.mark.parametrize(("library", "blocks"), [(np, 18), (strict, 1)])
def test_the_loss_is_computed_in_blocks_on_a_cpu_and_in_one_on_a_gpu(monkeypatch, library, blocks):
    monkeypatch.setattr(blockwise, "LOGITS", 50)  # those of one token
    with use_backend(library), mock.patch.object(blockwise, "_loss_of_block", wraps=blockwise._loss_of_block) as block:
        model = GPT(gpt_config(50, d_model=4, num_heads=2, d_ff=4, num_layers=1, max_len=9))
        y = to_device(np.ones((2, 9, 4), np.float32))
        blockwise.blockwise_loss(model, y, np.ones((2, 9), int), CrossEntropyLoss(), 1.0)
    assert block.call_count == blocks


def test_the_gradient_of_a_large_vocabulary_is_added_in_one_piece(monkeypatch):
    monkeypatch.setattr(embedding, "ROWS", 1)
    monkeypatch.setattr(embedding, "SLICE", 4)  # one of the 50 tokens
    with use_backend(strict):
        layer = embedding.OutputProjection(Parameter(np.zeros((50, 4), np.float32)))
        layer.E.grad[...] = 1
        assert arrays_made(layer.backward, strict.ones((2, 3, 50), np.float32), strict.ones((2, 3, 4), np.float32)) < 10
