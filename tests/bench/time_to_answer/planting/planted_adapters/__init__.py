"""Adapters of three frameworks with a known amount of work added to each step."""
