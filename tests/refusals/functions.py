"""Arrays and settings that the library cannot use: wrong rank, shape, dtype or range, or no array at all."""

import numpy as np

from minitransformer.backend import use_backend
from minitransformer.data import PairCorpus, TranslationTask, get_task
from minitransformer.decoding import Sampling, beam_search, decoding_state, generate, generate_from, greedy_decode
from minitransformer.functional import (
    cross_entropy,
    dropout,
    embedding,
    group_advantages,
    layer_norm,
    linear,
    scaled_dot_product_attention,
    sinusoidal_positions,
    softmax,
    split_heads,
    token_log_probs,
)
from minitransformer.layers import LSTM, Conv1d, Dropout, Linear, MemoryAttention, SelfAttention, recomputed
from minitransformer.models import (
    BERT,
    GPT,
    ConvConfig,
    Seq2Seq,
    Seq2SeqConfig,
    Transformer,
    TransformerConfig,
    bert_config,
    gpt_config,
)
from minitransformer.tokenizers import BytePairTokenizer, CharacterTokenizer
from minitransformer.training import (
    Adam,
    AverageOfLast,
    Checkpointer,
    CrossEntropyLoss,
    Strategy,
    TrainingSettings,
    train,
)
from minitransformer.training.loop import Plan
from minitransformer.training.run import TrainingRun
from tests.helpers import no_ids
from tests.refusals.cases import library
from tests.refusals.given import SIZES

NAN = float("nan")
CONFIG = TransformerConfig(11, **SIZES)
IDS = np.ones((2, 3), dtype=np.int64)


def numbers(*shape, dtype=np.float32):
    """An array of some numbers."""
    return np.linspace(-1.0, 1.0, int(np.prod(shape)), dtype=dtype).reshape(shape)


def model(source=IDS, target=IDS):
    """The logits of an encoder-decoder."""
    return Transformer(CONFIG)(source, target)


def gpt():
    """A decoder-only model."""
    return GPT(gpt_config(11, **SIZES))


def reading(batch):
    """The decoding state of a decoder-only model for texts of four tokens."""
    return decoding_state(gpt(), no_ids(batch), 4)


def attend(q=(2, 2, 3, 4), k=(2, 2, 5, 4), v=(2, 2, 5, 4), allowed=None, dtype=np.float32):
    """Attention with q, k and v of these shapes."""
    return scaled_dot_product_attention(numbers(*q), numbers(*k, dtype=dtype), numbers(*v), allowed)


def entropy(targets, smoothing=0.0):
    """The loss of logits of shape (2, 3, 5)."""
    return cross_entropy(numbers(2, 3, 5), targets, smoothing)


def wrong_gradient(shape):
    """A backward pass with an upstream gradient of this shape."""
    decoder = gpt()
    decoder.backward(numbers(*shape), decoder.forward(IDS)[1])


def translation(max_len=9, **parts):
    """A task with one pair in each part, or with these parts."""
    corpus = PairCorpus([("ab", "ba")], [("a", "a")], [("b", "b")])._replace(**parts)
    return TranslationTask(corpus, CharacterTokenizer("ab"), max_len)


class NoBatches:
    """A task with empty epochs."""

    def epoch(self, rng, size):
        """Nothing."""
        return iter(())


def resumed_at(position):
    """A run on sentence pairs that was saved at this position of an epoch, and is resumed there."""
    optimizer, settings = Adam(gpt().parameters()), TrainingSettings()
    run = TrainingRun(gpt(), translation(), optimizer, CrossEntropyLoss(), settings, Plan(1), Strategy())
    arrays, facts = run.state()
    run.load_state(arrays, {**facts, "position": position})


IDS_CASES = [
    library("Transformer", "ids as a list", TypeError, lambda: model([[1]])),
    library("Transformer", "ids as floats", TypeError, lambda: model(IDS.astype(float))),
    library("Transformer", "ids as booleans", TypeError, lambda: model(IDS > 0)),
    library("Transformer", "one row of ids", ValueError, lambda: model(IDS[0])),
    library("Transformer", "no ids", ValueError, lambda: model(IDS[:, :0])),
    library("Transformer", "an id below 0", IndexError, lambda: model(-IDS)),
    library("Transformer", "an id above the vocabulary", IndexError, lambda: model(11 * IDS)),
    library("Transformer", "more ids than positions", ValueError, lambda: model(np.ones((2, 10), dtype=int))),
    library("Transformer", "two sources and one target", ValueError, lambda: model(IDS, IDS[:1])),
    library("BERT", "one row of segments", ValueError, lambda: BERT(bert_config(11, **SIZES))(IDS, IDS[:1])),
    library("GPT", "a gradient for another vocabulary size", ValueError, lambda: wrong_gradient((2, 3, 10))),
    library("GPT", "a gradient for another length", ValueError, lambda: wrong_gradient((2, 2, 11))),
    library("embedding", "an id below 0", IndexError, lambda: embedding(-IDS, numbers(5, 4))),
    library("greedy_decode", "no new tokens", ValueError, lambda: greedy_decode(Transformer(CONFIG), IDS, 0)),
    library("generate_from", "a list as prompt", TypeError, lambda: generate_from(reading(1), [[1]], 2)),
    library("generate_from", "an empty prompt", ValueError, lambda: generate_from(reading(2), IDS[:, :0], 2)),
    library("generate_from", "more tokens than fit", ValueError, lambda: generate_from(reading(2), IDS, 5)),
    library(
        "greedy_decode",
        "lengths of sources",
        ValueError,
        lambda: greedy_decode(Transformer(CONFIG), IDS, 2, lengths=[1, 2]),
    ),
    library("mt.generate", "no token in the prompt", ValueError, lambda: generate(gpt(), IDS[0, :0], 2)),
    library(
        "mt.generate",
        "several lengths beyond those of training",
        ValueError,
        lambda: generate(gpt(), IDS * [1, 1, 0], 99),
    ),
    library("beam_search", "a beam of 0", ValueError, lambda: beam_search(reading(2), 2, 4, 1, beam=0)),
]

ARRAYS = [
    library("softmax", "a list", TypeError, lambda: softmax([1.0, 2.0])),
    library("softmax", "integers", TypeError, lambda: softmax(IDS)),
    library("softmax", "no scores", ValueError, lambda: softmax(numbers(2, 0))),
    library("softmax", "a single number", ValueError, lambda: softmax(np.float32(1.0))),
    library("softmax", "a mask of numbers", TypeError, lambda: softmax(numbers(2, 3), np.ones((2, 3)))),
    library("softmax", "a mask as a list", TypeError, lambda: softmax(numbers(2, 3), [True, False, True])),
    library("softmax", "a mask too short", ValueError, lambda: softmax(numbers(2, 3), np.ones((2, 2), bool))),
    library("softmax", "a mask with too many axes", ValueError, lambda: softmax(numbers(3), np.ones((2, 3), bool))),
    library("attention", "a mask without the axis of heads", ValueError, lambda: attend(allowed=np.ones((3, 4), bool))),
    library("attention", "keys of another width", ValueError, lambda: attend(k=(2, 2, 5, 3))),
    library("attention", "more values than keys", ValueError, lambda: attend(v=(2, 2, 6, 4))),
    library("attention", "keys of one sequence for queries of two", ValueError, lambda: attend(k=(1, 2, 5, 4))),
    library("attention", "keys in float64", TypeError, lambda: attend(dtype=np.float64)),
    library("cross_entropy", "targets of another shape", ValueError, lambda: entropy(IDS.T)),
    library("cross_entropy", "one target for all", ValueError, lambda: entropy(IDS[0, :1])),
    library("cross_entropy", "a target below 0", IndexError, lambda: entropy(-IDS)),
    library("cross_entropy", "a target above the vocabulary", IndexError, lambda: entropy(5 * IDS)),
    library("cross_entropy", "targets as floats", TypeError, lambda: entropy(IDS.astype(float))),
    library("cross_entropy", "smoothing above 1", ValueError, lambda: entropy(IDS, 1.5)),
    library("token_log_probs", "counted as numbers", TypeError, lambda: token_log_probs(numbers(2, 3, 5), IDS, IDS)),
    library("group_advantages", "a group that is not whole", ValueError, lambda: group_advantages(numbers(4), 3)),
    library("layer_norm", "a gamma of width 1", ValueError, lambda: layer_norm(numbers(2, 3), *2 * [numbers(1)])),
    library("linear", "a bias of width 1", ValueError, lambda: linear(numbers(2, 4), numbers(4, 5), numbers(1))),
    library("Linear", "an input of another width", ValueError, lambda: Linear(4, 3)(numbers(2, 5))),
    library("Linear", "float64 into float32", TypeError, lambda: Linear(4, 3)(numbers(2, 4, dtype=float))),
    library("Linear", "a list", TypeError, lambda: Linear(4, 3)([1.0, 2.0, 3.0, 4.0])),
    library("SelfAttention", "an input without the batch axis", ValueError, lambda: SelfAttention(8, 2)(numbers(3, 8))),
    library("SelfAttention", "3 heads of 8 features", ValueError, lambda: SelfAttention(8, 3)),
    library("Conv1d", "a kernel without a tap", ValueError, lambda: Conv1d(4, 3, 0)),
    library("Conv1d", "an input of another width", ValueError, lambda: Conv1d(4, 3, 2)(numbers(2, 5, 6))),
    library("Conv1d", "one sequence without the batch axis", ValueError, lambda: Conv1d(4, 3, 2)(numbers(2, 4))),
    library("Conv1d", "a mask of numbers", TypeError, lambda: Conv1d(4, 3, 2)(numbers(2, 5, 4), numbers(2, 5))),
    library("Conv1d", "decoding with later tokens", ValueError, lambda: Conv1d(4, 3, 2, causal=False).make_buffer(2)),
    library("ConvConfig", "an unknown activation", ValueError, lambda: ConvConfig(11, activation="gelu")),
    library("recomputed", "a model without stacks", ValueError, lambda: recomputed(Seq2Seq(Seq2SeqConfig(11, 8, 8)))),
    library("LSTM", "no hidden units", ValueError, lambda: LSTM(4, 0)),
    library("LSTM", "an input of another width", ValueError, lambda: LSTM(4, 3)(numbers(2, 5, 6))),
    library("LSTM", "one sequence without the batch axis", ValueError, lambda: LSTM(4, 3)(numbers(2, 4))),
    library("LSTM", "a mask of numbers", TypeError, lambda: LSTM(4, 3)(numbers(2, 5, 4), None, numbers(2, 5))),
    library("LSTM", "a state of one array", ValueError, lambda: LSTM(4, 3)(numbers(2, 5, 4), (numbers(1, 2, 3),))),
    library("MemoryAttention", "an unknown kind", ValueError, lambda: MemoryAttention("concat", 4)),
    library("split_heads", "3 heads of 8 features", ValueError, lambda: split_heads(numbers(1, 2, 8), 3)),
    library("dropout", "a rate above 1", ValueError, lambda: dropout(numbers(2, 3), 1.5)),
    library("dropout", "a seed instead of a generator", TypeError, lambda: dropout(numbers(2, 3), 0.5, 7)),
    library("Dropout", "a rate of nan", ValueError, lambda: Dropout(NAN)),
    library("sinusoidal_positions", "an odd width", ValueError, lambda: sinusoidal_positions(3, 5)),
]

SETTINGS = [
    library("TransformerConfig", "a word instead of a number", TypeError, lambda: TransformerConfig("11")),
    library("TransformerConfig", "a width of 8.5", TypeError, lambda: TransformerConfig(11, d_model=8.5)),
    library("TransformerConfig", "a word for a switch", TypeError, lambda: TransformerConfig(11, bias="false")),
    library("TransformerConfig", "an infinite eps", ValueError, lambda: TransformerConfig(11, norm_eps=np.inf)),
    library("TransformerConfig", "a list instead of a name", ValueError, lambda: TransformerConfig(11, norm=["pre"])),
    library(
        "Seq2SeqConfig",
        "an odd size for two directions",
        ValueError,
        lambda: Seq2SeqConfig(11, hidden_size=5, bidirectional=True),
    ),
    library("Seq2SeqConfig", "an unknown cell", ValueError, lambda: Seq2SeqConfig(11, cell="rnn")),
    library("Transformer", "integer weights", ValueError, lambda: Transformer(CONFIG, dtype=np.int32)),
    library("Transformer", "a state that is a list", TypeError, lambda: Transformer(CONFIG).load_state_dict([])),
    library("TrainingSettings", "2.5 steps", TypeError, lambda: TrainingSettings(steps=2.5)),
    library("AverageOfLast", "an average of 0 sets of weights", ValueError, lambda: AverageOfLast(10, 0)),
    library("TrainingSettings", "a seed below 0", ValueError, lambda: TrainingSettings(seed=-1)),
    library("Checkpointer", "a checkpoint every 1.5 steps", TypeError, lambda: Checkpointer("runs", 1.5)),
    library("Sampling", "a temperature of 0", ValueError, lambda: Sampling(np.random.default_rng(0), 0.0)),
    library("get_task", "no name", ValueError, lambda: get_task(None)),
    library("ToyTask.batch", "no pairs", ValueError, lambda: get_task("copy").batch(np.random.default_rng(0), 0)),
    library("TranslationTask", "no pair for the test", ValueError, lambda: translation(test=[])),
    library("TranslationTask", "pairs that are all too long", ValueError, lambda: translation(2)),
    library("TranslationTask", "sentences of one token", ValueError, lambda: translation(1)),
    library("TranslationTask", "a length of 2.5 tokens", TypeError, lambda: translation(2.5)),
    library("TranslationTask.epoch", "no tokens", ValueError, lambda: next(translation().epoch(None, 0))),
    library("train", "empty epochs", ValueError, lambda: train(gpt(), NoBatches())),
    library("train", "a resumed run at a position below 0", ValueError, lambda: resumed_at(-1)),
    library("CharacterTokenizer", "two letters as one character", ValueError, lambda: CharacterTokenizer(["ab"])),
    library(
        "BytePairTokenizer", "a vocabulary that is too small", ValueError, lambda: BytePairTokenizer.train("a", 10)
    ),
    library("BytePairTokenizer", "half a character", ValueError, lambda: BytePairTokenizer().encode("\ud800")),
    library("use_backend", "an unknown library", ValueError, lambda: use_backend("jax")),
]

CASES = [*IDS_CASES, *ARRAYS, *SETTINGS]
