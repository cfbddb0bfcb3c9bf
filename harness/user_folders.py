"""Name the folders that a user's programs keep things in, as the XDG specification says."""

from __future__ import annotations

import os
from pathlib import Path


def state_home() -> Path:
    """Give the folder of what this user's own work left to be known later."""
    return own_folder("XDG_STATE_HOME", ".local/state")


def own_folder(variable: str, below_home: str) -> Path:
    """Give our folder in the one that a variable names, or else in one below the user's home."""
    named = os.environ.get(variable)
    if named:
        return Path(named).absolute() / "bakeoff"
    home = os.path.expanduser("~")  # noqa: PTH111  a user without a name has none, and it says so
    return Path(home if os.path.isabs(home) else "/nonexistent") / below_home / "bakeoff"  # noqa: PTH117
