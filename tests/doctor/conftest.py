"""Fixtures of a framework that is small enough to build."""

from tests.tiny_fixtures import tiny, told

__all__ = ("tiny", "told")
