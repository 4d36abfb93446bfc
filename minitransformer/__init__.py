"""minitransformer: "Attention Is All You Need" (Vaswani et al. 2017) by hand, forward and backward, in NumPy.

Reading order: `backend` and `core`, then `functional` (the mathematics), `layers` (who owns which parameter),
`models` (the Transformer of the paper), and from there `training`, `decoding` and `gradcheck`.
"""

__version__ = "0.1.0"
