"""Loaders of the standard library alone: what hands over batches of samples."""
