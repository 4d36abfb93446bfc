"""Our models and the same ones in PyTorch, from the same weights on the same batches, learn along the same curve."""

import numpy as np
import pytest

pytest.importorskip("torch")

from experiments.curves import Problem, loss_curves
from minitransformer.data import Corpus, PairCorpus, TextTask, TranslationTask
from minitransformer.models import GPT, Transformer, TransformerConfig, gpt_config
from minitransformer.tokenizers import CharacterTokenizer

SIZES = {"d_model": 24, "num_heads": 3, "d_ff": 40, "num_layers": 2, "max_len": 20, "dropout": 0.0}
HOW = {"steps": 60, "warmup": 10, "peak": 3e-3}
DIGITS = ("null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")


def sums():
    """A GPT on sums."""
    text = "".join(f"{i} and {i + 1} are {2 * i + 1}, " for i in range(300))
    task = TextTask(Corpus(text, text[:100]), CharacterTokenizer.train(text), length=17)
    return Problem("sums", GPT, gpt_config(task.tokenizer.vocab_size, **SIZES), task, batch_size=8, **HOW)


def numbers(norm, activation):
    """An encoder-decoder on numbers of one to three digits, spelled out."""
    pairs = [(" ".join(DIGITS[int(digit)] for digit in str(i)), f"{i} is {i}") for i in range(200)]
    corpus = PairCorpus(pairs, pairs[:9], pairs[9:18])
    task = TranslationTask(corpus, CharacterTokenizer.train("".join(map("".join, pairs))), max_len=20)
    config = TransformerConfig(task.tokenizer.vocab_size, norm=norm, activation=activation, **SIZES)
    return Problem("numbers", Transformer, config, task, batch_size=150, label_smoothing=0.1, **HOW)


@pytest.mark.parametrize(
    ("dtype", "bound"), [("float64", 1e-9), pytest.param("float32", 1e-4, marks=pytest.mark.weekly)]
)
@pytest.mark.parametrize(
    "problem",
    [
        pytest.param(sums(), id="sums"),
        pytest.param(numbers("pre", "relu"), id="pre", marks=pytest.mark.exhaustive),
        pytest.param(numbers("post", "gelu"), id="post", marks=pytest.mark.exhaustive),
    ],
)
def test_two_loss_curves_lie_on_each_other(problem, dtype, bound):
    ours, theirs = loss_curves(problem, dtype=dtype)
    assert np.abs(ours - theirs).max() < bound
    assert ours[-1] < 0.8 * ours[0]
