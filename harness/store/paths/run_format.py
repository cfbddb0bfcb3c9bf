"""The format of a run directory, and the door through which a run of another one comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.errors import RunError

VERSION = 2  # 1: first; 2: the plan states the scale of each cell
"""Of a run directory: what ``run.json`` and ``plan.json`` say of it."""


def up_to_date(root: Path, raw: dict[str, Any]) -> dict[str, Any]:
    """Give what ``run.json`` or ``plan.json`` holds in today's format; refuse another one.

    Both files pass here before anything else reads them: when ``VERSION`` grows, what the format
    before it says is turned into today's here, and a run recorded in it stays in the tests.
    """
    version = raw.get("version")
    if version == VERSION:
        return raw
    is_newer = isinstance(version, int) and version > VERSION
    advice = "Update bakeoff" if is_newer else "Run the study again"
    has = "names no format" if version is None else f"has format {version}"
    raise RunError(
        f"{root}: this run {has}, and this bakeoff reads format {VERSION}. "
        f"{advice}, or use the bakeoff that wrote it."
    )
