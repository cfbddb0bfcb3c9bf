"""Runs as tables of a database, and queries over them."""
