"""Say how many rows of a long list a page shows before a reader unfolds the rest."""

from __future__ import annotations

FIRST = 10
_FEW = 14
"""So many rows are shown whole: folding fewer saves nothing."""


def is_folded(rows: int) -> bool:
    """Whether a list of so many rows shows only its first."""
    return rows > _FEW


def rest(rows: int) -> int:
    """Say how many rows of a list are folded at first."""
    return rows - FIRST if is_folded(rows) else 0
