"""The sizes and switches of a Transformer and its family, and the choices of each."""

import dataclasses
from typing import Any

from minitransformer.checks import check_choice, check_integer, check_switch
from minitransformer.config.choices import NORMS, Choice, Experts, Rope
from minitransformer.config.paper import SIZES, PaperConfig
from minitransformer.functional.since_2017.activations import ACTIVATIONS

NORMALIZATIONS = ("layer", "rms")
SWITCHES = ("bias", "scale_embeddings", "scale_scores", "scale_output", "share_layers", "qk_norm")
ATTENTION = {
    "full": "every weight at once: the paper; in tiles where a GPT reads 512 tokens or more",
    "tiled": "the same function in tiles, whose memory grows with T instead of T^2: FlashAttention",
    "windowed": "the nearest keys, and those of the first tokens: Longformer, Mistral",
    "strided": "the nearest keys, and every n-th key: Sparse Transformer",
    "linear": "running sums instead of a softmax, for any length a state of the same size: linear attention",
}
POSITIONS = {
    "sinusoidal": "fixed sines and cosines are added to the input: the paper",
    "learned": "a learned vector for each position is added to the input: GPT-2, BERT",
    "relative": "a learned number for each distance is added to the scores: T5",
    "rope": "queries and keys are rotated by angles: LLaMA, GPT-NeoX",
    "alibi": "scores fall linearly with distance: BLOOM, MPT",
    "none": "only a causal mask tells the model where a token is",
}


@dataclasses.dataclass(frozen=True)
class TransformerConfig(PaperConfig):
    """Sizes and switches of a model; the defaults are the paper's base model (table 3).

    GPT, BERT and T5 use it, too: `gpt_config`, `bert_config` and `t5_config` set the fields to their choices. Raises
    ValueError or TypeError, naming the field, for invalid values.

    Fields:
        padding: the id that fills up short sequences, which nothing attends to and no loss counts; None: there is none.
        start: the id that a target or a sentence begins with; T5 begins with padding.
        end: the id, or a tuple of several, that a text ends with; None: it has no end.
        vocab_size: V, shared by source and target.
        d_model: C, features per token.
        num_heads: h in the paper.
        d_ff: features inside the feed-forward network.
        num_layers: N, in each of the two stacks.
        dropout: P_drop, on every sub-layer's output and on the embeddings.
        attention_dropout: on the attention weights; not in the paper's text.
        ffn_dropout: between the two matrices of the feed-forward network; not in the paper's text.
        tie_embeddings: source, target and output share one matrix (section 3.4); "inputs": source and target do, as in
            T5 version 1.1; False: none do.
        max_len: positions; the paper's sinusoids have no limit, but our table of them has one.
        norm_eps: inside the root of every normalization; the paper does not give it.
        bias: in every Linear; T5 and LLaMA have none.
        attention: "full" as in the paper, "tiled", `Windowed(window)`, `Strided(window, stride)` or "linear"; see
            layers/since_2017/attention_kinds.py.
        num_kv_heads: heads of keys and values, each for a group of the num_heads heads; None: one for each head.
        d_k: features of each head's queries and keys (table 3, row B); None: d_model / h.
        d_v: features of each head's values; None: d_model / h. If it is not d_k, attention must be full.
        qk_norm: RMSNorm for each head's queries and keys (Qwen3, Gemma 3); see layers/since_2017/qk_norm.py.
        norm: where the layers normalize: "post" as in the paper, "pre" or "sandwich"; see layers/residual.py.
        final_norm: a normalization after each stack; None: unless post-norm has done so.
        positions: "sinusoidal", "learned", "relative", "rope" or `Rope(base)`, "alibi" or "none"; see
            layers/positions.py and layers/since_2017/attention_positions.py.
        normalization: "layer" as in the paper, or "rms" (T5, LLaMA); see layers/since_2017/rms_norm.py.
        activation: "relu" as in the paper, "gelu", "swiglu" and others; see functional/since_2017/activations.py.
        qkv_bias: in the projection of self-attention; None: as `bias`. Qwen2 has no other biases than these.
        scale_embeddings: multiply by sqrt(d_model) (section 3.4); GPT, BERT and T5 do not.
        scale_scores: multiply by 1 / sqrt(d_k) (equation 1); T5 does not.
        scale_output: multiply by 1 / sqrt(d_model) before the logits: T5 with tied embeddings.
        share_layers: each stack is one layer, used num_layers times; its gradients add up: ALBERT (Lan et al. 2020).
        experts: `Experts(8)`: as many networks of d_ff features in each layer, of which a router chooses some; None:
            one, as in the paper.
    """

    attention: str | Choice = "full"
    num_kv_heads: int | None = None
    d_k: int | None = None
    d_v: int | None = None
    qk_norm: bool = False
    norm: str = "post"
    final_norm: bool | None = None
    positions: str | Choice = "sinusoidal"
    normalization: str = "layer"
    activation: str = "relu"
    qkv_bias: bool | None = None
    scale_embeddings: bool = True
    scale_scores: bool = True
    scale_output: bool = False
    share_layers: bool = False
    experts: Experts | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in SWITCHES:
            check_switch(name, getattr(self, name))
        for name in ("final_norm", "qkv_bias"):
            if getattr(self, name) is not None:
                check_switch(name, getattr(self, name))
        self._check_attention()
        check_choice("norm", self.norm, NORMS)
        check_choice("normalization", self.normalization, NORMALIZATIONS)
        check_choice("activation", self.activation, ACTIVATIONS)
        if not isinstance(self.experts, Experts | None):
            raise TypeError(f"experts must be Experts(count) or None, got {self.experts!r}")

    def _check_heads(self):
        if self.num_kv_heads is not None:
            check_kv_heads(self.num_heads, self.num_kv_heads)
        if self.d_k is None or self.d_v is None:
            super()._check_heads()
        for name in ("d_k", "d_v"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), least=1)
        if self.head_widths[0] != self.head_widths[1] and self.attention != "full":
            raise ValueError(f"attention={str(self.attention)!r} needs d_k and d_v to be equal, got {self.head_widths}")

    def _check_attention(self):
        kind = check_choice("attention", str(self.attention), ATTENTION)
        if self.attention in Choice.kinds:
            raise ValueError(f"attention={kind!r} has numbers of its own: give it as {kind.capitalize()}(window, ...)")
        if kind == "linear":
            if self.attention_dropout:
                raise ValueError("linear attention has no attention_dropout: its weights never exist one by one")
            if not self.scale_scores:
                raise ValueError("linear attention has no scores that scale_scores could apply to")

    def _check_positions(self):
        kind = check_choice("positions", str(self.positions), POSITIONS)
        if self.positions == "rope":
            object.__setattr__(self, "positions", Rope())
        if isinstance(self.attention, Choice):
            self.attention.check_in(self)
        if self.attention == "linear" and kind in ("relative", "rope", "alibi"):
            raise ValueError(f"linear attention has no scores that positions={kind!r} could act on")
        if kind == "sinusoidal":
            super()._check_positions()

    @property
    def head_widths(self) -> tuple[int, int]:
        """d_k and d_v, the features of a head's queries and keys, and of its values."""
        usual = self.d_model // self.num_heads
        return self.d_k or usual, self.d_v or usual

    @property
    def needs_causal_mask(self) -> bool:
        """As in the base class: the other kinds of attention know the order of the tokens."""
        return self.attention == "full"

    @property
    def has_final_norm(self) -> bool:
        """Whether a normalization follows the last layer of each stack."""
        return self.norm != "post" if self.final_norm is None else self.final_norm


def config_names() -> tuple[str, ...]:
    """The names that `named_config` knows."""
    return tuple(SIZES)


def named_config(name: str, vocab_size: int, **changes: Any) -> TransformerConfig:
    """The configuration called `name`: "tiny" (for the toy tasks, no dropout), "base" or "big" (paper table 3).

    `changes` replaces single fields. Raises ValueError for an unknown name, and as TransformerConfig does.
    """
    check_choice("configuration", name, config_names())
    return TransformerConfig(vocab_size=vocab_size, **{**SIZES[name], **changes})


def check_kv_heads(num_heads: int, num_kv_heads: int) -> None:
    """ValueError unless `num_kv_heads` divides `num_heads` into groups of equal size."""
    check_integer("num_kv_heads", num_kv_heads, least=1)
    if num_heads % num_kv_heads:
        raise ValueError(
            f"num_heads must be a multiple of num_kv_heads, "
            f"got num_heads = {num_heads} and num_kv_heads = {num_kv_heads}"
        )
