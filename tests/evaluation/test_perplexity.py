"""The loss of a long text in windows: each token is scored once, from what its window has before it."""

import numpy as np
import pytest

from minitransformer.backend import to_host
from minitransformer.config import Windowed
from minitransformer.evaluation import strided_windows, windowed_loss
from minitransformer.layers.since_2017 import blockwise
from minitransformer.models import GPT, gpt_config

V, LONGEST = 7, 11


def gpt(**changes):
    """A model whose predictions are far from uniform."""
    sizes = {"d_model": 12, "num_heads": 3, "d_ff": 10, "num_layers": 2, "max_len": LONGEST}
    model = GPT(gpt_config(V, **{**sizes, **changes}), dtype=np.float64)
    model.embedding.tokens.E.data *= 60
    return model


def token_losses(model, ids):
    """The loss of each token of one window but the first, written out."""
    logits = to_host(model(ids[None]))[0]
    return [np.log(np.exp(z).sum()) - z[token] for z, token in zip(logits[:-1], ids[1:], strict=True)]


@pytest.mark.parametrize(("max_length", "stride"), [(11, 4), (11, 11), (5, 3)])
@pytest.mark.parametrize("length", [2, 11, 12, 40])
def test_windows_cover_a_text_and_each_token_is_new_in_one_of_them(length, max_length, stride):
    windows = strided_windows(length, max_length, stride)
    assert [token for _, new, end in windows for token in range(new, end)] == list(range(length))
    assert [start for start, _, _ in windows] == [i * stride for i in range(len(windows))]
    assert all(end - start == max_length for start, _, end in windows[:-1])
    assert windows[-1].end - windows[-1].start <= max_length


@pytest.mark.parametrize("changes", [{}, {"positions": "rope"}, {"attention": Windowed(3)}])
@pytest.mark.parametrize("block", [1, 3 * V, 10**6])  # logits at a time
@pytest.mark.parametrize("stride", [1, 4, 11])
def test_loss_is_the_mean_over_all_predicted_tokens_each_once(stride, block, changes, monkeypatch):
    monkeypatch.setattr(blockwise, "LOGITS", block)
    model, ids = gpt(**changes), np.random.default_rng(0).integers(0, V, 30)
    windows = strided_windows(len(ids), LONGEST, stride)
    each = [token_losses(model, ids[w.start : w.end])[max(0, w.new - w.start - 1) :] for w in windows]
    scored = np.concatenate(each)
    assert len(scored) == len(ids) - (len(windows) if stride == LONGEST else 1)
    assert windowed_loss(model, ids, windows) == pytest.approx(scored.mean(), rel=1e-12)


def test_loss_that_is_not_finite_is_refused():
    model = gpt()
    model.output.E.data[...] = 1e308
    with pytest.raises(ValueError, match="NaN or infinity: its weights are too large for float64"):
        windowed_loss(model, np.array([1, 2, 3]), strided_windows(3, 3, 2))
