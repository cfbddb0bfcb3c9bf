"""Why one cell is slower than another: the difference of their steps, layer by layer."""
