"""The rows for the family of the Transformer: GPT with all positions, BERT with both heads, and T5."""

import numpy as np

from minitransformer.gradcheck.cases.models import check_loss
from minitransformer.gradcheck.cases.registry import D_FF, B, C, S, T, V, draw, draw_ids, layer, register
from minitransformer.gradcheck.check import randomize_parameters
from minitransformer.layers.positions import POSITIONS
from minitransformer.models import BERT, GPT, Transformer, bert_config, gpt_config, t5_config
from minitransformer.models.bert import BERTEmbedding, ClassifierHead, MaskedHead

DROPOUT, SMOOTHING, SEGMENTS, CLASSES = 0.3, 0.1, 3, 12
HEADS = 3  # of an even number of features each, as rotations need
EPS = 0.1  # so large that it matters
SIZES = {"d_model": C, "num_heads": HEADS, "d_ff": D_FF, "num_layers": 2, "max_len": 9, "norm_eps": EPS}
NOISE = {"dropout": DROPOUT, "attention_dropout": DROPOUT, "ffn_dropout": DROPOUT, "label_smoothing": SMOOTHING}


def whole(build, *ids):
    """The check of the model that `build()` makes, on `ids` with the targets as the last."""

    def check(name, **options):
        model = build()
        randomize_parameters(model)
        # a hundred entries and more go along random directions: the entries are proven layer by layer already
        return check_loss(model, *ids, name=name, **{"max_entries": 10, **options})

    return check


def gpt(**changes):
    """A GPT with dropout and smoothing; padding at the end counts neither as target nor for those before it."""
    config = gpt_config(V, **{**SIZES, **NOISE, **changes})
    ids = draw_ids(B, T + 1, padded=True)
    return whole(lambda: GPT(config, dtype=np.float64), ids[:, :-1], ids[:, 1:])


def bert(targets, num_classes=None, **changes):
    """A BERT with dropout and smoothing, on padded ids in several segments."""
    config = bert_config(V, **{**SIZES, **NOISE, **changes})
    options = {"num_segments": SEGMENTS, "num_classes": num_classes, "dtype": np.float64}
    return whole(lambda: BERT(config, **options), draw_ids(B, T, padded=True), SEGMENT_IDS, targets)


def t5(**changes):
    """A Transformer with T5's switches, whose target starts with padding."""
    config = t5_config(V, **{**SIZES, **NOISE, **changes})
    source, target = draw_ids(B, S, padded=True), draw_ids(B, T + 1, padded=True)
    target_in = np.concatenate([np.zeros((B, 1), int), target[:, 1:-1]], axis=1)
    return whole(lambda: Transformer(config, dtype=np.float64), source, target_in, target[:, 1:])


SEGMENT_IDS = np.random.default_rng(SEGMENTS).integers(0, SEGMENTS, (B, T))
HIDDEN = np.where(np.arange(T) % 2, 0, draw_ids(B, T))  # only some tokens are asked for
CLASS_IDS = np.random.default_rng(CLASSES).integers(1, CLASSES, B)

for positions in POSITIONS:
    register(f"GPT positions={positions}", GPT, gpt(positions=positions))
register("GPT tied=False norm=post scaled", GPT, gpt(tie_embeddings=False, norm="post", scale_embeddings=True))
register("GPT like LLaMA", GPT, gpt(positions="rope", normalization="rms", activation="swiglu", bias=False))
register("BERT head=masked", BERT, bert(HIDDEN))
register("BERT head=masked positions=rope", BERT, bert(HIDDEN, positions="rope"))
register("BERT head=classes", BERT, bert(CLASS_IDS, num_classes=CLASSES))
V1_1 = {"activation": "geglu_tanh", "tie_output": False, "scale_output": False}
register("Transformer T5", Transformer, t5())
register("Transformer T5 version=1.1", Transformer, t5(**V1_1))

F64 = {"dtype": np.float64}
small = bert_config(V, **{**SIZES, **NOISE})
ids, x, drawn = draw_ids(B, T), draw(B, T, C), {"dropout_seed": 1}
embedding = layer(lambda: BERTEmbedding(small, SEGMENTS, None, **F64), context=(ids, SEGMENT_IDS), **drawn)
register("BERTEmbedding", BERTEmbedding, embedding)


def masked_head():
    """A head with the token vectors' matrix as a parameter of its own."""
    E = BERTEmbedding(small, SEGMENTS, None, **F64).tokens.E
    return MaskedHead(E, small, None, **F64)


register("MaskedHead", MaskedHead, layer(masked_head, x, **drawn))
register("ClassifierHead", ClassifierHead, layer(lambda: ClassifierHead(CLASSES, small, None, **F64), x, **drawn))
