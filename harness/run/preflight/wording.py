"""Put a refusal into the columns of a finding."""

from __future__ import annotations

from harness.errors import BakeoffError


def split(problem: BakeoffError) -> tuple[str, str]:
    """Give what was seen, and what to do about it: a refusal's first line, and the rest."""
    seen, _, remedy = str(problem).partition("\n")
    return seen, " ".join(remedy.split())
