"""Fixtures of studies and plans that know a fixed set of frameworks."""

from tests.fixed_frameworks import frameworks, machine, planned, refusal, write

__all__ = ("frameworks", "machine", "planned", "refusal", "write")
