"""Exercise 18: what a text costs.

Difficulty 2 of 5, 15 minutes. See lesson 18, "One text, one price".

A model has predicted each token of some texts, and two numbers say how well. The perplexity per token is the famous
one, but it depends on the tokenizer. The bits per byte do not, so they can be compared between models.

    minitransformer check 18_bits_per_byte
"""

import numpy as np

PAD = 0  # after the end of a text; nothing is predicted there


def price(log_p, targets, texts):
    """log_p (B, T), the natural logarithm of the probability that the model gave to each target; targets (B, T), ids.

    `texts` has the text of each token of the vocabulary, a list of V strings. A text counts in UTF-8, which needs more
    than one byte for some characters. Padding and eos have the text "". The model must predict eos, and pays for it.
    The log_p of padding mean nothing.

    -> bits per byte, and perplexity per token: two numbers for all texts together
    """
    raise NotImplementedError("what is the logarithm of the probability of all texts together? Who is left out?")
