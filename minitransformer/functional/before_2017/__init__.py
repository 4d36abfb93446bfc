"""Functions of the models that the Transformer replaced: recurrences, convolutions, additive attention."""
