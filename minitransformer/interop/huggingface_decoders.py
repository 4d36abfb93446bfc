"""Today's decoders of Hugging Face, from Llama to Qwen3-MoE and Starcoder2: settings and weights.

All are a GPT with RoPE and grouped keys, and except for the last with RMSNorm and a gate in the feed-forward network:

    Llama        RoPE stretched in its own way (3.1)
    Mistral      a window in all layers
    Qwen2        biases of q, k and v; a window in the upper layers, if at all
    Qwen3        queries and keys normalized, with heads of any width
    Gemma 3      as Qwen3; norms also after sub-layers, gains stored as 1 less, scaled embeddings, two kinds of layers
    Mixtral      experts instead of one network, whose weights sum to 1
    Qwen3-MoE    as Qwen3, with experts, whose weights are probabilities or sum to 1
    Starcoder2   as GPT-2 with RoPE: LayerNorm, biases, no gate; what `train text` trains
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from minitransformer.checks import check_choice, check_integer, check_number
from minitransformer.config import Experts, Rope, TransformerConfig, Windowed
from minitransformer.interop.huggingface_tables import ONLY, Field, Source, Tensor, source

CAPS = ("final_logit_softcapping", "attn_logit_softcapping")
SLIDING, FULL = "sliding_attention", "full_attention"


def _like(fields: dict[str, Field], **usual: Any) -> dict[str, Field]:
    """Fields as in another model, with other usual values, and further fields that have more to them than a value."""
    return fields | {name: fields.get(name, Field(None))._replace(usual=value) for name, value in usual.items()}


LLAMA = {
    "vocab_size": Field(32000, "vocab_size"),
    "hidden_size": Field(4096, "d_model"),
    "intermediate_size": Field(11008, "d_ff"),
    "num_hidden_layers": Field(32, "num_layers"),
    "num_attention_heads": Field(32, "num_heads"),
    "num_key_value_heads": Field(None, "num_kv_heads"),
    "head_dim": Field(None, "d_k"),
    "hidden_act": Field("silu", "activation"),
    "max_position_embeddings": Field(2048, "max_len"),
    "rms_norm_eps": Field(1e-6, "norm_eps"),
    "sliding_window": Field(None),
    "attention_bias": Field(False, ONLY),
    "attention_dropout": Field(0.0, "attention_dropout"),
    "mlp_bias": Field(False, ONLY),
    "tie_word_embeddings": Field(False, "tie_embeddings"),
    "pad_token_id": Field(None),
    "bos_token_id": Field(1),
    "eos_token_id": Field(2),
}
MISTRAL = _like(LLAMA, intermediate_size=14336, num_key_value_heads=8, sliding_window=4096)
MISTRAL = _like(MISTRAL, max_position_embeddings=131072)
MIXTRAL = _like(MISTRAL, sliding_window=None, rms_norm_eps=1e-5, num_experts_per_tok=2, num_local_experts=8)
MIXTRAL |= {"router_jitter_noise": Field(0.0, ONLY)}
QWEN2 = _like(LLAMA, vocab_size=151936, intermediate_size=22016, num_key_value_heads=32, max_position_embeddings=32768)
QWEN2 = _like(QWEN2, use_sliding_window=False, max_window_layers=28, bos_token_id=None, eos_token_id=None)
QWEN3_MOE = _like(QWEN2, hidden_size=2048, num_hidden_layers=24, num_key_value_heads=4)
QWEN3_MOE = _like(QWEN3_MOE, num_experts_per_tok=8, num_local_experts=128, norm_topk_prob=False)
QWEN3_MOE |= {"intermediate_size": Field(6144), "moe_intermediate_size": Field(768, "d_ff")}
QWEN3_MOE |= {"decoder_sparse_step": Field(1, ONLY), "mlp_only_layers": Field([], ONLY)}
GEMMA3 = _like(LLAMA, vocab_size=262208, hidden_size=2304, intermediate_size=9216, num_hidden_layers=26)
GEMMA3 = _like(GEMMA3, num_attention_heads=8, num_key_value_heads=4, head_dim=256, max_position_embeddings=131072)
GEMMA3 = _like(GEMMA3, sliding_window=4096, pad_token_id=0, bos_token_id=2, eos_token_id=1, tie_word_embeddings=True)
GEMMA3 |= {"hidden_act": Field("silu"), "hidden_activation": Field("gelu_pytorch_tanh", "activation")}
GEMMA3 |= {"query_pre_attn_scalar": Field(256), "use_bidirectional_attention": Field(False, ONLY)}
GEMMA3 |= dict.fromkeys(CAPS, Field(None, ONLY))
STARCODER2 = _like(LLAMA, vocab_size=49152, hidden_size=3072, intermediate_size=12288, num_hidden_layers=30)
STARCODER2 = _like(STARCODER2, num_attention_heads=24, num_key_value_heads=2, hidden_act="gelu_pytorch_tanh")
STARCODER2 = _like(STARCODER2, max_position_embeddings=4096, bos_token_id=50256, eos_token_id=50256)
STARCODER2 = _like(STARCODER2, tie_word_embeddings=True)
STARCODER2 |= {"norm_epsilon": Field(1e-5, "norm_eps"), "rms_norm_eps": Field(1e-6), "use_bias": Field(True, "bias")}
STARCODER2 |= {"residual_dropout": Field(0.0, "dropout"), "embedding_dropout": Field(0.0, "dropout")}
FIELDS = {
    "llama": LLAMA,
    "mistral": MISTRAL,
    "qwen2": QWEN2,
    "qwen3": _like(QWEN2, head_dim=128),
    "gemma3_text": GEMMA3,
    "mixtral": MIXTRAL,
    "qwen3_moe": QWEN3_MOE,
    "starcoder2": STARCODER2,
}
ALIASES = {kind: {"num_experts": "num_local_experts"} for kind in ("mixtral", "qwen3_moe")}
OPTIONAL = ("num_key_value_heads", "head_dim", "sliding_window", *CAPS)  # fields that may be null
QK_NORM, EXPERTS = ("qwen3", "qwen3_moe", "gemma3_text"), ("mixtral", "qwen3_moe")
KINDS_OF_LAYERS = ("qwen2", "qwen3", "gemma3_text")  # whose layers may differ; in others all have a window, or none


def decoder_to_ours(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What is needed of our configuration besides the fields that have one of theirs (`given`, all of them)."""
    H, D = given["num_attention_heads"], given["head_dim"]
    D = given["hidden_size"] // H if D is None else D
    is_gemma, is_rms = kind == "gemma3_text", kind != "starcoder2"
    if is_gemma and given["query_pre_attn_scalar"] != D:
        raise ValueError(
            f"our model can only have query_pre_attn_scalar = head_dim = {D}, but this one has "
            f"{given['query_pre_attn_scalar']}"
        )
    choices: dict[str, Any] = {
        "num_kv_heads": given["num_key_value_heads"] or H,
        "d_k": D,
        "d_v": D,
        "norm": "sandwich" if is_gemma else "pre",
        "qkv_bias": True if kind == "qwen2" else None,
        "qk_norm": kind in QK_NORM,
        "scale_embeddings": is_gemma,
    }
    if is_rms:
        choices |= {"normalization": "rms", "bias": False, "dropout": 0.0}
    if kind in EXPERTS:
        count, per_token = given["num_local_experts"], given["num_experts_per_tok"]
        choices["experts"] = Experts(count, per_token, given.get("norm_topk_prob", True), balance=0.0)
    return {**choices, **_kinds_of_layers(kind, given)}


def decoder_to_theirs(kind: str, config: TransformerConfig) -> dict[str, Any]:
    """The reverse of `decoder_to_ours`, as far as their model of this kind has the parts that our `config` asks for."""
    given: dict[str, Any] = {"query_pre_attn_scalar": config.d_k}
    angles, N, is_gemma = config.positions, config.num_layers, kind == "gemma3_text"
    windowed = config.attention if isinstance(config.attention, Windowed) else None
    if windowed or not is_gemma:
        given |= {"sliding_window": windowed and windowed.window, "use_sliding_window": windowed is not None}
    if kind in KINDS_OF_LAYERS:
        full = windowed.full_layers if windowed else range(N)
        given["layer_types"] = [FULL if layer in full else SLIDING for layer in range(N)]
    if isinstance(angles, Rope):
        local = Rope(windowed.rope_base) if windowed and windowed.rope_base else angles
        both = {FULL: _their_angles(angles), SLIDING: _their_angles(local)}
        given["rope_parameters"] = both if is_gemma else both[FULL]
    if config.experts:
        given["num_experts" if kind == "qwen3_moe" else "num_local_experts"] = config.experts.count
        given |= {"num_experts_per_tok": config.experts.per_token, "norm_topk_prob": config.experts.renormalize}
    known = {*FIELDS[kind], "num_experts", "layer_types", "rope_parameters"}
    return {name: value for name, value in given.items() if name in known}


def _kinds_of_layers(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Which layers have a window, and the angles of RoPE in both kinds."""
    N, window = given["num_hidden_layers"], given["sliding_window"]
    if kind == "llama" or not given.get("use_sliding_window", True):
        window = None
    types = given.get("layer_types")
    if types is None:  # as older files leave them out
        sliding = [window is not None] * N
        if kind in ("qwen2", "qwen3"):
            sliding = [window is not None and i >= given["max_window_layers"] for i in range(N)]
        if kind == "gemma3_text":
            every = check_integer("sliding_window_pattern", given.get("sliding_window_pattern", 6), least=1)
            sliding = [(i + 1) % every > 0 for i in range(N)]
        types = [SLIDING if each else FULL for each in sliding]
    if not isinstance(types, list) or len(types) != N:
        raise ValueError(f"layer_types must be a list of {N} kinds, one for each layer, got {types!r}")
    for each in types:
        check_choice("layer_types", each, (SLIDING, FULL))
    rope, older = given.get("rope_parameters") or {}, given.get("rope_scaling") or {}
    for name, each in (("rope_parameters", rope), ("rope_scaling", older)):
        if not isinstance(each, dict):
            raise TypeError(f"{name} must be a dictionary, got {each!r}")
    by_kind, is_gemma = not rope.keys().isdisjoint((SLIDING, FULL)), kind == "gemma3_text"
    usual = 1e6 if kind in ("gemma3_text", "mixtral") else 10000.0
    angles = in_window = _angles(rope.get(FULL) or {} if by_kind else rope, older, given.get("rope_theta"), usual)
    if by_kind or is_gemma:
        local = given.get("rope_local_base_freq") if is_gemma else given.get("rope_theta")
        in_window = _angles(rope.get(SLIDING) or {}, {}, local, 10000.0)
    if SLIDING not in types:
        return {"positions": angles}
    check_integer("sliding_window", window, least=1)
    full = tuple(i for i, each in enumerate(types) if each == FULL)
    if not full or in_window == angles:
        return {"attention": Windowed(window, full_layers=full), "positions": in_window}
    if in_window != Rope(in_window.base):
        raise ValueError("our model cannot have stretched angles of RoPE in layers with a window, as this one has")
    return {"attention": Windowed(window, full_layers=full, rope_base=in_window.base), "positions": angles}


def _angles(rope: dict[str, Any], older: dict[str, Any], theta: Any, usual: float) -> Rope:
    """Our RoPE, from their rope_parameters, or from their older rope_scaling and rope_theta.

    If a file has both, they must agree: their library reads rope_scaling then, and ValueError names the two.
    """
    given = [each for each in (rope, older) if each] or [{}]
    bases = [each["rope_theta"] for each in given if "rope_theta" in each] + [theta] * (theta is not None)
    fields = [_stretched(each, check_number("rope_theta", base)) for each in given for base in bases or [usual]]
    if any(each != fields[0] for each in fields):
        raise ValueError(
            f"rope_parameters, rope_scaling and rope_theta must agree, but this model has {rope}, {older} and {theta}"
        )
    return fields[0]


def _stretched(scaling, theta):
    form = scaling.get("rope_type", scaling.get("type", "default"))
    if scaling.get("partial_rotary_factor", 1.0) != 1.0:
        raise ValueError(f"our RoPE turns all features, but partial_rotary_factor = {scaling['partial_rotary_factor']}")
    if form == "default":
        return Rope(theta)
    check_choice("rope_type", form, ("default", "linear", "llama3"))
    factor = check_number("factor", scaling.get("factor"))
    if form == "linear":
        return Rope(theta, factor)
    for name, needed in (("low_freq_factor", 1.0), ("high_freq_factor", 4.0)):
        if scaling.get(name) != needed:
            raise ValueError(f"our model can only have {name} = {needed:g}, but this one has {scaling.get(name)!r}")
    return Rope(theta, factor, scaling.get("original_max_position_embeddings"))


def _their_angles(rope: Rope) -> dict[str, Any]:
    """Their rope_parameters: the reverse of `_stretched`."""
    if rope.factor == 1.0:
        return {"rope_type": "default", "rope_theta": rope.base}
    linear = {"rope_type": "linear", "rope_theta": rope.base, "factor": rope.factor}
    if rope.original_len is None:
        return linear
    frequencies = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    return {**linear, "rope_type": "llama3", **frequencies, "original_max_position_embeddings": rope.original_len}


def in_our_order(x: np.ndarray, D: int) -> np.ndarray:
    """The last axis of x (..., H D), a weight, a bias or a gain of queries or keys, as our RoPE pairs the features.

    Theirs turns the features i and i + D/2 of a head together, ours 2i and 2i + 1: ours is (0, D/2, 1, D/2 + 1, ...).
    """
    return x.reshape(*x.shape[:-1], -1, 2, D // 2).swapaxes(-1, -2).reshape(x.shape)


def in_their_order(x: np.ndarray, D: int) -> np.ndarray:
    """The inverse of `in_our_order`."""
    return x.reshape(*x.shape[:-1], -1, D // 2, 2).swapaxes(-1, -2).reshape(x.shape)


def decoder_kind(config: TransformerConfig) -> str:
    """Which of their decoders has the weights of a GPT with RoPE; Llama's names are also those of the other kinds."""
    if config.experts:
        return "qwen3_moe" if config.qk_norm else "mixtral"
    return "gemma3_text" if config.norm == "sandwich" else "llama"


def decoder_table(config: TransformerConfig, kind: str) -> dict[str, Source]:
    """{our name: Source} for a model of this kind, without the prefix "model." that all names but lm_head have.

    theirs, in layers.i                          ours, in blocks.layers.i
    input_layernorm                  (C,)        self_attention.norm
    self_attn.q_proj, k_proj, v_proj             self_attention.sublayer.qkv, or qkv.projection with QK-norm
    self_attn.q_norm, k_norm         (D,)        self_attention.sublayer.qkv.q_norm, k_norm
    self_attn.o_proj                 (C, H D)    self_attention.sublayer.output
    post_attention_layernorm         (C,)        feed_forward.norm; Gemma: self_attention.norm_after
    pre_feedforward_layernorm        (C,)        feed_forward.norm (Gemma)
    post_feedforward_layernorm       (C,)        feed_forward.norm_after (Gemma)
    mlp.gate_proj, up_proj           (F, C)      feed_forward.sublayer.expand
    mlp.down_proj                    (C, F)      feed_forward.sublayer.contract; Starcoder2: mlp.c_fc, c_proj
    mlp.gate                         (E, C)      feed_forward.sublayer.router; Mixtral: block_sparse_moe.gate
    mlp.experts.e.gate_proj ...                  feed_forward.sublayer.experts.e.expand, contract; Mixtral: w1, w3, w2

    Outside the layers embed_tokens, norm and lm_head are embedding.tokens.E, blocks.norm and, if not tied, output.E.
    """
    C, V, is_gemma = config.d_model, config.vocab_size, kind == "gemma3_text"

    def norm(ours: str, theirs: str, shape: int = C, head: int = 0) -> dict[str, Source]:
        gain = {f"{ours}.gamma": Source((Tensor(f"{theirs}.weight", (shape,), False, head, float(is_gemma)),))}
        has_shift = config.normalization == "layer"
        return gain | {f"{ours}.beta": source([f"{theirs}.bias"], (shape,))} if has_shift else gain

    table = {"embedding.tokens.E": source(["embed_tokens.weight"], (V, C)), **norm("blocks.norm", "norm")}
    for i in range(config.num_layers):
        theirs, attention, network = (
            f"layers.{i}",
            f"blocks.layers.{i}.self_attention",
            f"blocks.layers.{i}.feed_forward",
        )
        after_attention = f"{attention}.norm_after" if is_gemma else f"{network}.norm"
        table |= norm(f"{attention}.norm", f"{theirs}.input_layernorm")
        table |= norm(after_attention, f"{theirs}.post_attention_layernorm")
        if is_gemma:
            table |= norm(f"{network}.norm", f"{theirs}.pre_feedforward_layernorm")
            table |= norm(f"{network}.norm_after", f"{theirs}.post_feedforward_layernorm")
        table |= _attention(config, f"{attention}.sublayer", f"{theirs}.self_attn", norm)
        table |= _network(config, f"{network}.sublayer", theirs, kind)
    if not config.has_tied_output:
        table["output.E"] = source(["lm_head.weight"], (V, C))
    return table


def _attention(config, ours, theirs, norm):
    C, D, H, G = config.d_model, config.head_widths[0], config.num_heads, config.num_kv_heads or config.num_heads
    parts = (("q_proj", H, D), ("k_proj", G, D), ("v_proj", G, 0))
    qkv = f"{ours}.qkv"
    table = {}
    if config.qk_norm:
        table |= norm(f"{qkv}.q_norm", f"{theirs}.q_norm", D, D) | norm(f"{qkv}.k_norm", f"{theirs}.k_norm", D, D)
        qkv = f"{qkv}.projection"
    table[f"{qkv}.W"] = Source(
        tuple(Tensor(f"{theirs}.{name}.weight", (heads * D, C), True, head) for name, heads, head in parts)
    )
    if config.bias if config.qkv_bias is None else config.qkv_bias:
        table[f"{qkv}.b"] = Source(
            tuple(Tensor(f"{theirs}.{name}.bias", (heads * D,), False, head) for name, heads, head in parts)
        )
    return table | _linear(config, f"{ours}.output", [f"{theirs}.o_proj"], (C, H * D))


def _linear(config, ours, names, shape):
    """One or more of their Linears, side by side."""
    table = {f"{ours}.W": source([f"{name}.weight" for name in names], shape, True)}
    return table | ({f"{ours}.b": source([f"{name}.bias" for name in names], shape[:1])} if config.bias else {})


def _network(config, ours, theirs, kind):
    C, F = config.d_model, config.d_ff
    into, out_of = {"mixtral": (["w1", "w3"], "w2"), "starcoder2": (["c_fc"], "c_proj")}.get(
        kind, (["gate_proj", "up_proj"], "down_proj")
    )

    def one(ours, theirs):
        expand = _linear(config, f"{ours}.expand", [f"{theirs}.{name}" for name in into], (F, C))
        return expand | _linear(config, f"{ours}.contract", [f"{theirs}.{out_of}"], (C, F))

    theirs = f"{theirs}.{'block_sparse_moe' if kind == 'mixtral' else 'mlp'}"
    if not config.experts:
        return one(ours, theirs)
    table = {f"{ours}.router.W": source([f"{theirs}.gate.weight"], (config.experts.count, C), True)}
    for e in range(config.experts.count):
        table |= one(f"{ours}.experts.{e}", f"{theirs}.experts.{e}")
    return table
