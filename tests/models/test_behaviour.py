"""How the Transformer must behave whatever its weights: no look ahead, no trace of padding, honest losses.

The norm is after or before the sub-layers, and the embeddings are tied or not.
"""

import math

import numpy as np
import pytest

from minitransformer.data.tasks import Batch
from minitransformer.functional import cross_entropy
from minitransformer.gradcheck.subjects.layers import ATTENTION_KINDS
from minitransformer.models import Transformer, TransformerConfig
from tests.helpers import Trainer, device, host, randomize, relative_error, same
from tests.models.learning import loss_and_gradients

V, H, C, F, MAX_LEN = 11, 3, 12, 7, 40
SOURCE = np.array([[3, 8, 4, 0, 0], [7, 5, 9, 4, 10]])  # (B, S); 0 is padding
TARGET_IN = np.array([[1, 6, 3, 8], [1, 5, 0, 0]])  # (B, T)
TARGET_OUT = np.array([[6, 3, 8, 2], [5, 2, 0, 0]])

both_switches = pytest.mark.parametrize(("norm", "tied"), [("post", True), ("pre", False)])


def build(norm, tied, dtype="float64", seed=0, **changes):
    """A model with its initial weights; all sizes differ from each other."""
    sizes = {"vocab_size": V, "d_model": C, "num_heads": H, "d_ff": F, "num_layers": 2, "max_len": MAX_LEN}
    config = TransformerConfig(**{**sizes, "norm": norm, "tie_embeddings": tied, **changes})
    return Transformer(config, seed=seed, dtype=dtype)


def build_random(norm, tied, **changes):
    """A model with order-one weights, gamma, beta and biases included."""
    return randomize(build(norm, tied, **changes), scale=0.4)


def pad(ids, count):
    return np.pad(ids, ((0, 0), (0, count)))


@both_switches
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_changing_a_future_target_token_leaves_earlier_logits_bit_equal(norm, tied, dtype):
    model = build_random(norm, tied, dtype=dtype)
    target = np.array([[1, 6, 3, 8], [1, 5, 9, 4]])
    logits = model(SOURCE, target)
    for t in range(1, 4):
        other = target.copy()
        other[:, t] = 10
        changed = model(SOURCE, other)
        assert same(changed[:, :t], logits[:, :t])
        assert (changed[:, t] != logits[:, t]).any(axis=-1).all()


@both_switches
def test_neither_loss_nor_any_gradient_depends_on_how_much_padding_a_batch_has(norm, tied):
    model = build_random(norm, tied)
    loss, gradients = loss_and_gradients(model, (SOURCE, TARGET_IN), TARGET_OUT)
    padded = pad(SOURCE, 7), pad(TARGET_IN, 5)
    padded_loss, padded_gradients = loss_and_gradients(model, padded, pad(TARGET_OUT, 5))
    assert relative_error(padded_loss, loss) <= 1e-14
    for name, gradient in gradients.items():
        assert relative_error(padded_gradients[name], gradient) <= 1e-12, name


@both_switches
def test_without_positions_permuting_the_source_permutes_the_memory(norm, tied):
    model = build_random(norm, tied)
    order = np.array([3, 0, 4, 2, 1])  # padding moves with the rest
    with_positions = relative_error(model.encode(SOURCE[:, order])[0], host(model.encode(SOURCE)[0])[:, order])
    assert with_positions > 0.1
    model.source_embedding.positions.table[...] = 0
    memory = host(model.encode(SOURCE)[0])
    assert relative_error(model.encode(SOURCE[:, order])[0], memory[:, order]) <= 1e-14
    assert relative_error(memory[:, order], memory) > 0.1


@both_switches
def test_logits_depend_on_their_own_pair_of_the_batch_alone(norm, tied):
    model = build_random(norm, tied)
    logits = model(SOURCE, TARGET_IN)
    for row in (0, 1):
        source, target = np.full_like(SOURCE, 9), np.full_like(TARGET_IN, 6)
        source[row], target[row] = SOURCE[row], TARGET_IN[row]
        changed = model(source, target)
        assert same(changed[row], logits[row])
        assert not same(changed[1 - row], logits[1 - row])


@both_switches
def test_a_source_of_padding_alone_spoils_nothing(norm, tied):
    model, source = build_random(norm, tied), SOURCE.copy()
    source[0] = 0
    assert same(model(source, TARGET_IN)[1], model(SOURCE, TARGET_IN)[1])
    loss, gradients = loss_and_gradients(model, (source, TARGET_IN), TARGET_OUT)
    assert np.isfinite(loss)
    assert all(np.isfinite(gradient).all() for gradient in gradients.values())


@both_switches
def test_the_loss_at_initialisation_is_near_ln_v(norm, tied):
    size = 8000
    model = build(norm, tied, dtype="float32", vocab_size=size, d_model=64, num_heads=4, d_ff=256)
    rng = np.random.default_rng(60)
    source, target = rng.integers(3, size, (8, 30)), rng.integers(3, size, (8, 33))
    loss, _ = cross_entropy(model(source, target[:, :-1]), device(target[:, 1:]), 0.1)
    # the first logits are normal with variance 1, and ln E exp(logit) = 1/2: half a nat above ln V
    assert 0.2 < float(loss) - math.log(size) < 0.8


def test_the_same_seed_gives_the_same_bits():
    def trained(seed, dropout_seed):
        model = build("post", True, "float32", seed=seed)
        trainer = Trainer(model, seed=dropout_seed)
        for _ in range(3):
            trainer.step(Batch(SOURCE, TARGET_IN, TARGET_OUT), lr=1e-3)
        return model.state_dict()["decoder.layers.1.feed_forward.sublayer.expand.W"]

    assert same(trained(0, 1), trained(0, 1))
    assert not same(trained(0, 1), trained(0, 2))
    assert not same(trained(0, 1), trained(3, 1))


def test_a_memory_of_another_batch_is_refused_instead_of_being_broadcast():
    model = build("post", True)
    memory, _ = model.encode(SOURCE[:1])
    with pytest.raises(ValueError, match="must have the same batch size, got 2, 2 and 1 sequences"):
        model.decode(np.full((2, 4), 3), memory, SOURCE)


@pytest.mark.parametrize("dtype", ["float16", "int64", "nonsense"])
def test_an_unknown_dtype_is_refused_with_the_known_ones(dtype):
    with pytest.raises(ValueError, match=f"dtype must be one of float32, float64, complex128, got {dtype}"):
        build("post", True, dtype=dtype)


@pytest.mark.parametrize("kind", ATTENTION_KINDS)
def test_no_kind_of_attention_sees_a_later_target_token_or_padding(kind):
    model = build_random("pre", True, **ATTENTION_KINDS[kind], num_layers=3)
    target = np.array([[1, 6, 3, 8, 9], [1, 5, 9, 4, 7]])
    logits = host(model(SOURCE, target))
    for t in range(1, target.shape[1]):
        other = target.copy()
        other[:, t] = 10
        assert relative_error(host(model(SOURCE, other))[:, :t], logits[:, :t]) <= 1e-14
    assert relative_error(model(pad(SOURCE, 3), target), logits) <= 1e-13
    assert relative_error(model(SOURCE, pad(target, 2))[:, :5], logits) <= 1e-13


def test_token_vectors_are_multiplied_by_the_root_of_the_width_before_positions_are_added():
    model = build("post", True)
    for embedding, ids in ((model.source_embedding, SOURCE), (model.target_embedding, TARGET_IN)):
        vectors = host(embedding.tokens.E.data)[ids] * math.sqrt(C)
        positions = host(embedding.positions.table)[: ids.shape[1]]
        assert relative_error(embedding(ids), vectors + positions) <= 1e-14


def test_attention_weights_are_those_of_every_layer_of_each_kind():
    model = build_random("post", True, num_layers=3)
    weights = model.attention_weights(SOURCE, TARGET_IN)
    real, seen = SOURCE != 0, np.tril(np.ones((4, 4), bool)) & (TARGET_IN != 0)[:, None]
    for got, allowed in (
        (weights.encoder, np.broadcast_to(real[:, None, None], (2, H, 5, 5))),
        (weights.decoder, np.broadcast_to(seen[:, None], (2, H, 4, 4))),
        (weights.cross, np.broadcast_to(real[:, None, None], (2, H, 4, 5))),
    ):
        assert len(got) == 3
        assert all(same(layer > 0, allowed) for layer in got)
        assert all(relative_error(host(layer).sum(axis=-1), np.ones(allowed.shape[:3])) <= 1e-14 for layer in got)
