"""A Transformer. Each save is judged by: minitransformer blank my_transformer.py

A piece is an object whose forward(*inputs) returns (y, cache), and whose backward(dy, cache) returns the gradient of
each input (a tuple if there are several) and adds the gradients of its weights. Two functions (forward, backward) are a
piece, too, and so is one function that returns (y, back), where back(dy) returns the gradients. A weight is an array
that has its gradient beside it: W and dW of one object, or data and grad. Or it is an input, an array, or a dictionary,
list or tuple of arrays, and its gradient is returned in the same form. Masks (arrays of booleans) and ids (integers)
have no gradient: None, or left out. They are inputs, because other lengths are tried, too; and backward is called twice
with one cache.

A piece is tried if you say on what: example(), a static method of its class or a function whose name begins with
example, returns (piece, inputs). model() returns the whole: a piece whose inputs are ids, source (B, S) and read
(B, T), and whose output is a score for each of 29 tokens, (B, T, 29). If its weights are an input, they come first, and
model() returns (piece, weights). Token 0 is padding, 1 begins and 2 ends a word, 3 to 28 are the letters a to z.

The pieces, in an order in which they can be proven: linear, ReLU, feed-forward, norm, attention of one head, of many,
residual, embedding with positions, encoder layer, decoder layer, the whole.
"""
