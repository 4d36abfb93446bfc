"""Our GPT and the same one in PyTorch, from the same weights on the same batches, learn along the same curve."""

import numpy as np
import pytest

pytest.importorskip("torch")

from minitransformer.bench.curves import loss_curves
from minitransformer.data import Corpus, TextTask
from minitransformer.models import gpt_config
from minitransformer.tokenizers import CharacterTokenizer

SIZES = {"d_model": 24, "num_heads": 3, "d_ff": 40, "num_layers": 2, "max_len": 20}


@pytest.mark.parametrize(
    ("dtype", "bound"), [("float64", 1e-9), pytest.param("float32", 1e-4, marks=pytest.mark.exhaustive)]
)
def test_two_loss_curves_lie_on_each_other(dtype, bound):
    text = "".join(f"{i} and {i + 1} are {2 * i + 1}, " for i in range(300))
    task = TextTask(Corpus(text, text[:100]), CharacterTokenizer.train(text), length=17)
    config = gpt_config(task.tokenizer.vocab_size, dropout=0.0, **SIZES)
    ours, theirs = loss_curves(task, config, steps=60, batch_size=8, warmup=10, peak=3e-3, dtype=dtype)
    assert np.abs(ours - theirs).max() < bound
    assert ours[-1] < 0.8 * ours[0]
