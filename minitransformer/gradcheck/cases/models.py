"""The rows for whole models: from token ids to the loss, all parameters."""

import itertools

import numpy as np

from minitransformer.backend import to_device
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.generators import make_generator
from minitransformer.gradcheck.cases.layers import DROPOUT, config
from minitransformer.gradcheck.cases.registry import B, S, T, draw_ids, register
from minitransformer.gradcheck.check import check_gradients, randomize_parameters
from minitransformer.gradcheck.report import COMPLEX_STEP
from minitransformer.models import Transformer, named_config


def check_loss(model, *ids, name, dropout_seed=1, **options):
    """Check every parameter of a model, through the loss with its label smoothing -> Report.

    `ids` are what the model takes (source and target_in of an encoder-decoder), and the targets as the last.
    """
    *inputs, targets = ids

    def forward():
        logits, cache = model.forward(*inputs, rng=make_generator(dropout_seed))
        loss, cache_loss = cross_entropy(logits, to_device(targets), model.config.label_smoothing)
        return loss, (cache, cache_loss)

    def backward(dloss, caches):
        cache, cache_loss = caches
        model.backward(cross_entropy_backward(dloss, cache_loss), cache)

    return check_gradients(forward, backward, {}, dict(model.named_parameters()), name=name, **options)


def transformer(b=B, t=T, s=S, padded=True, **switches):
    """A small Transformer, on padded batches unless told otherwise."""

    def check(name, **options):
        model = Transformer(config(**switches), dtype=np.float64)
        randomize_parameters(model)
        pad = padded and t > 1
        ids = (draw_ids(b, s, pad), draw_ids(b, t, pad), draw_ids(b, t + 1, pad)[:, 1:])
        # a hundred entries and more go along random directions: the entries are proven layer by layer already
        return check_loss(model, *ids, name=name, **{"max_entries": 10, **options})

    return check


for norm, tied, smoothing, rate in itertools.product(("post", "pre"), (True, False), (0.0, 0.1), (0.0, DROPOUT)):
    switches = f"norm={norm} tied={tied} smoothing={smoothing} dropout={rate}"
    check = transformer(norm=norm, tie_embeddings=tied, label_smoothing=smoothing, dropout=rate)
    register(f"Transformer {switches}", Transformer, check)
register("Transformer final_norm=True", Transformer, transformer(final_norm=True))
register("Transformer padding=False", Transformer, transformer(padded=False))
register("Transformer T=1", Transformer, transformer(t=1))
register("Transformer B=1", Transformer, transformer(b=1))


def check_base(seed=0, directions=3):
    """Every gradient of the paper's base model at its full size (63.1M parameters), each forward along one direction.

    A short batch is enough: every parameter takes part (but for embeddings of tokens that do not come as input, whose
    gradient through the output projection is not 0 either). Dropout, label smoothing and padding are on.
    """
    model = Transformer(named_config("base", 37000), dtype=np.float64)
    rng = np.random.default_rng(seed)
    source, target = rng.integers(3, 37000, size=(2, 7)), rng.integers(3, 37000, size=(2, 6))
    source[0, 5:] = target[1, 4:] = 0
    for name, parameter in model.named_parameters():
        if name.endswith((".b", ".beta", ".gamma")):  # initially 0, 0 and 1: too kind
            parameter.data += to_device(0.3 * rng.standard_normal(parameter.data.shape))
    ids = (source, target[:, :-1], target[:, 1:])
    return check_loss(model, *ids, name="base", method=COMPLEX_STEP, together=True, directions=directions, seed=seed)
