"""Tell which of the variables that steer libraries this process really has."""

from __future__ import annotations

from typing import Dict, Iterable, Mapping

TAKE = "take"
LEAVE = "leave"
"""In a job: which variables are recorded, and which of those are not after all."""


def seen(
    environ: Mapping[str, str], patterns: Mapping[str, Iterable[str]], run: str
) -> Dict[str, str]:
    """Give them; paths below the run are told from it on."""
    take, leave = patterns.get(TAKE, ()), patterns.get(LEAVE, ())
    return {
        name: value.replace(run, "RUN")
        for name, value in sorted(environ.items())
        if matches(name, take) and not matches(name, leave)
    }


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Say whether a variable is one of the patterns': names, or beginnings of names and a star."""
    return any(name.startswith(one[:-1]) if one.endswith("*") else name == one for one in patterns)
