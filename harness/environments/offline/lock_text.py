"""Read a lock of files by their hashes, as `Installer` writes it for pip."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.environments.offline.install import Refused
from harness.environments.package_index.pip import Item

_LINE = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[A-Za-z0-9.!+_-]+)"
    r" --hash=sha256:(?P<sha256>[0-9a-f]{64})"
)


def read_lock(text: str, addresses: Mapping[str, str]) -> list[Item]:
    """List what a lock installs; ``addresses`` says where the file of each hash lies."""
    items = []
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            raise Refused(f"a lock holds {line[:80]!r}, which is no package with its hash")
        if match["sha256"] not in addresses:
            raise Refused(f"{match['name']} {match['version']} is locked, and not packed")
        items.append(
            Item(match["name"], match["version"], addresses[match["sha256"]], match["sha256"])
        )
    return items
