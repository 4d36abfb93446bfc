"""Models that are half of a Transformer: GPT, BERT and ViT."""
