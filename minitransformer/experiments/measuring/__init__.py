"""What several experiments measure with: clocks, steps of training, the same models in PyTorch, counts, curvature."""
