"""How a BERT must behave whatever its weights: every token sees all but padding, and only what is asked counts."""

import numpy as np
import pytest

from minitransformer.config import POSITIONS
from minitransformer.models import BERT, bert_config
from tests.helpers import device, host, randomize, relative_error, same

V, H, C, F, SEGMENTS, CLASSES = 11, 3, 12, 7, 4, 5
IDS = np.array([[3, 8, 4, 0, 0], [7, 5, 9, 4, 10]])  # (B, T); 0 is padding
SEGMENT_IDS = np.array([[0, 1, 3, 0, 0], [2, 2, 0, 1, 1]])
ANSWERS = np.array([[0, 8, 0, 0, 0], [7, 0, 0, 4, 0]])
every_head = pytest.mark.parametrize("num_classes", [None, CLASSES], ids=["masked", "classes"])


def build(num_classes=None, dtype="float64", seed=0, **changes):
    """A model with its initial weights; all sizes differ from each other."""
    sizes = {"d_model": C, "num_heads": H, "d_ff": F, "num_layers": 2, "max_len": 40}
    config = bert_config(changes.pop("vocab_size", V), **{**sizes, **changes})
    return BERT(config, num_segments=SEGMENTS, num_classes=num_classes, seed=seed, dtype=dtype)


def build_random(num_classes=None, **changes):
    """A model with order-one weights, gamma, beta and biases included."""
    return randomize(build(num_classes, **changes), scale=0.4)


@every_head
def test_every_logit_depends_on_every_real_token_before_and_after(num_classes):
    model = build_random(num_classes)
    logits = host(model(IDS, SEGMENT_IDS))
    for row, t in zip(*np.nonzero(IDS), strict=True):
        other = IDS.copy()
        other[row, t] = 2
        changed = host(model(other, SEGMENT_IDS))
        assert (changed[row] != logits[row]).any(axis=-1).all()
        assert same(changed[1 - row], logits[1 - row])


@every_head
@pytest.mark.parametrize("positions", POSITIONS)
def test_padding_changes_nothing(num_classes, positions):
    model = build_random(num_classes, positions=positions)
    padded = np.pad(IDS, ((0, 0), (0, 9)))
    got, expected = host(model(padded)), host(model(IDS))
    if num_classes is None:
        got, expected = got[:, : IDS.shape[1]][IDS != 0], expected[IDS != 0]
    assert relative_error(got, expected) <= 1e-13


@every_head
def test_segments_matter_and_are_all_the_first_by_default(num_classes):
    model = build_random(num_classes)
    assert same(model(IDS), model(IDS, np.zeros_like(IDS)))
    for segment in range(1, SEGMENTS):
        assert relative_error(model(IDS, np.full_like(IDS, segment)), model(IDS)) > 1e-3
    one = np.zeros_like(IDS)
    one[1, 4] = 1  # of the last token alone: all see it
    assert (host(model(IDS, one))[1] != host(model(IDS))[1]).any(axis=-1).all()


def test_the_class_depends_only_on_the_output_of_the_first_token():
    model = build_random(CLASSES)
    x = np.random.default_rng(3).standard_normal((2, 5, C))
    logits = host(model.head(device(x)))
    W, b = (host(getattr(model.head.pooler, name).data) for name in "Wb")
    W_out, b_out = (host(getattr(model.head.classes, name).data) for name in "Wb")
    assert relative_error(logits, np.tanh(x[:, 0] @ W + b) @ W_out + b_out) <= 1e-14
    other = x.copy()
    other[:, 1:] += 1.0
    assert same(model.head(device(other)), logits)


def test_the_matrix_of_the_masked_head_is_the_embeddings_own():
    model = build()
    assert model.head.output.E is model.embedding.tokens.E
    assert build(CLASSES).num_parameters() == model.num_parameters() - (V + 2 * C) + (C + 1) * CLASSES


def test_the_choices_are_those_of_bert_and_can_be_changed():
    config = bert_config(50)
    assert (config.norm, config.positions, config.activation, config.has_final_norm) == (
        "post",
        "learned",
        "gelu",
        False,
    )
    assert (config.scale_embeddings, config.norm_eps) == (False, 1e-12)
    assert bert_config(50, norm="pre").norm == "pre"


@pytest.mark.parametrize(
    ("segments", "error", "message"),
    [
        (np.full_like(IDS, SEGMENTS), IndexError, "segments has the token id 4, but the vocabulary has the ids 0 to 3"),
        (np.full_like(IDS, -1), IndexError, "segments has the token id -1"),
        (np.zeros(IDS.shape), TypeError, "^segments must be integer token ids, got an array of float64$"),
        *(
            (np.zeros(shape, int), ValueError, r"^segments must have the same shape as ids, \(2, 5\), got \(")
            for shape in ((1, 5), (2, 1), (5,))
        ),
    ],
)
def test_segments_that_are_none_or_would_be_broadcast_are_refused(segments, error, message):
    with pytest.raises(error, match=message):
        build()(IDS, segments)


def test_there_are_two_segments_by_default_and_one_is_enough():
    config = bert_config(V, d_model=C, num_heads=H, d_ff=F, num_layers=1, max_len=9)
    assert BERT(config).embedding.segments.E.data.shape == (2, C)
    assert BERT(config, num_segments=1, num_classes=1)(IDS).shape == (2, 1)
    with pytest.raises(ValueError, match=r"^num_segments must be at least 1, got 0$"):
        BERT(config, num_segments=0)
    with pytest.raises(ValueError, match=r"^num_classes must be at least 0, got -1$"):
        BERT(config, num_classes=-1)


def test_with_no_classes_there_is_no_head_and_the_same_encoder():
    other, model = build_random(), build_random(0)
    state = other.state_dict()
    assert model.state_dict().keys() == {name for name in state if not name.startswith("head.")}
    model.load_state_dict({name: state[name] for name in model.state_dict()})
    np.testing.assert_array_equal(host(model.features(IDS)[0]), host(other.features(IDS)[0]))
    with pytest.raises(ValueError, match=r"^this model has no head, so it computes features and no logits: "):
        model(IDS)


@every_head
def test_attention_weights_are_those_of_every_layer_and_depend_on_the_segments(num_classes):
    model = build_random(num_classes, num_layers=3)
    weights, others = ([host(layer) for layer in model.attention_weights(IDS, s)] for s in (SEGMENT_IDS, None))
    assert [layer.shape for layer in weights] == [(2, H, 5, 5)] * 3
    for layer, other in zip(weights, others, strict=True):
        assert same(layer > 0, np.broadcast_to((IDS != 0)[:, None, None], layer.shape))
        assert relative_error(other, layer) > 1e-3
