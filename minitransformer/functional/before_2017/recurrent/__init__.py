"""Recurrent layers, the Transformer's predecessors: one function for all steps of a sequence, and its backward.

lstm.py    long short-term memory (Hochreiter and Schmidhuber 1997; Gers et al. 2000)
gru.py     gated recurrent unit (Cho et al. 2014)
steps.py   what both need: the order of the arrays, and the checks

Both read x (B, T, I) and return y (B, T, R), with R hidden units. A sequence is read one token after the other, so of
the arithmetic only the product with the recurrent matrix stays inside the loop: the products with the inputs, and in
backward the gradients of all matrices, are one matrix product over all steps.
"""

from minitransformer.functional.before_2017.recurrent.gru import GRUCache, gru, gru_backward
from minitransformer.functional.before_2017.recurrent.lstm import LSTMCache, lstm, lstm_backward

__all__ = ["GRUCache", "LSTMCache", "gru", "gru_backward", "lstm", "lstm_backward"]
