"""The sizes and switches of a Transformer and its family, the choices of each, and the paper's own sizes by name."""

import dataclasses
import math
from typing import Any

from minitransformer.checks import check_choice, check_heads, check_integer, check_kv_heads, check_number
from minitransformer.config.base import ModelConfig

NORMALIZATIONS = ("layer", "rms")
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "geglu", "geglu_tanh", "swiglu")
EXPERT_SCORES = ("softmax", "sigmoid")
SWITCHES = (
    "tie_embeddings",
    "tie_output",
    "bias",
    "scale_embeddings",
    "scale_scores",
    "scale_output",
    "share_layers",
    "renormalize_experts",
    "qk_norm",
)
ATTENTION = {
    "full": "every weight at once: the paper",
    "tiled": "the same function in tiles, whose memory grows with T instead of T^2: FlashAttention",
    "windowed": "keys nearer than `window`, and the first `num_global` tokens: Longformer, Mistral",
    "strided": "keys nearer than `window`, and every `stride`-th key: Sparse Transformer",
    "linear": "running sums instead of a softmax, for any length a state of the same size: linear attention",
}
POSITIONS = {
    "sinusoidal": "fixed sines and cosines are added to the input: the paper",
    "learned": "a learnt vector for each position is added to the input: GPT-2, BERT",
    "relative": "a learnt number for each distance is added to the scores: T5",
    "rope": "queries and keys are rotated by angles: LLaMA, GPT-NeoX",
    "alibi": "scores fall linearly with distance: BLOOM, MPT",
    "none": "only a causal mask tells the model where a token is",
}

ROPE_FIELDS = ("rope_base", "rope_factor", "rope_original_len", "window_rope_base")  # of positions "rope" alone


@dataclasses.dataclass(frozen=True)
class TransformerConfig(ModelConfig):
    """Sizes and switches of a model; the defaults are the paper's base model (table 3).

    All models use it: `gpt_config`, `bert_config` and `t5_config` set the fields to those models' choices. Raises
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
        attention: "full" as in the paper, "tiled", "windowed", "strided" or "linear"; see
            layers/since_2017/attention_kinds.py.
        window: of windowed and strided attention: a token sees the keys at a distance below it.
        stride: of strided attention: a token also sees every stride-th key.
        full_layers: of windowed attention: layers, counted from 0, that see everything all the same (Gemma 3).
        num_global: of windowed and strided attention: the first tokens, which see all and are seen by all.
        num_kv_heads: heads of keys and values, each for a group of the num_heads heads; None: one for each head.
        d_k: features of each head's queries and keys (table 3, row B); None: d_model / h.
        d_v: features of each head's values; None: d_model / h. If it is not d_k, attention must be full.
        qk_norm: RMSNorm for each head's queries and keys (Qwen3, Gemma 3); see layers/since_2017/qk_norm.py.
        norm: where the layers normalize: "post" as in the paper, "pre" or "sandwich"; see layers/residual.py.
        final_norm: a normalization after each stack; None: unless post-norm has done so.
        tie_embeddings: source, target and output share one matrix (section 3.4).
        tie_output: the output too; False: only source and target share one, as in T5 version 1.1.
        max_len: positions; the paper's sinusoids have no limit, but our table of them has one.
        positions: "sinusoidal", "learned", "relative", "rope", "alibi" or "none"; see layers/positions.py.
        rope_base: of positions "rope": see `functional.rotary_tables`, also for the next two.
        rope_factor: by which angles are divided for texts longer than those a model was trained on.
        rope_original_len: the length of those texts (Llama 3.1), or None if all angles are divided.
        window_rope_base: the base of layers with a window, which have no factor; None: as the others (Gemma 3: 10,000).
        normalization: "layer" as in the paper, or "rms" (T5, LLaMA); see layers/normalization.py.
        norm_eps: inside the root of every normalization; the paper does not give it.
        activation: "relu" as in the paper, "gelu", "geglu", "swiglu" and others; see layers/feed_forward.py.
        bias: in every Linear; T5 and LLaMA have none.
        qkv_bias: in the projection of self-attention; None: as `bias`. Qwen2 has no other biases than these.
        scale_embeddings: multiply by sqrt(d_model) (section 3.4); GPT, BERT and T5 do not.
        scale_scores: multiply by 1 / sqrt(d_k) (equation 1); T5 does not.
        scale_output: multiply by 1 / sqrt(d_model) before the logits: T5 with tied embeddings.
        share_layers: each stack is one layer, used num_layers times; its gradients add up: ALBERT (Lan et al. 2020).
        num_experts: networks of d_ff features in each layer, of which a router chooses some; None: one, the paper.
        experts_per_token: the number of experts that each token uses; see layers/since_2017/experts.py.
        renormalize_experts: the weights of a token's experts sum to 1 (Mixtral); False: the probabilities as they are.
        expert_scores: "softmax", or "sigmoid" with a bias that balances the experts: DeepSeek-V3.
        balance_weight: of the loss that keeps all experts in use, or of the gradient of their bias; 0: none.
        z_weight: of the loss that keeps the router's logits small (ST-MoE).
    """

    vocab_size: int
    d_model: int = 512
    num_heads: int = 8
    d_ff: int = 2048
    num_layers: int = 6
    dropout: float = 0.1
    attention_dropout: float = 0.0
    ffn_dropout: float = 0.0
    attention: str = "full"
    window: int | None = None
    stride: int | None = None
    full_layers: tuple[int, ...] | None = None
    num_global: int = 0
    num_kv_heads: int | None = None
    d_k: int | None = None
    d_v: int | None = None
    qk_norm: bool = False
    norm: str = "post"
    final_norm: bool | None = None
    tie_embeddings: bool = True
    tie_output: bool = True
    max_len: int = 1024
    positions: str = "sinusoidal"
    rope_base: float = 10000.0
    rope_factor: float = 1.0
    rope_original_len: int | None = None
    window_rope_base: float | None = None
    normalization: str = "layer"
    norm_eps: float = 1e-5
    activation: str = "relu"
    bias: bool = True
    qkv_bias: bool | None = None
    scale_embeddings: bool = True
    scale_scores: bool = True
    scale_output: bool = False
    share_layers: bool = False
    num_experts: int | None = None
    experts_per_token: int = 2
    renormalize_experts: bool = True
    expert_scores: str = "softmax"
    balance_weight: float = 0.01
    z_weight: float = 0.0

    def __post_init__(self) -> None:
        self._check(
            sizes=("vocab_size", "d_model", "num_heads", "d_ff", "num_layers", "max_len"),
            rates=("dropout", "attention_dropout", "ffn_dropout", "balance_weight", "z_weight"),
            switches=[*SWITCHES, *(name for name in ("final_norm", "qkv_bias") if getattr(self, name) is not None)],
        )
        self._check_attention()
        self._check_rope()
        self._check_norm()
        self._check_experts()
        check_choice("normalization", self.normalization, NORMALIZATIONS)
        check_choice("activation", self.activation, ACTIVATIONS)
        check_choice("positions", self.positions, POSITIONS)
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"d_model must be even for sinusoidal positions, got {self.d_model}")

    def _check_attention(self):
        kind = check_choice("attention", self.attention, ATTENTION)
        if self.num_kv_heads is not None:
            check_kv_heads(self.num_heads, self.num_kv_heads)
        if self.d_k is None or self.d_v is None:
            check_heads(self.d_model, self.num_heads)
        for name in ("d_k", "d_v"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), least=1)
        if self.head_widths[0] != self.head_widths[1] and kind != "full":
            raise ValueError(f"attention={kind!r} needs d_k and d_v to be equal, got {self.head_widths}")
        used = {"windowed": ("window", "num_global"), "strided": ("window", "stride", "num_global")}.get(kind, ())
        for name in ("window", "stride"):
            if (getattr(self, name) is not None) != (name in used):
                raise ValueError(
                    f"attention={kind!r} {'needs' if name in used else 'has no'} {name}, got {getattr(self, name)}"
                )
            if name in used:
                check_integer(name, getattr(self, name), least=1)
        if check_integer("num_global", self.num_global, least=0) and "num_global" not in used:
            raise ValueError(f"attention={kind!r} has no num_global, got {self.num_global}")
        if not isinstance(self.full_layers, tuple | list | None):
            raise TypeError(f"full_layers must be a list of layers or None, got {self.full_layers!r}")
        object.__setattr__(self, "full_layers", tuple(self.full_layers or ()) or None)  # in files it is a list
        for layer in self.full_layers or ():
            if check_integer("full_layers", layer, least=0) >= self.num_layers or kind != "windowed":
                raise ValueError(f"attention={kind!r} has no full_layers in {self.num_layers}, got {self.full_layers}")
        if self.full_layers and self.share_layers:
            raise ValueError("full_layers differ from the others, so share_layers is impossible")
        if kind == "linear":
            if self.attention_dropout:
                raise ValueError("linear attention has no attention_dropout: its weights never exist one by one")
            if self.positions in ("relative", "rope", "alibi"):
                raise ValueError(f"linear attention has no scores that positions={self.positions!r} could act on")
            if not self.scale_scores:
                raise ValueError("linear attention has no scores that scale_scores could apply to")

    def _check_experts(self):
        if self.num_experts is not None:
            check_integer("num_experts", self.num_experts, least=1)
            if check_integer("experts_per_token", self.experts_per_token, least=1) > self.num_experts:
                raise ValueError(f"{self.num_experts} experts cannot be {self.experts_per_token} experts_per_token")
        check_choice("expert_scores", self.expert_scores, EXPERT_SCORES)

    def _check_rope(self):
        for name in ("rope_base", "rope_factor", "window_rope_base"):
            value = getattr(self, name)
            if name == "window_rope_base" and value is not None and self.attention != "windowed":
                raise ValueError(f"attention={self.attention!r} has no window_rope_base, got {value}")
            if value is not None and not 1.0 <= check_number(name, value) < math.inf:
                raise ValueError(f"{name} must be at least 1 and finite, got {value}")
        if self.rope_original_len is not None:
            check_integer("rope_original_len", self.rope_original_len, least=1)
        for name in ROPE_FIELDS:
            value = getattr(self, name)
            if self.positions != "rope" and value != getattr(TransformerConfig, name):
                raise ValueError(f"positions={self.positions!r} has no {name}, got {value}")

    def of_layer(self, layer: int) -> "TransformerConfig":
        """The configuration of one layer, counted from 0: this one, unless its layers differ."""
        if layer in (self.full_layers or ()):
            none = dict.fromkeys(("window", "full_layers", "window_rope_base"))
            return dataclasses.replace(self, attention="tiled", num_global=0, **none)  # type: ignore[arg-type]
        if self.window_rope_base is None:
            return self
        rope = {"rope_base": self.window_rope_base, "rope_factor": 1.0, "rope_original_len": None}
        return dataclasses.replace(self, **rope)  # type: ignore[arg-type]

    @property
    def rotary(self) -> tuple[float, float, int | None]:
        """The base, factor and original_len of RoPE."""
        return self.rope_base, self.rope_factor, self.rope_original_len

    @property
    def head_widths(self) -> tuple[int, int]:
        """d_k and d_v, the features of a head's queries and keys, and of its values."""
        usual = self.d_model // self.num_heads
        return self.d_k or usual, self.d_v or usual

    @property
    def needs_causal_mask(self) -> bool:
        """Whether a model must give attention a causal mask; the other kinds know the order of the tokens."""
        return self.attention == "full"

    def least_weights(self) -> dict[str, int]:
        """The embeddings, and the matrices of all layers without those of attention."""
        matrix, N = self.d_ff * self.d_model * (self.num_experts or 1), self.num_layers
        name = "d_ff * d_model" + " * num_experts" * (self.num_experts is not None)
        layers = {name: matrix, "num_layers": N}  # sharing has no bound; nobody uses a layer so often
        layers = layers if self.share_layers else {f"{name} * num_layers": matrix * N}
        return {"vocab_size * d_model": self.vocab_size * self.d_model, **layers}

    def table_sizes(self) -> dict[str, int]:
        """The sinusoids."""
        return {"max_len * d_model": self.max_len * self.d_model}

    @property
    def has_final_norm(self) -> bool:
        """Whether a normalisation follows the last layer of each stack."""
        return self.norm != "post" if self.final_norm is None else self.final_norm

    @property
    def has_tied_output(self) -> bool:
        """Whether the output projection uses the matrix of the (source) embeddings."""
        return self.tie_embeddings and self.tie_output


_NAMED: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 64, "num_heads": 4, "d_ff": 256, "num_layers": 2, "max_len": 128, "dropout": 0.0},
    "base": {},
    "big": {"d_model": 1024, "num_heads": 16, "d_ff": 4096, "dropout": 0.3},
}


def config_names() -> tuple[str, ...]:
    """The names that `named_config` knows."""
    return tuple(_NAMED)


def named_config(name: str, vocab_size: int, **changes: Any) -> TransformerConfig:
    """The configuration called `name`: "tiny" (for the toy tasks, no dropout), "base" or "big" (paper table 3).

    `changes` replaces single fields. Raises ValueError for an unknown name, and as TransformerConfig does.
    """
    check_choice("configuration", name, config_names())
    return TransformerConfig(vocab_size=vocab_size, **{**_NAMED[name], **changes})
