"""Distributions that no index carries ready-made, built from their source."""
