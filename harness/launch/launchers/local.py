"""Launch a job on this machine: N processes that find each other on a given port."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.launch import placement

SETTINGS: tuple[str, ...] = ()


def nodes(settings: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Name this machine: it needs no name to be reached."""
    del settings, environ  # it is always at hand
    return ("",)


def reach(node: str, argv: Sequence[str], settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the command as it is."""
    del node, settings  # there is nowhere to go
    return tuple(argv)


launch = placement.lay_out
