"""Ranks carried out on nodes, and how they ended."""
