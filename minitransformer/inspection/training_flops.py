"""Training FLOPs: the floating-point operations of a training step, from the configuration alone."""

import dataclasses

from minitransformer.config import Seq2SeqConfig, TransformerConfig
from minitransformer.functional.since_2017.activations import GATED
from minitransformer.inspection.activation_memory import count_parameters

FLOPS = 2 * 3  # of a multiply-add: one product and one sum, forward and twice backward


def training_flops(
    config: TransformerConfig | Seq2SeqConfig,
    source_tokens: float,
    target_tokens: float,
    source_length: float,
    target_length: float,
) -> dict[str, float]:
    """The operations in all matrix products of forward and backward of an encoder-decoder -> {term: FLOPs}.

    `source_tokens` and `target_tokens` are those of a batch, or of a whole training; `source_length` and
    `target_length` are the number of tokens in a sentence. A padded batch (B, S) has B S tokens in sentences of S. The
    mean length of a sentence is good enough for a training: only "scores and mixtures" depend on it.

    A product of (n, i) and (i, o) takes n i o multiply-adds, of 2 operations each. Backward takes twice as many as
    forward: dx = dy W^T and dW = x^T dy are products of the same size, and so are dq and dk, dp and dv in attention.
    Multiply-adds of a forward pass, with s source and t target tokens in sentences of S and T, in each of N layers:

        attention projections  4 C^2 for each token and each attention: q, k, v and the output. Cross-attention has q
                               and output for the target, k and v for the source
        feed-forward           2 C F for each token; 3 C F with a gate; k times that and C E for k of E experts
        scores and mixtures    2 C for each pair of query and key, q . k and p v: s S, t T and t S pairs. Full attention
                               computes those of the causal mask, too
        logits                 C V for each target token, once

    With G instead of H heads of keys, k and v have G / H as many columns; with d_k and d_v, q has H d_k, k has
    G d_k and v has G d_v, and a pair of query and key takes H (d_k + d_v). For a Seq2Seq with R hidden units:

        recurrent layers       4 R (I + R) for each token and layer of an LSTM, 3 R (I + R) of a GRU, where I is the
                               width of the input: C in the first layer, then R. Each of two directions has R / 2 units
        attention projections  2 R^2 for each target token for the output; for its query R^2 more, except with "dot";
                               with "additive" R^2 for the key of each source token
        scores and mixtures    2 R for each of the t S pairs
        logits                 R V for each target token

    Looking up embeddings takes no product. Not counted are the operations on single numbers: softmax, normalization,
    activations (the tanh of additive attention among them), biases, residual connections, dropout, loss, clipping and
    Adam. The logits of padding are counted, although `blockwise_loss` leaves them out. Raises ValueError for a kind of
    attention other than "full", which computes fewer pairs, or some of them twice.
    """
    if isinstance(config, Seq2SeqConfig):
        forward = _seq2seq(config, source_tokens, target_tokens, source_length)
    elif config.attention != "full":
        raise ValueError(f"training FLOPs are known for full attention only, got attention = {str(config.attention)!r}")
    else:
        forward = _transformer(config, source_tokens, target_tokens, source_length, target_length)
    return {term: FLOPS * multiply_adds for term, multiply_adds in forward.items()}


def _transformer(config, s, t, S, T):
    """The multiply-adds of a forward pass by term."""
    C, F, N = config.d_model, config.d_ff, config.num_layers
    (d_k, d_v), groups = config.head_widths, config.num_kv_heads or config.num_heads
    queries, values, keys_and_values = config.num_heads * d_k, config.num_heads * d_v, C * (d_k + d_v) * groups
    query_and_output = C * queries + values * C
    network = (3 if config.activation in GATED else 2) * C * F
    if config.experts:
        network = network * config.experts.per_token + C * config.experts.count
    return {
        # of the encoder's self-attention, the decoder's, and cross-attention
        "attention projections": N * (query_and_output * (s + t + t) + keys_and_values * (s + t + s)),
        "feed-forward": N * network * (s + t),
        "scores and mixtures": N * (queries + values) * (s * S + t * T + t * S),
        "logits": C * config.vocab_size * t,
    }


def _seq2seq(config, s, t, S):
    """The multiply-adds of a forward pass by term."""
    R, blocks = config.hidden_size, {"lstm": 4, "gru": 3}[config.cell]

    def recurrent(directions):
        """The multiply-adds of one token: a layer has R units, in one direction or shared by two."""
        units = R // directions
        inputs = [config.d_model] + [R] * (config.num_layers - 1)
        return sum(directions * blocks * units * (width + units) for width in inputs)

    additive, has_attention = config.attention == "additive", config.attention != "none"
    query = 0 if config.attention == "dot" else R * R
    return {
        "recurrent layers": s * recurrent(2 if config.bidirectional else 1) + t * recurrent(1),
        "attention projections": has_attention * ((query + 2 * R * R) * t + additive * R * R * s),
        "scores and mixtures": has_attention * 2 * R * t * S,
        "logits": R * config.vocab_size * t,
    }


def flops_by_parameters(config: TransformerConfig | Seq2SeqConfig, source_tokens: float, target_tokens: float) -> float:
    """6 N D: the usual estimate, 6 operations for each of N parameters and D tokens (Kaplan et al. 2020, section 2.1).

    Nearly every parameter is an entry of a matrix, used in one multiply-add for each token. In an encoder-decoder a
    token passes about half of the parameters, those of one stack, so D is the mean of source and target tokens. The
    estimate leaves out the scores of attention, and counts matrices that only embed tokens as if they were multiplied.
    Each use of a shared layer counts, and of experts those that a token uses.
    """
    if isinstance(config, TransformerConfig):
        active = config.experts and dataclasses.replace(config.experts, count=config.experts.per_token)
        config = dataclasses.replace(config, share_layers=False, experts=active)
    return 6.0 * count_parameters(config) * (source_tokens + target_tokens) / 2
