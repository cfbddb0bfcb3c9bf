"""Weights, batches and layer inputs that the gate hands to frameworks."""
