"""Read and write lists of hosts as Slurm folds them: ``cn[001-003,7],login1``."""

from __future__ import annotations

import re

from harness.errors import UsageError

_PART = re.compile(r"([^,\[\]]*)(?:\[([0-9,-]+)\])?([^,\[\]]*)(?:,|$)")


def unfolded(text: str) -> tuple[str, ...]:
    """Name every host of a list."""
    found: list[str] = []
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None or match.end() == at:
            raise UsageError(f"'{text}' is no list of hosts; write h1,h2 or cn[01-04,7]")
        before, numbers, after = match.groups()
        if numbers is None:
            found += [before + after] if before + after else []
        else:
            found += [f"{before}{number}{after}" for number in _numbers(numbers)]
        at = match.end()
    return tuple(found)


def _numbers(text: str) -> list[str]:
    found = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        width = len(first)
        found += [f"{number:0{width}d}" for number in range(int(first), int(last or first) + 1)]
    return found
