"""What a recipe reports is measured on what training has never seen, and on all of it evenly."""

import numpy as np
import pytest

from minitransformer.data import Corpus, TextTask, get_task
from minitransformer.data.tasks import is_held_out
from minitransformer.recipes import toy
from minitransformer.recipes.text import WINDOWS, spread_windows
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.vocabulary import EOS, PAD


class Copying:
    """A model that says its source again, and remembers all sources."""

    def __init__(self):
        self.sources = []

    def forward(self, source, target):
        if target.shape[1] == 1:
            self.sources += source.tolist()
        said = source[:, np.minimum(np.arange(target.shape[1]), source.shape[1] - 1)]
        return 5.0 * np.eye(40)[np.where(said == PAD, EOS, said)]

    __call__ = forward


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("name", "least"), [("copy", 1.0), ("reverse", 0.0)])
def test_exact_match_of_a_toy_task_is_that_of_long_sequences_from_the_held_out_side(monkeypatch, name, least, seed):
    monkeypatch.setattr(toy, "TESTED", 60)
    recipe = next(recipe for recipe in toy.TOY_RECIPES if recipe.name == name)
    model = Copying()
    result, _ = recipe.evaluate(toy.ToyOptions(seed=seed), model, recipe.data(toy.ToyOptions()))
    sources = np.array(model.sources)
    assert result == {"exact_match": least, "held_out": 60}
    assert len({tuple(source) for source in model.sources}) == 60
    assert is_held_out(sources).all()
    lengths = (sources != PAD).sum(axis=1) - 1  # without eos
    assert lengths.min() == get_task(name).min_len_held_out
    assert lengths.max() == get_task(name).max_len


def test_windows_to_test_on_during_training_are_spread_over_all_of_the_held_out_text():
    text = "".join(np.random.default_rng(0).choice(list("abcdefgh"), 4000))
    task = TextTask(Corpus(text[:100], text), CharacterTokenizer.train(text), length=10)
    (everything,) = task.held_out_batches(4000)
    windows = spread_windows(task)
    assert windows.ids.shape == windows.targets.shape == (WINDOWS, 10)
    ends = np.linspace(0, len(everything.ids) - 1, WINDOWS).astype(int)
    assert (windows.ids == everything.ids[ends]).all()
    assert (windows.ids[[0, -1]] == everything.ids[[0, -1]]).all()
    assert (windows.targets[-1] == everything.targets[-1]).all()
