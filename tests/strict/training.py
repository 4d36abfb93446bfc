"""A small model on a small task, trained for some steps on whichever array module is in use."""

import numpy as np

from minitransformer.config import Seq2SeqConfig, TransformerConfig
from minitransformer.data import PairCorpus, TranslationTask
from minitransformer.data.tasks import get_task
from minitransformer.models.before_2017.recurrent import Seq2Seq
from minitransformer.models.transformer import Transformer
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.training import Adam, CrossEntropyLoss, DataParallel, noam, step_with
from tests.strict.meter import measured

SIZES = {"d_model": 24, "num_heads": 3, "d_ff": 40, "num_layers": 2, "max_len": 16}
DROPOUT = {"dropout": 0.1, "attention_dropout": 0.1, "ffn_dropout": 0.2}


class SmallTraining:
    """A new model and all that its training needs, on one thread; always the same weights and the same dropout."""

    def __init__(self, dtype=np.float32, max_norm=1.0, eps=1e-9, recurrent=False, **changes):
        vocab_size = len(get_task("reverse").vocabulary)
        if recurrent:
            config = Seq2SeqConfig(vocab_size=vocab_size, d_model=24, hidden_size=20, max_len=16, **changes)
        else:
            config = TransformerConfig(vocab_size=vocab_size, **{**SIZES, **DROPOUT, **changes})
        self.model = (Seq2Seq if recurrent else Transformer)(config, seed=1, dtype=dtype)
        self.optimizer = Adam(self.model.parameters(), eps=eps)
        self.workers = DataParallel(self.model, CrossEntropyLoss(0.1), num_threads=1, seed=2)
        self.max_norm = max_norm

    def step(self, batch, lr, measure=False):
        """One step -> the loss, and the accuracy if measured or None, both still on the device."""
        self.optimizer.lr = lr
        return step_with(self.workers, self.optimizer, batch, self.max_norm, measure, check=lambda loss, norm: None)[0]


def batches(count, size=7):
    """`count` batches on the host, always the same, of `size` pairs."""
    rng = np.random.default_rng(3)
    return [get_task("reverse").batch(rng, size) for _ in range(count)]


def batches_of_pairs(count, size=70):
    """`count` batches of an epoch of sentence pairs, of very different lengths, of at most `size` tokens a side."""
    rng = np.random.default_rng(4)
    letters = get_task("reverse").symbols
    pairs = [tuple("".join(rng.choice(list(letters), rng.integers(1, 15))) for _ in range(2)) for _ in range(60)]
    task = TranslationTask(PairCorpus(pairs, pairs[:1], pairs[:1]), CharacterTokenizer(letters), SIZES["max_len"])
    return list(task.epoch(rng, size))[:count]


def train_steps(training, count, draw=batches):
    """`count` steps on what `draw` returns -> the losses, still on the device, and what was measured in each step."""
    losses, meters = [], []
    for step, batch in enumerate(draw(count), start=1):
        with measured() as meter:
            loss, _ = training.step(batch, noam(step, SIZES["d_model"], warmup=10))
        losses.append(loss)
        meters.append(meter)
    return losses, meters
