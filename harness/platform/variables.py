"""Lay environments over each other, as a rank's is made of the machine's, the platform's and ours.

A variable of the upper one wins. Python's search path alone is joined: who names folders for a
framework adds them, and takes neither ours away nor a module set's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

SEARCH_PATH = "PYTHONPATH"


def laid_over(*environments: Mapping[str, str]) -> dict[str, str]:
    """Join environments, the lowest first; of search paths the upper one's folders come first."""
    found: dict[str, str] = {}
    for one in environments:
        path = _joined(one.get(SEARCH_PATH, ""), found.get(SEARCH_PATH, ""))
        found.update(one)
        if path:
            found[SEARCH_PATH] = path
    return found


def _joined(*paths: str) -> str:
    """Join search paths; an empty part, which is the current folder to Python, is left out."""
    folders = [folder for path in paths for folder in path.split(os.pathsep) if folder]
    return os.pathsep.join(dict.fromkeys(folders))
