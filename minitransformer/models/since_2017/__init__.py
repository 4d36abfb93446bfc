"""Models that came after the paper: GPT, BERT and ViT, each of which is half of a Transformer, and T5."""
