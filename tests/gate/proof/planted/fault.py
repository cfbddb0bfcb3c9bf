"""What a planted fault is: a network, a source, what stands there and what is put there."""

from __future__ import annotations

Fault = tuple[str, str, tuple[str, str], str]
"""A network, a file of the adapter, the change, and the words that name the fault."""


def counted(condition: str, step: str) -> str:
    """Step only where a condition on the number of steps so far holds."""
    taken = "self.taken = getattr(self, 'taken', 0) + 1"
    return f"{taken}\n            if {condition}:\n                {step}"
