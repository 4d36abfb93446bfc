"""What a configuration claims about the size of its model, for a file to be checked before memory is allocated."""

from typing import Any

from minitransformer.config.predecessors import ConvConfig, Seq2SeqConfig
from minitransformer.config.transformer import TransformerConfig


def least_weights(config: Any) -> dict[str, int]:
    """Lower bounds on the number of weights that a file must have, by the fields that they follow from."""
    N, embeddings = config.num_layers, {"vocab_size * d_model": config.vocab_size * config.d_model}
    if isinstance(config, Seq2SeqConfig):  # one square matrix of every layer
        return {**embeddings, "hidden_size * hidden_size * num_layers": config.hidden_size**2 * N}
    if isinstance(config, ConvConfig):  # the kernels
        name = "kernel_size * d_model * d_model * num_layers"
        return {**embeddings, name: config.kernel_size * config.d_model**2 * N}
    experts = 1 if config.experts is None else config.experts.count
    matrix = config.d_ff * config.d_model * experts  # without the matrices of attention
    name = "d_ff * d_model" + " * num_experts" * (config.experts is not None)
    if config.share_layers:
        return {**embeddings, name: matrix, "num_layers": N}  # sharing has no bound; nobody uses a layer so often
    return {**embeddings, f"{name} * num_layers": matrix * N}


def table_sizes(config: Any) -> dict[str, int]:
    """Sizes of tables that are computed and not stored, by the fields that they follow from: the sinusoids."""
    is_transformer = isinstance(config, TransformerConfig)
    return {"max_len * d_model": config.max_len * config.d_model} if is_transformer else {}
