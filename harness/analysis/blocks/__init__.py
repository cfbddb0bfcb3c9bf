"""The cells of one run, compared block by block."""
