"""The second model of the page: it reverses any word of one to ten of the 26 letters.

    OMP_NUM_THREADS=1 python -m tests.explorer.letters

trains it with a fixed seed, rounds its weights, tests it, and writes `page/letters.js`. That takes about half a
minute on one core. The rounded numbers are the model. Other processors may round otherwise and get another model, which
is as good; the committed one is what everybody sees.
"""

from functools import partial
from pathlib import Path

import numpy as np

from minitransformer.data.tasks import Batch, Reverse, is_held_out
from minitransformer.decoding import greedy_decode
from minitransformer.evaluation import exact_match
from minitransformer.explorer.export import Data, model_data, write_data
from minitransformer.explorer.folder import page_folder
from minitransformer.explorer.writing import toy_writing
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import Adam, CrossEntropyLoss, TrainingSettings, cosine, train
from minitransformer.vocabulary import EOS, PAD, SPECIAL_TOKENS

LONGEST = 10  # letters
WORD = "explorer"
V = len(Reverse().vocabulary)
CONFIG = TransformerConfig(V, d_model=24, num_heads=2, d_ff=48, num_layers=1, dropout=0.0, max_len=LONGEST + 1)
SEED, STEPS, RATE = 1, 9_000, 2e-3  # with longer training or a higher rate, attention gets so sure that ds is almost 0
SMOOTHING = 0.1  # of the labels, as in the paper: otherwise the gradients of a right answer are almost 0
DECIMALS = 3
REPEATED, FEW = 0.3, 3  # this share of the words is made of so few letters, because names repeat letters
TESTED = 10_000  # words of each length


class Words(Reverse):
    """Random words, without eos after the source, as in the running example."""

    max_len = LONGEST
    min_len_held_out = 1

    def draw(self, rng: np.random.Generator, count: int, min_len: int) -> np.ndarray:
        """Words of every length equally often; some are made of few letters."""
        ids = super().draw(rng, count, min_len)
        few = rng.integers(len(SPECIAL_TOKENS), V, size=(count, FEW))
        repeated = np.take_along_axis(few, rng.integers(0, FEW, size=ids.shape), axis=1)
        return np.where((ids != PAD) & (rng.random((count, 1)) < REPEATED), repeated, ids)

    def batch(self, rng: np.random.Generator, size: int, held_out: bool = False, min_len: int = 1) -> Batch:
        """As `ToyTask.batch`, without eos in the source."""
        batch = super().batch(rng, size, held_out, min_len)
        source = batch.source[:, :-1]
        return batch._replace(source=np.where(source == EOS, PAD, source))


def trained() -> Transformer:
    """The model, in float64, with its weights rounded."""
    model = Transformer(CONFIG, seed=SEED)
    schedule = partial(cosine, steps=STEPS, peak=RATE, warmup=500)
    settings = TrainingSettings(steps=STEPS, batch_size=64, seed=SEED)
    loss = CrossEntropyLoss(SMOOTHING)
    train(model, Words(), Adam(model.parameters()), schedule, loss, settings, num_threads=1)
    rounded = Transformer(CONFIG, seed=None, dtype=np.float64)
    rounded.load_state_dict({name: w.astype(float).round(DECIMALS) for name, w in model.state_dict().items()})
    return rounded


def accuracy(model: Transformer, length: int, count: int = TESTED) -> float:
    """The share that the model reverses of `count` random words of this length that training has never drawn."""
    words = np.random.default_rng([SEED, length]).integers(len(SPECIAL_TOKENS), V, size=(12 * count, length))
    words = words[is_held_out(words)][:count]  # a tenth of all words
    expected = np.pad(words[:, ::-1], ((0, 0), (0, 1)), constant_values=EOS)
    return exact_match(greedy_decode(model, words, LONGEST + 1), expected)


def letters_data(model: Transformer, word: str = WORD) -> Data:
    """MODEL for the second model; the page draws the untrained weights."""
    writing = toy_writing("reverse")._replace(end=())
    source = writing.encode(word)
    data = model_data(model, writing, source, source[::-1])
    return {**data, "weights": {"trained": data["weights"]["trained"]}}


def letters_file() -> Path:
    """The script that the page loads when it needs the second model."""
    return page_folder() / "letters.js"


if __name__ == "__main__":
    model = trained()
    for length in range(1, LONGEST + 1):
        print(f"{length} letters: {accuracy(model, length):.2%} of {TESTED:,} unseen words are right")
    write_data(letters_data(model), letters_file())
    print(f"wrote {letters_file()}, {letters_file().stat().st_size:,} bytes")
