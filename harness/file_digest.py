"""The digest of a file, by which it is known again."""

from __future__ import annotations

import hashlib
from pathlib import Path


def sha256(path: Path) -> str:
    """Digest a file's bytes, as sha256sum prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
