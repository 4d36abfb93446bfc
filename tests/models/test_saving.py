"""A checkpoint restores class, configuration, options and weights of every kind of model."""

import pytest

from minitransformer.config import POSITIONS, SEQ2SEQ_ATTENTION, PaperConfig, TransformerConfig
from minitransformer.models import Transformer
from minitransformer.training import load_checkpoint, save_checkpoint
from tests.helpers import same
from tests.models import test_bert as bert
from tests.models import test_convolutional as convolutional
from tests.models import test_gpt as gpt
from tests.models import test_recurrent as recurrent
from tests.models import test_t5 as t5
from tests.models import test_vision as vision

# how to make the model, and what it reads
MODELS = {
    **{f"GPT {name}": (lambda name=name: gpt.build_random(name), (gpt.IDS,)) for name in POSITIONS},
    "BERT": (bert.build_random, (bert.IDS, bert.SEGMENT_IDS)),
    "BERT classes": (lambda: bert.build_random(bert.CLASSES), (bert.IDS, bert.SEGMENT_IDS)),
    "BERT of one layer": (lambda: bert.build_random(share_layers=True, num_layers=3), (bert.IDS, bert.SEGMENT_IDS)),
    "T5 of one layer": (lambda: t5.build_random(share_layers=True), (t5.SOURCE, t5.TARGET)),
    "T5 1.0": (t5.build_random, (t5.SOURCE, t5.TARGET)),
    "T5 1.1": (lambda: t5.build_random(**t5.V1_1), (t5.SOURCE, t5.TARGET)),
    "ViT": (vision.build_random, (vision.PIXELS,)),
    "ConvLM": (
        lambda: convolutional.build(dilation=2, norm="pre", tie_embeddings=False),
        (convolutional.IDS,),
    ),
    **{
        f"Seq2Seq {name}": (
            lambda name=name: recurrent.build("float32", attention=name, cell="gru", bidirectional=True),
            (recurrent.SOURCE, recurrent.TARGET_IN),
        )
        for name in SEQ2SEQ_ATTENTION
    },
}


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_is_loaded_as_it_was(name, tmp_path):
    make, inputs = MODELS[name]
    model = make()
    save_checkpoint(tmp_path / "model", model, task="copy", steps=3)
    loaded, metadata = load_checkpoint(tmp_path / "model")
    assert (type(loaded), loaded.config) == (type(model), model.config)
    assert getattr(loaded, "options", {}) == getattr(model, "options", {})  # a BERT's segments and classes
    assert metadata == {"task": "copy", "steps": 3}
    assert loaded.state_dict().keys() == model.state_dict().keys()  # what was tied still is
    assert same(loaded(*inputs), model(*inputs))


def test_the_papers_own_configuration_makes_and_saves_the_model_of_the_defaults(tmp_path):
    sizes = {"vocab_size": 13, "d_model": 12, "num_heads": 3, "d_ff": 7, "num_layers": 2, "max_len": 9}
    paper, model = Transformer(PaperConfig(**sizes), seed=5), Transformer(TransformerConfig(**sizes), seed=5)
    assert list(paper.state_dict()) == list(model.state_dict())
    assert same(paper(t5.SOURCE, t5.TARGET), model(t5.SOURCE, t5.TARGET))
    save_checkpoint(tmp_path / "paper.safetensors", paper)
    loaded, _ = load_checkpoint(tmp_path / "paper.safetensors")
    assert loaded.config == model.config
    assert same(loaded(t5.SOURCE, t5.TARGET), model(t5.SOURCE, t5.TARGET))
