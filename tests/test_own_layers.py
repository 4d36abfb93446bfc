"""What a reader writes counts: layers and models of one's own train, decode, save, load and resume as what they are.

Each case puts a layer that is not the library's into one of its models. They are written here from nothing, with names
of their own, or are subclasses with another forward pass.
"""

import contextlib
import copy
import dataclasses
import pickle
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from minitransformer.core import Layer, Parameter
from minitransformer.decoding import RereadingState, SlidingState, decoding_state, fill_mask, greedy_decode
from minitransformer.evaluation import mean_loss
from minitransformer.exercises.mine import own_layers
from minitransformer.inspection import summarize
from minitransformer.layers import FeedForward, LayerNorm, SelfAttention
from minitransformer.models import (
    BERT,
    GPT,
    ConvConfig,
    ConvLM,
    Seq2Seq,
    Seq2SeqConfig,
    Transformer,
    TransformerConfig,
    bert_config,
    gpt_config,
)
from minitransformer.models.changed import changed_layers, check_used
from minitransformer.training import (
    Checkpointer,
    Stopped,
    TrainingSettings,
    load_checkpoint,
    read_run,
    save_checkpoint,
    train,
)
from minitransformer.training.parallel.threads import replica
from minitransformer.training.saving.checkpointer import saved_steps
from tests.helpers import host, no_ids, randomize, relative_error, same

pytestmark = pytest.mark.host_only  # the layers of these tests are written in NumPy

V, C, F = 11, 12, 7
SOURCE = np.array([[3, 8, 4, 0, 0], [7, 5, 9, 4, 10], [6, 3, 0, 0, 0]])


class OwnNetwork(Layer):
    """y = max(0, x P)^2 Q: a feed-forward network with another activation and other names."""

    def __init__(self, width=C):
        self.P = Parameter(np.zeros((width, F)))
        self.Q = Parameter(np.zeros((F, width)))

    def forward(self, x, *context, rng=None):
        r = np.maximum(x @ self.P.data, 0.0)
        return (r * r) @ self.Q.data, (x, r)

    def backward(self, dy, cache):
        x, r = cache
        dh = 2.0 * r * (dy @ self.Q.data.T)
        self.Q.grad += np.einsum("btf,btc->fc", r * r, dy)
        self.P.grad += np.einsum("btc,btf->cf", x, dh)
        return dh @ self.P.data.T


class OwnMean(Layer):
    """y_t = (the mean of x_0 ... x_t) A: it mixes tokens, and knows neither masks nor KV caches."""

    def __init__(self, width=C):
        self.A = Parameter(np.zeros((width, width)))

    def forward(self, x, *context, rng=None):
        mean = x.cumsum(axis=1) / np.arange(1, x.shape[1] + 1)[:, None]
        return mean @ self.A.data, mean

    def backward(self, dy, mean):
        self.A.grad += np.einsum("bti,bto->io", mean, dy)
        dmean = (dy @ self.A.data.T) / np.arange(1, dy.shape[1] + 1)[:, None]
        return dmean[:, ::-1].cumsum(axis=1)[:, ::-1]


class OwnNorm(Layer):
    """y = s tanh(x)."""

    def __init__(self, width=C):
        self.s = Parameter(np.ones(width))

    def forward(self, x, rng=None):
        t = np.tanh(x)
        return self.s.data * t, t

    def backward(self, dy, t):
        self.s.grad += (dy * t).sum(axis=(0, 1))
        return dy * self.s.data * (1.0 - t * t)


class OwnBlock(Layer):
    """A whole layer: z = x + mean(x), y = z + network(z)."""

    def __init__(self):
        self.mean, self.network = OwnMean(), OwnNetwork()

    def forward(self, x, *context, rng=None):
        m, cache_mean = self.mean.forward(x)
        n, cache_network = self.network.forward(x + m)
        return x + m + n, (cache_mean, cache_network)

    def backward(self, dy, cache):
        dz = dy + self.network.backward(dy, cache[1])
        return dz + self.mean.backward(dz, cache[0])


class OwnReader(Layer):
    """Cross-attention without weights: y = x R + (the mean of the memory) R, for every token."""

    def __init__(self):
        self.R = Parameter(np.zeros((C, C)))

    def forward(self, x, memory, *context, rng=None):
        both = x + memory.mean(axis=1, keepdims=True)
        return both @ self.R.data, (both, memory)

    def backward(self, dy, cache):
        both, memory = cache
        self.R.grad += np.einsum("bti,bto->io", both, dy)
        dboth = dy @ self.R.data.T
        return dboth, np.broadcast_to(dboth.sum(axis=1, keepdims=True) / memory.shape[1], memory.shape).copy()


class OwnDecoderBlock(Layer):
    """A whole layer of a decoder: the reader, then the block."""

    def __init__(self):
        self.reader, self.block = OwnReader(), OwnBlock()

    def forward(self, x, memory, *context, rng=None):
        r, cache_reader = self.reader.forward(x, memory)
        y, cache_block = self.block.forward(x + r)
        return y, (cache_reader, cache_block)

    def backward(self, dy, cache):
        dz = self.block.backward(dy, cache[1])
        dx, dmemory = self.reader.backward(dz, cache[0])
        return dz + dx, dmemory


class OwnHead(Layer):
    """logits = (x - its mean over the tokens so far) H, for x (B, T, C) and no other shape."""

    def __init__(self, width=C):
        self.H = Parameter(np.zeros((width, V)))
        self.mean = OwnMean(width)

    def forward(self, x, rng=None):
        m, cache = self.mean.forward(x)
        return (x - m) @ self.H.data, (x - m, cache)

    def backward(self, dy, cache):
        difference, cache_mean = cache
        self.H.grad += np.einsum("bti,bto->io", difference, dy)
        dx = dy @ self.H.data.T
        return dx + self.mean.backward(-dx, cache_mean)


class SquaredFeedForward(FeedForward):
    """The library's network, squared: the same names, another function."""

    def forward(self, x, rng=None):
        y, cache = super().forward(x, rng)
        return y * y, (y, cache)

    def backward(self, dy, cache):
        y, cache = cache
        return super().backward(2.0 * y * dy, cache)


class DoubledAttention(SelfAttention):
    """The library's attention, doubled."""

    def forward(self, x, allowed=None, rng=None):
        y, cache = super().forward(x, allowed, rng)
        return 2.0 * y, cache

    def backward(self, dy, cache):
        return super().backward(2.0 * dy, cache)


class ShiftedNorm(LayerNorm):
    """The library's norm, shifted, with its name for the class too."""

    def forward(self, x, rng=None):
        y, cache = super().forward(x, rng)
        return y + 0.5, cache


ShiftedNorm.__name__ = ShiftedNorm.__qualname__ = "LayerNorm"


class CapitalGPT(GPT):
    """The library's GPT with another forward pass: its logits are tripled."""

    def forward(self, ids, rng=None):
        logits, cache = super().forward(ids, rng)
        return 3.0 * logits, cache

    def backward(self, dlogits, cache):
        super().backward(3.0 * dlogits, cache)


class OwnLanguageModel(Layer):
    """A language model from nothing: no configuration, no features, no head."""

    def __init__(self):
        self.vectors = Parameter(np.zeros((V, C)))
        self.block, self.head = OwnBlock(), OwnHead()

    def forward(self, ids, rng=None):
        x, cache_block = self.block.forward(self.vectors.data[ids])
        logits, cache_head = self.head.forward(x)
        return logits, (ids, cache_block, cache_head)

    def backward(self, dlogits, cache):
        ids, cache_block, cache_head = cache
        dx = self.block.backward(self.head.backward(dlogits, cache_head), cache_block)
        np.add.at(self.vectors.grad, ids, dx)


class OwnTranslator(Layer):
    """An encoder-decoder from nothing."""

    def __init__(self):
        self.vectors = Parameter(np.zeros((V, C)))
        self.block, self.head = OwnDecoderBlock(), OwnHead()

    def forward(self, source, target, rng=None):
        y, cache_block = self.block.forward(self.vectors.data[target], self.vectors.data[source])
        logits, cache_head = self.head.forward(y)
        return logits, (source, target, cache_block, cache_head)

    def backward(self, dlogits, cache):
        source, target, cache_block, cache_head = cache
        dx, dmemory = self.block.backward(self.head.backward(dlogits, cache_head), cache_block)
        np.add.at(self.vectors.grad, target, dx)
        np.add.at(self.vectors.grad, source, dmemory)


SIZES = {"d_model": C, "num_heads": 3, "d_ff": F, "num_layers": 2, "max_len": 20, "dropout": 0.0}
MODELS = {
    "GPT": lambda norm: GPT(gpt_config(V, norm=norm, **SIZES), dtype=np.float64),
    "Transformer": lambda norm: Transformer(TransformerConfig(V, norm=norm, **SIZES), dtype=np.float64),
    "BERT": lambda norm: BERT(bert_config(V, norm=norm, **SIZES), dtype=np.float64),
    "ConvLM": lambda norm: ConvLM(
        ConvConfig(V, C, num_layers=2, kernel_size=3, norm=norm, dropout=0.0), dtype=np.float64
    ),
    "Seq2Seq": lambda norm: Seq2Seq(Seq2SeqConfig(V, C, C, attention="general", dropout=0.0), dtype=np.float64),
    "own": lambda norm: OwnLanguageModel(),
    "own translator": lambda norm: OwnTranslator(),
    "subclass": lambda norm: CapitalGPT(gpt_config(V, norm=norm, **SIZES), dtype=np.float64),
}
squared = partial(SquaredFeedForward, C, F, dtype=np.float64)
doubled = partial(DoubledAttention, C, 3, dtype=np.float64)
shifted = partial(ShiftedNorm, C, dtype=np.float64)
LAYER = {
    "self_attention.sublayer": (OwnMean, doubled),
    "feed_forward.sublayer": (OwnNetwork, OwnMean, squared),
    "feed_forward.norm": (OwnNorm, shifted),
    "": (OwnBlock,),
}
PLACES = {
    "GPT": {f"blocks.layers.1.{name}".rstrip("."): makers for name, makers in LAYER.items()} | {"output": (OwnHead,)},
    "Transformer": {
        "decoder.layers.0.self_attention.sublayer": (OwnMean, doubled),
        "decoder.layers.1.cross_attention.sublayer": (OwnReader,),
        "decoder.layers.1.feed_forward.sublayer": (OwnNetwork, squared),
        "decoder.layers.1.cross_attention.norm": (OwnNorm,),
        "decoder.layers.0": (OwnDecoderBlock,),
        "encoder.layers.1": (OwnBlock,),
        "encoder.layers.0.feed_forward.sublayer": (OwnNetwork,),
    },
    "BERT": {f"encoder.layers.0.{name}".rstrip("."): makers for name, makers in LAYER.items()},
    "ConvLM": {
        "blocks.0.sublayer": (OwnMean, OwnNetwork),
        "blocks.1.norm": (OwnNorm,),
        "blocks.1": (OwnBlock,),
        "output": (OwnHead,),
    },
    "Seq2Seq": {"attention": (OwnReader,), "output": (OwnHead,)},
    "own": {"": (None,)},
    "own translator": {"": (None,)},
    "subclass": {"": (None,)},
}


class Case(NamedTuple):
    """A model, where its own layer is, and what makes it."""

    kind: str
    norm: str
    place: str
    make: object

    def model(self, seed=0):
        """The model with order-one weights."""
        model = MODELS[self.kind](self.norm)
        if self.place:
            *path, last = self.place.split(".")
            parent = model
            for step in path:
                parent = parent[int(step)] if step.isdigit() else getattr(parent, step)
            if last.isdigit():
                parent[int(last)] = self.make()
            else:
                setattr(parent, last, self.make())
        return randomize(model, seed, scale=0.4)

    @property
    def translates(self):
        return self.kind in ("Transformer", "Seq2Seq", "own translator")

    def __str__(self):
        name = getattr(self.make, "func", self.make)
        return f"{self.kind}-{self.norm}-{self.place}-{getattr(name, '__name__', 'whole')}"


NORMS = dict.fromkeys(PLACES, ("pre",)) | {"Transformer": ("pre", "post"), "BERT": ("post",)}
CASES = [
    Case(kind, norm, place, make)
    for kind, places in PLACES.items()
    for norm in NORMS[kind]
    for place, makers in places.items()
    for make in makers
]
A_FEW = [
    case for case in CASES if case.norm == NORMS[case.kind][0] and case.make in (OwnNetwork, squared, OwnHead, None)
]
a_few_cases = pytest.mark.parametrize("case", A_FEW, ids=str)


def tried(cases):
    """A few of them by default, all with `--exhaustive`."""
    marked = [case if case in A_FEW else pytest.param(case, marks=pytest.mark.exhaustive) for case in cases]
    return pytest.mark.parametrize("case", marked, ids=str)


every_case = tried(CASES)
decoding_case = tried([case for case in CASES if case.kind != "BERT"])


class Texts(NamedTuple):
    """A batch for a language model."""

    ids: np.ndarray
    targets: np.ndarray

    @property
    def inputs(self):
        return (self.ids,)


class Pairs(NamedTuple):
    """A batch for an encoder-decoder."""

    source: np.ndarray
    target: np.ndarray
    targets: np.ndarray

    @property
    def inputs(self):
        return self.source, self.target


class Data:
    """Random sequences, without padding."""

    def __init__(self, case):
        self.kind = Pairs if case.translates else Texts

    def batch(self, rng, size):
        return self.kind(*(rng.integers(3, V, (size, 6)) for _ in self.kind._fields))


def say(case, model, row, said):
    """log p of the next token by the whole model's forward: of one row of SOURCE without its padding, after `said`."""
    ids = SOURCE[row]
    if case.translates:
        logits = model(SOURCE[row : row + 1], np.array([[1, *said]]))[0, -1]
    else:
        logits = model(np.array([[*ids[ids != 0], *said]]))[0, -1]
    return host(logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max())


@every_case
def test_gradient_of_the_whole_model_is_the_slope_of_its_loss(case):
    model, rng = case.model(), np.random.default_rng(3)
    batch = Data(case).batch(rng, 3)
    logits, cache = model.forward(*batch.inputs)
    upstream = rng.standard_normal(logits.shape)
    model.backward(upstream, cache)
    directions = [rng.standard_normal(parameter.data.shape) for parameter in model.parameters()]
    slope = sum(float((p.grad * d).sum()) for p, d in zip(model.parameters(), directions, strict=True))

    def at(h):
        for parameter, direction in zip(model.parameters(), directions, strict=True):
            parameter.data += h * direction
        value = float((model(*batch.inputs) * upstream).sum())
        for parameter, direction in zip(model.parameters(), directions, strict=True):
            parameter.data -= h * direction
        return value

    assert slope == pytest.approx((at(1e-6) - at(-1e-6)) / 2e-6, rel=1e-5, abs=1e-4)


@decoding_case
def test_greedy_decoding_says_what_forward_finds_most_likely(case):
    model = case.model()
    decoded = greedy_decode(model, SOURCE, 5)
    for row in range(len(SOURCE)):
        said = []
        while len(said) < 5 and 2 not in said:
            said.append(int(say(case, model, row, said).argmax()))
        if not case.translates or SOURCE[row].all():  # a source is read with the padding of its batch
            assert decoded[row][: len(said)].tolist() == said


@decoding_case
def test_state_gives_the_logits_of_forward_in_pieces_and_after_a_selection(case):
    model, ids = case.model(), np.random.default_rng(1).integers(3, V, (2, 6))
    rows, source = [1, 0, 1], SOURCE[[1, 1]]
    if case.translates:
        state = decoding_state(model, source, 8)
        whole = [model(source, ids), model(source[rows], ids[rows])]
    else:
        state = decoding_state(model, ids, 8)
        whole = [model(ids), model(ids[rows])]
    assert relative_error(state.extend(ids[:, :3]), whole[0][:, 2]) <= 1e-12
    assert relative_error(state.extend(ids[:, 3:4]), whole[0][:, 3]) <= 1e-12
    state.select(rows)
    assert relative_error(state.extend(ids[rows, 4:]), whole[1][:, 5]) <= 1e-12


def test_a_text_longer_than_the_window_goes_on_from_its_later_half():
    model = Case("GPT", "pre", "blocks.layers.0.feed_forward.sublayer", OwnNetwork).model()
    ids = np.random.default_rng(2).integers(3, V, (2, 12))
    state = SlidingState(model, 2, window=8)
    state.extend(ids[:, :8])
    assert relative_error(state.extend(ids[:, 8:9]), model(ids[:, 5:9])[:, -1]) <= 1e-12


def test_a_method_that_was_replaced_in_one_layer_is_not_gone_around():
    model = randomize(MODELS["GPT"]("pre"), scale=0.4)
    network = model.blocks.layers[1].feed_forward.sublayer
    network.forward = lambda x, rng=None: (0.0 * x, None)
    assert list(changed_layers(model)) == ["blocks.layers.1.feed_forward.sublayer"]
    state = decoding_state(model, no_ids(3), 9)
    assert relative_error(state.extend(SOURCE[:, :2]), model(SOURCE[:, :2])[:, -1]) <= 1e-12


def test_a_layer_of_the_library_with_other_settings_is_not_gone_around():
    model = randomize(MODELS["GPT"]("pre"), scale=0.4)
    model.blocks.layers[0].self_attention.sublayer.num_heads = 1
    model.blocks.layers[1].feed_forward.sublayer.activation = "silu"
    places = ["blocks.layers.0.self_attention.sublayer", "blocks.layers.1.feed_forward.sublayer"]
    assert list(changed_layers(model)) == places
    assert relative_error(decoding_state(model, no_ids(3), 9).extend(SOURCE), model(SOURCE)[:, -1]) <= 1e-12


CHANGES = {
    "a dropout of one's own": (
        lambda model: vars(model.blocks.layers[0].self_attention).update(dropout=OwnNorm()),
        True,
    ),
    "a layer more": (lambda model: model.blocks.layers.append(model.blocks.layers[0]), True),
    "a layer fewer": (lambda model: model.blocks.layers.pop(), True),
    "no last norm": (lambda model: setattr(model.blocks, "norm", None), True),
    "untied embeddings": (lambda model: setattr(model.output, "E", Parameter(model.output.E.data)), True),
    "a wider matrix": (lambda model: setattr(model.output.E, "data", np.zeros((V + 1, C))), True),
    "a configuration of more layers": (lambda model: changed_config(model, num_layers=3), True),
    "another rate of dropout": (lambda model: changed_config(model, dropout=0.1), False),
    "another end": (lambda model: changed_config(model, end=5), False),
    "a note": (lambda model: setattr(model, "note", ["trained on Monday", len]), False),
    "a matrix with other numbers": (lambda model: setattr(model.output.E, "data", np.zeros((V, C))), False),
}


def changed_config(model, **changes):
    model.config = dataclasses.replace(model.config, **changes)


@pytest.mark.parametrize("change", CHANGES)
def test_only_what_changes_the_function_of_a_model_is_a_change_and_copies_are_as_built(change):
    make, is_change = CHANGES[change]
    model = randomize(MODELS["GPT"]("pre"), scale=0.4)
    for one in (model, copy.deepcopy(model), replica(model), pickle.loads(pickle.dumps(model))):
        assert changed_layers(one) == {}
        make(one)
        assert bool(changed_layers(one)) == is_change


@pytest.mark.parametrize("kind", ["GPT", "Transformer", "BERT", "ConvLM", "Seq2Seq"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_librarys_own_models_have_no_foreign_layer_and_keep_their_shortcuts(kind, norm):
    model = MODELS[kind](norm)
    assert changed_layers(model) == {}
    if kind != "BERT":
        assert not isinstance(decoding_state(model, SOURCE, 3), RereadingState)


def test_masks_are_filled_by_forward():
    model = Case("BERT", "post", "encoder.layers.0", OwnBlock).model()
    ids = np.array([3, 5, 10, 4])
    logits = host(model(ids[None]))[0, 2]
    p = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    found = fill_mask(model, ids, 10, top_k=1)
    assert found.probabilities[0, 0] == pytest.approx(p[found.ids[0, 0]])
    assert p[found.ids[0, 0]] == p[4:10].max()  # neither a special token nor the mask


@every_case
def test_evaluation_is_the_cross_entropy_of_forward(case):
    model, batch = case.model(), Data(case).batch(np.random.default_rng(2), 5)
    logits = host(model(*batch.inputs))
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    expected = -np.take_along_axis(log_p, batch.targets[..., None], axis=-1).mean()
    assert mean_loss(model, [batch], micro_batch_size=2) == pytest.approx(expected, rel=1e-12)


@every_case
def test_training_in_threads_is_training_in_one(case):
    losses = []
    for num_threads in (1, 2):
        model = case.model()
        settings = TrainingSettings(steps=2, batch_size=6)
        found = train(model, Data(case), None, lambda step: 1e-3, settings=settings, num_threads=num_threads)
        losses.append(found.losses)
    np.testing.assert_allclose(*losses, rtol=1e-9)
    assert losses[0][0] != losses[0][1]


@every_case
def test_a_model_is_refused_when_it_is_saved_with_the_way_out(case, tmp_path):
    model = case.model()
    with pytest.raises(ValueError, match=r"save it with own_layers=True.*load_checkpoint\(path, model=...\)"):
        save_checkpoint(tmp_path / "model", model)
    assert not list(tmp_path.iterdir())
    save_checkpoint(tmp_path / "model", model, own_layers=True, step=3)
    with pytest.raises(ValueError, match=r"build a model with the same layers.*load_checkpoint\(path, model=...\)"):
        load_checkpoint(tmp_path / "model")
    other = case.model(seed=1)
    loaded, metadata = load_checkpoint(tmp_path / "model", model=other)
    assert loaded is other
    assert metadata == {"step": 3}
    assert all(same(model.state_dict()[name], array) for name, array in loaded.state_dict().items())


def test_a_file_is_not_loaded_into_a_model_of_other_classes(tmp_path):
    place = "blocks.layers.1.feed_forward.sublayer"
    save_checkpoint(tmp_path / "model", Case("GPT", "pre", place, squared).model(), own_layers=True)
    library = MODELS["GPT"]("pre")
    before = library.state_dict()
    with pytest.raises(ValueError, match=f"{place} was saved as .*SquaredFeedForward, and the model has .*FeedForward"):
        load_checkpoint(tmp_path / "model", model=library)
    with pytest.raises(ValueError, match="its layers are not those of the model"):
        load_checkpoint(tmp_path / "model", model=Case("GPT", "pre", place, OwnNetwork).model())
    with pytest.raises(ValueError, match="its config has norm = 'pre', and the model's has 'post'"):
        load_checkpoint(tmp_path / "model", model=Case("GPT", "post", place, squared).model())
    assert all(same(library.state_dict()[name], array) for name, array in before.items())


@a_few_cases
def test_a_stopped_run_is_resumed_with_the_same_bits(case, tmp_path):
    settings = TrainingSettings(steps=7, batch_size=5, seed=3)
    whole = case.model()
    expected = train(whole, Data(case), settings=settings, num_threads=2).losses
    checkpointer = Checkpointer(tmp_path, interval=2, own_layers=True)

    def stop(step, history):
        checkpointer.stop_requested = step == 4

    evaluated = dataclasses.replace(settings, eval_interval=1)
    model = case.model()
    with pytest.raises(Stopped):
        train(model, Data(case), settings=evaluated, evaluate=stop, checkpointer=checkpointer, num_threads=2)
    saved = read_run(saved_steps(tmp_path)[-1], model=case.model(seed=9))
    assert train(saved.model, Data(case), settings=settings, resume=saved.state).losses == expected
    assert all(same(saved.model.state_dict()[name], array) for name, array in whole.state_dict().items())


@every_case
def test_summary_has_a_row_for_the_layer_and_counts_every_parameter_once(case):
    model = case.model()
    rows = summarize(model)
    assert sum(row.parameters for row in rows) == model.num_parameters()
    if case.place:
        (row,) = [row for row in rows if row.name == case.place]
        assert row.kind == type(case.make()).__name__


@a_few_cases
def test_a_learners_exercises_train_with_the_layer_in_the_model(case, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    losses = []
    for context in (contextlib.nullcontext(), own_layers(case.model, Data(case))):  # as with --mine
        with context:
            losses.append(train(case.model(), Data(case), settings=TrainingSettings(steps=2, batch_size=6)).losses)
    assert losses[0] == losses[1]
    assert "whose layers are used" in capsys.readouterr().out


def test_each_exchanged_layer_is_counted_once_whatever_comes_after_it():
    model = GPT(gpt_config(V, d_model=C, num_heads=3, d_ff=F, num_layers=4, max_len=9))
    for count in range(4):
        assert list(changed_layers(model)) == [f"blocks.layers.{i}.feed_forward.sublayer" for i in range(count)]
        model.blocks.layers[count].feed_forward.sublayer = OwnNetwork()


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_layer_that_returns_another_dtype_is_named(norm):
    model = GPT(gpt_config(V, d_model=C, num_heads=3, d_ff=F, num_layers=2, max_len=9, norm=norm))
    model.blocks.layers[1].feed_forward.sublayer = OwnNetwork()
    with pytest.raises(TypeError, match="OwnNetwork returned float64, and got float32"):
        model(np.ones((1, 4), int))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_layer_that_returns_another_shape_is_named(norm):
    model = GPT(gpt_config(V, d_model=C, num_heads=3, d_ff=F, num_layers=2, max_len=9, norm=norm))
    layer = OwnNetwork()
    layer.forward = lambda x, rng=None: (x[..., :1], None)  # x + y would broadcast it without a word
    model.blocks.layers[1].feed_forward.sublayer = layer
    with pytest.raises(ValueError, match=rf"OwnNetwork returned an array of shape \(1, 4, 1\), and got \(1, 4, {C}\)"):
        model(np.ones((1, 4), int))


def test_training_refuses_a_layer_that_nothing_calls():
    model = GPT(gpt_config(V, d_model=C, num_heads=3, d_ff=F, num_layers=2, max_len=9))
    model.probe = OwnNetwork()  # a loss may call it
    check_used(model)
    model.blocks.layers[1].ffn = OwnNetwork()
    with pytest.raises(ValueError, match=r"blocks\.layers\.1\.ffn is never used: EncoderLayer has no ffn"):
        train(model, None, settings=TrainingSettings(steps=1))


@pytest.mark.parametrize("change", CHANGES)
def test_a_layer_in_the_place_of_another_is_used(change):
    model = MODELS["GPT"]("pre")
    CHANGES[change][0](model)
    check_used(model)
