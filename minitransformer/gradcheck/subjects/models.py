"""The rows for whole models: from token ids to the loss, with respect to all parameters. BERT's parts are here too."""

import itertools
from functools import partial
from typing import Any

import numpy as np

from minitransformer.backend import to_device
from minitransformer.config import POSITIONS, Experts, Rope, Windowed
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.gradcheck.check import randomize_parameters
from minitransformer.gradcheck.judge.gradients import check_gradients
from minitransformer.gradcheck.judge.report import Report
from minitransformer.gradcheck.subjects.layers import ATTENTION_KINDS, DROPOUT, config
from minitransformer.gradcheck.subjects.table import Draw, Problem, Sizes, Subject, layer_problem, register
from minitransformer.layers.losses import CrossEntropyLoss
from minitransformer.layers.since_2017.blockwise import blockwise_loss
from minitransformer.models import Transformer, named_config, t5_config
from minitransformer.models.since_2017.bert import BERT, BERTEmbedding, ClassifierHead, MaskedHead, bert_config
from minitransformer.models.since_2017.gpt import GPT, gpt_config
from minitransformer.models.since_2017.vision import Patches, ViT
from minitransformer.system.generators import make_generator

SMOOTHING, SEGMENTS, CLASSES = 0.1, 3, 13
PATCHES, PATCH = 4, 9  # of an image, and pixels of each
LARGE_EPS = 0.1  # so large that it matters


def loss_problem(
    model: Any,
    ids: dict[str, np.ndarray],
    targets: np.ndarray,
    smoothing: float = SMOOTHING,
    dropout_seed: int = 1,
    tokens_per_block: int | None = None,
) -> Problem:
    """The Problem of a model and its loss with label smoothing; `ids` are what the model takes, by name.

    With `tokens_per_block` the logits are made for so many tokens at a time, as in training.
    """

    def function(*arrays):
        *ids, targets = arrays
        logits, cache = model.forward(*ids, rng=make_generator(dropout_seed))
        loss, cache_loss = cross_entropy(logits, to_device(targets), smoothing)
        return loss, (cache, cache_loss)

    def backward(dloss, caches):
        cache, cache_loss = caches
        model.backward(cross_entropy_backward(dloss, cache_loss), cache)

    constants, parameters = {**ids, "targets": targets}, dict(model.named_parameters())
    if tokens_per_block is None:
        return Problem(function, backward, {}, constants, parameters)

    def in_blocks(y, weight=None):
        max_logits = tokens_per_block * model.config.vocab_size
        return blockwise_loss(model, y, targets, CrossEntropyLoss(smoothing), weight, max_logits=max_logits)

    def blockwise(*arrays):
        y, cache = model.features(*arrays[:-1], rng=make_generator(dropout_seed))
        return in_blocks(y).loss, (y, cache)

    def blockwise_backward(dloss, caches):
        y, cache = caches
        model.features_backward(in_blocks(y, dloss).dy, cache)

    return Problem(blockwise, blockwise_backward, {}, constants, parameters)


def check_loss(model: Any, *ids: np.ndarray, name: str, dropout_seed: int = 1, **options: Any) -> Report:
    """Check every parameter of a model through the loss; the last of `ids` are the targets."""
    problem = loss_problem(
        model, {f"ids {i}": array for i, array in enumerate(ids[:-1])}, ids[-1], dropout_seed=dropout_seed
    )
    return check_gradients(problem.forward, problem.backward, {}, problem.parameters, name=name, **options)


def draw_sentences(d: Draw, padded: bool = True) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Source, target input and targets, which are the input's next tokens."""
    source, target = d.ids(d.n.S, padded), d.ids(d.n.T + 1, padded)
    return {"source": source, "target": target[:, :-1]}, target[:, 1:]


def transformer(
    d: Draw, padding: bool = True, loss: bool = True, label_smoothing: float = SMOOTHING, **switches: Any
) -> Problem:
    """An encoder-decoder, up to the loss or to the logits; `switches` are fields of the configuration."""
    model = Transformer(config(d.n, **switches), dtype=d.dtype)
    ids, targets = draw_sentences(d, padding)
    if not loss:
        return layer_problem(model, d, {}, ids)
    randomize_parameters(model, d.rng)
    return loss_problem(model, ids, targets, label_smoothing)


def family_fields(n: Sizes, dropout: float) -> dict[str, Any]:
    """What GPT, BERT and T5 have in common here."""
    names = ("d_model", "num_heads", "d_ff", "num_layers", "max_len", "dropout", "attention_dropout", "ffn_dropout")
    paper = config(n, dropout)
    return {name: getattr(paper, name) for name in names} | {"norm_eps": LARGE_EPS}


def t5(d: Draw, dropout: float, **changes: Any) -> Problem:
    """A Transformer with T5's switches, whose target starts with padding."""
    model = Transformer(t5_config(d.n.V, **{**family_fields(d.n, dropout), **changes}), dtype=d.dtype)
    randomize_parameters(model, d.rng)
    ids, targets = draw_sentences(d)
    ids["target"] = np.pad(targets[:, :-1], ((0, 0), (1, 0)))
    return loss_problem(model, ids, targets)


def gpt(d: Draw, dropout: float, tokens_per_block: int | None = None, **changes: Any) -> Problem:
    """A GPT. Padding at the end is no target, and no token before it sees it."""
    d = d.resized(D=2 * d.n.D)  # RoPE needs pairs of features
    model = GPT(gpt_config(d.n.V, **{**family_fields(d.n, dropout), **changes}), dtype=d.dtype)
    randomize_parameters(model, d.rng)
    ids = d.ids(d.n.T + 1, padded=True)
    return loss_problem(model, {"ids": ids[:, :-1]}, ids[:, 1:], tokens_per_block=tokens_per_block)


def bert(d: Draw, dropout: float, head: str, tokens_per_block: int | None = None, **changes: Any) -> Problem:
    """A BERT that predicts some tokens or a class, on padded ids in several segments."""
    d = d.resized(D=2 * d.n.D)
    bert = bert_config(d.n.V, **{**family_fields(d.n, dropout), **changes})
    num_classes = CLASSES if head == "classes" else None
    model = BERT(bert, num_classes=num_classes, num_segments=SEGMENTS, dtype=d.dtype)
    randomize_parameters(model, d.rng)
    ids = ids_and_segments(d)
    hidden = np.where(np.arange(d.n.T) % 2, 0, d.ids(d.n.T))  # only some tokens are predicted
    targets = hidden if head == "masked" else d.rng.integers(1, CLASSES, d.n.B)
    return loss_problem(model, ids, targets, tokens_per_block=tokens_per_block)


def ids_and_segments(d: Draw) -> dict[str, np.ndarray]:
    """What a BERT reads."""
    return {"ids": d.ids(d.n.T, padded=True), "segments": d.rng.integers(0, SEGMENTS, (d.n.B, d.n.T))}


def vit(d: Draw, dropout: float) -> Problem:
    """A ViT."""
    vit = bert_config(d.n.V, **{**family_fields(d.n, dropout), "max_len": 1 + PATCHES}, norm="pre")
    model = ViT(vit, num_classes=CLASSES, patch_size=PATCH, dtype=d.dtype)
    randomize_parameters(model, d.rng)
    return loss_problem(model, {"pixels": d.ids(PATCHES * PATCH)}, d.rng.integers(1, CLASSES, d.n.B))


def patches(d: Draw) -> Problem:
    """The pixels of an image as vectors."""
    return layer_problem(Patches(PATCH, d.n.C, d.n.V, None, d.dtype), d, {}, {"x": d.ids(PATCHES * PATCH)})


def bert_embedding(d: Draw, dropout: float) -> Problem:
    """Tokens, segments and positions."""
    layer = BERTEmbedding(bert_config(d.n.V, **family_fields(d.n, dropout)), SEGMENTS, None, dtype=d.dtype)
    return layer_problem(layer, d, {}, ids_and_segments(d))


def masked_head(d: Draw, dropout: float) -> Problem:
    """The head for hidden tokens, with the matrix of token vectors as a parameter of its own."""
    bert = bert_config(d.n.V, **family_fields(d.n, dropout))
    layer = MaskedHead(BERTEmbedding(bert, SEGMENTS, None, dtype=d.dtype).tokens.E, bert, None, dtype=d.dtype)
    return layer_problem(layer, d, {"x": d("BTC")})


def classifier_head(d: Draw, dropout: float) -> Problem:
    """The head for classes."""
    layer = ClassifierHead(CLASSES, bert_config(d.n.V, **family_fields(d.n, dropout)), None, dtype=d.dtype)
    return layer_problem(layer, d, {"x": d("BTC")})


register_model = partial(register, stack=True)
for norm, tied, eps, rate in itertools.product(("post", "pre"), (True, False), (0.0, 0.1), (0.0, DROPOUT)):
    switches: dict[str, Any] = {"norm": norm, "tie_embeddings": tied, "label_smoothing": eps, "dropout": rate}
    row = f"Transformer norm={norm} tied={tied} smoothing={eps} dropout={rate}"
    register_model(row, Transformer, transformer, **switches)
register_model("Transformer final_norm=True", Transformer, transformer, final_norm=True)
for norm, final in (("pre", False), ("post", True)):
    row = f"Transformer norm={norm} tied=False final_norm={final}"
    register_model(row, Transformer, transformer, norm=norm, tie_embeddings=False, final_norm=final)
register_model("Transformer norm=sandwich", Transformer, transformer, norm="sandwich", dropout=DROPOUT)
register_model("Transformer logits", Transformer, transformer, loss=False)
register_model("Transformer padding=False", Transformer, transformer, padding=False)
register_model("Transformer T=1", Transformer, transformer, lengths={"T": 1})
register_model("Transformer B=1", Transformer, transformer, lengths={"B": 1})

MODERN: dict[str, Any] = {"positions": "rope", "normalization": "rms", "activation": "swiglu", "bias": False}
for positions in POSITIONS:
    register_model(f"GPT positions={positions}", GPT, gpt, dropout=DROPOUT, positions=positions)
row = "GPT tied=False norm=post scaled"
register_model(row, GPT, gpt, dropout=DROPOUT, tie_embeddings=False, norm="post", scale_embeddings=True)
register_model("GPT like LLaMA", GPT, gpt, dropout=DROPOUT, **MODERN)
register_model("GPT num_experts=3", GPT, gpt, dropout=DROPOUT, experts=Experts(3, balance=0.0))
for kind, fields in ATTENTION_KINDS.items():
    register_model(f"GPT attention={kind}", GPT, gpt, dropout=DROPOUT, num_kv_heads=1, **fields)
register_model("GPT positions=rope num_kv_heads=1", GPT, gpt, dropout=DROPOUT, num_kv_heads=1, positions="rope")
TODAY: dict[str, Any] = {**MODERN, "num_kv_heads": 1, "d_k": 4, "d_v": 4, "qk_norm": True}  # like Qwen3, Gemma 3, Qwen2
register_model("GPT d_k=4 d_v=4 qk_norm=True", GPT, gpt, dropout=DROPOUT, **TODAY)
GEMMA: dict[str, Any] = {"norm": "sandwich", "positions": Rope(100.0, factor=3.0)}
GEMMA |= {"attention": Windowed(2, full_layers=(1,), rope_base=20.0)}
register_model("GPT norm=sandwich full_layers=1", GPT, gpt, dropout=DROPOUT, **{**TODAY, **GEMMA})
register_model("GPT qkv_bias=True", GPT, gpt, dropout=DROPOUT, **MODERN, qkv_bias=True)
for positions in ("relative", "alibi"):
    row = f"GPT attention=tiled positions={positions}"
    register_model(row, GPT, gpt, dropout=DROPOUT, attention="tiled", positions=positions)
for count in (2, 1000):
    row = f"GPT tokens_per_block={count}"
    register_model(row, GPT, gpt, dropout=DROPOUT, tokens_per_block=count)
row = "BERT head=masked tokens_per_block=2"
register_model(row, BERT, bert, dropout=DROPOUT, head="masked", tokens_per_block=2)
register_model("BERT head=masked", BERT, bert, dropout=DROPOUT, head="masked")
register_model("BERT head=masked positions=rope", BERT, bert, dropout=DROPOUT, head="masked", positions="rope")
register_model("BERT head=classes", BERT, bert, dropout=DROPOUT, head="classes")
ALBERT: dict[str, Any] = {"num_layers": 3, "share_layers": True}
register_model("Transformer share_layers=True", Transformer, transformer, dropout=DROPOUT, **ALBERT)
register_model("BERT head=masked share_layers=True", BERT, bert, dropout=DROPOUT, head="masked", **ALBERT)
register_model("ViT", ViT, vit, dropout=DROPOUT)
V1_1: dict[str, Any] = {"activation": "geglu_tanh", "tie_embeddings": "inputs", "scale_output": False}
register_model("Transformer T5", Transformer, t5, dropout=DROPOUT)
register_model("Transformer T5 version=1.1", Transformer, t5, dropout=DROPOUT, **V1_1)
register("Patches", Patches, patches)
register("BERTEmbedding", BERTEmbedding, bert_embedding, dropout=DROPOUT)
register("MaskedHead", MaskedHead, masked_head, dropout=DROPOUT)
register("ClassifierHead", ClassifierHead, classifier_head, dropout=DROPOUT)


def base(d: Draw) -> Problem:
    """The paper's base model at its full size (63.1M parameters), whatever the sizes are, up to the loss.

    A short batch is enough, because it reaches every parameter: the matrix of embeddings is also the output
    projection, so tokens that are absent from the input have a gradient too. Dropout, label smoothing and padding are
    on.
    """
    model = Transformer(named_config("base", 37000), dtype=d.dtype)
    source, target = d.rng.integers(3, 37000, size=(2, 7)), d.rng.integers(3, 37000, size=(2, 6))
    source[0, 5:] = target[1, 4:] = 0
    for name, parameter in model.named_parameters():
        if name.endswith((".b", ".beta", ".gamma")):  # initially 0, 0 and 1, which hides mistakes
            parameter.data += to_device(0.3 * d.rng.standard_normal(parameter.data.shape))
    return loss_problem(model, {"source": source, "target": target[:, :-1]}, target[:, 1:])


BASE = Subject("base", Transformer, base, {})  # no row of the table, because it takes so long
