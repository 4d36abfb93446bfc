"""Greedy decoding: always take the most likely token."""

from minitransformer.decoding.generate import generate


def greedy_decode(model, source, max_new_tokens):
    """The most likely next token, again and again, for a batch of sources (encoder-decoder) or prompts (GPT).

    source (B, S) ids, padded at the end -> (B, T) ids with T <= max_new_tokens: each row ends with eos (if it came to
    that within max_new_tokens) and is padded after it. Stops when all rows have produced eos.
    """
    state = model.decoding_state(source, max_new_tokens)
    return generate(state, state.prompt, max_new_tokens).ids
