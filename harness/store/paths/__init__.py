"""Paths below a run directory: which names may be a part of them, and how they are opened."""
