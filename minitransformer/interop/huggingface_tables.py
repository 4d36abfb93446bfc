"""The names of weights in Hugging Face models and in ours: the tables that `from_huggingface` uses.

BERT and T5 store a matrix transposed, (out, in), as PyTorch does; the matrices of GPT-2 are (in, out), like ours. Where
their model has three matrices for queries, keys and values, ours has one with the three side by side. In the tables
below C = d_model, F = d_ff, `i` counts the layers, and a line for a Linear or a normalization means both of its arrays:

    theirs weight, bias        ours W, b of a Linear, or gamma, beta of a normalization
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from minitransformer.config import TransformerConfig
from minitransformer.functional.since_2017.activations import GATED


class Tensor(NamedTuple):
    """One of their tensors, and what becomes of it."""

    name: str
    shape: tuple[int, ...]
    transposed: bool = False
    head: int = 0  # the features of a head, where RoPE pairs others of them than ours does; see `in_our_order`
    shift: float = 0.0  # that is added


class Field(NamedTuple):
    """A field of their configuration."""

    usual: Any  # its value in a file that leaves it out
    ours: str = ""  # our field with the same value, ONLY, or "" where more has to be done to translate it


ONLY = "only"  # instead of one of our fields: our models can only have the usual value


class Source(NamedTuple):
    """Where one of our arrays comes from: one or more of their tensors, which are side by side in ours."""

    tensors: tuple[Tensor, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tensors."""
        return tuple(tensor.name for tensor in self.tensors)


def source(names: Iterable[str], shape: tuple[int, ...], transposed: bool = False) -> Source:
    """The Source of one or more tensors of one shape."""
    return Source(tuple(Tensor(name, shape, transposed) for name in names))


def gpt2_table(config: TransformerConfig) -> dict[str, Source]:
    """{our name: Source} for GPT2LMHeadModel, without the prefix "transformer." that all names but lm_head have.

    theirs                                    ours
    wte.weight               (V, C)           embedding.tokens.E
    wpe.weight               (max_len, C)     embedding.positions.P
    h.i.ln_1                 (C,)             blocks.layers.i.self_attention.norm
    h.i.attn.c_attn          (C, 3C)          blocks.layers.i.self_attention.sublayer.qkv
    h.i.attn.c_proj          (C, C)           blocks.layers.i.self_attention.sublayer.output
    h.i.ln_2                 (C,)             blocks.layers.i.feed_forward.norm
    h.i.mlp.c_fc             (C, F)           blocks.layers.i.feed_forward.sublayer.expand
    h.i.mlp.c_proj           (F, C)           blocks.layers.i.feed_forward.sublayer.contract
    ln_f                     (C,)             blocks.norm
    lm_head.weight           (V, C)           output.E, if not tied
    """
    C, F, V = config.d_model, config.d_ff, config.vocab_size
    table = {"embedding.tokens.E": source(("wte.weight",), (V, C))}
    table |= {"embedding.positions.P": source(("wpe.weight",), (config.max_len, C))}
    for i in range(config.num_layers):
        attention, network = f"blocks.layers.{i}.self_attention", f"blocks.layers.{i}.feed_forward"
        table |= _norm(f"{attention}.norm", f"h.{i}.ln_1", C)
        table |= _linear(f"{attention}.sublayer.qkv", [f"h.{i}.attn.c_attn"], C, 3 * C, transposed=False)
        table |= _linear(f"{attention}.sublayer.output", [f"h.{i}.attn.c_proj"], C, C, transposed=False)
        table |= _norm(f"{network}.norm", f"h.{i}.ln_2", C)
        table |= _linear(f"{network}.sublayer.expand", [f"h.{i}.mlp.c_fc"], C, F, transposed=False)
        table |= _linear(f"{network}.sublayer.contract", [f"h.{i}.mlp.c_proj"], F, C, transposed=False)
    table |= _norm("blocks.norm", "ln_f", C)
    if not config.has_tied_output:
        table |= {"output.E": source(("lm_head.weight",), (V, C))}
    return table


def bert_table(config: TransformerConfig, num_segments: int, num_classes: int | None) -> dict[str, Source]:
    """{our name: Source} for BertForMaskedLM, with `num_classes` BertForSequenceClassification, with 0 BertModel.

    The names are without the prefix "bert." that all tensors outside the heads have.

        theirs                                           ours
        embeddings.word_embeddings.weight                embedding.tokens.E              (V, C)
        embeddings.position_embeddings.weight            embedding.positions.P           (max_len, C)
        embeddings.token_type_embeddings.weight          embedding.segments.E            (num_segments, C)
        embeddings.LayerNorm                             embedding.norm
        encoder.layer.i.attention.self.query             encoder.layers.i.self_attention.sublayer.qkv
                                      .key, .value
        encoder.layer.i.attention.output.dense           encoder.layers.i.self_attention.sublayer.output
        encoder.layer.i.attention.output.LayerNorm       encoder.layers.i.self_attention.norm
        encoder.layer.i.intermediate.dense               encoder.layers.i.feed_forward.sublayer.expand
        encoder.layer.i.output.dense                     encoder.layers.i.feed_forward.sublayer.contract
        encoder.layer.i.output.LayerNorm                 encoder.layers.i.feed_forward.norm
        cls.predictions.transform.dense                  head.transform
        cls.predictions.transform.LayerNorm              head.norm
        cls.predictions.bias                             head.b                          (V,)
        pooler.dense                                     head.pooler, with num_classes; BertModel's is left out
        classifier                                       head.classes, with num_classes
    """
    C, V = config.d_model, config.vocab_size
    table = {
        "embedding.tokens.E": source(("embeddings.word_embeddings.weight",), (V, C)),
        "embedding.positions.P": source(("embeddings.position_embeddings.weight",), (config.max_len, C)),
        "embedding.segments.E": source(("embeddings.token_type_embeddings.weight",), (num_segments, C)),
        **_norm("embedding.norm", "embeddings.LayerNorm", C),
    }
    for i in range(config.num_layers):
        table |= _bert_layer(f"encoder.layers.{i}", f"encoder.layer.{i}", config)
    if num_classes == 0:
        return table
    if num_classes is not None:
        table |= _linear("head.pooler", ["pooler.dense"], C, C)
        return table | _linear("head.classes", ["classifier"], C, num_classes)
    table |= _linear("head.transform", ["cls.predictions.transform.dense"], C, C)
    table |= _norm("head.norm", "cls.predictions.transform.LayerNorm", C)
    return table | {"head.b": source(("cls.predictions.bias",), (V,))}


def _bert_layer(ours, theirs, config):
    C, F = config.d_model, config.d_ff
    qkv = [f"{theirs}.attention.self.{name}" for name in ("query", "key", "value")]
    return {
        **_linear(f"{ours}.self_attention.sublayer.qkv", qkv, C, C),
        **_linear(f"{ours}.self_attention.sublayer.output", [f"{theirs}.attention.output.dense"], C, C),
        **_norm(f"{ours}.self_attention.norm", f"{theirs}.attention.output.LayerNorm", C),
        **_linear(f"{ours}.feed_forward.sublayer.expand", [f"{theirs}.intermediate.dense"], C, F),
        **_linear(f"{ours}.feed_forward.sublayer.contract", [f"{theirs}.output.dense"], F, C),
        **_norm(f"{ours}.feed_forward.norm", f"{theirs}.output.LayerNorm", C),
    }


def t5_table(config: TransformerConfig) -> dict[str, Source]:
    """{our name: Source} for T5ForConditionalGeneration, which has no biases.

        theirs                                           ours
        shared.weight                         (V, C)     source_embedding.tokens.E
        lm_head.weight                        (V, C)     output.E, if not tied (version 1.1)
        block.0.layer.0.SelfAttention.                   positions.table (32, H)
                relative_attention_bias.weight
        block.i.layer.0.SelfAttention.q, .k, .v (C, C)   layers.i.self_attention.sublayer.qkv
        block.i.layer.0.SelfAttention.o       (C, C)     layers.i.self_attention.sublayer.output
        block.i.layer.0.layer_norm            (C,)       layers.i.self_attention.norm
        block.i.layer.1.EncDecAttention.q     (C, C)     layers.i.cross_attention.sublayer.q     (decoder only)
        block.i.layer.1.EncDecAttention.k, .v (C, C)     layers.i.cross_attention.sublayer.kv
        block.i.layer.1.EncDecAttention.o     (C, C)     layers.i.cross_attention.sublayer.output
        block.i.layer.1.layer_norm            (C,)       layers.i.cross_attention.norm
        block.i.layer.2.DenseReluDense.wi     (F, C)     layers.i.feed_forward.sublayer.expand   (encoder: layer.1)
                           or .wi_0, .wi_1, if gated
        block.i.layer.2.DenseReluDense.wo     (C, F)     layers.i.feed_forward.sublayer.contract
        block.i.layer.2.layer_norm            (C,)       layers.i.feed_forward.norm
        final_layer_norm                      (C,)       norm

    All but the first two have the prefix `encoder.` or `decoder.` on both sides.
    """
    C, V = config.d_model, config.vocab_size
    table = {"source_embedding.tokens.E": source(("shared.weight",), (V, C))}
    for stack in ("encoder", "decoder"):
        name = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        table |= {f"{stack}.positions.table": source((name,), (32, config.num_heads))}
        for i in range(config.num_layers):
            table |= _t5_layer(f"{stack}.layers.{i}", f"{stack}.block.{i}.layer", config, stack == "decoder")
        table |= _scale(f"{stack}.norm", f"{stack}.final_layer_norm", C)
    if not config.has_tied_output:
        table |= {"output.E": source(("lm_head.weight",), (V, C))}
    return table


def _t5_layer(ours, theirs, config, in_decoder):
    C, F, last = config.d_model, config.d_ff, 2 if in_decoder else 1
    wi = ("wi_0", "wi_1") if config.activation in GATED else ("wi",)

    def linear(name, sublayer, names, fan_in, fan_out):
        names = [f"{theirs}.{sublayer}.{their_name}" for their_name in names]
        return _linear(f"{ours}.{name}", names, fan_in, fan_out, bias=False)

    table = {
        **linear("self_attention.sublayer.qkv", "0.SelfAttention", "qkv", C, C),
        **linear("self_attention.sublayer.output", "0.SelfAttention", "o", C, C),
        **_scale(f"{ours}.self_attention.norm", f"{theirs}.0.layer_norm", C),
        **linear("feed_forward.sublayer.expand", f"{last}.DenseReluDense", wi, C, F),
        **linear("feed_forward.sublayer.contract", f"{last}.DenseReluDense", ("wo",), F, C),
        **_scale(f"{ours}.feed_forward.norm", f"{theirs}.{last}.layer_norm", C),
    }
    if in_decoder:
        table |= linear("cross_attention.sublayer.q", "1.EncDecAttention", "q", C, C)
        table |= linear("cross_attention.sublayer.kv", "1.EncDecAttention", "kv", C, C)
        table |= linear("cross_attention.sublayer.output", "1.EncDecAttention", "o", C, C)
        table |= _scale(f"{ours}.cross_attention.norm", f"{theirs}.1.layer_norm", C)
    return table


def _linear(ours, names, fan_in, fan_out, *, transposed=True, bias=True):
    """Our Linear, from one or more of theirs, each (fan_in, fan_out)."""
    shape = (fan_out, fan_in) if transposed else (fan_in, fan_out)
    table = {f"{ours}.W": source(tuple(f"{name}.weight" for name in names), shape, transposed)}
    if bias:
        table |= {f"{ours}.b": source(tuple(f"{name}.bias" for name in names), (fan_out,))}
    return table


def _norm(ours, theirs, C):
    """Our LayerNorm."""
    return _scale(ours, theirs, C) | {f"{ours}.beta": source((f"{theirs}.bias",), (C,))}


def _scale(ours, theirs, C):
    """Our RMSNorm."""
    return {f"{ours}.gamma": source((f"{theirs}.weight",), (C,))}
