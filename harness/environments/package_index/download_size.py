"""Say, before anything is fetched, how large it is and how much lies on this machine."""

from __future__ import annotations

import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from harness.environments.package_index.pip import Item
from harness.units import decimal_size

_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Amount:
    """What an installation has to move; an unknown size is counted, never guessed."""

    files: int
    total_bytes: int
    here_bytes: int
    """On a local disk. What pip keeps in its cache is pip's own affair, and counted as to fetch."""
    unknown: int
    """How many files have a size that nobody said."""

    @property
    def fetch_bytes(self) -> int:
        """What comes over the network, as far as it is known."""
        return self.total_bytes - self.here_bytes

    def __str__(self) -> str:
        more = f", and {self.unknown} of unknown size" if self.unknown else ""
        return (
            f"{self.files} packages, {decimal_size(self.total_bytes)}: "
            f"{decimal_size(self.here_bytes)} here already, "
            f"{decimal_size(self.fetch_bytes)} to fetch{more}"
        )


def amount(items: Sequence[Item]) -> Amount:
    """Look up every file's size, on the disk or with its server."""
    local = [_local_bytes(item.url) for item in items]
    asked = [item.url for item, known in zip(items, local, strict=True) if known is None]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(_served_bytes, asked))
    here = sum(known for known in local if known is not None)
    fetched = sum(answer for answer in answers if answer is not None)
    return Amount(len(items), here + fetched, here, answers.count(None))


def _local_bytes(url: str) -> int | None:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "file":
        return None
    return Path(urllib.request.url2pathname(parts.path)).stat().st_size


def _served_bytes(url: str) -> int | None:
    if not url.startswith(("https://", "http://")):
        return None
    request = urllib.request.Request(url, method="HEAD")  # noqa: S310  scheme checked above
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            length = answer.headers.get("Content-Length")
    except (OSError, urllib.error.URLError):
        # No network, another certificate store than pip's: the size stays unknown.
        return None
    return int(length) if length else None
