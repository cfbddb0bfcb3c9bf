"""What an examination of the timed step finds wrong."""

from __future__ import annotations


class Untrained(Exception):
    """Say in what the step that was timed differs from training."""


def sentence(why: Untrained) -> str:
    """Put a fault into a sentence for a trial's outcome."""
    return f"the step that was timed does not train the network: {why}"
