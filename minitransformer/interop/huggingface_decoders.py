"""Today's decoders of Hugging Face, Llama, Mistral, Qwen2, Qwen3, Gemma 3, Mixtral and Qwen3-MoE: settings and weights.

All are a GPT with RMSNorm, RoPE, a gate in the feed-forward network and grouped keys. They differ in these:

    Llama        RoPE stretched in its own way (3.1)
    Mistral      a window in all layers
    Qwen2        biases of q, k and v; a window in the upper layers, if at all
    Qwen3        queries and keys normalized, with heads of any width
    Gemma 3      as Qwen3; norms also after sub-layers, gains stored as 1 less, scaled embeddings, two kinds of layers
    Mixtral      experts instead of one network, whose weights sum to 1
    Qwen3-MoE    as Qwen3, with experts, whose weights are probabilities or sum to 1
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from minitransformer.checks import check_choice, check_integer, check_number
from minitransformer.config import Experts, Rope, TransformerConfig, Windowed
from minitransformer.interop.huggingface_tables import Source, Tensor, source
from minitransformer.models.since_2017.gpt import gpt_config

CAPS = ("final_logit_softcapping", "attn_logit_softcapping")
LLAMA_USUAL: dict[str, Any] = {"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008}
LLAMA_USUAL |= {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": None, "head_dim": None}
LLAMA_USUAL |= {"hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "sliding_window": None}
LLAMA_USUAL |= {"attention_bias": False, "attention_dropout": 0.0, "mlp_bias": False, "tie_word_embeddings": False}
LLAMA_USUAL |= {"pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2}
MISTRAL_USUAL = {**LLAMA_USUAL, "intermediate_size": 14336, "num_key_value_heads": 8, "sliding_window": 4096}
MISTRAL_USUAL |= {"max_position_embeddings": 131072}
MIXTRAL_USUAL = {**MISTRAL_USUAL, "sliding_window": None, "rms_norm_eps": 1e-5, "router_jitter_noise": 0.0}
MIXTRAL_USUAL |= {"num_experts_per_tok": 2, "num_local_experts": 8}
QWEN2_USUAL = {**LLAMA_USUAL, "vocab_size": 151936, "intermediate_size": 22016, "num_key_value_heads": 32}
QWEN2_USUAL |= {"max_position_embeddings": 32768, "use_sliding_window": False, "max_window_layers": 28}
QWEN2_USUAL |= {"bos_token_id": None, "eos_token_id": None}
QWEN3_USUAL = {**QWEN2_USUAL, "head_dim": 128}
QWEN3_MOE_USUAL = {**QWEN2_USUAL, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24}
QWEN3_MOE_USUAL |= {"num_key_value_heads": 4, "moe_intermediate_size": 768, "decoder_sparse_step": 1}
QWEN3_MOE_USUAL |= {"num_experts_per_tok": 8, "num_local_experts": 128, "norm_topk_prob": False, "mlp_only_layers": []}
GEMMA3_USUAL = {**LLAMA_USUAL, "vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216}
GEMMA3_USUAL |= {"num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256}
GEMMA3_USUAL |= {"hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 131072, "sliding_window": 4096}
GEMMA3_USUAL |= {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 1}
GEMMA3_USUAL |= {"tie_word_embeddings": True, "query_pre_attn_scalar": 256, "use_bidirectional_attention": False}
GEMMA3_USUAL |= dict.fromkeys(CAPS)
USUAL = {
    "llama": LLAMA_USUAL,
    "mistral": MISTRAL_USUAL,
    "qwen2": QWEN2_USUAL,
    "qwen3": QWEN3_USUAL,
    "gemma3_text": GEMMA3_USUAL,
    "mixtral": MIXTRAL_USUAL,
    "qwen3_moe": QWEN3_MOE_USUAL,
}
ALIASES = {kind: {"num_experts": "num_local_experts"} for kind in ("mixtral", "qwen3_moe")}
NEEDED: dict[str, dict[str, Any]] = {kind: {"attention_bias": False, "mlp_bias": False} for kind in USUAL}
NEEDED["qwen3_moe"] |= {"decoder_sparse_step": 1, "mlp_only_layers": []}
NEEDED["mixtral"] |= {"router_jitter_noise": 0.0}
NEEDED["gemma3_text"] |= dict.fromkeys(CAPS)
NEEDED["gemma3_text"] |= {"use_bidirectional_attention": False}
OPTIONAL = ("num_key_value_heads", "head_dim", "sliding_window", *CAPS)  # fields that may be null
QK_NORM, EXPERTS = ("qwen3", "qwen3_moe", "gemma3_text"), ("mixtral", "qwen3_moe")
ACTIVATIONS = {"silu": "swiglu", "swish": "swiglu", "gelu": "geglu", "gelu_pytorch_tanh": "geglu_tanh"}
SLIDING, FULL = "sliding_attention", "full_attention"


def decoder_config(kind: str, given: Mapping[str, Any], changes: Mapping[str, Any]) -> TransformerConfig:
    """Our configuration of a model of this kind, from theirs with all fields (`given`), with `changes` to ours."""
    H, D = given["num_attention_heads"], given["head_dim"]
    D = given["hidden_size"] // H if D is None else D
    is_gemma = kind == "gemma3_text"
    if is_gemma and given["query_pre_attn_scalar"] != D:
        raise ValueError(
            f"our model can only have query_pre_attn_scalar = head_dim = {D}, but this one has "
            f"{given['query_pre_attn_scalar']}"
        )
    function = "hidden_activation" if is_gemma else "hidden_act"
    choices: dict[str, Any] = {
        "d_model": given["hidden_size"],
        "num_heads": H,
        "num_kv_heads": given["num_key_value_heads"] or H,
        "d_k": D,
        "d_v": D,
        "d_ff": given["moe_intermediate_size" if kind == "qwen3_moe" else "intermediate_size"],
        "num_layers": given["num_hidden_layers"],
        "max_len": given["max_position_embeddings"],
        "dropout": 0.0,
        "attention_dropout": given["attention_dropout"],
        "tie_embeddings": given["tie_word_embeddings"],
        "norm": "sandwich" if is_gemma else "pre",
        "normalization": "rms",
        "norm_eps": given["rms_norm_eps"],
        "activation": ACTIVATIONS[check_choice(function, given[function], ACTIVATIONS)],
        "bias": False,
        "qkv_bias": True if kind == "qwen2" else None,
        "qk_norm": kind in QK_NORM,
        "scale_embeddings": is_gemma,
    }
    if kind in EXPERTS:
        count, per_token = given["num_local_experts"], given["num_experts_per_tok"]
        choices["experts"] = Experts(count, per_token, given.get("norm_topk_prob", True), balance=0.0)
    return gpt_config(given["vocab_size"], **{**choices, **_kinds_of_layers(kind, given), **changes})


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
    mlp.down_proj                    (C, F)      feed_forward.sublayer.contract
    mlp.gate                         (E, C)      feed_forward.sublayer.router; Mixtral: block_sparse_moe.gate
    mlp.experts.e.gate_proj ...                  feed_forward.sublayer.experts.e.expand, contract; Mixtral: w1, w3, w2

    Outside the layers embed_tokens, norm and lm_head are embedding.tokens.E, blocks.norm and, if not tied, output.E.
    """
    C, V, is_gemma = config.d_model, config.vocab_size, kind == "gemma3_text"

    def gain(name: str, shape: int = C, head: int = 0) -> Source:
        return Source((Tensor(f"{name}.weight", (shape,), False, head, float(is_gemma)),))

    table = {"embedding.tokens.E": source(["embed_tokens.weight"], (V, C)), "blocks.norm.gamma": gain("norm")}
    for i in range(config.num_layers):
        theirs, attention, network = (
            f"layers.{i}",
            f"blocks.layers.{i}.self_attention",
            f"blocks.layers.{i}.feed_forward",
        )
        after_attention = f"{attention}.norm_after" if is_gemma else f"{network}.norm"
        table[f"{attention}.norm.gamma"] = gain(f"{theirs}.input_layernorm")
        table[f"{after_attention}.gamma"] = gain(f"{theirs}.post_attention_layernorm")
        if is_gemma:
            table[f"{network}.norm.gamma"] = gain(f"{theirs}.pre_feedforward_layernorm")
            table[f"{network}.norm_after.gamma"] = gain(f"{theirs}.post_feedforward_layernorm")
        table |= _attention(config, f"{attention}.sublayer", f"{theirs}.self_attn", gain)
        table |= _network(config, f"{network}.sublayer", theirs, kind)
    if not config.has_tied_output:
        table["output.E"] = source(["lm_head.weight"], (V, C))
    return table


def _attention(config, ours, theirs, gain):
    C, D, H, G = config.d_model, config.head_widths[0], config.num_heads, config.num_kv_heads or config.num_heads
    parts = (("q_proj", H, D), ("k_proj", G, D), ("v_proj", G, 0))
    qkv = f"{ours}.qkv"
    table = {}
    if config.qk_norm:
        table |= {f"{qkv}.{name}.gamma": gain(f"{theirs}.{name}", D, D) for name in ("q_norm", "k_norm")}
        qkv = f"{qkv}.projection"
    table[f"{qkv}.W"] = Source(
        tuple(Tensor(f"{theirs}.{name}.weight", (heads * D, C), True, head) for name, heads, head in parts)
    )
    if config.qkv_bias:
        table[f"{qkv}.b"] = Source(
            tuple(Tensor(f"{theirs}.{name}.bias", (heads * D,), False, head) for name, heads, head in parts)
        )
    return table | {f"{ours}.output.W": source([f"{theirs}.o_proj.weight"], (C, H * D), True)}


def _network(config, ours, theirs, kind):
    C, F = config.d_model, config.d_ff
    gate, up, down = ("w1", "w3", "w2") if kind == "mixtral" else ("gate_proj", "up_proj", "down_proj")

    def one(ours, theirs):
        expand = source([f"{theirs}.{name}.weight" for name in (gate, up)], (F, C), True)
        return {f"{ours}.expand.W": expand, f"{ours}.contract.W": source([f"{theirs}.{down}.weight"], (C, F), True)}

    theirs = f"{theirs}.{'block_sparse_moe' if kind == 'mixtral' else 'mlp'}"
    if not config.experts:
        return one(ours, theirs)
    table = {f"{ours}.router.W": source([f"{theirs}.gate.weight"], (config.experts.count, C), True)}
    for e in range(config.experts.count):
        table |= one(f"{ours}.experts.{e}", f"{theirs}.experts.{e}")
    return table
