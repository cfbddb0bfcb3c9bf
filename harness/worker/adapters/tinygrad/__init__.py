"""tinygrad: lazy tensors, kernels written and compiled on the spot, one captured step."""
