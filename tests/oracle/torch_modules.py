"""PyTorch's own attention, blocks and Transformer, run with our parameters instead of theirs.

Every function takes `torch` itself, so that this file can be imported without it, and `p`, our parameters as tensors
by our names. Written apart from `minitransformer.interop.pytorch`, which has the same correspondence for arrays, so
that each checks the other.

A boolean mask means the opposite in these modules: True = ignore, where ours says True = may attend. They also take
padding and the causal mask apart, where we combine them into one.
"""

import warnings


def under(prefix, p):
    """The parameters whose name starts with `prefix`, by the rest of their name."""
    return {name.removeprefix(prefix): tensor for name, tensor in p.items() if name.startswith(prefix)}


def put_under(prefix, weights):
    """The opposite: `prefix` before every name."""
    return {prefix + name: tensor for name, tensor in weights.items()}


def linear_weights(p):
    """Our Linear as torch.nn.Linear's tensors."""
    return {"weight": p["W"].T, "bias": p["b"]}


def norm_weights(p):
    """Our LayerNorm as torch.nn.LayerNorm's tensors."""
    return {"weight": p["gamma"], "bias": p["beta"]}


def self_attention_weights(torch, p):
    """Our SelfAttention as torch.nn.MultiheadAttention's tensors."""
    output = put_under("out_proj.", linear_weights(under("output.", p)))
    return {"in_proj_weight": p["qkv.W"].T, "in_proj_bias": p["qkv.b"], **output}


def cross_attention_weights(torch, p):
    """Our CrossAttention as torch.nn.MultiheadAttention's tensors."""
    W = torch.cat([p["q.W"], p["kv.W"]], dim=1)  # (C, 3C)
    b = torch.cat([p["q.b"], p["kv.b"]])
    return {"in_proj_weight": W.T, "in_proj_bias": b, **put_under("out_proj.", linear_weights(under("output.", p)))}


def encoder_layer_weights(torch, p):
    """Our EncoderLayer as torch.nn.TransformerEncoderLayer's tensors."""
    return {
        **put_under("self_attn.", self_attention_weights(torch, under("self_attention.sublayer.", p))),
        **put_under("norm1.", norm_weights(under("self_attention.norm.", p))),
        **put_under("linear1.", linear_weights(under("feed_forward.sublayer.expand.", p))),
        **put_under("linear2.", linear_weights(under("feed_forward.sublayer.contract.", p))),
        **put_under("norm2.", norm_weights(under("feed_forward.norm.", p))),
    }


def decoder_layer_weights(torch, p):
    """Our DecoderLayer as torch.nn.TransformerDecoderLayer's tensors."""
    weights = encoder_layer_weights(torch, p)
    across = cross_attention_weights(torch, under("cross_attention.sublayer.", p))
    last_norm = put_under("norm3.", under("norm2.", weights))  # the feed-forward network's is the third here
    middle_norm = put_under("norm2.", norm_weights(under("cross_attention.norm.", p)))
    return weights | put_under("multihead_attn.", across) | last_norm | middle_norm


def transformer_weights(torch, config, p):
    """Our two stacks as torch.nn.Transformer's tensors."""
    weights = {}
    for stack, layer_weights in (("encoder.", encoder_layer_weights), ("decoder.", decoder_layer_weights)):
        for i in range(config.num_layers):
            at = f"{stack}layers.{i}."
            weights |= put_under(at, layer_weights(torch, under(at, p)))
        if config.has_final_norm:
            weights |= put_under(f"{stack}norm.", norm_weights(under(f"{stack}norm.", p)))
    return weights


def call(torch, module, weights, *inputs, **options):
    """module(*inputs) with `weights` for all of its parameters; a missing or unexpected name is an error."""
    return torch.func.functional_call(module, weights, inputs, options, strict=True)


def block_options(torch, config):
    """The arguments that torch.nn.Transformer shares with its layers."""
    return {
        "d_model": config.d_model,
        "nhead": config.num_heads,
        "dim_feedforward": config.d_ff,
        "dropout": 0.0,
        "activation": config.activation,
        "layer_norm_eps": config.norm_eps,
        "norm_first": config.norm == "pre",
        "batch_first": True,
        "dtype": torch.float64,
    }


def transformer_module(torch, config):
    """A torch.nn.Transformer of this shape. Alone it always ends both stacks in a LayerNorm; else we build them."""
    options, N = block_options(torch, config), config.num_layers
    stacks = {}
    if not config.has_final_norm:
        encoder_layer = torch.nn.TransformerEncoderLayer(**options)
        decoder_layer = torch.nn.TransformerDecoderLayer(**options)
        stacks["custom_encoder"] = torch.nn.TransformerEncoder(encoder_layer, N, enable_nested_tensor=False)
        stacks["custom_decoder"] = torch.nn.TransformerDecoder(decoder_layer, N)
    with warnings.catch_warnings():
        # it says that a fast path for evaluation is off, which we do not use
        warnings.filterwarnings("ignore", message="enable_nested_tensor is True", category=UserWarning)
        return torch.nn.Transformer(num_encoder_layers=N, num_decoder_layers=N, **options, **stacks)


def ignored_by_order(torch, T, S):
    """(T, S), True where position t may not look at position s because s > t."""
    return ~torch.ones(T, S, dtype=torch.bool).tril()


def ignored(n, T, S, allowed):
    """Our mask, True = may attend, as (B H, T, S), True = ignore; None if there is none."""
    return None if allowed is None else ~allowed.expand(n.B, n.H, T, S).reshape(n.B * n.H, T, S)


def stack_masks(torch, source, target):
    """The masks of torch.nn.Transformer, for ids (B, S) and (B, T) in which 0 is padding."""
    T = target.shape[1]
    return {
        "src_key_padding_mask": source == 0,
        "tgt_key_padding_mask": target == 0,
        "memory_key_padding_mask": source == 0,
        "tgt_mask": ignored_by_order(torch, T, T),
    }
