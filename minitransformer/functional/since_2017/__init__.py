"""Functions of papers that came after 2017, and of the few years before that the paper did not use."""
