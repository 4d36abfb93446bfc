"""The special tokens: the first ids of every vocabulary, and how they are written."""

PAD, BOS, EOS = 0, 1, 2  # padding, beginning of sequence, end of sequence
SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>")  # in the order of their ids
