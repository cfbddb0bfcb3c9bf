"""The network vocabulary as torch modules, with the weights that all start from."""
