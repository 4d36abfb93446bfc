"""Special ids belong to the model: id 0 is a token like any other in a model without padding, or with another one."""

import dataclasses
import json

import numpy as np
import pytest

from minitransformer.backend import to_host
from minitransformer.config import OWN_IDS, special_ids
from minitransformer.data.text import TextBatch
from minitransformer.decoding import (
    Greedy,
    beam_search,
    decoding_state,
    fill_mask,
    generate,
    generate_from,
    greedy_decode,
)
from minitransformer.evaluation import mean_loss
from minitransformer.functional import cross_entropy, padding_mask
from minitransformer.interop.huggingface_configs import config_from_huggingface, read_config
from minitransformer.layers.losses import CrossEntropyLoss, loss_for
from minitransformer.layers.since_2017.blockwise import blockwise_loss
from minitransformer.models import BERT, GPT, ConvConfig, Seq2SeqConfig, Transformer, bert_config, gpt_config, t5_config
from minitransformer.system.files import checksum, read_safetensors, write_safetensors
from minitransformer.training import TrainingSettings, load_checkpoint, save_checkpoint, train

pytestmark = pytest.mark.host_only  # which ids are special does not depend on the device

V = 11
SIZES = {"d_model": 12, "num_heads": 3, "d_ff": 10, "num_layers": 2, "max_len": 9}
STOP = np.array([[3, 0, 4, 0, 5, 0], [4, 0, 5, 0, 3, 0]])  # "Stop! Go! Wait!", with "!" as id 0


def gpt(**changes):
    """A GPT whose predictions are far from uniform."""
    model = GPT(gpt_config(V, **{**SIZES, "dropout": 0.0, **changes}), seed=3, dtype=np.float64)
    model.embedding.tokens.E.data *= 60
    return model


class Words:
    """The same two windows of a text in every batch."""

    def batch(self, rng, size):
        return TextBatch(STOP[:, :-1], STOP[:, 1:])


def test_the_ids_of_a_model_are_those_of_our_own_tasks_unless_it_says_otherwise():
    assert (OWN_IDS.padding, OWN_IDS.start, OWN_IDS.end) == (0, 1, 2)
    for config in (gpt_config(V), Seq2SeqConfig(V), ConvConfig(V)):
        assert (config.padding, config.start, config.end) == (0, 1, 2)
    assert special_ids(object()) == OWN_IDS
    assert (t5_config(V).padding, t5_config(V).start) == (0, 0)
    config = gpt_config(V, padding=None, start=None, end=[7, 5])
    assert (config.ends, config.filler, config.special) == ((7, 5), 7, {5, 7})


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"padding": -1}, ValueError, "padding must be at least 0, got -1"),
        ({"start": 1.0}, TypeError, "start must be a whole number, got 1.0"),
        ({"end": (3, "4")}, TypeError, "end must be a whole number, got '4'"),
    ],
)
def test_an_id_that_no_token_can_have_is_refused_by_its_field(changes, error, message):
    with pytest.raises(error, match=message):
        gpt_config(V, **changes)


def test_a_recurrent_model_cannot_start_with_padding_which_no_step_reads():
    with pytest.raises(ValueError, match="start and padding must differ"):
        Seq2SeqConfig(V, start=0)


def test_padding_is_what_stands_at_the_end_of_a_row():
    ids = np.array([[0, 3, 0, 4, 0, 0], [0, 0, 0, 0, 0, 0], [5, 0, 0, 0, 0, 6]])
    assert OWN_IDS.lengths(ids).tolist() == [4, 0, 6]
    assert dataclasses.replace(gpt_config(V), padding=None).lengths(ids).tolist() == [6, 6, 6]
    assert padding_mask(ids, None).all()


def test_without_padding_four_targets_are_four_terms():
    z, targets = np.random.default_rng(0).normal(size=(4, V)), np.array([0, 7, 0, 9])
    losses = np.log(np.exp(z).sum(axis=1)) - z[np.arange(4), targets]
    for padding, counted in ((None, [0, 1, 2, 3]), (0, [1, 3]), (7, [0, 2, 3])):
        loss_fn = CrossEntropyLoss(padding=padding)
        assert loss_fn.num_terms(targets) == len(counted)
        assert float(cross_entropy(z, targets, pad=padding)[0]) == pytest.approx(losses[counted].mean(), rel=1e-13)
        assert float(loss_fn.forward(z.copy(), targets)[0]) == pytest.approx(losses[counted].mean(), rel=1e-13)
    with pytest.raises(IndexError):
        cross_entropy(z, np.array([0, 7, -1, 9]), pad=None)


@pytest.mark.parametrize(("padding", "count"), [(None, 10), (0, 4), (3, 9)])
def test_every_part_of_a_step_leaves_out_the_models_padding_alone(padding, count):
    model, (batch,) = gpt(padding=padding), [Words().batch(None, 2)]
    assert loss_for(model).num_terms(batch.targets) == count
    z = to_host(model(batch.ids))
    counted = np.ones(batch.targets.shape, bool) if padding is None else batch.targets != padding
    losses = np.log(np.exp(z).sum(axis=-1)) - np.take_along_axis(z, batch.targets[..., None], axis=-1)[..., 0]
    assert mean_loss(model, [batch]) == pytest.approx(losses[counted].mean(), rel=1e-12)
    found = blockwise_loss(model, model.features(batch.ids)[0], batch.targets, loss_for(model), measure=True)
    assert float(found.accuracy) == pytest.approx((z.argmax(axis=-1) == batch.targets)[counted].mean())
    history = train(model, Words(), settings=TrainingSettings(steps=1, batch_size=2), num_threads=1)
    assert history.losses[0] == pytest.approx(losses[counted].mean(), rel=1e-12)
    assert history.accuracies == [pytest.approx(float(found.accuracy))]
    assert history.tokens == (10 if padding is None else (batch.ids != padding).sum())


def test_a_token_with_id_0_is_learned_unless_it_is_padding():
    said = {}
    for padding in (None, 0):
        model = GPT(gpt_config(V, **SIZES, dropout=0.0, padding=padding), seed=0)
        train(
            model,
            Words(),
            settings=TrainingSettings(steps=60, batch_size=2, seed=0),
            num_threads=1,
            schedule=lambda _: 0.01,
        )
        z = to_host(model(STOP[:, :1]))[:, -1]
        said[padding] = (np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True))[:, 0].min()
    assert said[None] > 0.9
    assert said[0] < 0.1


def test_a_classifier_leaves_out_class_0_whatever_its_padding_is():
    model = BERT(bert_config(V, **SIZES, padding=2), num_classes=4)
    assert loss_for(model).padding == 0
    assert loss_for(BERT(bert_config(V, **SIZES, padding=2))).padding == 2


def test_tokens_with_id_0_stay_where_they_are_in_a_prompt():
    model = gpt(padding=None, end=None)
    prompts = np.array([[3, 0, 4, 0], [0, 8, 0, 0]])
    state = decoding_state(model, prompts, 3)
    assert state.padding is None
    assert state.prompt.tolist() == prompts.tolist()
    np.testing.assert_allclose(to_host(state.extend(prompts)), to_host(model(prompts))[:, -1], rtol=1e-10)


class Unknown:
    """A model without a decoding state of its own, so that all tokens are read again for each new one."""

    def __init__(self, model):
        self.config, self.forward = model.config, model.forward

    def __call__(self, ids):
        return self.forward(ids)[0]


@pytest.mark.parametrize("kind", [lambda model: model, Unknown])
def test_prompts_of_several_lengths_are_continued_as_each_alone(kind):
    model = kind(gpt(padding=None, end=(5, 0)))
    prompts, lengths = np.array([[3, 0, 4, 0], [0, 8, 9, 9], [6, 0, 0, 9]]), [4, 2, 3]
    together = greedy_decode(model, prompts, 5, lengths)
    for row, prompt, length in zip(together, prompts, lengths, strict=True):
        alone = greedy_decode(model, prompt[None, :length], 5)[0]
        assert row[: len(alone)].tolist() == alone.tolist()
        assert (row[len(alone) :] == 5).all(), "a model without padding repeats its end"
    state = decoding_state(model, prompts, 5, lengths)
    for found, greedy in zip(beam_search(state, 3, 5, state.prompt, 1, 0.0), together, strict=True):
        assert found[0].ids == tuple(greedy[: len(found[0].ids)])


@pytest.mark.parametrize("lengths", [[4, 0], [5, 1], [4], [4.5, 1]])
def test_lengths_that_prompts_cannot_have_are_refused(lengths):
    with pytest.raises(ValueError, match="lengths must be 2 whole numbers from 1 to 4, got"):
        decoding_state(gpt(), np.full((2, 4), 3), 2, lengths)


def test_one_prompt_with_id_0_can_be_continued_beyond_the_longest_text():
    ids = generate(gpt(padding=None), np.array([3, 0, 4, 0, 5]), 20, Greedy())
    assert ids.shape == (20,)


def test_each_of_several_ends_ends_a_text_and_filled_masks_are_no_special_ids():
    model = gpt(padding=None, end=(5, 7))
    state = decoding_state(model, np.array([[3, 0]]), 9)
    script = iter([10, 7, 10])
    found = generate_from(state, state.prompt, 9, lambda log_p: np.array([next(script)]))
    assert found.ids.tolist() == [[10, 7]]
    bert = BERT(bert_config(V, **SIZES, padding=4, start=None, end=None))
    assert set(fill_mask(bert, np.array([3, 10, 0]), 10, V).ids[0]) == set(range(V)) - {4, 10}


def test_a_checkpoint_from_before_these_fields_loads_with_the_ids_of_our_own_tasks(tmp_path):
    for old, start in (({}, 1), ({"starts_with_padding": False}, 1), ({"starts_with_padding": True}, 0)):
        model = Transformer(t5_config(V, **SIZES, start=start))
        save_checkpoint(tmp_path / "new.safetensors", model)
        arrays, header = read_safetensors(tmp_path / "new.safetensors")
        header.pop("checksum")
        config = json.loads(header["config"])
        header["config"] = json.dumps({k: v for k, v in config.items() if k not in ("padding", "start", "end")} | old)
        write_safetensors(tmp_path / "old.safetensors", arrays, {**header, "checksum": checksum(header, arrays)})
        loaded, _ = load_checkpoint(tmp_path / "old.safetensors")
        assert loaded.config == model.config
        load_checkpoint(tmp_path / "old.safetensors", model=model)


def test_several_ends_are_saved_and_loaded(tmp_path):
    model = gpt(padding=None, end=(5, 7))
    save_checkpoint(tmp_path / "my.safetensors", model)
    assert load_checkpoint(tmp_path / "my.safetensors")[0].config == model.config
    load_checkpoint(tmp_path / "my.safetensors", model=model)


@pytest.mark.parametrize(
    ("theirs", "generation", "expected"),
    [
        ({"model_type": "gpt2"}, None, (None, 50256, 50256)),
        ({"model_type": "llama"}, None, (None, 1, 2)),
        ({"model_type": "llama", "pad_token_id": -1}, None, (None, 1, 2)),
        ({"model_type": "qwen2"}, None, (None, None, None)),
        ({"model_type": "qwen2", "eos_token_id": 5}, {"eos_token_id": [7, 5], "pad_token_id": 3}, (3, None, (7, 5))),
        ({"model_type": "qwen2"}, {"eos_token_id": [7, 5], "pad_token_id": 5}, (None, None, (7, 5))),
        ({"model_type": "bert"}, None, (0, None, None)),
        ({"model_type": "t5"}, None, (0, 0, 1)),
        ({"model_type": "t5", "pad_token_id": 3}, {"decoder_start_token_id": 4}, (3, 4, 1)),
    ],
)
def test_special_ids_are_read_from_both_files(theirs, generation, expected, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(theirs))
    if generation is not None:
        (tmp_path / "generation_config.json").write_text(json.dumps(generation))
    config = config_from_huggingface(read_config(tmp_path))
    assert (config.padding, config.start, config.end) == expected
