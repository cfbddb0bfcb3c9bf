"""Proof of what a reader delivered, and of where its bytes came from."""
