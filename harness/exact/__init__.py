"""Compute what every layer, loss and optimiser means, in numpy and float64."""
