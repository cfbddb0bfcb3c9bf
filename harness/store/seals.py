"""Seal what is written for ever, so that what is changed by hand afterwards is not believed.

A digest finds a change, and stops no forger, who can make one too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.store import json_text
from harness.store.contained import MOST_EVENTS, Contained

_CHUNK = 1 << 20


def digest_of(held: Mapping[str, Any]) -> str:
    """Digest what a JSON file holds, as the one who reads it gets it back."""
    read_back = json_text.parse(json.dumps(held, sort_keys=True).encode())
    return hashlib.sha256(json.dumps(read_back, sort_keys=True).encode()).hexdigest()


def digest_of_file(files: Contained, path: Path) -> str:
    """Digest a file of a trial."""
    found = hashlib.sha256()
    with files.reading(files.checked(path, MOST_EVENTS)) as file:
        while piece := file.read(_CHUNK):
            found.update(piece)
    return found.hexdigest()
