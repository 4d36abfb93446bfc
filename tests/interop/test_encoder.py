"""BertModel, which has no head: it computes features, and what asks it for logits says what to do."""

import numpy as np
import pytest

from minitransformer.data.text import TextBatch
from minitransformer.decoding import fill_mask
from minitransformer.evaluation import mean_loss
from minitransformer.interop import load_huggingface, model_from_huggingface
from minitransformer.models import BERT
from minitransformer.training import load_checkpoint, save_checkpoint
from tests.helpers import same
from tests.interop.given import BERT_FILE, T5_1_1_FILE, make_state, save

pytestmark = pytest.mark.host_only
IDS = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 0, 0]])


def without_head(prefix=""):
    """The weights of a BertModel, with its pooler, that are those of a BertForMaskedLM; and the latter's."""
    masked = make_state("bert")
    state = {prefix + name: array for name, array in masked.items() if not name.startswith("cls.")}
    pooler = {"pooler.dense.weight": (12, 12), "pooler.dense.bias": (12,)}
    return state | {prefix + name: np.ones(shape, np.float32) for name, shape in pooler.items()}, masked


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_an_encoder_without_a_head_has_the_features_of_one_with_a_head(prefix):
    state, masked = without_head(prefix)
    model, other = model_from_huggingface(state, BERT_FILE), model_from_huggingface(masked, BERT_FILE)
    segments = np.array([[0, 0, 1, 2, 3], [3, 1, 0, 0, 0]])
    assert same(model.features(IDS, segments)[0], other.features(IDS, segments)[0])
    assert set(other.state_dict()) - set(model.state_dict()) == {
        "head.transform.W",
        "head.transform.b",
        "head.norm.gamma",
        "head.norm.beta",
        "head.b",
    }


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model(IDS),
        lambda model: model.forward(IDS, rng=np.random.default_rng(0)),
        lambda model: mean_loss(model, [TextBatch(IDS, IDS)]),
        lambda model: fill_mask(model, IDS[0], 4),
    ],
)
def test_whoever_asks_for_logits_is_told_what_to_do(ask):
    model = model_from_huggingface(without_head()[0], BERT_FILE)
    with pytest.raises(ValueError, match=r"^this model has no head, .* `minitransformer train classify --from FOLDER`"):
        ask(model)


def test_an_encoder_is_saved_and_loaded_without_a_head(tmp_path):
    save(tmp_path, without_head()[0], BERT_FILE)
    model = load_huggingface(tmp_path)
    save_checkpoint(tmp_path / "ours.safetensors", model)
    again, _ = load_checkpoint(tmp_path / "ours.safetensors")
    assert type(again) is BERT
    assert same(again.features(IDS)[0], model.features(IDS)[0])


def test_a_decoder_without_its_head_and_an_encoder_without_its_decoder_are_refused_with_the_reason():
    state = make_state("t5 1.1")
    for lost in ("lm_head.", "decoder."):
        kept = {name: array for name, array in state.items() if not name.startswith(lost)}
        with pytest.raises(ValueError, match="of models without a head or a decoder, only BertModel can be read: miss"):
            model_from_huggingface(kept, T5_1_1_FILE)
    del state["encoder.final_layer_norm.weight"]
    with pytest.raises(ValueError, match="the Hugging Face state does not fit its config: missing"):
        model_from_huggingface(state, T5_1_1_FILE)
