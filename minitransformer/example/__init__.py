"""The running example: one short word and one tiny trained model, whose numbers go through all lessons.

The model reads "stop" and writes "pots". It is the paper's Transformer with one layer in each stack and sizes that are
all different, so that every matrix can be printed and no shape fits by accident:

    S = 4 source tokens    T = 5 target tokens    C = 6 features    H = 2 heads    D = 3    F = 8    V = 7 tokens

It learned to reverse words of one to four letters o, p, s and t. Training was stopped early: the model reverses 332 of
the 340 words and is still unsure about some letters, so its gradients are not 0. Its weights were then rounded to two
decimals, and the rounded weights are the model. So everybody gets the same numbers.

    from minitransformer.example import load_example

    example = load_example()
    logits = example.model(example.source, example.target_in)

All its numbers, forward and backward, are those of `numbers` in lessons/support/example_numbers.py.
"""

from minitransformer.example.model import Example, load_example

__all__ = ["Example", "load_example"]
