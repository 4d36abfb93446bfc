"""What is noticed during training: layers whose numbers are not finite, gradients that vanish."""
